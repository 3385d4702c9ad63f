#include "stages/pixels/webp_reader.hpp"

#include "base/option_words.hpp"
#include "stages/pixels/resample_kernels.hpp"
#include "stages/pixels/webp_codes.hpp"

#include <webp/decode.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <optional>
#include <string>

namespace leat::pixels {
namespace {

// Lossy pictures are decoded in bands of about so many bytes of RGB. Decoding a band begins at the top of the picture, so there
// should be few; most pictures are one band.
constexpr std::size_t band_bytes_max = std::size_t{48} << 20;

// The upsampling of lossy chroma looks at neighbours that are two pixels away at most. Parts begin at even places.
constexpr int margin = 2;

// What libwebp allocates, from its sources (1.2.4 to 1.6.0), rounded up. The test `takes_no_more_for_a_webp_than_it_said`
// watches it.
constexpr std::size_t decoder_bytes = std::size_t{64} << 10;  // structs, tables of probabilities, a histogram of codes
// src/dec/frame_dec.c, AllocateMemory(): modes, top samples, data and cached rows of each macroblock of a row.
constexpr std::size_t lossy_bytes_per_block_column = 2304;
// src/dec/vp8l_dec.c: 32 bits a pixel; predictors, colours and code groups at a sixteenth of them each; 17 rows.
constexpr std::size_t lossless_rows = 17;
constexpr std::size_t lossless_tables_bytes = std::size_t{384} << 10;

// More groups of prefix codes than any real picture has. libwebp's encoder writes 2,600 groups at most, and fewer than one for
// 100 pixels; the tables of a group take hundreds of times its bytes in the file.
constexpr std::size_t code_groups_max = 2600;
constexpr std::size_t code_bytes_harmless = std::size_t{4} << 20;
constexpr std::size_t code_bytes_per_pixel_max = 32;

bool is_stopped(const std::atomic<bool>* stop) noexcept {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

stages::failure failure_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return stages::no_memory("WebP: libwebp got no memory; lower " + spelled(option_id::host_bytes_max) +
                               " or free memory");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return stages::unsupported("WebP: a feature that libwebp does not know");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return stages::corrupt("WebP: premature end of the picture");
    default:
      return stages::corrupt("WebP: damaged");
  }
}

}  // namespace

stages::outcome<void> webp_reader::open(std::span<const std::byte> encoded, const picture_info& info,
                                        const reading& how) {
  const stages::outcome<webp_layout> layout = read_webp_headers(encoded);
  if (!layout) return layout.error();
  assert(layout->width == info.width && layout->height == info.height);
  static_cast<void>(info);
  layout_ = *layout;
  stop_ = how.stop;
  code_bytes_ = 0;
  const bool has_alpha = layout_.has_alpha && (layout_.lossless || !layout_.alpha.empty());
  background_ = has_alpha ? how.background : std::nullopt;
  beside_ = layout_.has_alpha ? how.background.value_or(rgb_colour{}) : rgb_colour{};
  if (layout_.lossless) return count_codes(layout_.picture, webp_header_bits);
  // RFC 9649, section 2.7.1.2: the two lowest bits tell how alpha is packed.
  const bool is_packed = background_ && (byte_at(layout_.alpha, 0) & 3U) == 1;
  return is_packed ? count_codes(layout_.alpha, 8) : stages::outcome<void>();
}

stages::outcome<void> webp_reader::count_codes(byte_span coded, std::size_t first_bit) {
  const std::optional<webp_codes> codes = count_webp_codes(coded, layout_.frame.width, layout_.frame.height, first_bit);
  if (!codes) return stages::corrupt("WebP: damaged");
  code_bytes_ = codes->bytes();
  const std::size_t pixels =
      static_cast<std::size_t>(layout_.frame.width) * static_cast<std::size_t>(layout_.frame.height);
  if (codes->groups > code_groups_max ||
      code_bytes_ > std::max(code_bytes_harmless, pixels * code_bytes_per_pixel_max)) {
    return stages::unsupported("WebP with " + std::to_string(codes->groups) +
                               " groups of codes: more than a picture of its size has use for");
  }
  return {};
}

