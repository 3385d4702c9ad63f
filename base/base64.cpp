#include "base/base64.hpp"

#include <cstddef>
#include <cstdint>

namespace leat {
namespace {

constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view space = " \t\n\v\f\r";

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i)
      three = three << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? letters[three >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t kept = 0;
  std::size_t count = 0;  // of letters
  std::size_t padding = 0;
  for (const char each : text) {
    if (space.find(each) != std::string_view::npos) continue;
    if (each == '=') {
      ++padding;
      continue;
    }
    const std::size_t value = letters.find(each);
    if (value == std::string_view::npos || padding != 0) return std::nullopt;
    kept = kept << 6 | static_cast<std::uint32_t>(value);
    ++count;
    if (count % 4 == 0) {
      for (int shift = 16; shift >= 0; shift -= 8) bytes += static_cast<char>(kept >> shift & 0xFF);
      kept = 0;
    }
  }
  const std::size_t rest = count % 4;
  if (rest == 1 || (padding != 0 && padding != (4 - rest) % 4)) return std::nullopt;
  if (rest == 2) bytes += static_cast<char>(kept >> 4);
  if (rest == 3) {
    bytes += static_cast<char>(kept >> 10 & 0xFF);
    bytes += static_cast<char>(kept >> 2 & 0xFF);
  }
  return bytes;
}

}  // namespace leat
