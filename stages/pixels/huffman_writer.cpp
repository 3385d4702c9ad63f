#include "stages/pixels/huffman_writer.hpp"

#include "stages/pixels/zigzag.hpp"

#include <bit>
#include <cstdlib>

namespace leat::pixels {

void huffman_codes::build(const JHUFF_TBL& from) noexcept {
  *this = {};
  std::size_t at = 0;
  std::uint32_t next = 0;
  for (std::size_t bits = 1; bits <= 16; ++bits, next <<= 1) {
    for (int i = 0; i < from.bits[bits]; ++i, ++at, ++next) {
      const std::uint8_t symbol = from.huffval[at];
      if (length[symbol] != 0) continue;  // the shorter of two
      code[symbol] = static_cast<std::uint16_t>(next);
      length[symbol] = static_cast<std::uint8_t>(bits);
    }
  }
}

void huffman_writer::put(std::uint32_t code, unsigned how_many) noexcept {
  bits = bits << how_many | code;
  count += how_many;
  while (count >= 8) {
    count -= 8;
    const auto byte = static_cast<std::uint8_t>(bits >> count);
    *at++ = std::byte{byte};
    if (byte == 0xFF) *at++ = std::byte{0};
  }
}

void huffman_writer::pad(bool by_ones) noexcept {
  const unsigned missing = (8 - count) & 7U;
  put(by_ones ? (1U << missing) - 1 : 0, missing);
}

void huffman_writer::put_marker(unsigned marker) noexcept {
  *at++ = std::byte{0xFF};
  *at++ = static_cast<std::byte>(marker);
}

bool huffman_writer::put_block(const huffman_codes& dc, const huffman_codes& ac, int& before,
                               const std::int16_t* block) noexcept {
  const auto size_of = [](int value) {
    return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(std::abs(value))));
  };
  bool has_codes = true;
  const auto put_symbol = [&](const huffman_codes& table, unsigned symbol, int value, unsigned size) {
    const unsigned length = table.length[symbol];
    has_codes = has_codes && length != 0;
    const auto rest = static_cast<std::uint32_t>(value < 0 ? value - 1 : value) & ((1U << size) - 1);
    put(static_cast<std::uint32_t>(table.code[symbol]) << size | rest, length + size);
  };
  const int difference = block[0] - before;
  before = block[0];
  const unsigned dc_size = size_of(difference);
  if (dc_size > 15) return false;
  put_symbol(dc, dc_size, difference, dc_size);
  std::uint64_t nonzero = 0;
  for (std::size_t k = 1; k < 64; ++k) {
    nonzero |= static_cast<std::uint64_t>(block[natural_of_zigzag[k]] != 0) << k;
  }
  int last = 0;
  for (; nonzero != 0; nonzero &= nonzero - 1) {
    const int k = std::countr_zero(nonzero);
    int run = k - last - 1;
    last = k;
    for (; run >= 16; run -= 16) put_symbol(ac, 0xF0, 0, 0);
    const int value = block[natural_of_zigzag[static_cast<std::size_t>(k)]];
    const unsigned size = size_of(value);
    if (size > 15) return false;
    put_symbol(ac, static_cast<unsigned>(run) << 4 | size, value, size);
  }
  if (last != 63) put_symbol(ac, 0, 0, 0);
  return has_codes;
}

}  // namespace leat::pixels
