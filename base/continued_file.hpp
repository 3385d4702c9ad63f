// A file of lines that a resumed run goes on with.
#pragma once

#include <cstdint>
#include <string>

namespace leat {

/// Opens `path` to append, cut off behind its first `bytes` (at least 1), which end a line: what a killed process wrote after the state
/// that counts them is gone. Returns the descriptor.
///   what     "the journal run.journal": begins each message
///   throws   error{errc::usage}: it is not there, is no regular file, is shorter, or has no end of a line there; nothing is cut then.
///            As explain_write()
[[nodiscard]] int continue_lines(const std::string& path, std::uint64_t bytes, const std::string& what);

}  // namespace leat
