// Where one picture lies in its row, as what follows it has to know: which places of the row show the picture, and which place of
// the stored picture each of them shows.
#pragma once

#include "stages/pixels/box.hpp"
#include "stages/pixels/matrix.hpp"
#include "stages/pixels/recipe.hpp"
#include "stages/pixels/shown_line.hpp"

#include <leat/picture_geometry.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace leat::pixels {

///   bounds    a place of the row shows the picture if each of these matrices looks into its box from there: what lies beside one was
///             filled when that step was done. The last is of the upright picture
///   seen      the part of the stored picture that crops have left. Warps may have lost some of it
///   shown     the same without what warps have lost, where there are none: not rounded, and it may reach outside of the picture
///   to_row    from a place in the stored picture to one in the row; none where a warp has made a line of it
struct placed_picture {
  struct bound {
    warp_matrix from_row = identity_matrix;
    box inside;
  };

  picture_geometry geometry;
  std::array<bound, recipe::passes_max + 1> bounds;
  std::size_t bound_count = 0;
  box seen;
  std::optional<box> shown;
  std::optional<warp_matrix> to_row;

  [[nodiscard]] std::span<const bound> all_bounds() const noexcept { return {bounds.data(), bound_count}; }
};

/// What is shown of a picture by a chain.
///   width, height   of the picture as it is stored
///   turned          the EXIF orientation by which it is turned upright first; 1: it is not
[[nodiscard]] picture_geometry geometry_of(const pipeline& steps, const draw_key& key, int width, int height,
                                           int turned) noexcept;
/// The same from what the decoder has drawn.
///   drawn, from_row   of the upright picture (decoded::from_row())
[[nodiscard]] picture_geometry geometry_of(const geometry& drawn, const warp_matrix& from_row, int width, int height,
                                           int turned) noexcept;
/// All of it. `of` is the geometry that one of the above has given for the same chain and key.
void place(const pipeline& steps, const draw_key& key, const picture_geometry& of, placed_picture& out) noexcept;

/// Where a chain takes the rows of some pictures from: equal for chains of the same steps of geometry, whatever their filters and fill.
///   turns   pictures are turned upright first
[[nodiscard]] std::vector<double> geometry_probes(const pipeline& steps, bool turns);

/// The pixels of line y of the row whose middles show the picture.
[[nodiscard]] inline pixel_run shown_in_line(const placed_picture& where, int y) noexcept {
  pixel_run run{0, where.geometry.row_width};
  for (const placed_picture::bound& each : where.all_bounds()) cut_to_box(each.from_row, each.inside, y, run);
  return run.begin < run.end ? run : pixel_run{};
}

/// The same of a place.
[[nodiscard]] bool is_shown(const placed_picture& where, double x, double y) noexcept;

/// Where a place of the stored picture lies in the row; nothing behind a warp's horizon.
[[nodiscard]] std::optional<std::array<double, 2>> place_in_row(const placed_picture& where, double x,
                                                                double y) noexcept;

/// Whether the row shows a place of the stored picture, or what lies there beside it; a place on the row's edge it does not.
[[nodiscard]] bool is_inside(const placed_picture& where, double x, double y) noexcept;

/// A box of the stored picture in the row: what crops have left of it goes by its corners, whose hull is cut to the row.
///   whole    the area that the hull has if nothing is cut off
struct placed_box {
  box in_row;
  double whole_area = 0;
};
[[nodiscard]] placed_box place_box(const placed_picture& where, const box& of) noexcept;

}  // namespace leat::pixels
