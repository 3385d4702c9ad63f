// Where a warp looks: the 3 x 3 matrix from a place in the new picture to one in the old.
#pragma once

#include <array>
#include <optional>

namespace leat::pixels {

/// Rows one after the other. A place is (x, y, 1), in pixels from the upper left corner: the middle of the first pixel is (0.5, 0.5).
using warp_matrix = std::array<double, 9>;

inline constexpr warp_matrix identity_matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1};

/// What looks where `second` does from where `first` does: of a picture made by `first`, and from that another by `second`.
[[nodiscard]] warp_matrix followed(const warp_matrix& first, const warp_matrix& second) noexcept;
/// From a place in the old picture to one in the new. Nothing where several places of the new one look at the same.
[[nodiscard]] std::optional<warp_matrix> inverse(const warp_matrix& of) noexcept;

/// Before the division: x, y and their divisor. What has none above 0 lies behind the horizon.
[[nodiscard]] std::array<double, 3> seen_from(const warp_matrix& m, double x, double y) noexcept;

/// What affine_matrix() undoes: pictures are sheared, scaled, turned clockwise and moved, in this order.
///   tan_x, tan_y   of the shears' angles
///   center         in pixels from the upper left corner
struct affine_motion {
  double degrees = 0;
  std::array<double, 2> translate = {0, 0};
  double scale = 1;
  double tan_x = 0;
  double tan_y = 0;
  std::array<double, 2> center = {0, 0};
};
///   source   torchvision's _get_inverse_affine_matrix
[[nodiscard]] warp_matrix affine_matrix(const affine_motion& of) noexcept;

/// Four places: upper left, upper right, lower right, lower left.
using quadrilateral = std::array<std::array<double, 2>, 4>;

/// That which maps each place of `from` to that of `to`. All is 0 where three of them lie on a line: nothing is seen then.
[[nodiscard]] warp_matrix perspective_matrix(const quadrilateral& from, const quadrilateral& to) noexcept;

}  // namespace leat::pixels
