// Samples by number, a line each, as `leat check --ids` writes them.
#pragma once

#include <leat/samples.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leat::tools {

/// The line by which a list says what it was made of: how many samples, and what a state names the dataset by.
[[nodiscard]] std::string made_of_line(const dataset& samples);

/// How a list's samples are told from others.
///   count   where the same samples are opened in another way than the list's were, and have another digest
enum class named_by : bool { digest, count };

/// Whether a list says that it was made of these samples; false where it cannot be read.
[[nodiscard]] bool is_list_of(const std::string& path, const dataset& samples);

/// Reads a file of sample numbers. Blank lines, and what stands behind a #, are nothing; but a made_of_line() has to be of these
/// samples, where there is one.
///   option    that named it, for messages
///   throws    error{errc::usage} naming file and line: no number, or of no sample; another dataset's; a line of more than a MiB; a
///             file that cannot be read
[[nodiscard]] std::vector<std::uint64_t> read_sample_list(const std::string& option, const std::string& path,
                                                          const dataset& samples, named_by how = named_by::digest);

}  // namespace leat::tools
