#include "tools/bench_file.hpp"

#include "base/descriptor.hpp"
#include "base/errno_words.hpp"
#include "base/text.hpp"
#include "base/unfinished_file.hpp"

#include <leat/error.hpp>
#include <leat/units.hpp>

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace leat::tools {
namespace {

using namespace leat::literals;

constexpr std::uint64_t page_bytes = 4096;

/// The words of the file from `offset` on: each a hash of its place, so that a file can be known again.
void fill(std::span<std::uint64_t> words, std::uint64_t offset) noexcept {
  std::uint64_t n = offset / sizeof(std::uint64_t);
  for (std::uint64_t& word : words) {
    std::uint64_t x = 0x6C656174U + n++ * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    word = x ^ (x >> 31);
  }
}

[[noreturn]] void fail(const std::string& path, int failure) {
  throw explain_write(str_cat(path, ": --create"), failure,
                      {.no_room = "give a smaller --create or another place",
                       .too_large = "give a smaller --create or another place",
                       .no_folder = "make its directory first",
                       .not_allowed = "give a place that you may write to",
                       .taken = "somebody else made it meanwhile: give another PATH"});
}

/// Whether the page at `offset` is as fill() makes it.
bool has_page(int file, std::uint64_t offset) {
  std::uint64_t expected[page_bytes / sizeof(std::uint64_t)];
  std::uint64_t found[page_bytes / sizeof(std::uint64_t)];
  fill(expected, offset);
  return ::pread(file, found, page_bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(page_bytes) &&
         std::memcmp(found, expected, page_bytes) == 0;
}

/// Whether the file has what fill() makes, by pages from front to back.
bool is_ours(int file, std::uint64_t bytes) {
  constexpr std::uint64_t looks = 64;
  const std::uint64_t last = bytes / page_bytes - 1;
  for (std::uint64_t k = 0; k <= looks; ++k) {
    if (!has_page(file, last * k / looks * page_bytes)) return false;
  }
  return true;
}

void check_room(const std::string& path, std::uint64_t bytes) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  struct statvfs found{};
  if (::statvfs(parent.empty() ? "." : parent.c_str(), &found) != 0) fail(path, errno);
  const std::uint64_t room = std::uint64_t{found.f_bavail} * found.f_frsize;
  if (room < bytes) {
    throw error(errc::limit, str_cat(path, ": --create ", bytes_text(bytes), ": there is room for ", bytes_text(room),
                                     "; give a smaller one or another place"));
  }
}

void write_all(const std::string& path, int file, std::uint64_t bytes, const std::stop_token& stop) {
  // Reserved first: a disk that is too full says so now, and the extents are as long as it has them.
  if (::fallocate(file, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0 &&
      (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    fail(path, errno);
  }
  struct release {
    void operator()(std::uint64_t* words) const noexcept { std::free(words); }
  };
  const std::unique_ptr<std::uint64_t, release> block(
      static_cast<std::uint64_t*>(std::aligned_alloc(page_bytes, 1_MiB)));
  if (block == nullptr) throw std::bad_alloc();
  for (std::uint64_t at = 0; at < bytes;) {
    if (stop.stop_requested()) throw error(errc::cancelled, "nothing was left");
    const std::uint64_t size = std::min<std::uint64_t>(bytes - at, 1_MiB);
    fill({block.get(), size / sizeof(std::uint64_t)}, at);
    for (std::uint64_t done = 0; done < size;) {
      const ssize_t wrote = ::pwrite(file, reinterpret_cast<const std::byte*>(block.get()) + done, size - done,
                                     static_cast<off_t>(at + done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) fail(path, wrote == 0 ? EIO : errno);
      done += static_cast<std::uint64_t>(wrote);
    }
    at += size;
  }
  if (::fdatasync(file) != 0) fail(path, errno);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
}

/// Opens PATH.partial for us alone: new, or what a kill has left.
int open_partial(const std::string& path, const std::string& partial, const bench_file_news& news) {
  for (;;) {
    // Not through a link, nor waiting for the other end of a pipe.
    constexpr int flags = O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const int opened = ::open(partial.c_str(), flags, 0644);
    if (opened < 0) fail(path, errno);
    descriptor file(opened);
    // Held until the file is closed, which a kill does as well. Where there are no locks nobody is kept out.
    if (::flock(opened, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw error(errc::usage, str_cat(path, ": somebody is making it at this moment (", partial,
                                       " is locked); wait for that, or give another PATH"));
    }
    struct stat locked{};
    struct stat named{};
    if (::fstat(opened, &locked) != 0) fail(path, errno);
    if (::lstat(partial.c_str(), &named) != 0 || named.st_ino != locked.st_ino || named.st_dev != locked.st_dev) {
      continue;  // Whoever held the lock has given the file its name, or removed it.
    }
    const bool empty = locked.st_size == 0 && locked.st_blocks == 0;
    if (!S_ISREG(locked.st_mode) || (locked.st_size != 0 && !has_page(opened, 0))) {
      throw error(errc::usage, str_cat(partial, " is there, and is not what --create writes before it names it ", path,
                                       "; remove it, or give another PATH"));
    }
    if (::ftruncate(opened, 0) != 0) fail(path, errno);
    if (!empty && news.replaced) news.replaced();
    return file.release();
  }
}

}  // namespace

bool create_bench_file(const std::string& path, std::uint64_t bytes, const std::stop_token& stop,
                       const bench_file_news& news) {
  if (bytes == 0 || bytes % page_bytes != 0) {
    throw error(errc::usage, str_cat("--create ", bytes, ": give a multiple of 4096 bytes, as 8GiB"));
  }
  {
    const descriptor there(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat found{};
    if (there.get() >= 0 && ::fstat(there.get(), &found) == 0) {
      if (S_ISREG(found.st_mode) && static_cast<std::uint64_t>(found.st_size) == bytes && is_ours(there.get(), bytes)) {
        return false;
      }
      throw error(errc::usage, str_cat(path, " is there, and is no file that --create ", bytes_text(bytes),
                                       " made; give another PATH, or leave --create away to read this one"));
    }
    if (errno != ENOENT) fail(path, errno);
  }
  const std::string partial = path + ".partial";
  const descriptor file(open_partial(path, partial, news));
  try {
    check_room(path, bytes);
    // Past the page cache where the file system has that: Ctrl-C then waits for a MiB and not for all that is dirty. Set
    // afterwards, since some open() makes the file before it refuses the flag.
    static_cast<void>(::fcntl(file.get(), F_SETFL, O_DIRECT));
    write_all(path, file.get(), bytes, stop);
    if (const int failure = rename_file(partial, path, false); failure != 0) fail(path, failure);
  } catch (...) {
    struct stat begun{};
    const bool known = ::fstat(file.get(), &begun) == 0;
    // Nobody sees the file from here on. What it takes is freed when it is closed, at the end of this.
    ::unlink(partial.c_str());
    if (news.removed && stop.stop_requested()) {
      news.removed(known ? static_cast<std::uint64_t>(begun.st_blocks) * 512 : 0);
    }
    throw;
  }
  return true;
}

bool is_bench_file(const std::string& path) {
  const descriptor there(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat found{};
  return there.get() >= 0 && ::fstat(there.get(), &found) == 0 && S_ISREG(found.st_mode) &&
         static_cast<std::uint64_t>(found.st_size) >= page_bytes &&
         is_ours(there.get(), static_cast<std::uint64_t>(found.st_size));
}

std::optional<std::uint64_t> first_wrong_byte(std::span<const std::byte> read, std::uint64_t offset) {
  constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
  std::uint64_t expected[page_bytes / word_bytes];
  for (std::uint64_t at = offset; !read.empty();) {
    const std::uint64_t skipped = at % word_bytes;
    fill(expected, at - skipped);
    const std::size_t size = std::min<std::size_t>(sizeof expected - skipped, read.size());
    const std::span<const std::byte> right = std::as_bytes(std::span(expected)).subspan(skipped, size);
    if (const auto [wrong, ignored] =
            std::mismatch(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(size), right.begin());
        wrong - read.begin() < static_cast<std::ptrdiff_t>(size)) {
      return at + static_cast<std::uint64_t>(wrong - read.begin());
    }
    read = read.subspan(size);
    at += size;
  }
  return std::nullopt;
}

}  // namespace leat::tools
