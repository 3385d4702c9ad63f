// Whether bytes are UTF-8, and where not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat {

/// What has to follow the first byte of a character (Unicode 15, table 3-7: no overlong forms, no surrogates).
///   bytes       how many; none: of ASCII it is the character, and no other byte begins one
///   low, high   what the first of them may be. The others are 0x80 to 0xBF
struct utf8_rest {
  std::size_t bytes = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;

  [[nodiscard]] static constexpr utf8_rest of(std::uint8_t lead) noexcept {
    if (lead < 0xC2 || lead > 0xF4) return {};
    utf8_rest rest{.bytes = lead >= 0xF0 ? 3U : lead >= 0xE0 ? 2U : 1U};
    if (lead == 0xE0) rest.low = 0xA0;
    if (lead == 0xF0) rest.low = 0x90;
    if (lead == 0xED) rest.high = 0x9F;
    if (lead == 0xF4) rest.high = 0x8F;
    return rest;
  }
  /// Whether it may be byte `number` of them, from 0.
  [[nodiscard]] constexpr bool takes(std::size_t number, std::uint8_t byte) const noexcept {
    return number == 0 ? byte >= low && byte <= high : (byte & 0xC0) == 0x80;
  }
};

/// The first byte that begins no well-formed character.
[[nodiscard]] inline std::optional<std::size_t> first_invalid_utf8(std::span<const std::byte> text) noexcept {
  std::size_t i = 0;
  const auto at = [&](std::size_t k) { return std::to_integer<std::uint8_t>(text[k]); };
  while (i < text.size()) {
    if (at(i) < 0x80) {
      ++i;
      continue;
    }
    const utf8_rest rest = utf8_rest::of(at(i));
    if (rest.bytes == 0 || text.size() - i <= rest.bytes) return i;
    for (std::size_t k = 0; k < rest.bytes; ++k) {
      if (!rest.takes(k, at(i + 1 + k))) return i;
    }
    i += rest.bytes + 1;
  }
  return std::nullopt;
}

}  // namespace leat
