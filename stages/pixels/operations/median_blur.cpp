// median_blur: the middle of all values around each.
#include "stages/pixels/operations/kernels.hpp"
#include "stages/pixels/operations/operation.hpp"

#include <cstring>

namespace leat::pixels {
namespace {

constexpr int kernel_max = 7;

struct median_blur_rules {
  using step = transforms::median_blur;
  static constexpr bool in_place = false;

  static void check(const step& what, number_check& to) { to.kernel(what.kernel, kernel_max); }
  static drawn_numbers draw(const step& what, random_draws& draws) { return {drawn_kernel(what.kernel, draws)}; }
  // Lines with what continues them on both sides.
  static std::size_t padded(int width) noexcept { return static_cast<std::size_t>(width) + kernel_max + median_room; }
  // As many again are sorted down.
  static std::size_t scratch_bytes(const step&, int, int width) { return 2 * kernel_max * padded(width); }

  template <int Side>
  static void filter(const operation_run& run) noexcept {
    constexpr int reach = Side / 2;
    const int width = run.from.width;
    const std::size_t stride = padded(width);
    for (int c = 0; c < 3; ++c) {
      auto* const ring = static_cast<std::uint8_t*>(run.scratch);
      const auto take = [&](int y) {
        std::uint8_t* const to = ring + static_cast<std::size_t>((y + kernel_max * Side) % Side) * stride;
        const std::uint8_t* const from = run.from.line(std::clamp(y, 0, run.from.height - 1)) + c * width;
        std::memset(to, from[0], reach);
        std::memcpy(to + reach, from, static_cast<std::size_t>(width));
        std::memset(to + reach + width, from[width - 1], stride - static_cast<std::size_t>(reach + width));
      };
      for (int y = -reach; y < reach; ++y) take(y);
      for (int y = 0; y < run.from.height; ++y) {
        take(y + reach);
        const std::uint8_t* lines[Side];
        for (int i = 0; i < Side; ++i) lines[i] = ring + static_cast<std::size_t>(i) * stride;
        median_of_lines(lines, Side, static_cast<std::size_t>(width), ring + kernel_max * stride,
                        run.to.line(y) + c * width);
      }
    }
  }
  static void apply(const step&, const operation_run& run) {
    switch (static_cast<int>(run.numbers[0])) {
      case 1:
        std::memcpy(run.to.first, run.from.first, run.from.line_bytes() * static_cast<std::size_t>(run.from.height));
        return;
      case 3:
        return filter<3>(run);
      case 5:
        return filter<5>(run);
      default:
        return filter<7>(run);
    }
  }
  static transform drawn(const step&, const drawn_numbers& n) {
    return step{{static_cast<int>(n[0]), static_cast<int>(n[0])}};
  }
};

}  // namespace

operation median_blur_operation() { return make_operation<median_blur_rules>(); }

}  // namespace leat::pixels
