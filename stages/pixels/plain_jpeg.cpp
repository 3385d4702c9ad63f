#include "stages/pixels/plain_jpeg.hpp"

namespace leat::pixels {
namespace {

struct headers {
  std::uint32_t components = 0;
  bool is_known_sampling = false;
  bool has_rgb_names = false;
  bool is_jfif = false;
  bool has_adobe = false;
  std::uint32_t adobe_transform = 0;
};

// SOF0.
bool read_frame(byte_span segment, headers& to) noexcept {
  if (to.components != 0 || segment.size() < 6 || byte_at(segment, 0) != 8) return false;
  if (big16(segment, 1) == 0 || big16(segment, 3) == 0) return false;
  to.components = byte_at(segment, 5);
  if (segment.size() != 6 + 3 * std::size_t{to.components}) return false;
  const auto name = [&](std::size_t i) { return byte_at(segment, 6 + 3 * i); };
  const auto sampling = [&](std::size_t i) { return byte_at(segment, 7 + 3 * i); };
  if (to.components == 1) {
    to.is_known_sampling = sampling(0) == 0x11;
    return true;
  }
  if (to.components != 3) return false;
  to.has_rgb_names = name(0) == 'R' && name(1) == 'G' && name(2) == 'B';
  const std::uint32_t luma = sampling(0);
  to.is_known_sampling =
      (luma == 0x11 || luma == 0x21 || luma == 0x22 || luma == 0x12) && sampling(1) == 0x11 && sampling(2) == 0x11;
  return true;
}

void read_adobe(byte_span segment, headers& to) noexcept {
  if (!stands_at(segment, 0, "Adobe") || segment.size() < 12) return;
  to.has_adobe = true;
  to.adobe_transform = byte_at(segment, 11);
}

bool is_grey_or_ycbcr(const headers& of) noexcept {
  if (of.components == 1) return true;
  if (of.is_jfif) return true;
  return of.has_adobe ? of.adobe_transform == 1 : !of.has_rgb_names;
}

// SOS: all components, and all coefficients at once.
bool is_only_scan(byte_span segment, const headers& of) noexcept {
  const std::size_t count = of.components;
  return segment.size() == 4 + 2 * count && byte_at(segment, 0) == count && byte_at(segment, 1 + 2 * count) == 0 &&
         byte_at(segment, 2 + 2 * count) == 63 && byte_at(segment, 3 + 2 * count) == 0;
}

}  // namespace

bool is_plain_jpeg(byte_span file) noexcept {
  if (!stands_at(file, 0, "\xFF\xD8")) return false;
  headers all;
  std::size_t at = 2;
  for (;;) {
    if (file.size() - at < 4 || byte_at(file, at) != 0xFF) return false;
    const std::uint32_t marker = byte_at(file, at + 1);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    if (marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD9)) return false;  // no segment follows
    const std::size_t length = big16(file, at + 2);
    if (length < 2 || file.size() - at - 2 < length) return false;
    const byte_span segment = file.subspan(at + 4, length - 2);
    at += 2 + length;
    if (marker == 0xC0) {
      if (!read_frame(segment, all)) return false;
    } else if (marker > 0xC0 && marker <= 0xCF && marker != 0xC4) {
      return false;  // another process, or arithmetic codes
    } else if (marker == 0xE0) {
      all.is_jfif = all.is_jfif || stands_at(segment, 0, std::string_view("JFIF\0", 5));
    } else if (marker == 0xEE) {
      read_adobe(segment, all);
    } else if (marker == 0xDA) {
      return all.components != 0 && all.is_known_sampling && is_grey_or_ycbcr(all) && is_only_scan(segment, all) &&
             file.size() - at > 2 && stands_at(file, file.size() - 2, "\xFF\xD9");
    }
  }
}

}  // namespace leat::pixels
