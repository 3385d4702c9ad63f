// A reflected CRC by tables, where the processor has no instruction that computes it: base/crc32c, base/crc64nvme.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leat {

/// Times x modulo the polynomial. Reflected: the lowest bit is the coefficient of the highest power.
template <std::unsigned_integral Crc, Crc polynomial>
constexpr Crc crc_times_x(Crc value) {
  return (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0);
}

/// Eight bytes at a time: table k has what a byte becomes that k more bytes follow.
template <std::unsigned_integral Crc, Crc polynomial>
inline constexpr auto crc_tables = [] {
  std::array<std::array<Crc, 256>, 8> all{};
  for (std::size_t value = 0; value < 256; ++value) {
    auto crc = static_cast<Crc>(value);
    for (int bit = 0; bit < 8; ++bit) crc = crc_times_x<Crc, polynomial>(crc);
    all[0][value] = crc;
  }
  for (std::size_t k = 1; k < all.size(); ++k) {
    for (std::size_t value = 0; value < 256; ++value) {
      all[k][value] = (all[k - 1][value] >> 8) ^ all[0][all[k - 1][value] & 0xFF];
    }
  }
  return all;
}();

/// Goes on from the state `crc`, which is not inverted.
template <std::unsigned_integral Crc, Crc polynomial>
Crc crc_by_tables(std::span<const std::byte> bytes, Crc crc) noexcept {
  static_assert(std::endian::native == std::endian::little);
  constexpr auto& of = crc_tables<Crc, polynomial>;
  while (bytes.size() >= of.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < of.size(); ++k) crc ^= of[of.size() - 1 - k][(word >> (8 * k)) & 0xFF];
    bytes = bytes.subspan(of.size());
  }
  for (const std::byte each : bytes) crc = (crc >> 8) ^ of[0][(crc ^ std::to_integer<Crc>(each)) & 0xFF];
  return crc;
}

}  // namespace leat
