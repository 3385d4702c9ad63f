// One resampling for a chain whose geometry is one matrix: what of the picture is decoded, how far it is shrunk first, and where the
// row then looks.
#pragma once

#include "stages/pixels/matrix.hpp"

#include <leat/transforms.hpp>

namespace leat::pixels {

/// Where the row of a fused chain looks.
///   from        from a place in the row to one in the picture
///   picture_*   in pixels, after EXIF orientation
///   how         nearest or bilinear
struct fused_warp {
  warp_matrix from = identity_matrix;
  int picture_width = 0;
  int picture_height = 0;
  int out_width = 0;
  int out_height = 0;
  filter how = filter::bilinear;

  friend bool operator==(const fused_warp&, const fused_warp&) = default;
};

/// One axis of the pixels that are looked at, which the decoder may have shrunk.
///   begin, count   of them
///   shrunk_to      pixels that they become before they are looked at; count where nothing is shrunk
struct fused_axis {
  int begin = 0;
  int count = 0;
  int shrunk_to = 0;
};

struct fused_plan {
  fused_axis across;
  fused_axis down;
  warp_matrix from = identity_matrix;  // from a place in the row to one in the shrunk pixels
};

/// The pixels of the picture beside one another that become one of the row, where they are fewest: along its lines, and down.
struct pixel_density {
  double across = 1;
  double down = 1;
};
[[nodiscard]] pixel_density density_of(const fused_warp& warp) noexcept;

/// By sizes and the matrix alone.
///   by        how the decoder has shrunk the picture: 1, 2, 4 or 8
///   shift_*   where the picture's left and upper edges lie, in decimated pixels
/// Where more than two pixels become one, the separable pass shrinks them to one and a half: two taps do not alias much then. No axis
/// of the shrunk pixels is longer than eight times a side of the row, or those that are seen.
[[nodiscard]] fused_plan plan_fused(const fused_warp& warp, int by, double shift_x, double shift_y) noexcept;

}  // namespace leat::pixels
