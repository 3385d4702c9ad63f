#include "stages/pixels/geometry.hpp"

#include "base/random.hpp"
#include "stages/pixels/portable_math.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace leat::pixels {
namespace {

namespace tr = transforms;

// JPEG's limit for a side, and far beyond any network's input: a wrong number is caught here and not in an allocation.
constexpr int side_max = 65'535;

template <class... Function>
struct overloaded : Function... {
  using Function::operator()...;
};

const char* transform_name(const transform& what) {
  static constexpr std::array names{"random_resized_crop", "resize", "center_crop", "random_crop", "random_flip"};
  static_assert(names.size() == std::variant_size_v<transform>);
  return names[what.index()];
}

[[noreturn]] void refuse(const transform& what, const std::string& why) {
  throw error(errc::usage, std::string(transform_name(what)) + ": " + why);
}

void check_size(const transform& what, int height, int width) {
  if (height < 1 || width < 1 || height > side_max || width > side_max) {
    refuse(what, "height " + std::to_string(height) + ", width " + std::to_string(width) + ": each must be 1.." +
                     std::to_string(side_max));
  }
}

void check_range(const transform& what, const char* name, const std::array<double, 2>& range) {
  if (!(range[0] > 0 && range[0] <= range[1] && range[1] < 1e6)) {
    refuse(what, std::string(name) + " from " + std::to_string(range[0]) + " to " + std::to_string(range[1]) +
                     ": must be positive and ascending");
  }
}

// Python's round(): halves go to the even neighbour. The default rounding mode does just that.
std::int64_t round_half_even(double value) noexcept { return static_cast<std::int64_t>(std::nearbyint(value)); }

// The transforms folded so far. Coordinates are of the picture as the next transform sees it: mirrored after a flip.
struct folding {
  std::int64_t width;  // of what the next transform sees
  std::int64_t height;
  geometry result;

  // A window of what there is, `x` counted from the left as the next transform sees it.
  void crop(std::int64_t x, std::int64_t y, int crop_width, int crop_height) noexcept {
    if (result.flip) x = width - crop_width - x;
    result.window_x += x;
    result.window_y += y;
    width = crop_width;
    height = crop_height;
  }

