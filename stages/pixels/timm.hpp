// timm's RandAugment and AugMix: its text, what its magnitudes mean, and which operations it draws.
#pragma once

#include "base/random.hpp"
#include "stages/pixels/policies.hpp"

#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace leat::pixels {

/// Whether a word begins a text of timm's: "rand", "augmix", or one of its policies that are refused by name.
[[nodiscard]] bool is_timm_text(std::string_view word) noexcept;
/// "rand-m9-mstd0.5-inc1", "augmix-m5-w4-d2". Throws error{errc::usage}, which names the key, for one that is not there, stands twice, or has no number.
///   source   timm/data/auto_augment.py, rand_augment_transform() and augment_and_mix_transform(); keys that it passes over without a word are refused here
[[nodiscard]] transform parse_timm(std::string_view text);

/// Above it the magnitude is uniform.
inline constexpr double timm_deviation_max = 100;
inline constexpr double timm_translate_share = 0.45;
inline constexpr double timm_mix_translate_share = 0.3;  // create_transform(), of augmix

/// AugmentOp: around `magnitude` by the normal law, or uniform below it; then within 0..most.
[[nodiscard]] double timm_magnitude(int magnitude, double deviation, int most, random_draws& draws) noexcept;
/// LEVEL_TO_ARG of the operation: a tangent, degrees, a factor, bits, a threshold or what is added; of a translation how much of its share.
[[nodiscard]] double timm_argument(policy_operation of, double level, bool increasing, bool negated) noexcept;

inline constexpr std::size_t timm_operation_count = 15;

/// Those of AugMix; all of them increase.
[[nodiscard]] std::span<const policy_operation> timm_mix_operations() noexcept;

/// Which operations come: any of them each time, or by weights and none of them twice.
class timm_choice {
 public:
  explicit timm_choice(bool weighted) noexcept;
  [[nodiscard]] policy_operation next(random_draws& draws) noexcept;

 private:
  bool weighted_;
  std::array<double, timm_operation_count> left_;
};

}  // namespace leat::pixels
