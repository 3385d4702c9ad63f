#include "stages/pixels/geometry.hpp"

#include "base/portable_math.hpp"
#include "stages/pixels/iou_crop.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string>

namespace leat::pixels {
namespace {

namespace tr = transforms;

[[noreturn]] void refuse(const char* name, const std::string& why) {
  throw error(errc::usage, std::string(name) + ": " + why);
}

void check_size(const char* name, int height, int width) {
  if (height < 1 || width < 1 || height > side_max || width > side_max) {
    refuse(name, "height " + std::to_string(height) + ", width " + std::to_string(width) + ": each must be 1.." +
                     std::to_string(side_max));
  }
}

void check_range(const char* name, const char* of, const std::array<double, 2>& range) {
  if (!(range[0] > 0 && range[0] <= range[1] && range[1] < 1e6)) {
    refuse(name, std::string(of) + " from " + std::to_string(range[0]) + " to " + std::to_string(range[1]) +
                     ": must be positive and ascending");
  }
}

void check_fill(const char* name, const std::array<int, 3>& fill) {
  for (const int value : fill) {
    if (value < 0 || value > 255) refuse(name, "fill " + std::to_string(value) + ": must be 0..255");
  }
}

constexpr double factor_least = 0.01;
constexpr double factor_most = 100;
constexpr double zoom_most = 100;
// 100 options of so many take fewer numbers than random_draws has.
constexpr int trials_max = 300;

// Python's round(): halves go to the even neighbour. The default rounding mode does just that.
// What is beyond every picture, as ratios near 0 make it, stays beyond it on every processor.
std::int64_t round_half_even(double value) noexcept {
  constexpr double most = 0x1p62;
  return static_cast<std::int64_t>(std::nearbyint(std::clamp(value, -most, most)));
}

picture_part draw_box(const tr::random_resized_crop& what, std::int64_t width, std::int64_t height,
                      random_draws& draws) noexcept {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const double log_ratio_min = portable_log(what.ratio[0]);
  const double log_ratio_max = portable_log(what.ratio[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target_area = area * draws.uniform(what.scale[0], what.scale[1]);
    const double ratio = portable_exp(draws.uniform(log_ratio_min, log_ratio_max));
    const std::int64_t w = round_half_even(std::sqrt(target_area * ratio));
    const std::int64_t h = round_half_even(std::sqrt(target_area / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const auto y = static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(height - h + 1)));
    const auto x = static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(width - w + 1)));
    return {x, y, w, h};
  }
  // The whole picture, or the middle of it with the nearest ratio that is allowed.
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  std::int64_t w = width;
  std::int64_t h = height;
  if (ratio < what.ratio[0]) {
    h = round_half_even(static_cast<double>(w) / what.ratio[0]);
  } else if (ratio > what.ratio[1]) {
    w = round_half_even(static_cast<double>(h) * what.ratio[1]);
  }
  // A ratio close to the picture's own can round to one pixel more than the picture has, or to none.
  w = std::clamp<std::int64_t>(w, 1, width);
  h = std::clamp<std::int64_t>(h, 1, height);
  return {(width - w) / 2, (height - h) / 2, w, h};
}

// torchvision's CenterCrop along one axis: the padding on the near side rounds down, the crop half to even.
std::int64_t center(std::int64_t size, int crop) noexcept {
  if (size < crop) return -((crop - size) / 2);
  return round_half_even(static_cast<double>(size - crop) / 2.0);
}

// torchvision's RandomCrop along one axis, with pad_if_needed: a picture too small even with its padding lies anywhere
// inside the crop.
std::int64_t draw_offset(std::int64_t size, int crop, int padding, random_draws& draws) noexcept {
  const std::int64_t room = size + 2 * std::int64_t{padding} - crop;
  const auto drawn = static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(std::abs(room)) + 1));
  return (room < 0 ? -drawn : drawn) - padding;
}

// What of the picture lies in the frame along one axis, and where that goes in the scaled frame: between whole pixels, one at least.
struct part_in_frame {
  int begin = 0;
  int count = 0;
  std::int64_t at = 0;
  std::int64_t scaled = 0;

