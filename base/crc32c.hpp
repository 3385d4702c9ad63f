// A checksum that processors compute.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// The Castagnoli polynomial, reflected. By the processor's own instruction where it has one, which takes 8 bytes in 3 cycles.
///   source   RFC 3720, B.4
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

/// As records of TFRecord have it: masked, so that a checksum over bytes that hold checksums stays a good one.
///   source   tensorflow/core/lib/hash/crc32c.h, Mask()
[[nodiscard]] inline std::uint32_t masked_crc32c(std::span<const std::byte> bytes) noexcept {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8U;
}

/// The sums of pieces of the same size that lie behind one another: four at a time, since the instruction's result comes after 3 cycles
/// and another one can begin in each.
///   sums   one for each piece: pieces.size() == sums.size() * piece_bytes
void crc32c_of_each(std::span<const std::byte> pieces, std::size_t piece_bytes, std::span<std::uint32_t> sums) noexcept;

}  // namespace leat
