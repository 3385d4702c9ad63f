#include "stages/pixels/wide_png_reader.hpp"

#include <cstdint>
#include <cstring>

namespace leat::pixels {

outcome<wide_info> wide_png_reader::open(std::span<const std::byte> encoded, const std::atomic<bool>* stop) {
  const outcome<picture_info> info = peek(encoded, look_for::size);
  if (!info) return info.error();
  const outcome<void> opened = png_.open(encoded, *info, {.stop = stop, .as_stored = true});
  if (!opened) return opened.error();
  samples_ = samples_of(encoded);
  return wide_info{.what = format::png,
                   .width = info->width,
                   .height = info->height,
                   .channels = samples_.channels,
                   .bits = samples_.bits,
                   .alpha = samples_.alpha};
}

std::size_t wide_png_reader::scratch_bytes(const rectangle& region) {
  return png_.scratch_bytes(region, 1) + scratch_arena::rounded(line_values(region) * sizeof(float));
}

outcome<void> wide_png_reader::start(const rectangle& region) {
  region_ = region;
  some_ = {};
  taken_ = 0;
  line_ = arena_.take_array<float>(line_values(region));
  if (line_ == nullptr) return stages::unsupported("out of scratch memory");
  return png_.start(region, 1);
}

outcome<const float*> wide_png_reader::read() {
  if (taken_ == some_.count) {
    const outcome<lines> some = png_.read();
    if (!some) return some.error();
    some_ = *some;
    taken_ = 0;
  }
  const std::uint8_t* const from = some_.first + static_cast<std::size_t>(taken_++) * some_.stride;
  const std::size_t count = line_values(region_);
  if (samples_.bits == 16) {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t value = 0;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      line_[i] = value;
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) line_[i] = from[i];
  }
  return static_cast<const float*>(line_);
}

}  // namespace leat::pixels
