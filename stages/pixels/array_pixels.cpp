#include "stages/pixels/array_pixels.hpp"

#include "base/text.hpp"

#include <cmath>
#include <limits>

namespace leat::pixels {
namespace {

bool is_channels(std::int64_t extent) noexcept { return extent == 1 || extent == 3 || extent == 4; }

bool is_float(dtype type) noexcept {
  return type == dtype::f16 || type == dtype::bf16 || type == dtype::f32 || type == dtype::f64;
}

// Four planes are more often something else than a picture with alpha: that has to be said.
stages::outcome<bool> is_planar(const dimensions& shape, const array_reading& how) {
  const bool first = is_channels(shape[0]);
  const bool last = is_channels(shape[2]);
  if (how.order) {
    const bool planar = *how.order == layout::nchw;
    if (planar ? first : last) return planar;
    return stages::corrupt(str_cat("has ", shape[planar ? 0 : 2],
                                   " channels where .stored() says that they are; a picture has 1, 3 or 4"));
  }
  if (last && shape[0] != 1 && shape[0] != 3) return false;
  if (!last && first && shape[0] != 4) return true;
  if (last) {
    return stages::corrupt(
        "may be rows of pixels or planes; say .stored(leat::layout::nhwc) or .stored(leat::layout::nchw)");
  }
  return stages::corrupt(
      "is no picture, which is [height, width], [height, width, channels] or [channels, height, width] with 1, 3 or 4 "
      "channels");
}

stages::outcome<double> white_of(dtype type, const array_reading& how) {
  if (type == dtype::u8 && !how.white) return 255.0;
  if (is_float(type) && !how.white) return 1.0;
  if (type == dtype::u16 && !how.white) {
    return stages::corrupt("does not tell which number is white; say .white(65535), or .white(4095) of 12 bits");
  }
  if (type != dtype::u8 && type != dtype::u16 && !is_float(type)) {
    return stages::corrupt(str_cat("has numbers of ", name(type), ", and pixels are u8, u16, f16, bf16, f32 or f64"));
  }
  return *how.white;
}

}  // namespace

stages::outcome<array_pixels> pixels_of(const dimensions& shape, dtype type, const array_reading& how) {
  array_pixels made{.type = type};
  const stages::outcome<double> white = white_of(type, how);
  if (!white) return white.error();
  made.white = *white;
  std::int64_t height = 0;
  std::int64_t width = 0;
  if (shape.size() == 2) {
    height = shape[0];
    width = shape[1];
    made.channels = 1;
  } else if (shape.size() == 3) {
    const stages::outcome<bool> planar = is_planar(shape, how);
    if (!planar) return planar.error();
    made.planar = *planar;
    made.channels = static_cast<int>(shape[made.planar ? 0 : 2]);
    height = shape[made.planar ? 1 : 0];
    width = shape[made.planar ? 2 : 1];
  } else {
    return stages::corrupt(str_cat("has ", shape.size(), shape.size() == 1 ? " axis" : " axes",
                                   " where a picture has two, height and width, or three, with its channels"));
  }
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (height < 1 || width < 1 || height > most || width > most) {
    return stages::corrupt("is a picture without a pixel, or with too many");
  }
  made.height = static_cast<int>(height);
  made.width = static_cast<int>(width);
  return made;
}

}  // namespace leat::pixels
