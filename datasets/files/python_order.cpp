#include "datasets/files/python_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace leat::datasets {
namespace {

// Takes one code point off the front as os.fsdecode() sees it: valid UTF-8, or else one byte as a lone surrogate.
std::uint32_t take_code_point(std::string_view& text) noexcept {
  const auto byte = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    text.remove_prefix(1);
    return lead;
  }
  const std::size_t length = lead >= 0xF0 && lead <= 0xF4 ? 4 : lead >= 0xE0 && lead < 0xF0 ? 3 : lead >= 0xC2 ? 2 : 0;
  bool valid = length != 0 && lead <= 0xF4 && text.size() >= length;
  std::uint32_t point = length == 4 ? lead & 0x07 : length == 3 ? lead & 0x0F : lead & 0x1F;
  for (std::size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xC0) == 0x80;
    point = point << 6 | (byte(i) & 0x3F);
  }
  // Not the shortest form, a surrogate, or beyond Unicode.
  if (valid && length == 3) valid = point >= 0x800 && (point < 0xD800 || point > 0xDFFF);
  if (valid && length == 4) valid = point >= 0x10000 && point <= 0x10FFFF;
  if (!valid) {
    text.remove_prefix(1);
    return 0xDC00 + lead;
  }
  text.remove_prefix(length);
  return point;
}

}  // namespace

bool python_less(std::string_view a, std::string_view b) noexcept {
  const std::size_t common = std::min(a.size(), b.size());
  const std::size_t differs = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin()).first - a.begin());
  if (differs == common) return a.size() < b.size();
  const auto left = static_cast<unsigned char>(a[differs]);
  const auto right = static_cast<unsigned char>(b[differs]);
  if (left < 0x80 && right < 0x80) return left < right;
  // Whether a byte belongs to valid UTF-8 depends on what stands around it, so the strings are read from the front.
  while (!a.empty() && !b.empty()) {
    const std::uint32_t from_a = take_code_point(a);
    const std::uint32_t from_b = take_code_point(b);
    if (from_a != from_b) return from_a < from_b;
  }
  return a.empty() && !b.empty();
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::uint32_t point = take_code_point(text);
    if (point >= 0xD800 && point <= 0xDFFF) return false;
  }
  return true;
}

}  // namespace leat::datasets
