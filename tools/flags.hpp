// The library says what it misses in a program's words; a person at the command line has flags.
#pragma once

#include <string>
#include <string_view>

namespace leat::tools {

/// A message of the library with the command's flags for the names of options: "host_bytes_max of 4.00 KiB is too small" is
/// "--host-bytes-max of 4.00 KiB is too small". What is part of a longer word or of a path stays.
[[nodiscard]] std::string in_flags(std::string_view message);

}  // namespace leat::tools
