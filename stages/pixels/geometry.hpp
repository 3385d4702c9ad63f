// Which pixels of a picture become a row, and how: the compiled slot "geometry" of the transforms. Crop, scale and flip
// today; this struct is the place for any 3 x 3 matrix later.
#pragma once

#include <leat/transforms.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace leat::pixels {

/// A part of a picture, in its pixels.
struct rectangle {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const rectangle&, const rectangle&) = default;
};

/// One sample's geometry. Coordinates are of the picture as it stands, after EXIF orientation where that is on.
///   box                what is resampled; inside the picture
///   scaled_*           to how many pixels; equal to the box's size where nothing is scaled
///   window_*, out_*    the part of the scaled box that is the row. It may lie partly or wholly outside the box, where
///                      pixels are 0
///   flip               left and right exchanged, last
struct geometry {
  rectangle box;
  std::int64_t scaled_width = 0;
  std::int64_t scaled_height = 0;
  std::int64_t window_x = 0;
  std::int64_t window_y = 0;
  int out_width = 0;
  int out_height = 0;
  bool flip = false;
  filter how = filter::bilinear;

  friend bool operator==(const geometry&, const geometry&) = default;
};

/// What a sample's random draws depend on, besides the operation's name (leat::pick).
struct draw_key {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t draw = 0;
};

/// A chain of transforms, checked once and then drawn per sample. Immutable; any number of threads may use it.
///
/// Operations draw from random_draws{seed, epoch, draw, name}, the name being the transform's own
/// ("random_resized_crop", "random_crop", "random_flip"), "random_flip/2" for the second of a kind, and "random_flip@2" in
/// the second view of a picture. Drawing needs nothing but the picture's size, so it can be done when the plan is made, and
/// gives the same numbers on every machine: logarithms and exponentials are our own.
class pipeline {
 public:
  /// Throws error{errc::usage} for a chain without a fixed output size, for one that cannot be folded into a single
  /// resampling (two scalings, a scaling after a crop, a crop that would look outside an earlier one), and for numbers
  /// out of range; the message names the transform.
  explicit pipeline(std::vector<transform> steps);

  /// The same chain with draws of its own: those of a picture's `number`-th view, from 1, which is what a pipeline is.
  [[nodiscard]] pipeline as_view(std::uint32_t number) const;

  [[nodiscard]] int out_width() const noexcept { return out_width_; }
  [[nodiscard]] int out_height() const noexcept { return out_height_; }
  /// Whether anything is drawn: decimation's default.
  [[nodiscard]] bool random() const noexcept { return random_; }

  /// Draws and compiles. A pure function of its arguments.
  ///   width, height   of the picture, in pixels, at least 1; after EXIF orientation where that is on
  ///   source          torchvision.transforms.v2: RandomResizedCrop (with its fall-back), Resize, CenterCrop,
  ///                   RandomCrop (pad_if_needed), RandomHorizontalFlip; their roundings
  [[nodiscard]] geometry compile(int width, int height, const draw_key& key) const;

 private:
  struct step {
    transform what;
    std::string name;  // what its draws are keyed by, in the first view
    std::string key;   // likewise, in this one
  };
  std::vector<step> steps_;
  int out_width_ = 0;
  int out_height_ = 0;
  bool random_ = false;
};

}  // namespace leat::pixels
