// Reads and writes at a place of a file, which go on where the system did less than was asked for.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// Bytes that were read: fewer than asked for where the file ends there, or where `failure`, an errno, is not 0.
struct bytes_read_at {
  std::size_t bytes = 0;
  int failure = 0;
};

[[nodiscard]] inline bytes_read_at read_at(int file, std::uint64_t offset, std::span<std::byte> into) noexcept {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(file, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {done, errno};
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return {done, 0};
}

/// 0 or an errno: of a file that takes no more ENOSPC.
[[nodiscard]] inline int write_at(int file, std::uint64_t offset, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return 0;
}

}  // namespace leat
