// Starts another program.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace leat {

/// What it has for its standard streams: descriptors.
///   input    -1: /dev/null
///   errors   false: its standard error is thrown away; else it is ours
struct process_streams {
  int input = -1;
  int output = 1;
  bool errors = true;
};

/// Starts a program that is found on the path, with signals and a process group of its own: ours may be blocked or ignored, and a
/// terminal's Ctrl-C is for us.
///   process   its number, and its group's
///   returns   0, or an errno
[[nodiscard]] int start_process(const std::vector<std::string>& arguments, const process_streams& streams,
                                pid_t& process);

}  // namespace leat
