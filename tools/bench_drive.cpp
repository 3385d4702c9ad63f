#include "tools/bench_drive.hpp"

#include "base/text.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <system_error>

namespace leat::tools {

namespace fs = std::filesystem;

std::string drive_of(const std::string& file, const fs::path& devices) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return {};
  std::error_code failure;
  fs::path place = fs::canonical(devices / str_cat(major(found.st_dev), ":", minor(found.st_dev)), failure);
  if (failure) return {};
  if (fs::exists(place / "partition", failure)) place = place.parent_path();
  return place.filename().string();
}

std::uint64_t block_device_bytes(const std::string& path, const fs::path& devices) {
  constexpr std::uint64_t sector_bytes = 512;  // whatever the drive's own are
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0 || !S_ISBLK(found.st_mode)) return 0;
  std::uint64_t sectors = 0;
  std::ifstream(devices / str_cat(major(found.st_rdev), ":", minor(found.st_rdev)) / "size") >> sectors;
  return sectors * sector_bytes;
}

}  // namespace leat::tools
