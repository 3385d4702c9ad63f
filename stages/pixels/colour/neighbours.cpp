#include "stages/pixels/colour/neighbours.hpp"

#include "base/portable_math.hpp"
#include "stages/pixels/colour/kernels.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace leat::pixels {
namespace {

// Bytes that vectors may touch behind the last value.
constexpr std::size_t room = 64;

std::size_t across_values(int width) noexcept { return static_cast<std::size_t>(width) * 3 + room; }
std::size_t padded_values(int width) noexcept {
  return static_cast<std::size_t>(width) + 2 * blur_weights::radius_max + 2 * room;
}
std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 127) / 128 * 128; }

// Where the mirror image of a line of `size` values has value i.
int mirrored(int i, int size) noexcept { return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i; }

}  // namespace

blur_weights::blur_weights(int kernel, double sigma) noexcept {
  const int side = kernel / 2;
  assert(kernel % 2 == 1 && side <= radius_max);
  std::array<double, radius_max + 1> exact{};
  double sum = 0;
  for (int j = 0; j <= side; ++j) {
    const double x = j / sigma;
    const double power = -0.5 * x * x;
    exact[static_cast<std::size_t>(j)] = power < -690 ? 0 : portable_exp(power);
    sum += (j == 0 ? 1 : 2) * exact[static_cast<std::size_t>(j)];
  }
  constexpr int one_across = 1 << 16;
  constexpr int one_down = 1 << 15;
  int left_across = one_across;
  int left_down = one_down;
  for (int j = 1; j <= side; ++j) {
    const auto i = static_cast<std::size_t>(j);
    const double weight = exact[i] / sum;
    const auto of_across = static_cast<int>(std::nearbyint(weight * one_across));
    down[i] = static_cast<std::int32_t>(std::nearbyint(weight * one_down));
    across[i] = static_cast<float>(of_across);
    left_across -= 2 * of_across;
    left_down -= 2 * down[i];
    if (of_across != 0 || down[i] != 0) radius = j;
  }
  across[0] = static_cast<float>(left_across);
  down[0] = left_down;
}

std::size_t neighbour_filter::scratch_bytes(const neighbour_step& step, int height, int width) noexcept {
  if (step.kernel == 0) return 3 * aligned(static_cast<std::size_t>(width) * 3);
  const int lines = std::min(2 * blur_weights(step.kernel, step.value).radius + 1, height);
  return aligned(padded_values(width) * sizeof(float)) +
         static_cast<std::size_t>(lines) * aligned(across_values(width) * sizeof(std::uint16_t));
}

void neighbour_filter::start(const neighbour_step& step, const picture& from, void* scratch) noexcept {
  from_ = from;
  taken_ = 0;
  blurs_ = step.kernel != 0;
  if (!blurs_) {
    factor_ = step.value;
    copies_ = static_cast<std::uint8_t*>(scratch);
    return;
  }
  weights_ = blur_weights(step.kernel, step.value);
  lines_ = std::min(2 * weights_.radius + 1, from.height);
  auto* const bytes = static_cast<std::byte*>(scratch);
  padded_ = reinterpret_cast<float*>(bytes);
  across_ = reinterpret_cast<std::uint16_t*>(bytes + aligned(padded_values(from.width) * sizeof(float)));
}

void neighbour_filter::line(int y, std::uint8_t* to) noexcept {
  if (blurs_) {
    blur_line(y, to);
  } else {
    sharpen_line(y, to);
  }
}

std::uint16_t* neighbour_filter::blurred(int y) const noexcept {
  return across_ + static_cast<std::size_t>(y % lines_) *
                       (aligned(across_values(from_.width) * sizeof(std::uint16_t)) / sizeof(std::uint16_t));
}

void neighbour_filter::blur_next_across() noexcept {
  const int radius = weights_.radius;
  const int width = from_.width;
  const std::uint8_t* const line = from_.line(taken_);
  std::uint16_t* const to = blurred(taken_);
  float* const middle = padded_ + radius;
  for (int c = 0; c < 3; ++c) {
    const std::uint8_t* const plane = line + static_cast<std::size_t>(c) * static_cast<std::size_t>(width);
    to_floats(plane, static_cast<std::size_t>(width), middle);
    for (int j = 1; j <= radius; ++j) {
      middle[-j] = static_cast<float>(plane[mirrored(-j, width)]);
      middle[width - 1 + j] = static_cast<float>(plane[mirrored(width - 1 + j, width)]);
    }
    // Vectors also compute from what lies behind. The results are not used, but must be numbers.
    std::fill_n(middle + width + radius, room, 0.0F);
    blur_across(middle, static_cast<std::size_t>(width), weights_.across.data(), radius,
                to + static_cast<std::size_t>(c) * static_cast<std::size_t>(width));
  }
  ++taken_;
}

void neighbour_filter::blur_line(int y, std::uint8_t* to) noexcept {
  const int radius = weights_.radius;
  while (taken_ < std::min(y + radius + 1, from_.height)) blur_next_across();
  std::array<const std::uint16_t*, 2 * blur_weights::radius_max + 1> lines;
  lines[0] = blurred(y);
  for (int j = 1; j <= radius; ++j) {
    const auto at = static_cast<std::size_t>(2 * j);
    lines[at - 1] = blurred(mirrored(y - j, from_.height));
    lines[at] = blurred(mirrored(y + j, from_.height));
  }
  blur_down(lines.data(), from_.line_bytes(), weights_.down.data(), radius, to);
}

// Pixels on the rim stay as they are, as in torchvision; so do pictures of less than three lines or columns.
void neighbour_filter::sharpen_line(int y, std::uint8_t* to) noexcept {
  const std::size_t bytes = from_.line_bytes();
  const auto copy = [&](int of) { return copies_ + static_cast<std::size_t>(of % 3) * aligned(bytes); };
  while (taken_ < std::min(y + 2, from_.height)) {
    std::memcpy(copy(taken_), from_.line(taken_), bytes);
    ++taken_;
  }
  if (to != from_.line(y)) std::memcpy(to, copy(y), bytes);
  if (y == 0 || y + 1 == from_.height || from_.width <= 2) return;
  const auto width = static_cast<std::size_t>(from_.width);
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t at = c * width;
    sharpen_inner(copy(y - 1) + at, copy(y) + at, copy(y + 1) + at, width - 2, factor_, to + at + 1);
  }
}

}  // namespace leat::pixels
