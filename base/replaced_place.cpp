#include "base/replaced_place.hpp"

#include "base/unfinished_file.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

namespace leat {
namespace {

bool is_of_processes(const std::string& folder) noexcept {
  struct statfs of{};
  return ::statfs(folder.c_str(), &of) == 0 && of.f_type == PROC_SUPER_MAGIC;
}

bool is_link(const std::string& path) noexcept {
  struct stat there{};
  return ::lstat(path.c_str(), &there) == 0 && S_ISLNK(there.st_mode);
}

// Link after link: what the last one of /proc leads to has a name of its own, but is not to be replaced by it.
std::optional<std::string> behind_links(std::string path) {
  constexpr int links_max = 40;  // path_resolution(7)
  for (int links = 0; links < links_max; ++links) {
    const std::string folder = folder_of(path);
    if (is_of_processes(folder)) return std::nullopt;
    if (!is_link(path)) break;
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
    if (length <= 0) break;
    const std::string to(target.data(), static_cast<std::size_t>(length));
    path = to.starts_with('/') ? to : folder + "/" + to;
  }
  return path;
}

}  // namespace

std::optional<std::string> replaced_place(const std::string& path) {
  struct stat there{};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) return std::nullopt;
  return behind_links(path);
}

int can_write_in_place(const std::string& path) {
  struct stat there{};
  if (::stat(path.c_str(), &there) == 0) {
    if (S_ISDIR(there.st_mode)) return EISDIR;
    return ::access(path.c_str(), W_OK) == 0 ? 0 : errno;
  }
  if (errno != ENOENT) return errno;
  const std::optional<std::string> place = behind_links(path);
  return ::access(folder_of(place.value_or(path)).c_str(), W_OK | X_OK) == 0 ? 0 : errno;
}

}  // namespace leat
