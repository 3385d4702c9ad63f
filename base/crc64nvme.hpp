// The checksum that AWS's tools give objects by default.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// CRC-64/NVME: the polynomial AD93D23594C93659, reflected. By carry-less multiplication where the processor has it.
///   source   NVM Express, NVM Command Set Specification 1.0, 5.2.1.3.4
[[nodiscard]] std::uint64_t crc64nvme(std::span<const std::byte> bytes) noexcept;

}  // namespace leat
