// What leat::open_coco() says of a picture's segmentation, as shapes that a mask is painted of.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/mask_shapes.hpp"

#include <cstddef>
#include <string_view>

namespace leat::stages {

/// Reads {"categories": [64, ...], "iscrowd": [0, ...], "at": [90210, ...], "segmentation": [..., ...]}, lists of as many elements, of which
/// "iscrowd" and "at" may be missing. Each of "at" is the byte of a file, for messages. One of the last is a list
/// of outlines ([x, y, ...] each), an object of runs ({"size": [height, width], "counts": [...]}, or text for counts), or null.
///   to        empty; gets them in their order; a category is the number, and crowds are ignored
///   returns   corrupt: no JSON, another form, runs of other sizes than width and height, and a first outline of one or two corners, which
///             pycocotools refuses (of a later one it paints nothing)
///   source    https://cocodataset.org/#format-data; rleFrString() of pycocotools (cocoapi, common/maskApi.c)
[[nodiscard]] outcome<void> read_segmentation(std::string_view json, int width, int height, pixels::mask_shapes& to);

/// The most that it takes of the memory of `to`.
[[nodiscard]] std::size_t segmentation_bytes_max(std::string_view json);

}  // namespace leat::stages
