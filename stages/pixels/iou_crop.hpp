// The part of a picture that transforms::random_iou_crop leaves.
#pragma once

#include "base/random.hpp"
#include "stages/pixels/box.hpp"

#include <leat/transforms.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace leat::pixels {

/// In pixels of the picture.
struct picture_part {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// How many options are drawn before the picture is left as it is. With those of the paper, one of which leaves it, that is seldom
/// the reason: (6/7)^100 is 2e-7.
inline constexpr int iou_options_drawn_max = 100;

/// The most boxes of a sample that are looked at, whose memory is counted, and each of which every trial may have to look at: as many
/// as 300 trials of 100 options look at in a second.
inline constexpr std::size_t boxes_seen_max = 16'384;

/// Nothing: the picture stays as it is.
///   source   torchvision.transforms.v2.RandomIoUCrop, _get_params(): its order of draws and its roundings, in f64
[[nodiscard]] std::optional<picture_part> draw_iou_crop(const transforms::random_iou_crop& step, std::int64_t width,
                                                        std::int64_t height, const seen_boxes& boxes,
                                                        random_draws& draws) noexcept;

}  // namespace leat::pixels
