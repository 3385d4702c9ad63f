// What may happen to a picture between its file and its row, as plain values. A field holds a row of them; they are
// drawn per sample from the counter-based generator and compiled into geometry, colour and store (stages/pixels).
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

namespace leat {

class description;

/// How a picture is resampled. bilinear and bicubic are antialiased when they shrink, as in Pillow.
enum class filter : std::uint8_t { nearest, bilinear, bicubic };

namespace transforms {

/// torchvision's RandomResizedCrop: a box of random area and aspect ratio, scaled to height x width.
struct random_resized_crop {
  int height = 224;
  int width = 224;
  std::array<double, 2> scale = {0.08, 1.0};             ///< share of the picture's area
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};  ///< width / height
  filter how = filter::bilinear;
};

/// Scales the shorter side to `shorter_side` (torchvision's Resize(int)); or, where that is 0, to height x width.
struct resize {
  int shorter_side = 0;
  int height = 0;
  int width = 0;
  filter how = filter::bilinear;
};

/// The middle height x width, padded with zeros where the picture is smaller, as torchvision's CenterCrop.
struct center_crop {
  int height = 224;
  int width = 224;
};

/// A random height x width window of the picture padded by `padding` on every side with zeros.
struct random_crop {
  int height = 32;
  int width = 32;
  int padding = 0;
};

/// Left and right exchanged with this probability.
struct random_flip {
  double probability = 0.5;
};

}  // namespace transforms

using transform = std::variant<transforms::random_resized_crop, transforms::resize, transforms::center_crop,
                               transforms::random_crop, transforms::random_flip>;

/// How the rows of a batch are mixed with one another: row r with row r + 1, the last with the first. Of floats only.
/// Besides the pictures a batch then holds, of every label `cls`, `cls.partner`, and `mix.weight` (f32 [rows]): the share of
/// the row's own label. The loss is weight * loss(cls) + (1 - weight) * loss(cls.partner).
///   source   Zhang et al., "mixup", ICLR 2018; Yun et al., "CutMix", ICCV 2019. Each row draws its own weight
struct batch_mix {
  enum class kind : std::uint8_t { none, mixup, cutmix };
  kind what = kind::none;
  double alpha = 0;  ///< weights are drawn from Beta(alpha, alpha), 0 < alpha <= 100

  /// Nothing where nothing is mixed.
  void describe(description& out) const;

  friend bool operator==(const batch_mix&, const batch_mix&) = default;
};

/// Pictures become weight * own + (1 - weight) * partner's.
[[nodiscard]] constexpr batch_mix mixup(double alpha = 0.2) noexcept { return {batch_mix::kind::mixup, alpha}; }
/// A box of the partner's picture takes the place of the own; the weight is what is left of the own.
[[nodiscard]] constexpr batch_mix cutmix(double alpha = 1.0) noexcept { return {batch_mix::kind::cutmix, alpha}; }

/// Per channel statistics on the 0..1 scale, as the field quotes them.
struct normalization {
  std::array<double, 3> mean = {0, 0, 0};
  std::array<double, 3> deviation = {1, 1, 1};
};

/// The mean and deviation everybody uses with ImageNet.
inline constexpr normalization imagenet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

}  // namespace leat
