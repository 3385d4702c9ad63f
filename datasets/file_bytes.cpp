#include "datasets/file_bytes.hpp"

#include "io/text.hpp"

#include <leat/error.hpp>

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace leat::datasets {
namespace {

[[noreturn]] void refuse(const std::string& path, int failure) {
  const errc code = failure == ENOENT || failure == ENOTDIR ? errc::not_found
                    : failure == EACCES                     ? errc::permission
                                                            : errc::io;
  throw error(code, io::str_cat(path, ": ", std::generic_category().message(failure), "; check the path"));
}

}  // namespace

file_bytes::file_bytes(const std::string& path) : path_(path) {
  struct stat status{};
  // Looked at before it is opened: to open a pipe may wait for ever.
  if (::stat(path.c_str(), &status) != 0) refuse(path, errno);
  if (!S_ISREG(status.st_mode)) throw error(errc::usage, io::str_cat(path, ": is no regular file; give a file"));
  size_ = static_cast<std::uint64_t>(status.st_size);
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) refuse(path, errno);
}

file_bytes::~file_bytes() { ::close(descriptor_); }

std::size_t file_bytes::read(std::uint64_t offset, std::span<std::byte> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      throw error(errc::io, io::str_cat(path_, " at offset ", offset + done, ": ",
                                        std::generic_category().message(errno), "; is the disk damaged?"));
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::vector<std::byte> file_bytes::read(std::uint64_t offset, std::uint64_t bytes) const {
  std::vector<std::byte> content(std::min(bytes, size_ - std::min(size_, offset)));
  content.resize(read(offset, content));
  return content;
}

}  // namespace leat::datasets
