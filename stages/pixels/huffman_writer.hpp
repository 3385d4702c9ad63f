// Codes coefficients with Huffman tables, ITU-T T.81 F.1.2.
#pragma once

#include "stages/pixels/libjpeg.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// A table's codes by their symbols. Plain data.
struct huffman_codes {
  std::uint16_t code[256];
  std::uint8_t length[256];  // 0: none

  void build(const JHUFF_TBL& from) noexcept;
};

/// Writes a scan's bits. Plain data: libjpeg's jumps may skip it.
struct huffman_writer {
  /// A block takes no more: 64 codes and values of 31 bits, each byte stuffed.
  static constexpr std::size_t block_bytes_max = std::size_t{2} * 64 * 4;

  std::byte* at;
  std::uint64_t bits;
  unsigned count;  // of bits that are no byte yet

  void begin(std::byte* to) noexcept { at = to, bits = 0, count = 0; }
  /// At most 31 bits.
  void put(std::uint32_t code, unsigned how_many) noexcept;
  /// Fills the last byte up.
  void pad(bool by_ones) noexcept;
  /// A byte with FF before it, behind padding.
  void put_marker(unsigned marker) noexcept;
  /// 64 values in natural order.
  ///   before    the DC value of the component's last block; becomes this one's
  ///   returns   false if the tables have no code for a value: what has been written then is of no use
  [[nodiscard]] bool put_block(const huffman_codes& dc, const huffman_codes& ac, int& before,
                               const std::int16_t* block) noexcept;
};

}  // namespace leat::pixels