  part_in_frame(std::int64_t frame_begin, std::int64_t frame_count, int picture, std::int64_t scaled_frame) noexcept {
    const auto from = std::clamp<std::int64_t>(frame_begin, 0, picture);
    const auto to = std::clamp<std::int64_t>(frame_begin + frame_count, 0, picture);
    begin = static_cast<int>(from);
    count = static_cast<int>(to - from);
    if (count == 0) return;
    const auto place = [&](std::int64_t side) {
      return round_half_even(static_cast<double>(side - frame_begin) * static_cast<double>(scaled_frame) /
                             static_cast<double>(frame_count));
    };
    at = std::min(place(from), scaled_frame - 1);
    scaled = std::max<std::int64_t>(place(to) - at, 1);
  }
};

}  // namespace

void geometry_check::scale(const char* name) {
  if (scaled_) refuse(name, "the picture is scaled already; a chain may scale once, keep one of the two");
  if (cropped_) refuse(name, "stands after a crop; scale first, then crop");
  scaled_ = true;
}

void geometry_check::crop(const char* name, int height, int width, int padding) {
  check_size(name, height, width);
  if (cropped_ && (padding > 0 || height > cropped_->first || width > cropped_->second)) {
    refuse(name, "would look outside the " + std::to_string(cropped_->first) + " x " +
                     std::to_string(cropped_->second) + " crop before it; make it smaller and without padding");
  }
  cropped_ = size_ = most_ = std::pair{height, width};
}

void geometry_check::stand_first(const char* name) const {
  if (scaled_ || cropped_) {
    refuse(name, std::string("stands after a ") + (cropped_ ? "crop" : "scaling") +
                     "; write it before, or round once: pixel_rounding::fused");
  }
}

// What a step fills beside the canvas of random_zoom_out: a picture has one kind of padding.
void geometry_check::pad(const char* name, const std::array<int, 3>& fill, padding_mode mode) const {
  if (!zoomed_ || (*zoomed_ == fill && mode == padding_mode::constant)) return;
  refuse(name, "pads otherwise than the random_zoom_out before it; give both the same fill");
}

void geometry_check::check(const tr::random_resized_crop& step) {
  constexpr const char* name = "random_resized_crop";
  check_size(name, step.height, step.width);
  check_range(name, "scale", step.scale);
  check_range(name, "ratio", step.ratio);
  scale(name);
  random_ = true;
  size_ = most_ = std::pair{step.height, step.width};
}

void geometry_check::check(const tr::resize& step) {
  constexpr const char* name = "resize";
  scale(name);
  if (step.shorter_side != 0) {
    check_size(name, step.shorter_side, step.shorter_side);
    size_.reset();
    most_.reset();
  } else {
    check_size(name, step.height, step.width);
    size_ = most_ = std::pair{step.height, step.width};
  }
}

void geometry_check::check(const tr::longest_side& step) {
  check_size("longest_side", step.size, step.size);
  scale("longest_side");
  size_.reset();
  most_ = std::pair{step.size, step.size};
}

void geometry_check::check(const tr::smallest_side& step) {
  check_size("smallest_side", step.size, step.size);
  scale("smallest_side");
  size_.reset();
  most_.reset();
}

void geometry_check::check(const tr::random_scale& step) {
  constexpr const char* name = "random_scale";
  if (!(step.factor[0] >= factor_least && step.factor[0] <= step.factor[1] && step.factor[1] <= factor_most)) {
    refuse(name, "factor from " + std::to_string(step.factor[0]) + " to " + std::to_string(step.factor[1]) +
                     ": must be ascending, and lie in 0.01..100");
  }
  if (cropped_) refuse(name, "stands after a crop; scale first, then crop");
  if (rescaled_) refuse(name, "stands twice; one range will do");
  scaled_ = rescaled_ = true;
  random_ = random_ || step.factor[0] != step.factor[1];
  size_.reset();
  if (most_) {
    const auto larger = [&](int side) {
      return static_cast<int>(std::min<double>(std::ceil(side * step.factor[1]), side_max + 1.0));
    };
    most_ = std::pair{larger(most_->first), larger(most_->second)};
  }
}

void geometry_check::check(const tr::letterbox& step) {
  constexpr const char* name = "letterbox";
  check_fill(name, step.fill);
  check_size(name, step.height, step.width);
  pad(name, step.fill, padding_mode::constant);
  scale(name);
  crop(name, step.height, step.width, 0);
}

