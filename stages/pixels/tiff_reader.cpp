#include "stages/pixels/tiff_reader.hpp"

#include "base/text.hpp"
#include "stages/pixels/resample_kernels.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <string_view>

namespace leat::pixels {

stages::outcome<void> tiff_reader::open(std::span<const std::byte> encoded, const picture_info& /*info*/,
                                        const reading& how) {
  const outcome<tiff_layout> page = tiff_.open(encoded, how.stop);
  if (!page) return page.error();
  page_ = *page;
  const int channels = page_.channels();
  if (page_.bits != 8) {
    return stages::unsupported(
        str_cat("a TIFF with samples of ", page_.bits, " bits; image::bits(", page_.bits, ") reads them"));
  }
  if (page_.kind != sample_kind::whole)
    return stages::unsupported("a TIFF with signed samples of 8 bits; write them unsigned");
  if (page_.photometric == tiff_cmyk) return stages::unsupported("a TIFF of CMYK");
  if (channels != 1 && channels != 3) {
    return stages::unsupported(
        str_cat("a TIFF with ", channels, " channels; image::channels(", channels, ") reads them"));
  }
  if (page_.photometric > tiff_palette && page_.photometric != tiff_ycbcr) {
    return stages::unsupported(str_cat("a TIFF of colours of kind ", page_.photometric));
  }
  const bool has_colours = page_.photometric == tiff_rgb || page_.photometric == tiff_ycbcr;
  if (channels != (has_colours ? 3 : 1)) {
    constexpr std::array<std::string_view, 7> names{"white-is-zero grey", "grey", "RGB", "palette", "", "", "YCbCr"};
    return stages::unsupported(str_cat("a TIFF of ", names[static_cast<std::size_t>(page_.photometric)], " with ",
                                       channels, channels == 1 ? " channel" : " channels",
                                       "; write it with the photometric interpretation that its channels have"));
  }
  if (page_.premultiplied && (page_.photometric == tiff_white_is_zero || page_.photometric == tiff_palette)) {
    return stages::unsupported("a TIFF of a palette or white-is-zero grey whose colours are multiplied by alpha");
  }
  background_ = page_.alpha ? how.background : std::nullopt;
  return {};
}

std::size_t tiff_reader::scratch_bytes(const rectangle& region, int /*decimation*/) {
  return tiff_.scratch_bytes(region) + scratch_arena::rounded(rgb_line_bytes(region.width));
}

stages::outcome<void> tiff_reader::start(const rectangle& region, int decimation) {
  assert(decimation == 1);
  static_cast<void>(decimation);
  region_ = region;
  line_ = arena_.take_array<std::uint8_t>(rgb_line_bytes(region.width));
  if (line_ == nullptr) return stages::unsupported("TIFF: out of scratch memory");
  stages::outcome<void> started = tiff_.start(region);
  if (!started) return started;
  const tiff_blocks::colours palette = page_.photometric == tiff_palette ? tiff_.palette() : tiff_blocks::colours{};
  if (page_.photometric == tiff_palette && palette.red == nullptr) {
    tiff_.stop_reading();
    return stages::corrupt("TIFF: without its palette");
  }
  for (std::size_t i = 0; i < colour_of_.size(); ++i) {
    const auto grey = static_cast<std::uint8_t>(page_.photometric == tiff_white_is_zero ? 255 - i : i);
    colour_of_[i] = palette.red == nullptr ? std::array{grey, grey, grey}
                                           : std::array{static_cast<std::uint8_t>(palette.red[i] >> 8),
                                                        static_cast<std::uint8_t>(palette.green[i] >> 8),
                                                        static_cast<std::uint8_t>(palette.blue[i] >> 8)};
  }
  return {};
}

// Lays a colour that was multiplied by alpha over the background, or divides it as Pillow does (Unpack.c, unpackRGBa).
void tiff_reader::unmultiply(std::uint8_t* colour, std::uint32_t alpha) const noexcept {
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint32_t stored = colour[c];
    std::uint32_t made = alpha == 0 ? 0 : stored * 255 / alpha;
    if (background_) made = stored + blended(0, alpha, (*background_)[c]);
    colour[c] = static_cast<std::uint8_t>(std::min<std::uint32_t>(made, 255));
  }
}

void tiff_reader::convert(const std::uint8_t* from) noexcept {
  std::uint8_t* to = line_;
  const int colours = page_.channels();
  for (int x = 0; x < region_.width; ++x, from += page_.samples, to += 3) {
    for (std::size_t c = 0; c < 3; ++c) to[c] = colours == 1 ? colour_of_[*from][c] : from[c];
    if (page_.premultiplied) {
      unmultiply(to, from[colours]);
    } else if (background_) {
      for (std::size_t c = 0; c < 3; ++c) to[c] = blended(to[c], from[colours], (*background_)[c]);
    }
  }
}

stages::outcome<lines> tiff_reader::read() {
  const outcome<const std::byte*> from = tiff_.read();
  if (!from) return from.error();
  convert(reinterpret_cast<const std::uint8_t*>(*from));
  return lines{line_, 0, 1};
}

}  // namespace leat::pixels
