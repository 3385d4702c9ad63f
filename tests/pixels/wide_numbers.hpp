#pragma once

// Pictures of many bits and channels, and what becomes of them by the definition, in f64.

#include "stages/pixels/wide_decoder.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace leat::testing {

/// Numbers line after line, interleaved.
struct wide_picture {
  int width = 0;
  int height = 0;
  int channels = 1;
  std::vector<double> numbers;

  [[nodiscard]] double at(int x, int y, int c) const {
    return numbers[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) *
                       static_cast<std::size_t>(channels) +
                   static_cast<std::size_t>(c)];
  }
};

/// Whole numbers in [least, most], both of which occur.
inline wide_picture make_numbers(std::uint64_t seed, int width, int height, int channels, double least, double most) {
  std::mt19937_64 random(seed);
  wide_picture made{width, height, channels, {}};
  made.numbers.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
                      static_cast<std::size_t>(channels));
  for (double& number : made.numbers) {
    number = std::floor(least + (most - least + 1) * (static_cast<double>(random() >> 11) * 0x1p-53));
  }
  made.numbers.front() = least;
  made.numbers.back() = most;
  return made;
}

inline std::vector<std::uint16_t> as_u16(const wide_picture& of) { return {of.numbers.begin(), of.numbers.end()}; }

/// A box, as a picture of its own, scaled to a size: each pixel the weighted mean of all that the filter reaches, which widens as the picture shrinks.
inline wide_picture resized(const wide_picture& from, const pixels::rectangle& box, int width, int height, filter how) {
  const auto weigh = [&](double x) {
    x = std::abs(x);
    if (how == filter::bilinear) return std::max(0.0, 1 - x);
    if (x < 1) return 1.5 * x * x * x - 2.5 * x * x + 1;
    return x < 2 ? -0.5 * x * x * x + 2.5 * x * x - 4 * x + 2 : 0.0;
  };
  const auto weights_of = [&](int at, int out, int begin, int size, int inputs) {
    const double scale = static_cast<double>(size) / out;
    const double wide = std::max(scale, 1.0);
    std::vector<double> weights(static_cast<std::size_t>(inputs));
    const double center = begin + (at + 0.5) * scale;
    if (how == filter::nearest) {
      weights[static_cast<std::size_t>(center)] = 1;
      return weights;
    }
    double sum = 0;
    for (int i = begin; i < begin + size; ++i)
      sum += weights[static_cast<std::size_t>(i)] = weigh((i + 0.5 - center) / wide);
    for (double& weight : weights) weight /= sum;
    return weights;
  };
  wide_picture to{width, height, from.channels, {}};
  for (int y = 0; y < height; ++y) {
    const std::vector<double> down = weights_of(y, height, box.y, box.height, from.height);
    for (int x = 0; x < width; ++x) {
      const std::vector<double> across = weights_of(x, width, box.x, box.width, from.width);
      for (int c = 0; c < from.channels; ++c) {
        double sum = 0;
        for (int v = 0; v < from.height; ++v) {
          if (down[static_cast<std::size_t>(v)] == 0) continue;
          for (int u = 0; u < from.width; ++u) {
            sum += down[static_cast<std::size_t>(v)] * across[static_cast<std::size_t>(u)] * from.at(u, v, c);
          }
        }
        to.numbers.push_back(sum);
      }
    }
  }
  return to;
}

/// One picture through a decoder.
struct one_wide_decoder {
  pixels::scratch_budget budget{std::size_t{64} << 20};
  pixels::wide_decoder decoder{budget};
  std::string reason;
  stages::outcome_kind kind = stages::outcome_kind::ok;
  pixels::geometry drawn;

  /// The row's elements; none where it failed.
  template <class Element>
  std::vector<Element> decode(const std::vector<std::byte>& encoded, const std::vector<transform>& steps, int bits,
                              const pixels::wide_store& how, std::int64_t pixels_max = 1 << 20,
                              std::uint64_t draw = 0) {
    const pixels::pipeline chain(steps);
    std::vector<Element> row(static_cast<std::size_t>(chain.out_height()) *
                             static_cast<std::size_t>(chain.out_width()) * static_cast<std::size_t>(how.channels));
    const auto result = decoder.decode(encoded, chain, {.seed = 5, .epoch = 0, .draw = draw}, bits, how, pixels_max,
                                       reinterpret_cast<std::byte*>(row.data()), nullptr);
    kind = result.kind();
    reason = result ? "" : result.reason();
    if (!result) return {};
    drawn = result->drawn;
    return row;
  }
};

}  // namespace leat::testing
