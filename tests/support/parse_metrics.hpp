// A parser of Prometheus' text format that takes nothing but what it allows.
#pragma once

#include <map>
#include <set>
#include <string>

namespace leat::testing {

struct metrics {
  std::map<std::string, double> values;      ///< by name and labels, as they stand in the line
  std::map<std::string, std::string> types;  ///< by name

  /// Throws std::out_of_range where there is no such line.
  [[nodiscard]] double value(const std::string& line) const { return values.at(line); }
  /// Of counters and buckets.
  [[nodiscard]] bool only_grows(const std::string& line) const;
};

/// Checks that names are names, labels are escaped, each family has its HELP and TYPE once and stands together, no line comes twice, and
/// buckets ascend to +Inf, which is the count.
///   throws   std::runtime_error with the line
[[nodiscard]] metrics parse_metrics(const std::string& text);

}  // namespace leat::testing