// Which part is decoded at a time, and its memory.
void webp_reader::plan(const rectangle& region) noexcept {
  region_ = region;
  const rectangle& frame = layout_.frame;
  const int left = std::max(region.x, frame.x);
  const int top = std::max(region.y, frame.y);
  part_ = {left - frame.x, top - frame.y, std::min(region.x + region.width, frame.x + frame.width) - left,
           std::min(region.y + region.height, frame.y + frame.height) - top};
  has_part_ = part_.width > 0 && part_.height > 0;
  // A frame beside the region is looked at, too: damage is told of whatever the crop.
  if (!has_part_) part_ = {frame.width - 1, frame.height - 1, 1, 1};
  is_inside_ = has_part_ && part_.width == region.width && part_.height == region.height;
  const int around = layout_.lossless ? 0 : margin;
  left_ = std::max(part_.x - around, 0) & ~1;
  right_ = std::min(part_.x + part_.width + around, layout_.frame.width);
  stride_ = static_cast<std::size_t>(right_ - left_) * pixel_bytes();
  band_rows_ = part_.height;
  if (!layout_.lossless && !is_from_top()) {
    const std::size_t rows_max = std::max<std::size_t>(band_bytes_max / stride_, 64);
    band_rows_ = static_cast<int>(std::min<std::size_t>(rows_max, static_cast<std::size_t>(part_.height)));
  }
  const int rows_before = is_from_top() ? part_.y : 0;
  band_bytes_ = static_cast<std::size_t>(rows_before + band_rows_ + 2 * margin + 1) * stride_ + line_slack_bytes;
  const int last_top = top_of((part_.height - 1) / band_rows_ * band_rows_);
  const std::size_t rest_bytes = static_cast<std::size_t>(layout_.frame.height - last_top) * stride_ + line_slack_bytes;
  takes_rest_ = rest_bytes <= std::max(band_bytes_, band_bytes_max);
  if (takes_rest_) band_bytes_ = std::max(band_bytes_, rest_bytes);
}

// libwebp 1.2.4 decodes the alpha of a crop wrongly where rows above it are predicted from. All begin at the top then.
bool webp_reader::is_from_top() const noexcept { return background_ && !layout_.lossless; }

int webp_reader::top_of(int row) const noexcept {
  if (is_from_top()) return 0;
  return std::max(part_.y + row - margin, 0) & ~1;
}

std::size_t webp_reader::library_bytes() const noexcept {
  const auto width = static_cast<std::size_t>(layout_.frame.width);
  const auto height = static_cast<std::size_t>(layout_.frame.height);
  if (layout_.lossless) return decoder_bytes + lossless_bytes();
  const std::size_t lossy = decoder_bytes + (width + 15) / 16 * lossy_bytes_per_block_column + 2 * (width + 2);
  if (!background_) return lossy;
  // src/dec/alpha_dec.c: the plane of alpha; packed, it is a lossless picture.
  return lossy + width * height + (code_bytes_ != 0 ? lossless_bytes() : 0);
}

std::size_t webp_reader::lossless_bytes() const noexcept {
  const auto width = static_cast<std::size_t>(layout_.frame.width);
  const auto height = static_cast<std::size_t>(layout_.frame.height);
  const std::size_t subsampled = (width + 3) / 4 * ((height + 3) / 4);
  return lossless_tables_bytes + 4 * (width * height + lossless_rows * width + 3 * subsampled) + code_bytes_;
}

std::size_t webp_reader::scratch_bytes(const rectangle& region, int /*decimation*/) {
  plan(region);
  const std::size_t line = is_inside_ ? 0 : scratch_arena::rounded(line_bytes());
  return scratch_arena::rounded(library_bytes()) + scratch_arena::rounded(band_bytes_) + line;
}

