#include "datasets/files/file_bytes.hpp"

#include "base/descriptor.hpp"
#include "base/file_at.hpp"
#include "base/text.hpp"
#include "datasets/files/file_staleness.hpp"
#include "datasets/files/path_error.hpp"
#include "io/files/file_status.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>
#include <sys/uio.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace leat::datasets {

local_file::local_file(const std::string& path) : file_bytes(path) {
  descriptor opened(io::open_to_read(path.c_str()));
  if (opened.get() < 0 && opened.get() != -ESPIPE) throw path_error(-opened.get(), path, "check the path");
  struct stat status{};
  const bool looked = opened.get() >= 0 && ::fstat(opened.get(), &status) == 0;
  if (!looked || !S_ISREG(status.st_mode)) {
    throw error(errc::usage, looked && S_ISDIR(status.st_mode)
                                 ? str_cat(path, ": is a folder; give the files in it, as '", path, "/*'")
                                 : str_cat(path, ": is no regular file; give a file"));
  }
  descriptor_ = opened.release();
  set_size(static_cast<std::uint64_t>(status.st_size));
}

local_file::~local_file() { ::close(descriptor_); }

// By the path, as file_staleness looks again.
std::uint64_t local_file::version() const { return version_on_disk(path()); }

std::size_t local_file::read(std::uint64_t offset, std::span<std::byte> into) const {
  const auto [done, failure] = read_at(descriptor_, offset, into);
  if (failure != 0) {
    throw error(errc::io, str_cat(path(), " at offset ", offset + done, ": ", std::generic_category().message(failure),
                                  "; is the disk damaged?"));
  }
  return done;
}

void file_bytes::read_all(std::span<piece> pieces) const {
  for (piece& each : pieces) each.into = each.into.first(read(each.offset, each.into));
}

void local_file::read_all(std::span<piece> pieces) const {
  std::vector<piece*> elsewhere;
  for (piece& each : pieces) {
    const iovec to{each.into.data(), each.into.size()};
    // On a file system that does not know the flag nothing is copied here.
    const ssize_t got = ::preadv2(descriptor_, &to, 1, static_cast<off_t>(each.offset), RWF_NOWAIT);
    if (got >= 0 && static_cast<std::size_t>(got) == each.into.size()) continue;
    ::posix_fadvise(descriptor_, static_cast<off_t>(each.offset), static_cast<off_t>(each.into.size()),
                    POSIX_FADV_WILLNEED);
    elsewhere.push_back(&each);
  }
  for (piece* const each : elsewhere) each->into = each->into.first(read(each->offset, each->into));
}

std::vector<std::byte> file_bytes::read(std::uint64_t offset, std::uint64_t bytes) const {
  std::vector<std::byte> content(std::min(bytes, size_ - std::min(size_, offset)));
  content.resize(read(offset, content));
  return content;
}

}  // namespace leat::datasets
