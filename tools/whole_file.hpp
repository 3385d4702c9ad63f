// A file that the command is given beside its sources, whole.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace leat::tools {

/// All bytes of a file.
///   failure   set to 0, or to why it could not be read: an errno, EISDIR of a folder, EFBIG of one that has more than bytes_max
[[nodiscard]] std::string whole_file(const std::string& path, int& failure,
                                     std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max());

}  // namespace leat::tools
