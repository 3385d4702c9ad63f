// iso_noise: the noise of a camera's sensor, of lightness and hue.
#include "base/portable_math.hpp"
#include "stages/pixels/operations/normal_numbers.hpp"
#include "stages/pixels/operations/operation.hpp"

#include <cmath>

namespace leat::pixels {
namespace {

// How often something that happens `mean` times on average happens, by 16 bits: mean is at most 1 here.
class poisson_numbers {
 public:
  explicit poisson_numbers(double mean) noexcept {
    double of_this = portable_exp(-mean);
    double sum = 0;
    for (std::size_t k = 0; k < below_.size(); ++k) {
      sum += of_this;
      below_[k] = static_cast<std::uint32_t>(std::nearbyint(std::min(sum, 1.0) * 65536));
      of_this *= mean / (static_cast<double>(k) + 1);
    }
  }
  [[nodiscard]] int of(std::uint32_t bits) const noexcept {
    int k = 0;
    while (k + 1 < static_cast<int>(below_.size()) && bits >= below_[static_cast<std::size_t>(k)]) ++k;
    return k;
  }

 private:
  std::array<std::uint32_t, 10> below_{};
};

struct iso_noise_rules {
  using step = transforms::iso_noise;
  static constexpr bool in_place = true;

  static void check(const step& what, number_check& to) {
    to.range("color_shift", what.color_shift, 0, 1);
    to.range("intensity", what.intensity, 0, 1);
    to.draws(what.intensity[1] > 0);
  }
  static drawn_numbers draw(const step& what, random_draws& draws) {
    return {drawn_of(what.color_shift, draws), drawn_of(what.intensity, draws)};
  }
  static std::size_t scratch_bytes(const step&, int, int) { return 0; }

  // One pixel: its hue turned by so many degrees, and its lightness raised.
  static std::array<float, 3> noised(const std::array<float, 3>& of, float turned, float raised) noexcept {
    const float most = std::max({of[0], of[1], of[2]});
    const float least = std::min({of[0], of[1], of[2]});
    const float range = most - least;
    float lightness = (most + least) * 0.5F;
    float saturation = 0;
    float hue = 0;
    if (range > 0) {
      saturation = lightness < 0.5F ? range / (most + least) : range / (2 - most - least);
      if (most == of[0]) {
        hue = (of[1] - of[2]) / range;
      } else if (most == of[1]) {
        hue = 2 + (of[2] - of[0]) / range;
      } else {
        hue = 4 + (of[0] - of[1]) / range;
      }
    }
    hue += turned / 60;
    if (hue < 0) hue += 6;
    if (hue >= 6) hue -= 6;
    lightness += raised * (1 - lightness);
    const float high =
        lightness <= 0.5F ? lightness * (1 + saturation) : lightness + saturation - lightness * saturation;
    const float low = 2 * lightness - high;
    const int sector = std::min(static_cast<int>(hue), 5);
    const float part = (high - low) * (hue - static_cast<float>(sector));
    const float rising = low + part;
    const float falling = high - part;
    switch (sector) {
      case 0:
        return {high, rising, low};
      case 1:
        return {falling, high, low};
      case 2:
        return {low, high, rising};
      case 3:
        return {low, falling, high};
      case 4:
        return {rising, low, high};
      default:
        return {high, low, falling};
    }
  }

  static void apply(const step&, const operation_run& run) {
    const auto width = static_cast<std::size_t>(run.to.width);
    // Of most + least, twice the lightness: exact.
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (int y = 0; y < run.to.height; ++y) {
      const std::uint8_t* const line = run.to.line(y);
      for (std::size_t x = 0; x < width; ++x) {
        const std::uint32_t both = std::uint32_t{std::max({line[x], line[x + width], line[x + 2 * width]})} +
                                   std::min({line[x], line[x + width], line[x + 2 * width]});
        sum += both;
        squares += both * both;
      }
    }
    const double count = static_cast<double>(width) * run.to.height;
    const double mean = static_cast<double>(sum) / count;
    const double variance = std::max(0.0, static_cast<double>(squares) / count - mean * mean);
    const double intensity = run.numbers[1];
    const poisson_numbers raised(std::sqrt(variance) / 510 * intensity);
    const auto turning = static_cast<float>(run.numbers[0] * intensity);
    const normal_numbers& normal = normal_numbers::get();
    for (int y = 0; y < run.to.height; ++y) {
      random_draws draws = run.draws_of_line(0, y);
      std::uint8_t* const line = run.to.line(y);
      for (std::size_t x = 0; x < width; ++x) {
        const std::uint32_t bits = draws.bits();
        std::array<float, 3> of{};
        for (std::size_t c = 0; c < 3; ++c) of[c] = static_cast<float>(line[x + c * width]) / 255.0F;
        const float more = static_cast<float>(raised.of(bits >> 16)) * static_cast<float>(intensity);
        of = noised(of, turning * normal.of(bits & 0xFFFF), more);
        for (std::size_t c = 0; c < 3; ++c) line[x + c * width] = to_value(of[c] * 255.0F);
      }
    }
  }
  static transform drawn(const step&, const drawn_numbers& n) { return step{{n[0], n[0]}, {n[1], n[1]}}; }
};

}  // namespace

operation iso_noise_operation() { return make_operation<iso_noise_rules>(); }

}  // namespace leat::pixels
