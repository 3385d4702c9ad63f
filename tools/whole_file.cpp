#include "tools/whole_file.hpp"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

namespace leat::tools {

std::string whole_file(const std::string& path, int& failure, std::uint64_t bytes_max) {
  std::error_code ignored;
  std::string text;
  failure = 0;
  if (std::filesystem::is_directory(path, ignored)) {
    failure = EISDIR;
    return text;
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> room(std::size_t{1} << 20);
  while (file.read(room.data(), static_cast<std::streamsize>(room.size())), file.gcount() > 0) {
    text.append(room.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > bytes_max) {
      failure = EFBIG;
      return text;
    }
  }
  if (!file.eof() || file.bad()) failure = errno != 0 ? errno : EIO;
  return text;
}

}  // namespace leat::tools
