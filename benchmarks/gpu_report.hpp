// Figures of a GPU beside their targets: one list, printed as a table, kept as JSON, and written as a page of results/.
#pragma once

#include "benchmarks/measure.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::benchmarks {

/// What a figure has to keep to.
struct target {
  enum class sense : std::uint8_t { at_most, at_least };
  sense how = sense::at_most;
  double value = 0;
};

/// A number with its unit, measured once per round.
///   unit       empty for ratios
///   decimals   as printed
struct measured {
  std::string name;
  figure value;
  std::string unit;
  int decimals = 2;
};

/// One figure, and what it was computed from, side by side and from the same run.
struct report_line {
  measured what;
  std::string under;  ///< "photographs, steps of 5 ms"
  std::optional<leat::benchmarks::target> target = {};
  std::vector<measured> of = {};

  /// Whether the median keeps to the target; true where there is none.
  [[nodiscard]] bool met() const;
};

/// All of a run.
struct gpu_report {
  using fact = std::pair<std::string, std::string>;
  std::vector<fact> facts;  ///< device, driver, link, commit, ... in the order in which they are printed
  std::vector<report_line> lines;
  std::vector<std::string> left_out;  ///< what was not measured, and why

  /// For a terminal.
  [[nodiscard]] std::string as_table() const;
  /// {"facts": {...}, "figures": [{name, under, unit, median, low, high, rounds, target, of}], "left_out": [...]}
  [[nodiscard]] std::string as_json() const;
  /// A page, beginning with `title`.
  [[nodiscard]] std::string as_markdown(const std::string& title) const;
};

}  // namespace leat::benchmarks