stages::outcome<void> webp_reader::start(const rectangle& region, int decimation) {
  assert(decimation == 1);
  static_cast<void>(decimation);
  plan(region);
  next_row_ = 0;
  band_ = arena_.take_array<std::uint8_t>(band_bytes_);
  line_ = is_inside_ ? nullptr : arena_.take_array<std::uint8_t>(line_bytes());
  next_line_ = 0;
  band_left_ = {};
  if (band_ == nullptr || (line_ == nullptr && !is_inside_) || !arena_.lend(library_bytes()))
    return stages::unsupported("WebP: out of scratch memory");
  return {};
}

stages::outcome<lines> webp_reader::read() {
  if (is_inside_) return read_band();
  if (is_stopped(stop_)) return stages::cancelled();
  const int y = region_.y + next_line_ - layout_.frame.y;
  const bool is_in_part = has_part_ && y >= part_.y && y < part_.y + part_.height;
  if ((is_in_part && band_left_.count == 0) || (!has_part_ && next_line_ == 0)) {
    const stages::outcome<lines> band = read_band();
    if (!band) return band;
    band_left_ = *band;
  }
  ++next_line_;
  for (std::size_t i = 0; i < static_cast<std::size_t>(region_.width) * 3; ++i) line_[i] = beside_[i % 3];
  if (is_in_part) {
    const int x = layout_.frame.x + part_.x - region_.x;
    std::memcpy(line_ + static_cast<std::size_t>(x) * 3, band_left_.first, static_cast<std::size_t>(part_.width) * 3);
    band_left_.first += band_left_.stride;
    --band_left_.count;
  }
  return lines{line_, 0, 1};
}

stages::outcome<lines> webp_reader::read_band() {
  assert(next_row_ < part_.height);
  if (is_stopped(stop_)) return stages::cancelled();
  const int first = part_.y + next_row_;
  const int count = std::min(band_rows_, part_.height - next_row_);
  const int top = top_of(next_row_);
  // libwebp reports damage late, after rows that are wrong already: the last band goes on to the picture's end.
  const bool is_last = next_row_ + count == part_.height;
  const int bottom =
      is_last && takes_rest_ ? layout_.frame.height : std::min(first + count + margin, layout_.frame.height);
  assert(static_cast<std::size_t>(bottom - top) * stride_ + line_slack_bytes <= band_bytes_);
  if (const auto decoded = decode({left_, top, right_ - left_, bottom - top}, band_, stride_); !decoded) {
    return decoded.error();
  }
  if (is_last && bottom < layout_.frame.height) {
    std::array<std::uint8_t, 2 * 2 * 4> corner;
    const int width = std::min(layout_.frame.width, 2);
    const int row = (layout_.frame.height - 1) & ~1;
    if (const auto whole = decode({0, row, width, layout_.frame.height - row}, corner.data(), 2 * pixel_bytes());
        !whole) {
      return whole.error();
    }
  }

  next_row_ += count;
  std::uint8_t* const line = band_ + static_cast<std::size_t>(first - top) * stride_ +
                             static_cast<std::size_t>(part_.x - left_) * pixel_bytes();
  for (int i = 0; background_ && i < count; ++i) {
    std::uint8_t* const at = line + static_cast<std::size_t>(i) * stride_;
    blend_line(at, static_cast<std::size_t>(part_.width), *background_, at);
  }
  return lines{line, stride_, count};
}

stages::outcome<void> webp_reader::decode(const rectangle& crop, std::uint8_t* into, std::size_t stride) const {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return stages::unsupported("WebP: libwebp has another version");
  config.options.use_cropping = 1;
  config.options.crop_left = crop.x;
  config.options.crop_top = crop.y;
  config.options.crop_width = crop.width;
  config.options.crop_height = crop.height;
  config.output.colorspace = background_ ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = into;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = static_cast<std::size_t>(crop.height) * stride;
  const byte_span coded = background_ && !layout_.lossless ? layout_.with_alpha : layout_.picture;
  const VP8StatusCode status = WebPDecode(reinterpret_cast<const std::uint8_t*>(coded.data()), coded.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) return failure_of(status);
  return {};
}

}  // namespace leat::pixels