void geometry_check::check(const tr::pad_to& step) {
  constexpr const char* name = "pad_to";
  check_fill(name, step.fill);
  check_size(name, step.height, step.width);
  if (what_ == of::chain && (!most_ || most_->first > step.height || most_->second > step.width)) {
    refuse(name, most_ ? "a picture may be " + std::to_string(most_->first) + " x " + std::to_string(most_->second) +
                             " here, which is larger; pad to more, or scale to less"
                       : "a picture may be of any size here; write longest_side(" +
                             std::to_string(std::min(step.height, step.width)) + ") before it");
  }
  pad(name, step.fill, step.mode);
  crop(name, step.height, step.width, 0);
}

void geometry_check::check(const tr::center_crop& step) {
  check_fill("center_crop", step.fill);
  if (!size_ || step.height > size_->first || step.width > size_->second) pad("center_crop", step.fill, step.mode);
  crop("center_crop", step.height, step.width, 0);
}

void geometry_check::check(const tr::random_crop& step) {
  constexpr const char* name = "random_crop";
  check_fill(name, step.fill);
  if (step.padding < 0 || step.padding > side_max) {
    refuse(name, "padding " + std::to_string(step.padding) + ": must be 0.." + std::to_string(side_max));
  }
  if (step.padding > 0 || !size_ || step.height > size_->first || step.width > size_->second) {
    pad(name, step.fill, step.mode);
  }
  random_ = random_ || step.padding != 0 || size_ != std::pair{step.height, step.width};
  crop(name, step.height, step.width, step.padding);
}

void geometry_check::check(const tr::random_flip& step) {
  if (!(step.probability >= 0 && step.probability <= 1)) {
    refuse("random_flip", "probability " + std::to_string(step.probability) + ": must be 0..1");
  }
  random_ = random_ || (step.probability > 0 && step.probability < 1);
}

void geometry_check::check(const tr::random_zoom_out& step) {
  constexpr const char* name = "random_zoom_out";
  if (!(step.side[0] >= 1 && step.side[0] <= step.side[1] && step.side[1] <= zoom_most)) {
    refuse(name, "side from " + std::to_string(step.side[0]) + " to " + std::to_string(step.side[1]) +
                     ": must be ascending, and lie in 1..100");
  }
  if (!(step.probability >= 0 && step.probability <= 1)) {
    refuse(name, "probability " + std::to_string(step.probability) + ": must be 0..1");
  }
  check_fill(name, step.fill);
  stand_first(name);
  if (zoomed_) refuse(name, "stands twice; one range will do");
  if (has_part_) refuse(name, "stands after random_iou_crop; write it before, or round once: pixel_rounding::fused");
  zoomed_ = step.fill;
  random_ = random_ || (step.probability > 0 && step.side[1] > 1);
  size_.reset();
  most_.reset();
}

void geometry_check::check(const tr::random_iou_crop& step) {
  constexpr const char* name = "random_iou_crop";
  if (!(step.scale[0] > 0 && step.scale[0] <= step.scale[1] && step.scale[1] <= 1)) {
    refuse(name, "scale from " + std::to_string(step.scale[0]) + " to " + std::to_string(step.scale[1]) +
                     ": must be ascending, above 0 and at most 1");
  }
  check_range(name, "ratio", step.ratio);
  if (step.options.empty()) refuse(name, "has no options; give it one overlap at least, such as 0.5");
  for (const double option : step.options) {
    if (!(option >= 0 && option < 1e6)) {
      refuse(name, "option " + std::to_string(option) + ": an overlap is 0..1, and 1 leaves the picture as it is");
    }
  }
  if (step.trials < 1 || step.trials > trials_max) {
    refuse(name, "trials " + std::to_string(step.trials) + ": must be 1.." + std::to_string(trials_max));
  }
  stand_first(name);
  has_part_ = random_ = true;
  size_.reset();
  most_.reset();
}

warp_matrix geometry::from_row() const noexcept {
  if (warp) return warp->from;
  if (window && crop_x >= scaled_width && crop_y >= scaled_height) {
    // Of the picture there is nothing that could have been rounded.
    const double across = (window->right - window->left) / out_width;
    const double down = (window->bottom - window->top) / out_height;
    if (flip) return {-across, 0, window->right, 0, down, window->top, 0, 0, 1};
    return {across, 0, window->left, 0, down, window->top, 0, 0, 1};
  }
  const double across = static_cast<double>(box.width) / static_cast<double>(scaled_width);
  const double down = static_cast<double>(box.height) / static_cast<double>(scaled_height);
  const double x = box.x + static_cast<double>(crop_x) * across;
  const double y = box.y + static_cast<double>(crop_y) * down;
  if (flip) return {-across, 0, x + out_width * across, 0, down, y, 0, 0, 1};
  return {across, 0, x, 0, down, y, 0, 0, 1};
}

