// gaussian_noise: a number of the normal law is added to every value.
#include "stages/pixels/operations/normal_numbers.hpp"
#include "stages/pixels/operations/operation.hpp"

namespace leat::pixels {
namespace {

struct gaussian_noise_rules {
  using step = transforms::gaussian_noise;
  static constexpr bool in_place = true;

  static void check(const step& what, number_check& to) {
    to.range("mean", what.mean, -1, 1);
    to.range("sigma", what.sigma, 0, 1);
    to.draws(what.sigma[1] > 0);
  }
  static drawn_numbers draw(const step& what, random_draws& draws) {
    return {drawn_of(what.mean, draws), drawn_of(what.sigma, draws)};
  }
  static std::size_t scratch_bytes(const step&, int, int) { return 0; }
  static void apply(const step&, const operation_run& run) {
    const auto mean = static_cast<float>(run.numbers[0] * 255);
    const auto sigma = static_cast<float>(run.numbers[1] * 255);
    const normal_numbers& normal = normal_numbers::get();
    for (int y = 0; y < run.to.height; ++y) {
      for (int c = 0; c < 3; ++c) {
        random_draws draws = run.draws_of_line(c, y);
        std::uint8_t* const line =
            run.to.line(y) + static_cast<std::size_t>(c) * static_cast<std::size_t>(run.to.width);
        for (int x = 0; x < run.to.width; x += 2) {
          const std::uint32_t bits = draws.bits();
          const auto add = [&](std::uint8_t& to, std::uint32_t of) {
            const float moved = static_cast<float>(to) + mean;
            to = to_value(moved + sigma * normal.of(of));
          };
          add(line[x], bits & 0xFFFF);
          if (x + 1 < run.to.width) add(line[x + 1], bits >> 16);
        }
      }
    }
  }
  static transform drawn(const step&, const drawn_numbers& n) { return step{{n[0], n[0]}, {n[1], n[1]}}; }
};

}  // namespace

operation gaussian_noise_operation() { return make_operation<gaussian_noise_rules>(); }

}  // namespace leat::pixels
