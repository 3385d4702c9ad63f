// A picture of u8 that is turned, sheared, moved or seen from aside: each pixel of the new one is looked up in the old.
#pragma once

#include "stages/pixels/colour/neighbours.hpp"
#include "stages/pixels/matrix.hpp"

#include <leat/transforms.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace leat::pixels {

/// Of one picture.
///   how    nearest, or bilinear
///   fill   of what lies outside of the picture, red first
struct warp {
  warp_matrix from = identity_matrix;
  filter how = filter::nearest;
  std::array<std::uint8_t, 3> fill = {0, 0, 0};
};

/// An affine matrix with 32 binary digits behind the point: of each axis the steps along a line and from line to line, and where the first
/// pixel looks. Nothing where it is not affine, or these would not fit.
///   height, width   of the new picture
[[nodiscard]] std::optional<std::array<std::int64_t, 6>> fixed_numbers(const warp& how, int height, int width) noexcept;

/// The same bits on every instruction set. Places are numbers with 32 binary digits behind the point: of an affine matrix
/// sums of integers, else (or where those would not fit) one division for each pixel, in double precision. Weights have 14 digits: of the upper and lower pair
/// 7 are kept, and the sum of both is rounded.
class warper {
 public:
  /// Sides of both pictures are below 2^16.
  ///   height, width   of the new picture
  warper(const warp& how, const picture& from, int height, int width) noexcept;
  warper(const warp& how, const picture& from) noexcept : warper(how, from, from.height, from.width) {}
  /// Line y of the new picture. `to` is no part of the old one.
  void line(int y, std::uint8_t* to) const noexcept;

 private:
  warp how_;
  picture from_;
  int width_;
  std::optional<std::array<std::int64_t, 6>> fixed_;  // of an affine one
};

}  // namespace leat::pixels
