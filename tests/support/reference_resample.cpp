#include "tests/support/reference_resample.hpp"

#include "stages/pixels/resample.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

namespace leat::testing {
namespace {

double kernel(filter how, double x) {
  x = std::abs(x);
  if (how == filter::bilinear) return std::max(0.0, 1 - x);
  // Keys, "Cubic convolution interpolation for digital image processing", 1981, equation 15 with a = -1/2.
  if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
  if (x < 2) return -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2;
  return 0;
}

// One output of one axis: weights of the inputs first, first + 1, ...
struct mix {
  int first = 0;
  std::vector<double> weights;
};

mix mix_of(int inputs_begin, int inputs_end, double begin, double end, std::int64_t outputs, std::int64_t output,
           filter how) {
  const double scale = (end - begin) / static_cast<double>(outputs);
  const double center = begin + (static_cast<double>(output) + 0.5) * scale;
  if (how == filter::nearest) {
    return {std::clamp(static_cast<int>(std::floor(center)), inputs_begin, inputs_end - 1), {1.0}};
  }
  const double wide = std::max(1.0, scale);
  mix out{inputs_begin, {}};
  double sum = 0;
  for (int i = inputs_begin; i < inputs_end; ++i) {
    out.weights.push_back(kernel(how, (i + 0.5 - center) / wide));
    sum += out.weights.back();
  }
  for (double& w : out.weights) w /= sum;
  return out;
}

template <class Input>
double sum_of(const mix& of, const Input& input) {
  double sum = 0;
  for (std::size_t i = 0; i < of.weights.size(); ++i) sum += of.weights[i] * input(of.first + static_cast<int>(i));
  return sum;
}

}  // namespace

rgb_picture reference_resample(const rgb_picture& picture, const pixels::geometry& drawn, int decimation) {
  const double by = decimation;
  const double left = drawn.box.x / by, right = (drawn.box.x + drawn.box.width) / by;
  const double top = drawn.box.y / by, bottom = (drawn.box.y + drawn.box.height) / by;
  const int x0 = static_cast<int>(std::floor(left)), x1 = static_cast<int>(std::ceil(right));
  const int y0 = static_cast<int>(std::floor(top)), y1 = static_cast<int>(std::ceil(bottom));

  rgb_picture out{drawn.out_width, drawn.out_height, {}};
  out.pixels.resize(static_cast<std::size_t>(drawn.out_width) * static_cast<std::size_t>(drawn.out_height) * 3);
  std::vector<std::optional<mix>> across, down;  // of each column and line of the row
  for (int x = 0; x < drawn.out_width; ++x) {
    const std::int64_t scaled_x = drawn.crop_x + (drawn.flip ? drawn.out_width - 1 - x : x);
    across.emplace_back();
    if (scaled_x < 0 || scaled_x >= drawn.scaled_width) continue;
    across.back() = mix_of(x0, x1, left, right, drawn.scaled_width, scaled_x, drawn.how);
  }
  for (int y = 0; y < drawn.out_height; ++y) {
    const std::int64_t scaled_y = drawn.crop_y + y;
    down.emplace_back();
    if (scaled_y < 0 || scaled_y >= drawn.scaled_height) continue;
    down.back() = mix_of(y0, y1, top, bottom, drawn.scaled_height, scaled_y, drawn.how);
  }
  // Of the two passes the first is clamped, and neither is rounded.
  const auto set = [&](int x, int y, int c, double value) {
    out.at(x, y)[c] = static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
  };
  if (pixels::goes_down_first(drawn)) {
    std::vector<double> line(static_cast<std::size_t>(picture.width) * 3);
    for (int y = 0; y < drawn.out_height; ++y) {
      const auto& over = down[static_cast<std::size_t>(y)];
      if (!over) continue;
      for (int x = x0; x < x1; ++x) {
        for (int c = 0; c < 3; ++c) {
          line[static_cast<std::size_t>(3 * x + c)] =
              std::clamp(sum_of(*over, [&](int i) { return picture.at(x, i)[c] * 1.0; }), 0.0, 255.0);
        }
      }
      for (int x = 0; x < drawn.out_width; ++x) {
        const auto& along = across[static_cast<std::size_t>(x)];
        if (!along) continue;
        for (int c = 0; c < 3; ++c) {
          set(x, y, c, sum_of(*along, [&](int i) { return line[static_cast<std::size_t>(3 * i + c)]; }));
        }
      }
    }
    return out;
  }
  std::vector<double> column(static_cast<std::size_t>(picture.height) * 3);
  for (int x = 0; x < drawn.out_width; ++x) {
    const auto& along = across[static_cast<std::size_t>(x)];
    if (!along) continue;
    for (int y = y0; y < y1; ++y) {
      for (int c = 0; c < 3; ++c) {
        column[static_cast<std::size_t>(3 * y + c)] =
            std::clamp(sum_of(*along, [&](int i) { return picture.at(i, y)[c] * 1.0; }), 0.0, 255.0);
      }
    }
    for (int y = 0; y < drawn.out_height; ++y) {
      const auto& over = down[static_cast<std::size_t>(y)];
      if (!over) continue;
      for (int c = 0; c < 3; ++c) {
        set(x, y, c, sum_of(*over, [&](int i) { return column[static_cast<std::size_t>(3 * i + c)]; }));
      }
    }
  }
  return out;
}

}  // namespace leat::testing