  void scale(std::int64_t to_width, std::int64_t to_height, filter how) noexcept {
    result.scaled_width = width = to_width;
    result.scaled_height = height = to_height;
    result.how = how;
  }
};

rectangle draw_box(const tr::random_resized_crop& what, int width, int height, random_draws draws) noexcept {
  const double area = static_cast<double>(height) * static_cast<double>(width);
  const double log_ratio_min = portable_log(what.ratio[0]);
  const double log_ratio_max = portable_log(what.ratio[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double target_area = area * draws.uniform(what.scale[0], what.scale[1]);
    const double ratio = portable_exp(draws.uniform(log_ratio_min, log_ratio_max));
    const std::int64_t w = round_half_even(std::sqrt(target_area * ratio));
    const std::int64_t h = round_half_even(std::sqrt(target_area / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const auto y = static_cast<int>(draws.below(static_cast<std::uint64_t>(height - h + 1)));
    const auto x = static_cast<int>(draws.below(static_cast<std::uint64_t>(width - w + 1)));
    return {x, y, static_cast<int>(w), static_cast<int>(h)};
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
  // A ratio that is nearly the picture's own can round to one pixel more than there is, or to none.
  w = std::clamp<std::int64_t>(w, 1, width);
  h = std::clamp<std::int64_t>(h, 1, height);
  return {static_cast<int>((width - w) / 2), static_cast<int>((height - h) / 2), static_cast<int>(w),
          static_cast<int>(h)};
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

// The state of the chain while it is checked, before there is a picture: enough to refuse what cannot be folded.
struct chain_check {
  bool scaled = false;
  std::optional<std::pair<int, int>> cropped;  // height, width of the last crop
  std::optional<std::pair<int, int>> size;     // height, width, where the chain fixes them

  void scaling(const transform& what) {
    if (scaled) refuse(what, "the picture is scaled already; a chain may scale once, keep one of the two");
    if (cropped) refuse(what, "stands after a crop; scale first, then crop");
    scaled = true;
  }

  void cropping(const transform& what, int height, int width, int padding) {
    check_size(what, height, width);
    if (cropped && (padding > 0 || height > cropped->first || width > cropped->second)) {
      refuse(what, "would look outside the " + std::to_string(cropped->first) + " x " +
                       std::to_string(cropped->second) + " crop before it; make it smaller and without padding");
    }
    cropped = size = std::pair{height, width};
  }
};

}  // namespace

pipeline::pipeline(std::vector<transform> steps) {
  chain_check chain;
  std::array<int, std::variant_size_v<transform>> seen{};
  for (const transform& what : steps) {
    std::visit(overloaded{[&](const tr::random_resized_crop& t) {
                            check_size(what, t.height, t.width);
                            check_range(what, "scale", t.scale);
                            check_range(what, "ratio", t.ratio);
                            chain.scaling(what);
                            chain.size = std::pair{t.height, t.width};
                            random_ = true;
                          },
                          [&](const tr::resize& t) {
                            chain.scaling(what);
                            if (t.shorter_side != 0) {
                              check_size(what, t.shorter_side, t.shorter_side);
                              chain.size.reset();
                            } else {
                              check_size(what, t.height, t.width);
                              chain.size = std::pair{t.height, t.width};
                            }
                          },
                          [&](const tr::center_crop& t) { chain.cropping(what, t.height, t.width, 0); },
                          [&](const tr::random_crop& t) {
                            if (t.padding < 0 || t.padding > side_max) {
                              refuse(what, "padding " + std::to_string(t.padding) + ": must be 0.." +
                                               std::to_string(side_max));
                            }
                            chain.cropping(what, t.height, t.width, t.padding);
                            random_ = true;
                          },
                          [&](const tr::random_flip& t) {
                            if (!(t.probability >= 0 && t.probability <= 1)) {
                              refuse(what, "probability " + std::to_string(t.probability) + ": must be 0..1");
                            }
                            random_ = true;
                          }},
               what);
    std::string name = transform_name(what);
    const int occurrence = ++seen[what.index()];
    if (occurrence > 1) name += "/" + std::to_string(occurrence);
    steps_.push_back({what, name, name});
  }
  if (!chain.size) {
    throw error(errc::usage,
                "a picture's transforms leave its size open, and a batch needs one: add random_resized_crop(size), "
                "center_crop(size), random_crop(size) or resize(height, width)");
  }
  std::tie(out_height_, out_width_) = *chain.size;
}

pipeline pipeline::as_view(std::uint32_t number) const {
  pipeline other = *this;
  for (step& each : other.steps_) each.key = number == 1 ? each.name : each.name + "@" + std::to_string(number);
  return other;
}

geometry pipeline::compile(int width, int height, const draw_key& key) const {
  assert(width > 0 && height > 0);
  folding folded{width, height, {}};
  folded.result.box = {0, 0, width, height};
  folded.scale(width, height, filter::bilinear);

  for (const step& next : steps_) {
    random_draws draws(key.seed, key.epoch, key.draw, next.key);
    std::visit(overloaded{[&](const tr::random_resized_crop& t) {
                            rectangle box = draw_box(t, width, height, draws);
                            if (folded.result.flip) box.x = width - box.width - box.x;
                            folded.result.box = box;
                            folded.scale(t.width, t.height, t.how);
                          },
                          [&](const tr::resize& t) {
                            if (t.shorter_side == 0) return folded.scale(t.width, t.height, t.how);
                            // As torchvision: the longer side is truncated, not rounded.
                            const std::int64_t side = t.shorter_side;
                            if (width <= height) {
                              folded.scale(side, side * height / width, t.how);
                            } else {
                              folded.scale(side * width / height, side, t.how);
                            }
                          },
                          [&](const tr::center_crop& t) {
                            folded.crop(center(folded.width, t.width), center(folded.height, t.height), t.width,
                                        t.height);
                          },
                          [&](const tr::random_crop& t) {
                            const std::int64_t y = draw_offset(folded.height, t.height, t.padding, draws);
                            const std::int64_t x = draw_offset(folded.width, t.width, t.padding, draws);
                            folded.crop(x, y, t.width, t.height);
                          },
                          [&](const tr::random_flip& t) {
                            if (draws.uniform() < t.probability) folded.result.flip = !folded.result.flip;
                          }},
               next.what);
  }
  folded.result.out_width = out_width_;
  folded.result.out_height = out_height_;
  return folded.result;
}

}  // namespace leat::pixels
