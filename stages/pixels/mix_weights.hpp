// The weights of a mix: drawn from Dirichlet laws, the same on every machine.
#pragma once

#include "base/portable_math.hpp"
#include "base/random.hpp"
#include "stages/pixels/normal_draws.hpp"

#include <array>
#include <cmath>
#include <cstddef>

namespace leat::pixels {

/// A number of the law Gamma(alpha, 1).
///   source   Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 2000; below 1 by their last remark
[[nodiscard]] inline double draw_gamma(double alpha, random_draws& draws) noexcept {
  const auto positive = [&] { return draws.uniform() + 0x1.0p-54; };
  if (alpha < 1) {
    const double logarithm = portable_log(positive()) / alpha;
    const double rest = draw_gamma(alpha + 1, draws);
    return logarithm < -690 ? 0 : rest * portable_exp(logarithm);
  }
  const double d = alpha - 1.0 / 3.0;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    normal_draws normal(draws);
    const auto x = static_cast<double>(normal.next());
    draws = normal.rest();
    const double u = positive();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (portable_log(u) < 0.5 * x * x + d - d * v + d * portable_log(v)) return d * v;
  }
}

/// Of Dirichlet(alpha, ...): numbers above 0 whose sum is 1, rounded to f32.
class mix_weights {
 public:
  static constexpr std::size_t parts_max = 10;

  mix_weights(double alpha, int parts, random_draws& draws) noexcept {
    fill(alpha, 2, two_, draws);
    fill(alpha, static_cast<std::size_t>(parts), parts_, draws);
  }
  [[nodiscard]] float first_of_two() const noexcept { return two_[0]; }
  [[nodiscard]] float second_of_two() const noexcept { return two_[1]; }
  [[nodiscard]] float part(int i) const noexcept { return parts_[static_cast<std::size_t>(i)]; }

 private:
  template <std::size_t Size>
  static void fill(double alpha, std::size_t count, std::array<float, Size>& to, random_draws& draws) noexcept {
    std::array<double, Size> drawn{};
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += drawn[i] = draw_gamma(alpha, draws);
    if (!(sum > 0)) {  // all too small for a double: one of them has all, as it nearly would
      drawn[draws.below(count)] = sum = 1;
    }
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<float>(drawn[i] / sum);
  }

  std::array<float, 2> two_{};
  std::array<float, parts_max> parts_{};
};

}  // namespace leat::pixels
