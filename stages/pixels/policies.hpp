// The spaces that RandAugment, TrivialAugment and AutoAugment draw from, as tables.
#pragma once

#include <leat/transforms.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace leat::pixels {

enum class policy_operation : std::uint8_t {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  solarize_add,
  autocontrast,
  equalize,
  invert
};

/// How strong operations can be: the magnitude of the last bin; the first is 0.
///   shear       tangents; of both axes
///   translate   pixels, or where `of_size` says so a share of the side
///   rotate      degrees
///   factor      of brightness, color, contrast and sharpness: how far from 1
///   posterize   bits that go
///   bits_from   bits of posterize in the first bin
/// Of solarize the threshold falls from 255 to 0.
struct policy_space {
  double shear;
  double translate;
  bool of_size;
  double rotate;
  double factor;
  int posterize;
  int bits_from = 8;
};

/// torchvision's RandAugment and AutoAugment; and TrivialAugmentWide.
inline constexpr policy_space usual_space = {0.3, 150.0 / 331.0, true, 30, 0.9, 4};
inline constexpr policy_space wide_space = {0.99, 32, false, 135, 0.99, 6};

/// torchvision's AugMix, of mix_bins bins.
inline constexpr policy_space mix_space = {0.3, 1.0 / 3.0, true, 30, 0.9, 4, 4};
inline constexpr int mix_bins = 10;

/// Those of AugMix, in torchvision's order: all, or without the last four.
[[nodiscard]] std::span<const policy_operation> mix_operations(bool all) noexcept;
/// Those of RandAugment and TrivialAugment, in torchvision's order.
[[nodiscard]] std::span<const policy_operation> policy_operations() noexcept;
/// Whether the magnitude is taken as it is or below 0, each half of the time.
[[nodiscard]] bool is_signed(policy_operation of) noexcept;
/// As torchvision has it, in f32: of posterize the bits that stay, of solarize the threshold. 0 where there is none.
///   bin   0..bins - 1; bins at least 2
[[nodiscard]] double policy_magnitude(policy_operation of, const policy_space& space, int bin, int bins, int height,
                                      int width) noexcept;

/// One of the two operations of a learned policy.
struct learned_operation {
  policy_operation what;
  double probability;
  int bin;  // of 10
};
using learned_pair = std::array<learned_operation, 2>;
inline constexpr int learned_bins = 10;
inline constexpr std::size_t learned_pairs = 25;

///   source   torchvision/transforms/autoaugment.py; Cubuk et al., CVPR 2019, appendix
[[nodiscard]] std::span<const learned_pair, learned_pairs> pairs_of(learned_policy which) noexcept;

}  // namespace leat::pixels
