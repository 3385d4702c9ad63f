#include "stages/pixels/shared_crops.hpp"

#include <algorithm>
#include <cstring>

namespace leat::pixels {
namespace {

// Pillow's nearest neighbour adds up from the first pixel of the row, so that a crop of it may begin with another sum.
bool is_cut_from_picture(const geometry& of) noexcept {
  return !of.warp && of.how != filter::nearest && of.crop_x >= 0 && of.crop_y >= 0 &&
         of.crop_x + of.out_width <= of.scaled_width && of.crop_y + of.out_height <= of.scaled_height;
}

std::int64_t pixels_of(const geometry& of) noexcept { return std::int64_t{of.out_width} * of.out_height; }

}  // namespace

std::optional<geometry> crop_of_both(const geometry& a, const geometry& b) noexcept {
  if (a.box != b.box || a.scaled_width != b.scaled_width || a.scaled_height != b.scaled_height || a.how != b.how ||
      !is_cut_from_picture(a) || !is_cut_from_picture(b)) {
    return std::nullopt;
  }
  const std::int64_t x = std::min(a.crop_x, b.crop_x);
  const std::int64_t y = std::min(a.crop_y, b.crop_y);
  const std::int64_t width = std::max(a.crop_x + a.out_width, b.crop_x + b.out_width) - x;
  const std::int64_t height = std::max(a.crop_y + a.out_height, b.crop_y + b.out_height) - y;
  if (width * height > pixels_of(a) + pixels_of(b)) return std::nullopt;
  geometry both = a;
  both.flip = false;
  both.crop_x = x;
  both.crop_y = y;
  both.out_width = static_cast<int>(width);
  both.out_height = static_cast<int>(height);
  return both;
}

line_cutter::line_cutter(int width, layout order, std::span<const line_cut> cuts) noexcept
    : width_(width), is_planar_(order == layout::nchw), cuts_(cuts) {}

std::size_t line_cutter::line_bytes() const noexcept {
  const bool any = std::any_of(cuts_.begin(), cuts_.end(), [](const line_cut& each) { return each.mirrored; });
  return any ? static_cast<std::size_t>(width_) * 3 : 0;
}

std::size_t line_cutter::part_bytes() const noexcept {
  if (!is_planar_) return 0;
  int widest = 0;
  for (const line_cut& each : cuts_) widest = std::max(widest, each.width);
  return static_cast<std::size_t>(widest) * 3;
}

std::size_t line_cutter::scratch_bytes() const noexcept {
  return scratch_arena::rounded(line_bytes()) + scratch_arena::rounded(part_bytes());
}

bool line_cutter::start(scratch_arena& arena) noexcept {
  mirrored_ = arena.take_array<std::uint8_t>(line_bytes());
  part_ = arena.take_array<std::uint8_t>(part_bytes());
  return mirrored_ != nullptr && part_ != nullptr;
}

void line_cutter::take(const std::uint8_t* line, int y) noexcept {
  const std::uint8_t* from_the_right = nullptr;
  for (const line_cut& each : cuts_) {
    if (y < each.y || y >= each.y + each.height) continue;
    if (each.mirrored && from_the_right == nullptr) from_the_right = mirror(line);
    const std::uint8_t* const from = each.mirrored ? from_the_right : line;
    const auto x = static_cast<std::size_t>(each.mirrored ? width_ - each.x - each.width : each.x);
    if (!is_planar_) {
      each.to->take(from + 3 * x, y - each.y);
      continue;
    }
    const auto width = static_cast<std::size_t>(each.width);
    for (std::size_t c = 0; c < 3; ++c) {
      std::memcpy(part_ + c * width, from + c * static_cast<std::size_t>(width_) + x, width);
    }
    each.to->take(part_, y - each.y);
  }
}

const std::uint8_t* line_cutter::mirror(const std::uint8_t* line) noexcept {
  const auto width = static_cast<std::size_t>(width_);
  if (is_planar_) {
    for (std::size_t c = 0; c < 3; ++c)
      std::reverse_copy(line + c * width, line + (c + 1) * width, mirrored_ + c * width);
    return mirrored_;
  }
  const std::uint8_t* from = line;
  std::uint8_t* to = mirrored_ + 3 * width;
  for (std::size_t x = 0; x < width; ++x, from += 3) {
    to -= 3;
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
  }
  return mirrored_;
}

}  // namespace leat::pixels
