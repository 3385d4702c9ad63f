// Made-up TIFF and PNG files as pictures of many bits: nothing is read or written beside what is there, no more scratch is taken than was
// reserved, and a crop is that part of the whole.
//
// The first eight bytes of an input say how; the rest is the file. scripts/fuzz runs it.
#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/wide_decoder.hpp"

#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace leat;

constexpr std::int64_t pixels_max = 128 * 128;
constexpr std::array all_bits{8, 16, 16, 32};

// A row of f32; empty where the file is none of these samples.
std::vector<float> decoded(pixels::wide_decoder& decoder, const std::vector<std::byte>& file, int width, int height,
                           int bits, int channels) {
  const pixels::pipeline chain({transforms::center_crop{height, width}});
  const pixels::wide_store how{.type = dtype::f32, .order = layout::nhwc, .channels = channels, .white = 1.0};
  std::vector<float> row(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                         static_cast<std::size_t>(channels));
  const auto result =
      decoder.decode(file, chain, {}, bits, how, pixels_max, reinterpret_cast<std::byte*>(row.data()), nullptr);
  if (!result) row.clear();
  return row;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t head = 8;
  if (size < head) return 0;
  static pixels::scratch_budget budget(std::size_t{64} << 20);
  static pixels::wide_decoder wide(budget);
  static pixels::picture_decoder plain(budget);
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> file(first + head, first + size);
  const int bits = all_bits[data[0] % all_bits.size()];
  const int channels = 1 + data[1] % 5;
  const auto info = pixels::peek(file, pixels::look_for::orientation);
  if (!info || std::int64_t{info->width} * info->height > pixels_max) {
    static_cast<void>(decoded(wide, file, 8, 8, bits, channels));
    return 0;
  }
  const std::vector<float> whole = decoded(wide, file, info->width, info->height, bits, channels);
  const int width = 1 + data[2] * (info->width - 1) / 255;
  const int height = 1 + data[3] * (info->height - 1) / 255;
  const std::vector<float> part = decoded(wide, file, width, height, bits, channels);
  if (!whole.empty() && part.empty()) std::abort();
  const pixels::geometry drawn =
      pixels::pipeline({transforms::center_crop{height, width}}).compile(info->width, info->height, {});
  for (int y = 0; !whole.empty() && y < height; ++y) {
    const auto line = static_cast<std::size_t>(width * channels);
    const std::size_t from =
        static_cast<std::size_t>((static_cast<int>(drawn.crop_y) + y) * info->width + static_cast<int>(drawn.crop_x)) *
        static_cast<std::size_t>(channels);
    if (std::memcmp(&part[static_cast<std::size_t>(y) * line], &whole[from], line * sizeof(float)) != 0) std::abort();
  }
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::byte> row(how.row_bytes(height, width));
  static_cast<void>(plain.decode(file, drawn, how, {.pixels_max = pixels_max}, row.data(), nullptr));
  return 0;
}
