// salt_and_pepper: some pixels become white or black.
#include "stages/pixels/operations/operation.hpp"

namespace leat::pixels {
namespace {

struct salt_and_pepper_rules {
  using step = transforms::salt_and_pepper;
  static constexpr bool in_place = true;

  static void check(const step& what, number_check& to) {
    to.range("amount", what.amount, 0, 1);
    to.range("salt", what.salt, 0, 1);
    to.draws(what.amount[1] > 0);
  }
  static drawn_numbers draw(const step& what, random_draws& draws) {
    return {drawn_of(what.amount, draws), drawn_of(what.salt, draws)};
  }
  static std::size_t scratch_bytes(const step&, int, int) { return 0; }
  static void apply(const step&, const operation_run& run) {
    const auto all = static_cast<std::uint64_t>(run.numbers[0] * 0x1.0p32);
    const auto white = static_cast<std::uint64_t>(run.numbers[0] * run.numbers[1] * 0x1.0p32);
    const auto width = static_cast<std::size_t>(run.to.width);
    for (int y = 0; y < run.to.height; ++y) {
      random_draws draws = run.draws_of_line(0, y);
      std::uint8_t* const line = run.to.line(y);
      for (std::size_t x = 0; x < width; ++x) {
        const std::uint32_t drawn = draws.bits();
        if (drawn >= all) continue;
        line[x] = line[x + width] = line[x + 2 * width] = drawn < white ? 255 : 0;
      }
    }
  }
  static transform drawn(const step&, const drawn_numbers& n) { return step{{n[0], n[0]}, {n[1], n[1]}}; }
};

}  // namespace

operation salt_and_pepper_operation() { return make_operation<salt_and_pepper_rules>(); }

}  // namespace leat::pixels
