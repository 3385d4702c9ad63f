// Another program, run to its end.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tools {

/// What a shell would be given: its arguments, quoted where they need it.
[[nodiscard]] std::string command_line(const std::vector<std::string>& arguments);

/// Runs a program found on the path, with `input` on its standard input, and waits for it. Its standard error is thrown
/// away. A process group of its own: a terminal's Ctrl-C is for us, who ends it.
///   running   its process group while it runs, else 0: for who has to end it
///   returns   what it wrote
///   throws    error: not_found (it is not installed), io (it does not start, ended with another status than 0, or by a
///             signal: which)
[[nodiscard]] std::string run_program(const std::vector<std::string>& arguments, std::string_view input,
                                      std::atomic<int>& running);

}  // namespace leat::tools
