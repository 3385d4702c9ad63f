// Where the picture of a row lies: what a crop, a flip or a warp has done to it.
#pragma once

#include <array>

namespace leat {

/// Sizes are in pixels. Places are (x, y) from the upper left corner: the middle of the first pixel is (0.5, 0.5).
///   picture_*   of the picture as it is stored, before any EXIF orientation
///   row_*       of the row
///   turned      the EXIF orientation by which it was turned upright, 1 to 8; 1 where it was not
///   matrix      3 x 3, row by row: from a place in the row to one in the stored picture. (x, y, 1) becomes (X, Y, W),
///               and the place is (X / W, Y / W); W is above 0 wherever the row shows the picture
///   mirrored    an odd number of times
/// What a mix (AugMix) blends over the picture is not looked at.
struct picture_geometry {
  int picture_width = 0;
  int picture_height = 0;
  int row_width = 0;
  int row_height = 0;
  int turned = 1;
  bool mirrored = false;
  std::array<double, 9> matrix = {1, 0, 0, 0, 1, 0, 0, 0, 1};

  friend bool operator==(const picture_geometry&, const picture_geometry&) = default;
};

}  // namespace leat
