// Pictures that are arrays already: which rows of numbers are the pixels of a picture, and how they lie.
#pragma once

#include "base/outcome.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <optional>

namespace leat::pixels {

/// How the pixels of a picture lie in an array.
///   channels   1: grey, 3: RGB, 4: RGB and alpha
///   planar     channel after channel, as CHW; else pixel after pixel
///   white      the number that is 255; 0 is 0, and what lies between is scaled
struct array_pixels {
  int height = 0;
  int width = 0;
  int channels = 3;
  bool planar = false;
  dtype type = dtype::u8;
  double white = 255;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * static_cast<std::size_t>(channels) *
           size_bytes(type);
  }
  friend bool operator==(const array_pixels&, const array_pixels&) = default;
};

/// What the user has said of arrays.
///   order   where channels stand; none: as the shape tells
///   white   array_pixels::white; none: 255 of u8, 1 of floats, and of u16 it has to be said
struct array_reading {
  std::optional<layout> order;
  std::optional<double> white;

  friend bool operator==(const array_reading&, const array_reading&) = default;
};

/// The picture that an array of this shape is.
///   returns   corrupt where it is none, or may be both HWC and CHW. The reason's subject is the array: "has 1 axis ..."
[[nodiscard]] stages::outcome<array_pixels> pixels_of(const dimensions& shape, dtype type, const array_reading& how);

}  // namespace leat::pixels
