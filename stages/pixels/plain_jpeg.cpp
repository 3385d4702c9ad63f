#include "stages/pixels/plain_jpeg.hpp"

namespace leat::pixels {
namespace {

// Tables: a bit for each number.
struct headers {
  std::uint32_t components = 0;
  std::uint32_t names[3] = {};
  std::uint32_t quantisation[3] = {};
  std::uint32_t quantisation_given = 0;
  std::uint32_t dc_codes_given = 0;
  std::uint32_t ac_codes_given = 0;
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
  if (to.components != 1 && to.components != 3) return false;
  for (std::size_t i = 0; i < to.components; ++i) {
    to.names[i] = byte_at(segment, 6 + 3 * i);
    to.quantisation[i] = byte_at(segment, 8 + 3 * i);
  }
  const auto sampling = [&](std::size_t i) { return byte_at(segment, 7 + 3 * i); };
  if (to.components == 1) {
    to.is_known_sampling = sampling(0) == 0x11;
    return true;
  }
  to.has_rgb_names = to.names[0] == 'R' && to.names[1] == 'G' && to.names[2] == 'B';
  const std::uint32_t luma = sampling(0);
  to.is_known_sampling =
      (luma == 0x11 || luma == 0x21 || luma == 0x22 || luma == 0x12) && sampling(1) == 0x11 && sampling(2) == 0x11;
  return true;
}

// DQT: of 8 bits, as baseline has them.
bool read_quantisation(byte_span segment, headers& to) noexcept {
  constexpr std::size_t table_bytes = 1 + 64;
  for (; segment.size() >= table_bytes; segment = segment.subspan(table_bytes)) {
    const std::uint32_t number = byte_at(segment, 0);
    if (number > 3) return false;
    to.quantisation_given |= 1U << number;
  }
  return segment.empty();
}

// DHT: two of each class, as baseline has them.
bool read_codes(byte_span segment, headers& to) noexcept {
  constexpr std::size_t counts_end = 1 + 16;
  while (segment.size() >= counts_end) {
    const std::uint32_t kind = byte_at(segment, 0);
    if ((kind & 0xEE) != 0) return false;
    std::size_t table_bytes = counts_end;
    for (std::size_t i = 1; i < counts_end; ++i) table_bytes += byte_at(segment, i);
    if (segment.size() < table_bytes) return false;
    (kind < 0x10 ? to.dc_codes_given : to.ac_codes_given) |= 1U << (kind & 1);
    segment = segment.subspan(table_bytes);
  }
  return segment.empty();
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

// SOS: all components in their order, all coefficients at once, and tables that are there.
bool is_only_scan(byte_span segment, const headers& of) noexcept {
  const std::size_t count = of.components;
  if (segment.size() != 4 + 2 * count || byte_at(segment, 0) != count || byte_at(segment, 1 + 2 * count) != 0 ||
      byte_at(segment, 2 + 2 * count) != 63 || byte_at(segment, 3 + 2 * count) != 0) {
    return false;
  }
  const auto has = [](std::uint32_t given, std::uint32_t number) { return number < 4 && (given >> number & 1) != 0; };
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t codes = byte_at(segment, 2 + 2 * i);
    if (byte_at(segment, 1 + 2 * i) != of.names[i] || !has(of.quantisation_given, of.quantisation[i]) ||
        !has(of.dc_codes_given, codes >> 4) || !has(of.ac_codes_given, codes & 15)) {
      return false;
    }
  }
  return true;
}

// Where the end marker of the scan that begins at `at` ends; 0 where another marker comes first, or none.
std::size_t end_of_scan(byte_span file, std::size_t at) noexcept {
  for (;;) {
    at = text_of(file).find('\xFF', at);
    if (at == std::string_view::npos || file.size() - at < 2) return 0;
    const std::uint32_t marker = byte_at(file, at + 1);
    if (marker == 0xD9) return at + 2;
    if (marker == 0xFF) {  // a fill byte
      ++at;
    } else if (marker == 0x00 || (marker >= 0xD0 && marker <= 0xD7)) {  // a byte of data; a restart
      at += 2;
    } else {
      return 0;
    }
  }
}

}  // namespace

byte_span plain_jpeg(byte_span file) noexcept {
  if (!stands_at(file, 0, "\xFF\xD8")) return {};
  headers all;
  std::size_t at = 2;
  for (;;) {
    if (file.size() - at < 4 || byte_at(file, at) != 0xFF) return {};
    const std::uint32_t marker = byte_at(file, at + 1);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    if (marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD9)) return {};  // no segment follows
    const std::size_t length = big16(file, at + 2);
    if (length < 2 || file.size() - at - 2 < length) return {};
    const byte_span segment = file.subspan(at + 4, length - 2);
    at += 2 + length;
    if (marker == 0xC0) {
      if (!read_frame(segment, all)) return {};
    } else if (marker == 0xC4) {
      if (!read_codes(segment, all)) return {};
    } else if (marker == 0xDB) {
      if (!read_quantisation(segment, all)) return {};
    } else if ((marker > 0xC0 && marker <= 0xCF) || (marker >= 0xDC && marker <= 0xDF && marker != 0xDD)) {
      return {};  // another process, arithmetic codes, a frame of frames
    } else if (marker == 0xE0) {
      all.is_jfif = all.is_jfif || stands_at(segment, 0, std::string_view("JFIF\0", 5));
    } else if (marker == 0xEE) {
      read_adobe(segment, all);
    } else if (marker == 0xDA) {
      const bool is_plain =
          all.components != 0 && all.is_known_sampling && is_grey_or_ycbcr(all) && is_only_scan(segment, all);
      return file.first(is_plain ? end_of_scan(file, at) : 0);
    }
  }
}

}  // namespace leat::pixels
