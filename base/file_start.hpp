// What stands where a file is to be written that replaces whatever has its name.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace leat {

///   nothing      no file, or an empty one
///   same         a file that begins so: an older one of its kind
///   other        a file that begins otherwise, or cannot be read
///   not_a_file   a folder, a device, a pipe, which is not opened
enum class file_start : std::uint8_t { nothing, same, other, not_a_file };

/// The first bytes of a file, or as many as it has; none where it cannot be read.
[[nodiscard]] inline std::string first_bytes(const std::string& path, std::size_t bytes) {
  std::string begin(bytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(bytes));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  return begin;
}

[[nodiscard]] inline file_start look_at_start(const std::string& path, std::string_view magic) {
  struct stat there{};
  if (::stat(path.c_str(), &there) != 0) return file_start::nothing;
  if (!S_ISREG(there.st_mode)) return file_start::not_a_file;
  if (there.st_size == 0) return file_start::nothing;
  return first_bytes(path, magic.size()) == magic ? file_start::same : file_start::other;
}

}  // namespace leat