geometry_folding::geometry_folding(int width, int height, const seen_boxes& boxes) noexcept
    : picture_width_(width),
      picture_height_(height),
      boxes_(boxes),
      frame_{0, 0, width, height},
      width_(width),
      height_(height) {
  assert(width > 0 && height > 0);
  scale(width, height, filter::bilinear);
}

// A crop of what there is, `x` counted from the left as the next transform sees it.
void geometry_folding::crop(std::int64_t x, std::int64_t y, int crop_width, int crop_height) noexcept {
  if (result_.flip) x = width_ - crop_width - x;
  result_.crop_x += x;
  result_.crop_y += y;
  width_ = crop_width;
  height_ = crop_height;
}

// Of the frame, `x` counted likewise.
void geometry_folding::take_frame(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height) noexcept {
  if (result_.flip) x = frame_.width - width - x;
  frame_ = {frame_.x + x, frame_.y + y, width, height};
}

void geometry_folding::scale(std::int64_t to_width, std::int64_t to_height, filter how) noexcept {
  result_.scaled_width = width_ = to_width;
  result_.scaled_height = height_ = to_height;
  result_.how = how;
}

void geometry_folding::fold(const tr::random_resized_crop& step, random_draws draws) noexcept {
  const picture_part box = draw_box(step, frame_.width, frame_.height, draws);
  take_frame(box.x, box.y, box.width, box.height);
  scale(step.width, step.height, step.how);
}

void geometry_folding::fold(const tr::resize& step) noexcept {
  if (step.shorter_side == 0) return scale(step.width, step.height, step.how);
  // As torchvision: the longer side is truncated, not rounded.
  const std::int64_t side = step.shorter_side;
  if (frame_.width <= frame_.height) {
    scale(side, side * frame_.height / frame_.width, step.how);
  } else {
    scale(side * frame_.width / frame_.height, side, step.how);
  }
}

void geometry_folding::scale_by(double factor, filter how) noexcept {
  const auto scaled = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, round_half_even(static_cast<double>(side) * factor));
  };
  scale(scaled(frame_.width), scaled(frame_.height), how);
}

void geometry_folding::fold(const tr::longest_side& step) noexcept {
  scale_by(static_cast<double>(step.size) / static_cast<double>(std::max(frame_.width, frame_.height)), step.how);
}

void geometry_folding::fold(const tr::smallest_side& step) noexcept {
  scale_by(static_cast<double>(step.size) / static_cast<double>(std::min(frame_.width, frame_.height)), step.how);
}

void geometry_folding::fold(const tr::random_scale& step, random_draws draws) noexcept {
  const double factor = draws.uniform(step.factor[0], step.factor[1]);
  const auto scaled = [&](std::int64_t side) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(side) * factor));
  };
  scale(scaled(width_), scaled(height_), result_.how);
}

void geometry_folding::fold(const tr::letterbox& step) noexcept {
  scale_by(std::min(step.height / static_cast<double>(frame_.height), step.width / static_cast<double>(frame_.width)),
           step.how);
  pad(padding_mode::constant, step.fill);
  crop(center(width_, step.width), center(height_, step.height), step.width, step.height);
}

void geometry_folding::fold(const tr::pad_to& step) noexcept {
  pad(step.mode, step.fill);
  crop_at(step.position, step.width, step.height);
}

void geometry_folding::crop_at(placement position, int crop_width, int crop_height) noexcept {
  const bool is_right = position == placement::top_right || position == placement::bottom_right;
  const bool is_low = position == placement::bottom_left || position == placement::bottom_right;
  if (position == placement::center) {
    return crop(center(width_, crop_width), center(height_, crop_height), crop_width, crop_height);
  }
  crop(is_right ? width_ - crop_width : 0, is_low ? height_ - crop_height : 0, crop_width, crop_height);
}

