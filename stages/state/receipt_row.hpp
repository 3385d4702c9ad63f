// What a receipt keeps of a row: 16 bytes.
#pragma once

#include <leat/digest.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leat::stages {

/// The first 12 bytes of the SHA-256 of the sample's name, then the first 4 of the row's digest: sorted, a name's rows are neighbours.
/// Another name with the key of one of 10^8 takes 2^69 trials (who makes up both names: 2^48). Of the row 32 bits are enough: its
/// digest is XXH3, which tells accidents and no forgers.
struct receipt_row {
  static constexpr std::size_t key_bytes = 12;
  static constexpr std::size_t digest_bytes = 4;
  std::array<std::uint8_t, key_bytes + digest_bytes> bytes{};

  friend auto operator<=>(const receipt_row&, const receipt_row&) = default;
};

[[nodiscard]] receipt_row receipt_row_of(std::string_view name, const digest& row) noexcept;

}  // namespace leat::stages
