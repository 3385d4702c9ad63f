// Samples by number, a line each, as `leat check --ids` writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leat::tools {

/// Reads a file of sample numbers. Blank lines, and what stands behind a #, are nothing.
///   option    that named it, for messages
///   samples   how many the source has
///   throws    error{errc::usage} naming file and line: no number, or of no sample; a file that cannot be read
[[nodiscard]] std::vector<std::uint64_t> read_sample_list(const std::string& option, const std::string& path,
                                                          std::uint64_t samples);

}  // namespace leat::tools
