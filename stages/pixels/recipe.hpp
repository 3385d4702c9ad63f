// A chain of transforms, checked once, and what it makes of one sample: geometry, passes of colour and the box that is erased.
#pragma once

#include "stages/pixels/geometry.hpp"
#include "stages/pixels/warp.hpp"

#include <leat/transforms.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::pixels {

/// What a sample's random draws depend on, besides the operation's name (leat::pick).
///   boxes   what random_iou_crop looks at, as long as the sample is made; null: nothing
struct draw_key {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t draw = 0;
  const picture_boxes* boxes = nullptr;
};

/// One step of a chain, with what it draws by.
///   name        its path: "random_apply/color_jitter", "random_flip/2" for the second of a kind beside one another
///   operation   operation_key() of the name, and of the view: "random_flip@2"
struct chain_step {
  transform what;
  std::string name;
  std::uint32_t operation = 0;
  std::vector<chain_step> steps = {};  // of a group; each operation of rand_augment
};

/// A drawn step of colour.
enum class pass_kind : std::uint8_t {
  brightness,
  contrast,
  saturation,
  hue,
  gamma,
  grayscale,
  invert,
  posterize,
  solarize,
  solarize_add,
  autocontrast,
  equalize,
  sharpness,
  gaussian_blur,
  channel_permutation,
  lookup,
  edit,
  warp,
  mix_begin,
  mix_add,
  operation  ///< of a picture, by a file of stages/pixels/operations
};

/// How a pass looks at the picture.
enum class pass_reach : std::uint8_t {
  table,       ///< each channel's values by themselves, known beforehand: a table
  statistics,  ///< a table that follows from the whole picture
  pixel,       ///< the three values of a pixel
  picture      ///< the neighbours of a pixel, or all of them
};

/// A step behind the geometry as it was drawn.
///   value    the factor, shift, exponent or sigma; of solarize_add the threshold
///   number   bits, threshold, what is added, kernel, or which of the six permutations
///   of       the step of the chain; it draws a lookup's and an edit's numbers, and has a warp's filter and fill
///   from     of a warp, where it looks; of the last mix_add, first, the share that its sum has beside the picture (timm's blend);
///            of an operation, what it drew
/// A mix has the picture `value` times (mix_begin), and then `value` times what the steps up to each mix_add make of that same picture.
/// `number` is 1 at the last: the picture becomes the sum, truncated.
struct colour_pass {
  pass_kind what = pass_kind::brightness;
  int number = 0;
  double value = 0;
  const chain_step* of = nullptr;
  warp_matrix from = identity_matrix;

  [[nodiscard]] pass_reach reach() const noexcept;
  /// Whether it is the host's, wherever the others are done.
  [[nodiscard]] bool is_of_host() const noexcept {
    return what == pass_kind::edit || what == pass_kind::mix_begin || what == pass_kind::mix_add ||
           what == pass_kind::operation;
  }
  /// Whether it tells left from right: what such a pass sees is mirrored already.
  [[nodiscard]] bool sees_sides() const noexcept { return is_of_host() || what == pass_kind::warp; }
};

/// What a warp does.
[[nodiscard]] warp warp_of(const colour_pass& pass) noexcept;

/// As parse_transforms() would read it: "brightness(1.25)", "channel_permutation to g, r, b".
[[nodiscard]] std::string text_of(const colour_pass& pass);

/// The rectangle that is erased, in the finished row.
struct erased_box {
  rectangle box;
  const chain_step* of = nullptr;
};

/// What a chain makes of one sample behind its geometry. The chain outlives it.
struct recipe {
  /// A recipe's capacity: no memory is asked for when one is drawn.
  static constexpr std::size_t passes_max = 32;

  draw_key key;
  std::array<colour_pass, passes_max> passes;
  std::size_t count = 0;
  std::optional<erased_box> erased;

  [[nodiscard]] bool empty() const noexcept { return count == 0 && !erased; }
  [[nodiscard]] std::span<const colour_pass> drawn() const noexcept { return {passes.data(), count}; }
  /// Where a place of the row lies in the picture before these passes. What a mix adds to its picture is not looked at.
  [[nodiscard]] warp_matrix from_row() const noexcept;
  void add(const colour_pass& pass) noexcept { passes[count++] = pass; }
  /// How many passes come before those that another than the host can do: up to the last that is the host's.
  [[nodiscard]] std::size_t host_count() const noexcept;
  /// Whether a pass does. All others give the same bits before and after mirroring.
  [[nodiscard]] bool sees_sides() const noexcept {
    return std::any_of(passes.begin(), passes.begin() + count,
                       [](const colour_pass& pass) { return pass.sees_sides(); });
  }
};

/// Throws error{errc::usage}, which names the step, if its own numbers are out of range. Steps within a group are not checked.
void check_numbers(const transform& what);

