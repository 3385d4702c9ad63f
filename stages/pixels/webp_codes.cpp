#include "stages/pixels/webp_codes.hpp"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>

namespace leat::pixels {
namespace {

constexpr int code_length_max = 15;
constexpr std::size_t colour_values = 256;
constexpr std::size_t length_codes = 24;
constexpr std::size_t distance_codes = 40;
constexpr std::uint32_t cache_bits_max = 11;
constexpr std::size_t green_symbols_max = colour_values + length_codes + (std::size_t{1} << cache_bits_max);

// Reads bits from the lowest of each byte on. Behind the end it gives zeros, and ended() is true.
class bit_reader {
 public:
  bit_reader(byte_span from, std::size_t bit) noexcept : from_(from), bit_(bit) {}

  std::uint32_t bit() noexcept {
    const std::size_t at = bit_ / 8;
    const std::uint32_t value = at < from_.size() ? byte_at(from_, at) >> (bit_ % 8) & 1U : 0U;
    ++bit_;
    return value;
  }
  std::uint32_t bits(std::uint32_t count) noexcept {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < count; ++i) value |= bit() << i;
    return value;
  }
  [[nodiscard]] bool ended() const noexcept { return bit_ > 8 * from_.size(); }

 private:
  byte_span from_;
  std::size_t bit_;
};

// A function of spans, not of prefix_code: GCC 14 merges the copies for different sizes and then warns of the smallest one's bounds.
std::size_t read_symbol(bit_reader& from, std::span<const std::uint16_t> counts,
                        std::span<const std::uint16_t> symbols) noexcept {
  std::size_t code = 0;
  std::size_t first = 0;
  std::size_t index = 0;
  for (std::size_t length = 1; length <= code_length_max; ++length) {
    code |= from.bit();
    if (code - first < counts[length]) return symbols[index + (code - first)];
    index += counts[length];
    first = (first + counts[length]) << 1;
    code <<= 1;
  }
  return 0;  // A complete code does not come here.
}

/// A canonical prefix code. It decodes bit by bit, which is fast enough for a few thousand symbols.
template <std::size_t symbols_max>
class prefix_code {
 public:
  /// False if the lengths make no complete code. A single symbol takes no bits.
  [[nodiscard]] bool build(std::span<const std::uint8_t> lengths) noexcept {
    counts_.fill(0);
    for (const std::uint8_t length : lengths) ++counts_[length];
    const std::size_t used = lengths.size() - counts_[0];
    counts_[0] = 0;
    std::array<std::size_t, code_length_max + 2> next{};
    int left = 1;
    for (std::size_t length = 1; length <= code_length_max; ++length) {
      left = 2 * left - static_cast<int>(counts_[length]);
      if (left < 0) return false;
      next[length + 1] = next[length] + counts_[length];
    }
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0) symbols_[next[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
    }
    is_single_ = used == 1;
    return is_single_ || left == 0;
  }

  [[nodiscard]] std::size_t read(bit_reader& from) const noexcept {
    return is_single_ ? symbols_[0] : read_symbol(from, counts_, symbols_);
  }

 private:
  std::array<std::uint16_t, code_length_max + 1> counts_{};
  std::array<std::uint16_t, symbols_max> symbols_{};
  bool is_single_ = true;
};

bool read_code_lengths(bit_reader& from, std::span<std::uint8_t> lengths) noexcept {
  constexpr std::array<std::uint8_t, 19> order = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::array<std::uint8_t, 19> of_lengths{};
  const std::uint32_t count = from.bits(4) + 4;
  if (count > order.size()) return false;
  for (std::uint32_t i = 0; i < count; ++i) of_lengths[order[i]] = static_cast<std::uint8_t>(from.bits(3));
  prefix_code<19> code;
  if (!code.build(of_lengths)) return false;
  std::size_t left = lengths.size();
  if (from.bit() != 0) {
    const std::uint32_t bits = 2 + 2 * from.bits(3);
    left = 2 + from.bits(bits);
    if (left > lengths.size()) return false;
  }
  std::uint8_t previous = 8;
  for (std::size_t symbol = 0; symbol < lengths.size() && left > 0 && !from.ended(); --left) {
    const std::size_t length = code.read(from);
    if (length < 16) {
      lengths[symbol++] = static_cast<std::uint8_t>(length);
      if (length != 0) previous = static_cast<std::uint8_t>(length);
      continue;
    }
    const std::size_t repeats = length == 16 ? 3 + from.bits(2) : length == 17 ? 3 + from.bits(3) : 11 + from.bits(7);
    if (repeats > lengths.size() - symbol) return false;
    std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(symbol), repeats,
                length == 16 ? previous : std::uint8_t{0});
    symbol += repeats;
  }
  return true;
}

template <std::size_t symbols_max>
bool read_code(bit_reader& from, std::size_t symbols, prefix_code<symbols_max>& code) noexcept {
  std::array<std::uint8_t, symbols_max> all{};
  const std::span<std::uint8_t> lengths(all.data(), symbols);
  if (from.bit() != 0) {  // one symbol or two
    const bool two = from.bit() != 0;
    const std::size_t first = from.bits(from.bit() != 0 ? 8 : 1);
    const std::size_t second = two ? from.bits(8) : first;
    if (first >= symbols || second >= symbols) return false;
    lengths[first] = lengths[second] = 1;
  } else if (!read_code_lengths(from, lengths)) {
    return false;
  }
  return !from.ended() && code.build(lengths);
}

