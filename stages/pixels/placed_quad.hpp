// Where a rotated box lies in the row of its picture.
#pragma once

#include "stages/pixels/matrix.hpp"
#include "stages/pixels/placed_picture.hpp"

namespace leat::pixels {

///   in_row   its corners, wherever they lie. In a mirrored picture the first two have changed places, and the last two, so that they go
///            round the same way
///   area     of what crops have left of it and lies in the row, to the digits of a double; 0 where a corner is behind the horizon
///   whole_area   if nothing is cut off
struct placed_quad {
  quadrilateral in_row{};
  double area = 0;
  double whole_area = 0;
};
///   of   of the stored picture; sides that do not cross
[[nodiscard]] placed_quad place_quad(const placed_picture& where, const quadrilateral& of) noexcept;

/// Whether two of its sides cross: it has no inside that its corners go round.
[[nodiscard]] bool sides_cross(const quadrilateral& of) noexcept;

///   degrees   by which it is turned counter-clockwise, as it is seen
///   source    torchvision.ops._box_convert: CXCYWHR to XYXYXYXY
[[nodiscard]] quadrilateral rotated_box(double middle_x, double middle_y, double width, double height,
                                        double degrees) noexcept;

}  // namespace leat::pixels
