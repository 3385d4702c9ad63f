// coarse_dropout: rectangles of the picture become one colour.
#include "stages/pixels/operations/operation.hpp"

#include <cstring>

namespace leat::pixels {
namespace {

constexpr int holes_max = 1000;

struct coarse_dropout_rules {
  using step = transforms::coarse_dropout;
  static constexpr bool in_place = true;

  static void check(const step& what, number_check& to) {
    to.range("holes", what.holes, 0, holes_max);
    to.range("height", what.height, 0, 1);
    to.range("width", what.width, 0, 1);
    to.colour(what.fill);
    to.draws(what.holes[1] > 0 && what.height[1] > 0 && what.width[1] > 0);
  }
  static drawn_numbers draw(const step& what, random_draws& draws) {
    const auto more = static_cast<std::uint64_t>(what.holes[1] - what.holes[0]);
    return {what.holes[0] + static_cast<double>(draws.below(more + 1))};
  }
  static std::size_t scratch_bytes(const step&, int, int) { return 0; }
  static void apply(const step& what, const operation_run& run) {
    const auto count = static_cast<int>(run.numbers[0]);
    for (int hole = 0; hole < count; ++hole) {
      random_draws draws = run.draws_of_line(0, hole);
      // Truncated, as in Albumentations; all places are as likely.
      const auto high = static_cast<int>(run.to.height * drawn_of(what.height, draws));
      const auto wide = static_cast<int>(run.to.width * drawn_of(what.width, draws));
      const auto top = static_cast<int>(draws.below(static_cast<std::uint64_t>(run.to.height - high + 1)));
      const auto left = static_cast<int>(draws.below(static_cast<std::uint64_t>(run.to.width - wide + 1)));
      for (int y = top; y < top + high; ++y) {
        for (std::size_t c = 0; c < 3; ++c) {
          std::memset(run.to.line(y) + c * static_cast<std::size_t>(run.to.width) + left, what.fill[c],
                      static_cast<std::size_t>(wide));
        }
      }
    }
  }
  static transform drawn(const step& what, const drawn_numbers& n) {
    step made = what;
    made.holes = {static_cast<int>(n[0]), static_cast<int>(n[0])};
    return made;
  }
};

}  // namespace

operation coarse_dropout_operation() { return make_operation<coarse_dropout_rules>(); }

}  // namespace leat::pixels
