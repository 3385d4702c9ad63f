// Figures of a GPU beside their targets: one list, printed as a table, kept as JSON, and written as a page of results/.
#pragma once

#include "benchmarks/measure.hpp"

#include <cstddef>
#include <cstdint>
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

/// The steps of a loader's first batches, which no figure of steps counts: host memory is pinned as a batch first leaves from it,
/// and CUDA does not overlap that with other work. Each figure holds one value a round.
class first_steps {
 public:
  struct round {
    std::size_t steps = 0;
    double took_ms = 0;     ///< all of them together
    double later_ms = 0;    ///< a step after them
    std::size_t pins = 0;   ///< calls of cudaHostRegister()
    double pinning_ms = 0;  ///< all of those together
  };
  void add(const round& measured);

  /// What they took longer than as many later ones, and what it was computed from.
  [[nodiscard]] report_line report(std::string under) const;

 private:
  figure more_ms_, steps_, step_ms_, later_ms_, pins_, pinning_ms_;
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
