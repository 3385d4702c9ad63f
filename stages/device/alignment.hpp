// Where parts of a device's memory begin: at multiples of 16 bytes, which a thread of a kernel loads at once.
#pragma once

#include <cstdint>

namespace leat::stages {

[[nodiscard]] constexpr std::uint64_t device_aligned(std::uint64_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

}  // namespace leat::stages
