// Where a file goes that is written under another name first: its links are followed, and not everything may be replaced.
#pragma once

#include <optional>
#include <string>

namespace leat {

/// `path` behind its links, for a rename. Nothing where it is written to in place: a device, a pipe, a folder (which open(2) refuses), and
/// the files that a process has open, whatever leads to them (/dev/stdout is /proc/self/fd/1).
[[nodiscard]] std::optional<std::string> replaced_place(const std::string& path);

/// Whether a file can be begun or emptied there. Returns 0 or the errno; makes and opens nothing.
[[nodiscard]] int can_write_in_place(const std::string& path);

}  // namespace leat
