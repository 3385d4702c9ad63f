#include "tests/support/make_bmp.hpp"

#include <algorithm>
#include <array>

namespace leat::testing {
namespace {

using bytes = std::vector<std::byte>;

void put(bytes& out, std::uint32_t value, int size) {
  for (int i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
}

// In the file's order: blue, green, red.
std::array<std::uint8_t, 3> colour(int index) {
  return {static_cast<std::uint8_t>(index * 7), static_cast<std::uint8_t>(255 - index),
          static_cast<std::uint8_t>(index * index + 13)};
}

struct mask_set {
  std::uint32_t red, green, blue, alpha;
};
mask_set masks_of(bmp_masks masks) {
  switch (masks) {
    case bmp_masks::rgb_565:
      return {0xF800, 0x7E0, 0x1F, 0};
    case bmp_masks::rgb_555:
      return {0x7C00, 0x3E0, 0x1F, 0};
    case bmp_masks::rgba:
      return {0xFF, 0xFF00, 0xFF0000, 0xFF000000};
    case bmp_masks::argb:
      return {0xFF000000, 0xFF0000, 0xFF00, 0xFF};
    case bmp_masks::bgra:
    case bmp_masks::none:
      break;
  }
  return {0xFF0000, 0xFF00, 0xFF, 0xFF000000};
}

int shift_of(std::uint32_t mask) {
  int shift = 0;
  while (mask != 0 && (mask >> shift & 1) == 0) ++shift;
  return shift;
}

int index_of(const std::uint8_t* rgb, int colours) { return rgb[1] * colours / 256; }

// Pixels in bits, each row padded to 32 of them.
void put_row(const rgb_picture& picture, int y, const bmp_options& options, int colours, bytes& out) {
  const std::size_t begin = out.size();
  std::uint32_t some = 0;
  int count = 0;
  for (int x = 0; x < picture.width; ++x) {
    const std::uint8_t* const rgb = picture.at(x, y);
    if (options.bits < 8) {
      some = some << options.bits | static_cast<std::uint32_t>(index_of(rgb, colours));
      count += options.bits;
      if (count == 8) put(out, some, 1), count = 0;
    } else if (options.bits == 8) {
      put(out, static_cast<std::uint32_t>(index_of(rgb, colours)), 1);
    } else if (options.bits == 16) {
      const bool wide = options.masks == bmp_masks::rgb_565;
      put(out,
          static_cast<std::uint32_t>(rgb[0] >> 3) << (wide ? 11 : 10) |
              static_cast<std::uint32_t>(rgb[1] >> (wide ? 2 : 3)) << 5 | rgb[2] >> 3,
          2);
    } else if (options.bits == 24) {
      put(out, static_cast<std::uint32_t>(rgb[2] | rgb[1] << 8 | rgb[0] << 16), 3);
    } else {
      const mask_set m = masks_of(options.masks);
      put(out,
          std::uint32_t{rgb[0]} << shift_of(m.red) | std::uint32_t{rgb[1]} << shift_of(m.green) |
              std::uint32_t{rgb[2]} << shift_of(m.blue) |
              static_cast<std::uint32_t>((x * 5 + y) & 0xFF) << shift_of(m.alpha),
          4);
    }
  }
  if (count > 0) put(out, some << (8 - count), 1);
  while ((out.size() - begin) % 4 != 0) put(out, 0xAB, 1);
}

// Runs, indices as they are, and an end of line where zeros are left: all that an encoder of its time would write.
void put_runs(const rgb_picture& picture, int y, const bmp_options& options, int colours, bytes& out) {
  std::vector<std::uint32_t> row;
  for (int x = 0; x < picture.width; ++x)
    row.push_back(static_cast<std::uint32_t>(index_of(picture.at(x, y), colours)));
  std::size_t end = row.size();
  while (end > 1 && row[end - 1] == 0) --end;
  const bool of_4_bits = options.bits == 4;
  for (std::size_t at = 0; at < end;) {
    std::size_t same = 1;
    while (at + same < end && same < 255 && row[at + same] == row[at]) ++same;
    const std::size_t plain = std::min<std::size_t>({end - at, 5 + static_cast<std::size_t>(y) % 4, 254});
    if (same == 1 && plain >= 3) {
      put(out, static_cast<std::uint32_t>(plain) << 8, 2);
      const std::size_t begin = out.size();
      for (std::size_t i = 0; i < plain; i += of_4_bits ? 2 : 1) {
        const std::uint32_t next = i + 1 < plain ? row[at + i + 1] : 0;
        put(out, of_4_bits ? row[at + i] << 4 | next : row[at + i], 1);
      }
      if ((out.size() - begin) % 2 != 0) put(out, 0, 1);
      at += plain;
    } else {
      put(out, static_cast<std::uint32_t>(same) | (of_4_bits ? row[at] * 17 : row[at]) << 8, 2);
      at += same;
    }
  }
  put(out, 0, 2);
}

void put_header(const rgb_picture& picture, const bmp_options& options, bytes& out) {
  const bool masked = options.masks != bmp_masks::none;
  put(out, static_cast<std::uint32_t>(options.header_bytes), 4);
  if (options.header_bytes == 12) {
    put(out, static_cast<std::uint32_t>(picture.width), 2);
    put(out, static_cast<std::uint32_t>(picture.height), 2);
    put(out, 1, 2);
    put(out, static_cast<std::uint32_t>(options.bits), 2);
    return;
  }
  const std::size_t begin = out.size() - 4;
  put(out, static_cast<std::uint32_t>(picture.width), 4);
  put(out, static_cast<std::uint32_t>(options.top_down ? -picture.height : picture.height), 4);
  put(out, 1, 2);
  put(out, static_cast<std::uint32_t>(options.bits), 2);
  put(out, masked ? 3 : !options.run_lengths ? 0 : options.bits == 8 ? 1 : 2, 4);
  for (const std::uint32_t value : {0U, 2835U, 2835U, static_cast<unsigned>(options.colours), 0U}) put(out, value, 4);
  if (masked) {
    const mask_set m = masks_of(options.masks);
    for (const std::uint32_t mask : {m.red, m.green, m.blue}) put(out, mask, 4);
    if (options.header_bytes >= 56) put(out, m.alpha, 4);
  }
  if (!masked || options.header_bytes > 40) {
    while (out.size() - begin < static_cast<std::size_t>(options.header_bytes)) put(out, 0, 1);
  }
}

std::uint8_t scaled(int value, int most) { return static_cast<std::uint8_t>(value * 255 / most); }

void see(const rgb_picture& picture, const bmp_options& options, int colours, rgb_picture& seen) {
  seen = picture;
  for (std::size_t i = 0; i < seen.pixels.size(); i += 3) {
    std::uint8_t* const rgb = seen.pixels.data() + i;
    if (options.bits <= 8) {
      const auto entry = colour(index_of(rgb, colours));
      rgb[0] = entry[2], rgb[1] = entry[1], rgb[2] = entry[0];
    } else if (options.bits == 16) {
      const bool wide = options.masks == bmp_masks::rgb_565;
      rgb[0] = scaled(rgb[0] >> 3, 31);
      rgb[1] = wide ? scaled(rgb[1] >> 2, 63) : scaled(rgb[1] >> 3, 31);
      rgb[2] = scaled(rgb[2] >> 3, 31);
    }
  }
}

}  // namespace

std::vector<std::byte> make_bmp(const rgb_picture& picture, const bmp_options& options, rgb_picture& seen) {
  const int colours = options.bits > 8 ? 0 : options.colours != 0 ? options.colours : 1 << options.bits;
  bytes after;
  put_header(picture, options, after);
  for (int i = 0; i < colours; ++i) {
    for (const std::uint8_t value : colour(i)) put(after, value, 1);
    if (options.header_bytes != 12) put(after, 0, 1);
  }
  const std::size_t data = 14 + after.size();
  for (int i = 0; i < picture.height; ++i) {
    const int y = options.top_down ? i : picture.height - 1 - i;
    options.run_lengths ? put_runs(picture, y, options, colours, after) : put_row(picture, y, options, colours, after);
  }
  if (options.run_lengths) put(after, 0x100, 2);
  bytes out;
  put(out, 0x4D42, 2);
  put(out, static_cast<std::uint32_t>(14 + after.size()), 4);
  put(out, 0, 4);
  put(out, static_cast<std::uint32_t>(data), 4);
  out.insert(out.end(), after.begin(), after.end());
  see(picture, options, colours, seen);
  return out;
}

}  // namespace leat::testing
