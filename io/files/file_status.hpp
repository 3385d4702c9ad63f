// What statx(2) says of a file, newer fields included than the C library's headers may know.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace leat::io {

/// struct statx as the kernel writes it: include/uapi/linux/stat.h of Linux 6.11, without what nobody here asks for.
struct file_status {
  struct timestamp {
    std::int64_t seconds;
    std::uint32_t nanoseconds;
    std::int32_t reserved;
  };
  std::uint32_t mask;
  std::uint32_t block_bytes;
  std::uint64_t attributes;
  std::uint32_t links;
  std::uint32_t user;
  std::uint32_t group;
  std::uint16_t mode;
  std::uint16_t spare0;
  std::uint64_t inode;
  std::uint64_t size_bytes;
  std::uint64_t blocks;
  std::uint64_t attributes_mask;
  timestamp access_time, birth_time, change_time, write_time;
  std::uint32_t special_major, special_minor;
  std::uint32_t device_major, device_minor;
  std::uint64_t mount;
  std::uint32_t direct_memory_alignment;  ///< 0: no O_DIRECT; valid with mask_direct
  std::uint32_t direct_offset_alignment;
  std::uint64_t spare[12];

  static constexpr std::uint32_t mask_basic = 0x7FFU;    ///< STATX_BASIC_STATS
  static constexpr std::uint32_t mask_direct = 0x2000U;  ///< STATX_DIOALIGN, Linux 6.1

  [[nodiscard]] bool is_directory() const noexcept { return (mode & S_IFMT) == S_IFDIR; }
  /// A number that changes when the content does.
  [[nodiscard]] std::uint64_t version() const noexcept;
};
static_assert(sizeof(file_status) == 256);

/// Asks, and blocks on the disk. Returns 0 or an errno.
[[nodiscard]] int look_at(const char* path, file_status& out) noexcept;

/// Whether a file of this mode can be read at an offset: a regular file, a block device, or a directory, where the read itself
/// fails with EISDIR.
[[nodiscard]] constexpr bool has_offsets(unsigned mode) noexcept {
  return (mode & S_IFMT) == S_IFREG || (mode & S_IFMT) == S_IFBLK || (mode & S_IFMT) == S_IFDIR;
}

/// open(2) for reading. Where the path has become a pipe, it does not wait for a writer.
///   flags     besides O_RDONLY and O_CLOEXEC: O_DIRECT
///   returns   a descriptor, or a negative errno: ESPIPE for a pipe, a socket or a character device
[[nodiscard]] int open_to_read(const char* path, int flags = 0) noexcept;

/// The type of the file system mounted as this device ("ext4", "tmpfs"), from /proc/self/mountinfo; empty if unknown.
[[nodiscard]] std::string file_system_of(std::uint32_t device_major, std::uint32_t device_minor);

/// Whether a file system of this type ("proc", "sysfs") is made up by the kernel, and its files are switches and answers.
[[nodiscard]] bool is_made_up(std::string_view file_system) noexcept;

}  // namespace leat::io
