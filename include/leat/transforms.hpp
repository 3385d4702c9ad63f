// What may happen to a picture between its file and its row, as plain values. A field holds a row of them; they are
// drawn per sample from the counter-based generator and compiled into geometry, colour and store (stages/pixels).
#pragma once

#include <array>
#include <cstdint>
#include <variant>
#include <vector>

namespace leat {

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

/// Per channel statistics on the 0..1 scale, as the field quotes them.
struct normalization {
  std::array<double, 3> mean = {0, 0, 0};
  std::array<double, 3> deviation = {1, 1, 1};
};

/// The mean and deviation everybody uses with ImageNet.
inline constexpr normalization imagenet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

}  // namespace leat
