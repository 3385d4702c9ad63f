// What the kernel says of the drive that a file lies on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace leat::tools {

/// Of a block device, as /sys has it.
struct drive {
  std::string name;  ///< "nvme0n1", "vda"; of a partition, that of the whole. Empty: the file lies on none (tmpfs, NFS)
  bool polls = false;  ///< has queues that can be polled (queue/io_poll)
  [[nodiscard]] bool is_nvme() const noexcept { return name.starts_with("nvme"); }
};

///   throws   nothing: what cannot be found out is not there
[[nodiscard]] drive drive_of(const std::string& file, const std::filesystem::path& devices = "/sys/dev/block");

/// The size of a block device, as /sys has it; 0 where the path is none.
[[nodiscard]] std::uint64_t block_device_bytes(const std::string& path,
                                               const std::filesystem::path& devices = "/sys/dev/block");

/// A line for each way to a drive that goes round what is in use, and why it is left out.
///   in_use   the backend's reason, as the reader reports it
[[nodiscard]] std::string shortcuts_text(const drive& on, const std::string& in_use);

}  // namespace leat::tools
