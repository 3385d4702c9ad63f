// What a mosaic asks of a program that follows a picture: whether its rows can go where parts of the picture go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace leat::stages {

/// Which boxes are left of a tile, by boxes::min_area(), min_visible() and center_inside().
///   most   in a row, of boxes::padded(), with `fill` behind them; 0: rows are ragged
struct tiled_boxes {
  double area_min = 0;
  double visible_min = 0;
  bool center_inside = false;
  std::size_t most = 0;
  std::int64_t fill = 0;
};

/// Its rows follow a picture, and may go along with its tiles.
class tiling_facet {
 public:
  /// Why its rows cannot; empty: they can.
  [[nodiscard]] virtual std::string why_not_tiled() const = 0;
  /// Its outputs that have offsets are boxes, f32 [4], and numbers of each; of padded rows all that are not hidden, and the last is their
  /// count. None: the first is a number for each pixel.
  [[nodiscard]] virtual std::optional<tiled_boxes> boxes_of_tiles() const = 0;
  /// Before outputs are laid out: padded rows keep the boxes that they have no room for, since other tiles may show less of the row. Its
  /// first hidden output becomes ragged bytes: of each such box its element of each output but the count, one behind the other.
  virtual void keep_further_boxes() {}

 protected:
  ~tiling_facet() = default;
};

}  // namespace leat::stages
