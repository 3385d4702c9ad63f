#include "tools/bench_drive.hpp"

#include "base/text.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <system_error>

namespace leat::tools {

namespace fs = std::filesystem;

drive drive_of(const std::string& file, const fs::path& devices) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return {};
  std::error_code failure;
  fs::path place = fs::canonical(devices / str_cat(major(found.st_dev), ":", minor(found.st_dev)), failure);
  if (failure) return {};
  if (fs::exists(place / "partition", failure)) place = place.parent_path();
  drive made{.name = place.filename().string()};
  int polls = 0;
  made.polls = (std::ifstream(place / "queue" / "io_poll") >> polls) && polls == 1;
  return made;
}

std::uint64_t block_device_bytes(const std::string& path, const fs::path& devices) {
  constexpr std::uint64_t sector_bytes = 512;  // whatever the drive's own are
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0 || !S_ISBLK(found.st_mode)) return 0;
  std::uint64_t sectors = 0;
  std::ifstream(devices / str_cat(major(found.st_rdev), ":", minor(found.st_rdev)) / "size") >> sectors;
  return sectors * sector_bytes;
}

std::string shortcuts_text(const drive& on, const std::string& in_use) {
  const std::string name = on.name.empty() ? "the file lies on no block device" : "the drive is " + on.name;
  std::string text = "  polling ";
  if (in_use.find(", polled where") == std::string::npos) {
    str_append(text, "off (", name, on.polls ? ", which has queues for it" : ", which has no queues for it",
               on.is_nvme() && !on.polls ? "; boot with nvme.poll_queues=4" : "", ")\n");
  } else {
    str_append(text, "on (", name, ")\n");
  }
  str_append(text, "  NVMe passthrough off (", name,
             on.is_nvme() ? "; a passthrough reads its blocks and no file, and is not built\n"
                          : "; a passthrough reads the blocks of an NVMe drive and no file, and is not built\n");
  text.insert(text.size() - 1, ")");
  return text;
}

}  // namespace leat::tools
