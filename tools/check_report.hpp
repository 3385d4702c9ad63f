// What leat check tells: a screen, a JSON, and a list of samples for --exclude.
#pragma once

#include "tools/check_drift.hpp"
#include "tools/check_findings.hpp"
#include "tools/terminal.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace leat::tools {

///   sources, against   as they are shown
///   other              null: none was compared with
///   drift              from a report of before, if one was given
struct check_report {
  std::vector<std::string> sources;
  std::vector<std::string> against;
  unsigned bits_max = 0;
  const checked_samples& set;
  const checked_samples* other = nullptr;
  check_findings found;
  std::optional<check_drift> drift = std::nullopt;

  /// About twenty lines; of each kind the first few.
  [[nodiscard]] std::string as_text(const terminal& screen, double seconds) const;
  /// All of it. Nothing of the machine and of time: two runs over the same data write the same bytes.
  [[nodiscard]] nlohmann::ordered_json as_json() const;
  /// A line for each of to_leave_out(), with the reason behind a #; what only resembles another stands in comments.
  [[nodiscard]] std::string as_ids() const;
};

}  // namespace leat::tools