/// Whether it crops, scales or mirrors: such steps stand before those of colour.
[[nodiscard]] bool is_geometry_step(const transform& what);

/// How a chain is fused.
///   how            the row is looked up
///   fill           of what lies outside of the picture
///   begins_again   steps of geometry that see what those before have made as a picture of its own
///   warps          whether there are any behind the steps of geometry
struct fusing {
  filter how = filter::nearest;
  std::array<int, 3> fill = {0, 0, 0};
  std::vector<std::size_t> begins_again;
  bool warps = false;
};

/// A chain of transforms, checked once and then drawn per sample. Immutable; any number of threads may use it.
///
/// Operations draw from random_draws{seed, epoch, draw, path}, the path being made of the transforms' names
/// ("random_resized_crop", "random_apply/color_jitter"), with "/2" for the second of a kind and "@2" in the second view of a picture.
/// Every draw is made whether or not its step is applied. Drawing needs nothing but the picture's size, so it can be done when the
/// plan is made, and gives the same numbers on every machine: logarithms and exponentials are our own.
class pipeline {
 public:
  /// Throws error{errc::usage} for a chain without a fixed output size, for one whose geometry cannot be folded into a single
  /// resampling, for colour before geometry, for more passes than a recipe holds, and for numbers out of range; the message names the
  /// transform. If fused, also for a warp of a mix, for one behind a step that looks at more than a pixel, for fills that differ, and
  /// for padding that is no colour.
  explicit pipeline(std::vector<transform> steps, pixel_rounding how = pixel_rounding::exact);

  /// The same chain with the draws of a picture's `number`-th view, from 1. A new pipeline is view 1.
  [[nodiscard]] pipeline as_view(std::uint32_t number) const;
  /// The same chain with the draws of this name, "random_flip@global/1". Names that are no number meet no numbered view.
  [[nodiscard]] pipeline as_view(std::string_view name) const;

  [[nodiscard]] int out_width() const noexcept { return out_width_; }
  [[nodiscard]] int out_height() const noexcept { return out_height_; }
  /// Whether a step draws by its kind: such views of a picture are numbered. It depends on no probability, so that another
  /// probability in one view does not change what the others draw.
  [[nodiscard]] bool random() const noexcept { return random_; }
  /// Whether two draws of one picture can differ, by the steps' parameters. A step that is always or never done, and a range of one number,
  /// do not.
  [[nodiscard]] bool varies() const noexcept { return varies_; }
  /// Whether two draws of one picture can differ in geometry, by the steps' parameters: decimation's default.
  [[nodiscard]] bool geometry_is_random() const noexcept { return geometry_is_random_; }
  /// Whether there is anything behind the geometry.
  [[nodiscard]] bool has_colour() const noexcept { return !colour_.empty(); }
  /// Whether rows may be looked up by a matrix.
  [[nodiscard]] bool is_fused() const noexcept { return fused_.has_value(); }
  /// The step that looks at boxes (draw_key), or null. Of several all name the same.
  [[nodiscard]] const transforms::random_iou_crop* looks_at_boxes() const noexcept;
  /// The rectangle that some rows have erased, or null.
  [[nodiscard]] const transforms::random_erasing* erasing() const noexcept;
  /// Whether a function of the user's is called.
  [[nodiscard]] bool calls_functions() const noexcept { return calls_functions_; }

  /// Draws and compiles the geometry. A pure function of its arguments.
  ///   width, height   of the picture, in pixels, at least 1; after EXIF orientation where that is on
  ///   turned          the EXIF orientation by which it was turned upright: boxes are of the picture as it is stored
  ///   source          torchvision.transforms.v2: RandomResizedCrop (with its fall-back), Resize, CenterCrop,
  ///                   RandomCrop (pad_if_needed), RandomHorizontalFlip; their roundings
  [[nodiscard]] geometry compile(int width, int height, const draw_key& key, int turned = 1) const;
  /// Likewise draws what follows the geometry. It depends on no picture.
  ///   source   torchvision.transforms.v2: ColorJitter, GaussianBlur, RandomErasing, RandomApply, RandomChoice, RandomOrder
  ///           Of a fused chain without its warps, which are geometry
  void draw_colour(const draw_key& key, recipe& out) const;
  /// The same with all warps.
  void draw_steps(const draw_key& key, recipe& out) const;

  /// Every pass that may be drawn, for what they need at most.
  [[nodiscard]] recipe all_passes() const;

 private:
  [[nodiscard]] geometry compile_fused(int width, int height, const draw_key& key, const seen_boxes& boxes) const;

  std::vector<chain_step> geometry_;
  std::vector<chain_step> colour_;
  int out_width_ = 0;
  int out_height_ = 0;
  bool random_ = false;
  bool varies_ = false;
  bool geometry_is_random_ = false;
  bool calls_functions_ = false;
  std::optional<fusing> fused_;  // pixel_rounding::fused
};

}  // namespace leat::pixels
