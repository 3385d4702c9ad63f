#include "tools/page_cache.hpp"

#include "base/descriptor.hpp"
#include "base/text.hpp"

#include <absl/strings/str_format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

namespace leat::tools {
namespace {

constexpr double cold_share = 0.95;  // of the bytes: readahead of a block's neighbours serves a few others

descriptor opened(const std::string& path) {
  return descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

std::uint64_t size_of(int file) noexcept {
  struct stat found{};
  return ::fstat(file, &found) == 0 && S_ISREG(found.st_mode) ? static_cast<std::uint64_t>(found.st_size) : 0;
}

// Of other people's files mincore(2) says that all pages are there.
bool tells_us(int file) noexcept {
  struct stat found{};
  return ::fstat(file, &found) == 0 && (found.st_uid == ::geteuid() || ::geteuid() == 0);
}

std::optional<std::uint64_t> cached_bytes(int file) {
  if (!tells_us(file)) return std::nullopt;
  constexpr std::uint64_t window_bytes = std::uint64_t{1} << 30;
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there;
  std::uint64_t pages = 0;
  const std::uint64_t bytes = size_of(file);
  for (std::uint64_t at = 0; at < bytes; at += window_bytes) {
    const std::size_t size = std::min(window_bytes, bytes - at);
    void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, static_cast<off_t>(at));
    if (mapped == MAP_FAILED) return std::nullopt;
    there.resize((size + page_bytes - 1) / page_bytes);
    const bool told = ::mincore(mapped, size, there.data()) == 0;
    ::munmap(mapped, size);
    if (!told) return std::nullopt;
    pages += static_cast<std::uint64_t>(
        std::count_if(there.begin(), there.end(), [](unsigned char each) { return (each & 1) != 0; }));
  }
  return std::min(pages * page_bytes, bytes);
}

}  // namespace

void page_cache_of::write_out() const {
  for (const std::string& path : paths_) static_cast<void>(::fdatasync(opened(path).get()));
}

void page_cache_of::drop() const {
  for (const std::string& path : paths_) {
    static_cast<void>(::posix_fadvise(opened(path).get(), 0, 0, POSIX_FADV_DONTNEED));
  }
}

std::optional<std::uint64_t> page_cache_of::bytes() const {
  std::uint64_t sum = 0;
  for (const std::string& path : paths_) {
    const descriptor file = opened(path);
    if (file.get() < 0) continue;
    const std::optional<std::uint64_t> one = cached_bytes(file.get());
    if (!one) return std::nullopt;
    sum += *one;
  }
  return sum;
}

std::optional<std::uint64_t> bytes_from_drives() {
  std::ifstream file("/proc/self/io");
  for (std::string key; file >> key;) {
    std::uint64_t value = 0;
    if (!(file >> value)) break;
    if (key == "read_bytes:") return value;
  }
  return std::nullopt;
}

std::string why_warm(const cached_run& run) {
  if (run.kept && static_cast<double>(*run.kept) > (1 - cold_share) * static_cast<double>(run.file_bytes)) {
    return str_cat(bytes_text(*run.kept), " of the files' ", bytes_text(run.file_bytes),
                   " stay in memory when they are dropped");
  }
  if (run.drive && static_cast<double>(*run.drive) < cold_share * static_cast<double>(run.bytes)) {
    return absl::StrFormat("%.3g %% of the bytes came from a drive",
                           100 * static_cast<double>(*run.drive) / static_cast<double>(run.bytes));
  }
  if (!run.kept && !run.drive) return "the kernel does not tell what came from a drive";
  return {};
}

std::optional<std::uint64_t> bytes_on_drive(const std::string& path) {
  const descriptor file = opened(path);
  if (file.get() < 0) return std::nullopt;
  const auto size = static_cast<off_t>(size_of(file.get()));
  std::uint64_t sum = 0;
  for (off_t at = 0; at < size;) {
    const off_t data = ::lseek(file.get(), at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? std::optional(sum) : std::nullopt;
    const off_t hole = ::lseek(file.get(), data, SEEK_HOLE);
    if (hole < 0) return std::nullopt;
    sum += static_cast<std::uint64_t>(std::min(hole, size) - data);
    at = hole;
  }
  return sum;
}

}  // namespace leat::tools
