// What an errno of a file means, in words: its usual cause and a remedy, for reading (errno_table.hpp) and for writing.
#pragma once

#include <leat/error.hpp>

#include <string>
#include <string_view>

namespace leat {

/// "EIO", "ENOENT" ...; the number where it has no name.
[[nodiscard]] std::string errno_name(int code);

/// The kind of error that it is when a file is opened or read.
[[nodiscard]] errc kind_of(int failure) noexcept;

/// "the device or file system failed (EIO); look at dmesg: ...": the usual cause of an errno of read, open or stat, and a remedy.
[[nodiscard]] std::string errno_words(int failure);

/// What to do when a file cannot be made, written or renamed, by the cause.
struct write_remedies {
  std::string_view no_room = "make room, or name a file on another disk";
  std::string_view too_large = "the file system takes no file of this size";
  std::string_view no_folder = "make its folder first";
  std::string_view not_allowed = "name a file where you may write";
  std::string_view taken = "name a file";  ///< by a directory, or by what may not be replaced
  std::string_view busy = "another process is writing it";
  std::string_view other = "see dmesg for what the disk says";
};

/// "WHAT: No space left on device; make room, or name a file on another disk".
[[nodiscard]] error explain_write(std::string_view what, int failure, const write_remedies& remedies = {});

}  // namespace leat