void geometry_folding::pad(padding_mode mode, const std::array<int, 3>& fill) noexcept {
  result_.padding = mode;
  for (std::size_t c = 0; c < 3; ++c) result_.fill[c] = static_cast<std::uint8_t>(fill[c]);
}

void geometry_folding::fold(const tr::center_crop& step) noexcept {
  if (is_larger(step.height, step.width)) pad(step.mode, step.fill);
  crop_at(step.position, step.width, step.height);
}

void geometry_folding::fold(const tr::random_crop& step, random_draws draws) noexcept {
  if (step.padding > 0 || is_larger(step.height, step.width)) pad(step.mode, step.fill);
  const std::int64_t y = draw_offset(height_, step.height, step.padding, draws);
  const std::int64_t x = draw_offset(width_, step.width, step.padding, draws);
  crop(x, y, step.width, step.height);
}

void geometry_folding::fold(const tr::random_flip& step, random_draws draws) noexcept {
  if (draws.uniform() < step.probability) result_.flip = !result_.flip;
}

void geometry_folding::fold(const tr::random_zoom_out& step, random_draws draws) noexcept {
  const bool applied = draws.uniform() < step.probability;
  const double side = draws.uniform(step.side[0], step.side[1]);
  const auto canvas = [&](std::int64_t of) {
    return std::min<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(of) * side),
                                  std::max(of, std::int64_t{side_most}));
  };
  const auto before = [&](std::int64_t room) {
    return static_cast<std::int64_t>(static_cast<double>(room) * draws.uniform());
  };
  const std::int64_t width = canvas(frame_.width);
  const std::int64_t height = canvas(frame_.height);
  const std::int64_t left = before(width - frame_.width);
  const std::int64_t top = before(height - frame_.height);
  has_window_ = true;
  if (!applied) return;
  pad(padding_mode::constant, step.fill);
  take_frame(-left, -top, width, height);
  scale(width, height, result_.how);
}

void geometry_folding::fold(const tr::random_iou_crop& step, random_draws draws) noexcept {
  has_window_ = true;
  const auto x = static_cast<double>(frame_.x);
  const auto y = static_cast<double>(frame_.y);
  const warp_matrix to_frame = result_.flip
                                   ? warp_matrix{-1, 0, static_cast<double>(frame_.width) + x, 0, 1, -y, 0, 0, 1}
                                   : warp_matrix{1, 0, -x, 0, 1, -y, 0, 0, 1};
  const auto part =
      draw_iou_crop(step, frame_.width, frame_.height, {boxes_.all, followed(to_frame, boxes_.to_seen)}, draws);
  if (!part) return;
  take_frame(part->x, part->y, part->width, part->height);
  scale(part->width, part->height, result_.how);
}

geometry geometry_folding::result(int out_width, int out_height) const noexcept {
  geometry folded = result_;
  folded.out_width = out_width;
  folded.out_height = out_height;
  const std::int64_t scaled_width = result_.scaled_width;
  const std::int64_t scaled_height = result_.scaled_height;
  if (has_window_) {
    const auto at = [](std::int64_t begin, std::int64_t place, std::int64_t side, std::int64_t scaled) {
      return static_cast<double>(begin) +
             static_cast<double>(place) * static_cast<double>(side) / static_cast<double>(scaled);
    };
    const std::int64_t x = result_.crop_x;
    const std::int64_t y = result_.crop_y;
    folded.window = {at(frame_.x, x, frame_.width, scaled_width), at(frame_.y, y, frame_.height, scaled_height),
                     at(frame_.x, x + out_width, frame_.width, scaled_width),
                     at(frame_.y, y + out_height, frame_.height, scaled_height)};
  }
  const part_in_frame across(frame_.x, frame_.width, picture_width_, scaled_width);
  const part_in_frame down(frame_.y, frame_.height, picture_height_, scaled_height);
  if (across.count == 0 || down.count == 0) {
    // Nothing of the picture is in the frame: the row lies beside it.
    folded.box = {0, 0, picture_width_, picture_height_};
    folded.scaled_width = folded.crop_x = picture_width_;
    folded.scaled_height = folded.crop_y = picture_height_;
    return folded;
  }
  folded.box = {across.begin, down.begin, across.count, down.count};
  folded.scaled_width = across.scaled;
  folded.scaled_height = down.scaled;
  folded.crop_x -= across.at;
  folded.crop_y -= down.at;
  return folded;
}

}  // namespace leat::pixels
