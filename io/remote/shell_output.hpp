// What a command of a shell prints, waited for so long and no longer.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace leat::io {

struct shell_result {
  std::string text;       ///< what it wrote to its standard output
  int exit_status = 0;    ///< -1: it ended by a signal
  bool is_late = false;   ///< it had not ended in time, and was killed
  bool is_large = false;  ///< it wrote more than `bytes_max`, and was killed
};

/// Runs `/bin/sh -c command`, with nothing on its standard input and in a process group of its own, which is killed where it is late:
/// what the command has started ends with it. Blocks.
///   throws   error{errc::io} it cannot be started
[[nodiscard]] shell_result shell_output(const std::string& command, std::size_t bytes_max,
                                        std::chrono::milliseconds patience);

}  // namespace leat::io
