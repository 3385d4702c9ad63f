// What the kernel says of the drive that a file lies on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace leat::tools {

/// "nvme0n1", "vda"; of a partition, the name of the whole. Empty: the file lies on no block device (tmpfs, NFS).
///   throws   nothing: what cannot be found out is not there
[[nodiscard]] std::string drive_of(const std::string& file, const std::filesystem::path& devices = "/sys/dev/block");

/// The size of a block device, as /sys has it; 0 where the path is none.
[[nodiscard]] std::uint64_t block_device_bytes(const std::string& path,
                                               const std::filesystem::path& devices = "/sys/dev/block");

}  // namespace leat::tools
