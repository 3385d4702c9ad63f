// Whether bytes are UTF-8, and where not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat {

/// The first byte that begins no well-formed character (Unicode 15, table 3-7: no overlong forms, no surrogates).
[[nodiscard]] inline std::optional<std::size_t> first_invalid_utf8(std::span<const std::byte> text) noexcept {
  std::size_t i = 0;
  const auto at = [&](std::size_t k) { return std::to_integer<std::uint8_t>(text[k]); };
  while (i < text.size()) {
    const std::uint8_t lead = at(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - i <= more) return i;
    const std::uint8_t second = at(i + 1);
    const std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (second < low || second > high) return i;
    for (std::size_t k = 2; k <= more; ++k) {
      if ((at(i + k) & 0xC0) != 0x80) return i;
    }
    i += more + 1;
  }
  return std::nullopt;
}

}  // namespace leat
