// Reads integers from bytes, in either order. The caller has checked that the bytes exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat::pixels {

using byte_span = std::span<const std::byte>;

[[nodiscard]] inline std::uint32_t byte_at(byte_span from, std::size_t at) noexcept {
  return std::to_integer<std::uint32_t>(from[at]);
}
[[nodiscard]] inline std::uint32_t big16(byte_span from, std::size_t at) noexcept {
  return byte_at(from, at) << 8 | byte_at(from, at + 1);
}
[[nodiscard]] inline std::uint32_t big32(byte_span from, std::size_t at) noexcept {
  return big16(from, at) << 16 | big16(from, at + 2);
}
[[nodiscard]] inline std::uint32_t little16(byte_span from, std::size_t at) noexcept {
  return byte_at(from, at) | byte_at(from, at + 1) << 8;
}
[[nodiscard]] inline std::uint32_t little24(byte_span from, std::size_t at) noexcept {
  return little16(from, at) | byte_at(from, at + 2) << 16;
}
[[nodiscard]] inline std::uint32_t little32(byte_span from, std::size_t at) noexcept {
  return little16(from, at) | little16(from, at + 2) << 16;
}

[[nodiscard]] inline std::string_view text_of(byte_span bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Whether the bytes from `at` on begin with `text`; false if they are too few.
[[nodiscard]] inline bool stands_at(byte_span from, std::size_t at, std::string_view text) noexcept {
  if (at > from.size() || from.size() - at < text.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (from[at + i] != static_cast<std::byte>(text[i])) return false;
  }
  return true;
}

}  // namespace leat::pixels
