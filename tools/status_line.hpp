// One line at the bottom of the terminal that says how far things are.
#pragma once

#include "tools/terminal.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace leat::tools {

/// Redraws its line on standard error ten times a second, from a thread of its own; where standard error is no terminal
/// it does nothing at all. Gone without a trace when it ends.
///
/// Thread: `draw` runs on the line's own thread.
class status_line {
 public:
  /// `draw` gives the line, at most `columns` wide.
  using drawing = std::function<std::string(const terminal& screen, std::size_t columns)>;
  explicit status_line(drawing draw);
  status_line(const status_line&) = delete;
  status_line& operator=(const status_line&) = delete;
  ~status_line();

 private:
  void run();

  const terminal screen_;
  const drawing draw_;
  std::mutex mutex_;
  std::condition_variable ended_changed_;
  bool ended_ = false;
  std::thread thread_;  // Last: it uses all of the above.
};

/// A bar of `columns` columns, `share` (0 to 1) of it filled, to an eighth of a column where there is Unicode. The rest is
/// dotted, or blank.
enum class bar_rest : std::uint8_t { dotted, blank };
[[nodiscard]] std::string bar_text(const terminal& screen, std::size_t columns, double share,
                                   bar_rest rest = bar_rest::dotted);

/// A line of at most `columns`: a bar, as long as there is room for it, and then `end`, as far as it fits.
[[nodiscard]] std::string bar_line(const terminal& screen, std::size_t columns, double share, const std::string& end);

}  // namespace leat::tools
