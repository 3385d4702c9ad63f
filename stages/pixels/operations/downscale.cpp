// downscale: the picture smaller and as large again, each pixel the nearest.
#include "stages/pixels/operations/operation.hpp"

#include <cmath>
#include <cstring>
#include <utility>

namespace leat::pixels {
namespace {

// Which of `size` pixels stands at i after both of OpenCV's resizes, in double as there.
int nearest(int i, int size, double scale) noexcept {
  const int small = std::max(1, static_cast<int>(std::nearbyint(size * scale)));
  const double up = static_cast<double>(small) / size;
  const int between = std::min(static_cast<int>(std::floor(i * up)), small - 1);
  return std::min(static_cast<int>(std::floor(between * (1 / scale))), size - 1);
}

struct downscale_rules {
  using step = transforms::downscale;
  static constexpr bool in_place = false;

  static void check(const step& what, number_check& to) { to.range("scale", what.scale, 0.01, 1); }
  static drawn_numbers draw(const step& what, random_draws& draws) { return {drawn_of(what.scale, draws)}; }
  static std::size_t scratch_bytes(const step&, int, int width) {
    return static_cast<std::size_t>(width) * sizeof(std::int32_t);
  }
  static void apply(const step&, const operation_run& run) {
    auto* const columns = static_cast<std::int32_t*>(run.scratch);
    const int width = run.from.width;
    for (int x = 0; x < width; ++x) columns[x] = nearest(x, width, run.numbers[0]);
    int last = -1;
    for (int y = 0; y < run.from.height; ++y) {
      const int source = nearest(y, run.from.height, run.numbers[0]);
      std::uint8_t* const to = run.to.line(y);
      if (source == std::exchange(last, source)) {
        std::memcpy(to, run.to.line(y - 1), run.to.line_bytes());
        continue;
      }
      const std::uint8_t* const from = run.from.line(source);
      for (int c = 0; c < 3; ++c) {
        for (int x = 0; x < width; ++x) to[c * width + x] = from[c * width + columns[x]];
      }
    }
  }
  static transform drawn(const step&, const drawn_numbers& n) { return step{{n[0], n[0]}}; }
};

}  // namespace

operation downscale_operation() { return make_operation<downscale_rules>(); }

}  // namespace leat::pixels