// What follows the prefix of a length or a distance.
std::uint32_t skip_extra_bits(bit_reader& from, std::size_t prefix) noexcept {
  if (prefix < 4) return static_cast<std::uint32_t>(prefix) + 1;
  const auto extra = static_cast<std::uint32_t>((prefix - 2) >> 1);
  return ((2 + (static_cast<std::uint32_t>(prefix) & 1U)) << extra) + from.bits(extra) + 1;
}

/// Reads an entropy-coded image of so many pixels and calls literal(red, green) for each literal pixel. Other pixels are copies
/// of literal ones.
template <class Literal>
bool read_image(bit_reader& from, std::size_t pixels, const Literal& literal) noexcept {
  std::size_t cached = 0;
  if (from.bit() != 0) {
    const std::uint32_t cache_bits = from.bits(4);
    if (cache_bits < 1 || cache_bits > cache_bits_max) return false;
    cached = std::size_t{1} << cache_bits;
  }
  prefix_code<green_symbols_max> green;
  prefix_code<colour_values> red;
  prefix_code<colour_values> blue;
  prefix_code<colour_values> alpha;
  prefix_code<distance_codes> distance;
  if (!read_code(from, colour_values + length_codes + cached, green) || !read_code(from, colour_values, red) ||
      !read_code(from, colour_values, blue) || !read_code(from, colour_values, alpha) ||
      !read_code(from, distance_codes, distance)) {
    return false;
  }
  for (std::size_t pixel = 0; pixel < pixels;) {
    if (from.ended()) return false;
    const std::size_t symbol = green.read(from);
    if (symbol < colour_values) {
      literal(red.read(from), symbol);
      static_cast<void>(blue.read(from));
      static_cast<void>(alpha.read(from));
      ++pixel;
    } else if (symbol < colour_values + length_codes) {
      pixel += skip_extra_bits(from, symbol - colour_values);
      skip_extra_bits(from, distance.read(from));
    } else {
      ++pixel;
    }
  }
  return !from.ended();
}

std::size_t subsampled(std::size_t size, std::uint32_t bits) noexcept {
  return (size + (std::size_t{1} << bits) - 1) >> bits;
}

// `width` is set to the width of the coded image, in which a small palette packs several pixels into one.
bool skip_transforms(bit_reader& from, std::size_t& width, std::size_t height) noexcept {
  const auto ignore = [](std::size_t, std::size_t) {};
  std::bitset<4> seen;
  while (from.bit() != 0) {
    const std::uint32_t type = from.bits(2);
    if (seen.test(type) || from.ended()) return false;
    seen.set(type);
    if (type == 2) continue;  // "subtract green" has no data
    if (type == 3) {
      const std::uint32_t colours = from.bits(8) + 1;
      if (!read_image(from, colours, ignore)) return false;
      width = subsampled(width, colours > 16 ? 0 : colours > 4 ? 1 : colours > 2 ? 2 : 3);
      continue;
    }
    const std::uint32_t bits = from.bits(3) + 2;
    if (!read_image(from, subsampled(width, bits) * subsampled(height, bits), ignore)) return false;
  }
  return true;
}

// kTableSize of vp8l_dec.c for each number of the cache's bits, in entries of 4 bytes; and a group's own struct.
std::size_t table_bytes(std::uint32_t cache_bits) noexcept {
  constexpr std::array<std::size_t, cache_bits_max + 1> green = {654, 656, 658, 662,  670,  686,
                                                                 718, 782, 912, 1168, 1680, 2704};
  constexpr std::size_t others = 630 * 3 + 410;
  constexpr std::size_t group_bytes = 640;
  return (others + green[cache_bits]) * 4 + group_bytes;
}

}  // namespace

std::optional<webp_codes> count_webp_codes(byte_span picture, int picture_width, int picture_height,
                                           std::size_t first_bit) noexcept {
  bit_reader from(picture, first_bit);
  auto width = static_cast<std::size_t>(picture_width);
  const auto height = static_cast<std::size_t>(picture_height);
  if (!skip_transforms(from, width, height)) return std::nullopt;
  std::uint32_t cache_bits = 0;
  if (from.bit() != 0) {
    cache_bits = from.bits(4);
    if (cache_bits < 1 || cache_bits > cache_bits_max) return std::nullopt;
  }
  webp_codes found{.groups = 1, .bytes_per_group = table_bytes(cache_bits)};
  if (from.bit() == 0) return from.ended() ? std::nullopt : std::optional(found);

  const std::uint32_t bits = from.bits(3) + 2;
  const std::size_t pixels = subsampled(width, bits) * subsampled(height, bits);
  std::bitset<std::size_t{1} << 16> used;
  std::size_t last = 0;
  const bool read = read_image(from, pixels, [&](std::size_t red, std::size_t green) {
    const std::size_t group = red << 8 | green;
    used.set(group);
    last = std::max(last, group);
  });
  if (!read) return std::nullopt;
  // If some group numbers are not used, libwebp makes tables only for the others.
  constexpr std::size_t sparse = 1000;
  found.groups = last + 1 > sparse || last + 1 > pixels ? used.count() : last + 1;
  return found;
}

}  // namespace leat::pixels
