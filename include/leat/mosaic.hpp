// mosaic: rows of a batch that show parts of four pictures, for detection and segmentation.
#pragma once

#include <leat/transforms.hpp>

namespace leat {

/// Each row becomes four tiles around a drawn centre: its own picture at the upper left, and at the upper right, lower left and
/// lower right those of three further rows. The rows of a batch are put in a drawn circle; the three behind a row are its
/// partners. Of fewer than four rows some come again.
///
///     leat::loader train{set, {.batch_size = 32, .mix = leat::mosaic()},
///         leat::image{"jpg"}.longest_side(640).pad_to({.fill = {114, 114, 114}}), leat::mask{"seg.png"}.follows("jpg"),
///         leat::boxes{"json"}.follows("jpg").key("boxes").labels("classes")};
///
///   probability   above 0, at most 1: that a row becomes one
///   tiles         no pixel is resampled: the corner of what the row shows of its picture is moved to the centre. Where it
///                 does not reach there is what its row has beside it: the fill of pad() or a warp, `ignore` of masks
///   centre        uniform within 0.3 to 0.7 of width and height
///   followers     masks and depths move along. Boxes of the four tiles come in the order of the tiles, moved and cut to their tile.
///                 min_area, min_visible and center_inside drop some: area and centre are of the box as its own row had it. Labels
///                 and with() lose the same ones; `kept` is the number in the box's own sample. Of padded() the first ones of all
///                 that tiles show are left
///   output        `mix.tiles`: i32 [rows, 4], the rows of the batch whose pictures the tiles show; `mix.center`: i32 [rows, 2],
///                 x and y in pixels. A row that is none has itself four times, and its lower right corner. Other fields
///                 are of the row's own sample: cls[mix.tiles[r]] are the labels of its tiles
///   placement     batch::placement() refuses rows that are mosaics
///   memory        boxes may come in four rows: a batch has room for five times its ragged boxes, and beside padded() ones for all.
///                 How many there may be is reckoned from the bytes of the largest member: boxes::bytes_max() bounds them
///   device        tiles of pictures that are finished there are moved there; u8 without steps of colour on the host
///   throws        (when the loader is built) error{errc::usage}: no picture, pictures of several sizes, views and clips,
///                 followers that cannot be tiled: points, rotated boxes, masks of boxes, instances(), custom
///   source        Bochkovskiy et al., "YOLOv4", 2020; kornia's RandomMosaic, which takes partners from the batch as well
[[nodiscard]] constexpr batch_mix mosaic(double probability = 1.0) noexcept {
  return {batch_mix::kind::mosaic, probability};
}

}  // namespace leat
