#include "stages/pixels/iou_crop.hpp"

#include <algorithm>

namespace leat::pixels {
namespace {

// Whether a box has its middle inside, and one of those overlaps it so far: of the places that boxes are of, since shares of areas are
// the same in all of them.
bool overlaps(const box& part, double least, std::span<const box> boxes) noexcept {
  return std::any_of(boxes.begin(), boxes.end(), [&](const box& each) {
    const double x = 0.5 * (each.left + each.right);
    const double y = 0.5 * (each.top + each.bottom);
    if (!(x > part.left && x < part.right && y > part.top && y < part.bottom)) return false;
    const double both = common(part, each).area();
    return both >= least * (part.area() + each.area() - both);
  });
}

}  // namespace

std::optional<picture_part> draw_iou_crop(const transforms::random_iou_crop& step, std::int64_t width,
                                          std::int64_t height, const seen_boxes& boxes, random_draws& draws) noexcept {
  const std::optional<warp_matrix> to_boxes = boxes.all.empty() ? std::nullopt : inverse(boxes.to_seen);
  if (!to_boxes) return std::nullopt;
  const auto part_of = [](std::int64_t of, double share) {
    return static_cast<std::int64_t>(static_cast<double>(of) * share);
  };
  for (int option = 0; option < iou_options_drawn_max; ++option) {
    const double least = step.options[draws.below(step.options.size())];
    if (least >= 1) return std::nullopt;
    for (int trial = 0; trial < step.trials; ++trial) {
      picture_part made;
      made.width = part_of(width, draws.uniform(step.scale[0], step.scale[1]));
      made.height = part_of(height, draws.uniform(step.scale[0], step.scale[1]));
      if (made.width < 1 || made.height < 1) continue;
      const double ratio = static_cast<double>(made.width) / static_cast<double>(made.height);
      if (ratio < step.ratio[0] || ratio > step.ratio[1]) continue;
      made.x = part_of(width - made.width, draws.uniform());
      made.y = part_of(height - made.height, draws.uniform());
      const box part{static_cast<double>(made.x), static_cast<double>(made.y), static_cast<double>(made.x + made.width),
                     static_cast<double>(made.y + made.height)};
      if (overlaps(moved(*to_boxes, part), least, boxes.all)) return made;
    }
  }
  return std::nullopt;
}

}  // namespace leat::pixels
