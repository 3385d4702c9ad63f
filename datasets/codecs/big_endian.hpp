// Numbers as HDF5's filters write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::datasets {

///   bytes   at most 8
[[nodiscard]] inline std::uint64_t big_endian(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (const std::byte each : bytes) value = value << 8 | std::to_integer<std::uint64_t>(each);
  return value;
}

}  // namespace leat::datasets
