// motion_blur: the mean of the pixels along a line.
#include "base/portable_math.hpp"
#include "stages/pixels/operations/operation.hpp"

#include <cmath>
#include <cstring>

namespace leat::pixels {
namespace {

constexpr int line_pixels_max = 31;

// The places of a line in a square of side x side, each once.
struct line_places {
  std::array<std::array<int, 2>, line_pixels_max> at;  // x, y from the middle
  int count = 0;

  //   source   Albumentations 2.0.8, create_motion_kernel()
  line_places(int side, double degrees, double direction, double shift_x, double shift_y) noexcept {
    const auto [sine, cosine] = portable_sine_and_cosine(degrees);
    const double length = side / 2;
    const double from = direction > 0 ? -length * (1 - direction) : -length;
    const double to = direction < 0 ? length * (1 + direction) : length;
    const double step = side > 1 ? (to - from) / (side - 1) : 0;
    const auto place = [&](double moved) {
      return static_cast<int>(std::clamp(std::nearbyint(length + moved), 0.0, side - 1.0)) - side / 2;
    };
    for (int i = 0; i < side; ++i) {
      const double t = from + step * i;
      const std::array<int, 2> here = {place(cosine * t + shift_x * length / 2),
                                       place(sine * t + shift_y * length / 2)};
      if (std::find(at.begin(), at.begin() + count, here) == at.begin() + count) {
        at[static_cast<std::size_t>(count++)] = here;
      }
    }
  }
};

struct motion_blur_rules {
  using step = transforms::motion_blur;
  static constexpr bool in_place = false;

  static void check(const step& what, number_check& to) {
    to.kernel(what.kernel, line_pixels_max);
    to.range("angle", what.angle, -360, 360);
    to.range("direction", what.direction, -1, 1);
    if (what.shifted) to.draws(true);
  }
  static drawn_numbers draw(const step& what, random_draws& draws) {
    drawn_numbers n = {drawn_kernel(what.kernel, draws), drawn_of(what.angle, draws), drawn_of(what.direction, draws)};
    if (what.shifted) {
      n[3] = draws.uniform(-1, 1);
      n[4] = draws.uniform(-1, 1);
    }
    return n;
  }
  // A line that continues on both sides, and the sums of one.
  static std::size_t scratch_bytes(const step&, int, int width) {
    const auto values = static_cast<std::size_t>(width);
    return values * sizeof(std::uint16_t) + values + line_pixels_max;
  }
  static void apply(const step&, const operation_run& run) {
    const line_places places(static_cast<int>(run.numbers[0]), run.numbers[1], run.numbers[2], run.numbers[3],
                             run.numbers[4]);
    const int width = run.from.width;
    auto* const sums = static_cast<std::uint16_t*>(run.scratch);
    auto* const padded = reinterpret_cast<std::uint8_t*>(sums + width);
    const auto count = static_cast<std::uint32_t>(places.count);
    // Sums are below 31 * 255 + 16: this division by a multiplication is exact there (tested for each).
    const std::uint32_t inverse = ((1U << 22) + count - 1) / count;
    for (int y = 0; y < run.from.height; ++y) {
      for (int c = 0; c < 3; ++c) {
        std::memset(sums, 0, static_cast<std::size_t>(width) * sizeof(std::uint16_t));
        for (int i = 0; i < places.count; ++i) {
          const auto [dx, dy] = places.at[static_cast<std::size_t>(i)];
          const std::uint8_t* const from = run.from.line(mirrored(y + dy, run.from.height)) + c * width;
          const int first = std::clamp(-dx, 0, width);
          const int end = std::clamp(width - dx, 0, width);
          for (int x = 0; x < first; ++x) padded[x] = from[mirrored(x + dx, width)];
          for (int x = end; x < width; ++x) padded[x] = from[mirrored(x + dx, width)];
          if (first < end) std::memcpy(padded + first, from + first + dx, static_cast<std::size_t>(end - first));
          for (int x = 0; x < width; ++x) sums[x] = static_cast<std::uint16_t>(sums[x] + padded[x]);
        }
        std::uint8_t* const to = run.to.line(y) + c * width;
        for (int x = 0; x < width; ++x) {
          to[x] = static_cast<std::uint8_t>((sums[x] + count / 2) * inverse >> 22);
        }
      }
    }
  }
  static transform drawn(const step& what, const drawn_numbers& n) {
    const auto side = static_cast<int>(n[0]);
    return step{{side, side}, {n[1], n[1]}, {n[2], n[2]}, what.shifted};
  }
};

}  // namespace

operation motion_blur_operation() { return make_operation<motion_blur_rules>(); }

}  // namespace leat::pixels
