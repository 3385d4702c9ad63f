// Runs as a page that needs nothing beside it, as text, and as TensorBoard's event files.
#pragma once

#include "tools/recorded_run.hpp"
#include "tools/terminal.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace leat::tools {

///   runs             the first is held to the limits; others are drawn beside it
///   measures         of each run
///   price_per_hour   of the machine; 0: no costs are told
struct run_report {
  std::vector<recorded_run> runs;
  std::vector<std::vector<run_measure>> measures;
  std::vector<held_limit> limits;
  double price_per_hour = 0;

  [[nodiscard]] bool keeps_limits() const;
  /// About fifteen lines.
  [[nodiscard]] std::string as_text(const terminal& screen) const;
  /// Less than 300 KB however long the runs are: SVG and styles, no script, nothing from elsewhere. All text is escaped.
  [[nodiscard]] std::string as_html() const;
};

/// A run as the one event file of a folder: scalars by second. TFRecord of tensorflow.Event.
[[nodiscard]] std::string tensorboard_events(const recorded_run& run);

}  // namespace leat::tools
