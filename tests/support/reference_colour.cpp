#include "tests/support/reference_colour.hpp"

#include "tests/support/reference_warp.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace leat::testing {
namespace {

using pixels::pass_kind;
using rgb = std::array<double, 3>;

std::uint8_t truncated(double value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)); }

double grey_of(const rgb& of) { return std::floor(0.2989 * of[0] + 0.587 * of[1] + 0.114 * of[2] + 1e-6); }

template <class Change>
rgb_picture each_value(rgb_picture picture, const Change& change) {
  for (std::uint8_t& value : picture.pixels) value = change(value);
  return picture;
}

template <class Change>
rgb_picture each_pixel(rgb_picture picture, const Change& change) {
  for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
    const rgb made =
        change(rgb{double(picture.pixels[i]), double(picture.pixels[i + 1]), double(picture.pixels[i + 2])});
    for (std::size_t c = 0; c < 3; ++c) picture.pixels[i + c] = truncated(made[c]);
  }
  return picture;
}

// torchvision's _rgb_to_hsv, a shift, and _hsv_to_rgb.
rgb turned(const rgb& of, double shift) {
  const double most = *std::max_element(of.begin(), of.end()) / 255;
  const double least = *std::min_element(of.begin(), of.end()) / 255;
  const double range = most - least;
  const double s = most == least ? 0 : range / most;
  rgb c{};
  for (std::size_t i = 0; i < 3; ++i) c[i] = (most - of[i] / 255) / (range == 0 ? 1 : range);
  double h = 0;
  if (of[0] / 255 == most) {
    h = c[2] - c[1];
  } else if (of[1] / 255 == most) {
    h = 2 + c[0] - c[2];
  } else {
    h = 4 + c[1] - c[0];
  }
  h = std::fmod(h / 6 + 1, 1.0) + shift;
  h -= std::floor(h);
  const double h6 = h * 6;
  const int sector = static_cast<int>(std::floor(h6)) % 6;
  const double f = h6 - std::floor(h6);
  const double v = most;
  const double p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
  const std::array<rgb, 6> made = {{{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  rgb out = made[static_cast<std::size_t>(sector)];
  for (double& each : out) each = std::clamp(each, 0.0, 1.0) * 255.999;
  return out;
}

int mirrored(int i, int size) {
  if (size == 1) return 0;
  if (i < 0) i = -i;
  if (i >= size) i = 2 * (size - 1) - i;
  return i;
}

rgb_picture blurred(const rgb_picture& picture, int kernel, double sigma) {
  std::vector<double> weights;
  double sum = 0;
  for (int j = -kernel / 2; j <= kernel / 2; ++j) {
    weights.push_back(std::exp(-0.5 * (j / sigma) * (j / sigma)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  rgb_picture made = picture;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        double total = 0;
        for (int dy = 0; dy < kernel; ++dy) {
          for (int dx = 0; dx < kernel; ++dx) {
            total += weights[static_cast<std::size_t>(dy)] * weights[static_cast<std::size_t>(dx)] *
                     picture.at(mirrored(x + dx - kernel / 2, picture.width),
                                mirrored(y + dy - kernel / 2, picture.height))[c];
          }
        }
        made.at(x, y)[c] = truncated(std::nearbyint(total));
      }
    }
  }
  return made;
}

rgb_picture sharpened(const rgb_picture& picture, double factor) {
  rgb_picture made = picture;
  for (int y = 1; y + 1 < picture.height; ++y) {
    for (int x = 1; x + 1 < picture.width; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        double sum = 4.0 * picture.at(x, y)[c];
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) sum += picture.at(x + dx, y + dy)[c];
        }
        const double own = picture.at(x, y)[c];
        made.at(x, y)[c] = truncated(own + (std::nearbyint(sum / 13) - own) * (1 - factor));
      }
    }
  }
  return made;
}

// A table for each channel, from its values.
template <class Make>
rgb_picture each_channel(rgb_picture picture, const Make& make) {
  for (std::size_t c = 0; c < 3; ++c) {
    std::array<int, 256> counts{};
    for (std::size_t i = c; i < picture.pixels.size(); i += 3) ++counts[picture.pixels[i]];
    const std::array<std::uint8_t, 256> table = make(counts);
    for (std::size_t i = c; i < picture.pixels.size(); i += 3) picture.pixels[i] = table[picture.pixels[i]];
  }
  return picture;
}

std::array<std::uint8_t, 256> autocontrast(const std::array<int, 256>& counts) {
  std::array<std::uint8_t, 256> made{};
  int least = 0, most = 255;
  while (counts[static_cast<std::size_t>(least)] == 0) ++least;
  while (counts[static_cast<std::size_t>(most)] == 0) --most;
  for (int v = 0; v < 256; ++v) {
    const float scale = static_cast<float>(most - least) * static_cast<float>(1.0 / 255.0);
    made[static_cast<std::size_t>(v)] =
        least == most ? static_cast<std::uint8_t>(v) : truncated(static_cast<float>(v - least) / scale);
  }
  return made;
}

// Pillow's ImageOps.equalize.
std::array<std::uint8_t, 256> equalize(const std::array<int, 256>& counts) {
  std::array<std::uint8_t, 256> made{};
  int sum = 0, last = 0;
  for (const int count : counts) {
    sum += count;
    if (count != 0) last = count;
  }
  const int step = (sum - last) / 255;
  int n = step / 2;
  for (std::size_t v = 0; v < 256; ++v) {
    made[v] = step == 0 ? static_cast<std::uint8_t>(v) : static_cast<std::uint8_t>(std::min(n / step, 255));
    n += counts[v];
  }
  return made;
}

rgb_picture warped(const rgb_picture& picture, const pixels::warp& how) {
  rgb_picture made = picture;
  const auto index = [&](int c, int x, int y) { return static_cast<std::size_t>((y * picture.width + x) * 3 + c); };
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const auto value = warped_value(how, picture.height, picture.width, c, x, y, [&](int of, int at_x, int at_y) {
          return picture.pixels[index(of, at_x, at_y)];
        });
        if (value) made.pixels[index(c, x, y)] = static_cast<std::uint8_t>(std::floor(*value + 0.5));
      }
    }
  }
  return made;
}

}  // namespace

rgb_picture reference_colour(const rgb_picture& picture, const pixels::colour_pass& pass) {
  const double x = pass.value;
  const auto f = static_cast<float>(x);
  switch (pass.what) {
    case pass_kind::brightness:
      return each_value(picture, [&](std::uint8_t v) { return truncated(static_cast<float>(v) * f); });
    case pass_kind::contrast: {
      double sum = 0;
      for (std::size_t i = 0; i < picture.pixels.size(); i += 3) {
        sum += grey_of({double(picture.pixels[i]), double(picture.pixels[i + 1]), double(picture.pixels[i + 2])});
      }
      const double mean = sum / (static_cast<double>(picture.pixels.size()) / 3);
      return each_value(picture, [&](std::uint8_t v) { return truncated(v * x + mean * (1 - x)); });
    }
    case pass_kind::saturation:
      return each_pixel(picture, [&](const rgb& of) {
        const double grey = grey_of(of);
        return rgb{of[0] * x + grey * (1 - x), of[1] * x + grey * (1 - x), of[2] * x + grey * (1 - x)};
      });
    case pass_kind::hue:
      return each_pixel(picture, [&](const rgb& of) { return turned(of, x); });
    case pass_kind::gamma:
      return each_value(picture, [&](std::uint8_t v) { return truncated(std::pow(v / 255.0, x) * 255.999); });
    case pass_kind::grayscale:
      return each_pixel(picture, [&](const rgb& of) { return rgb{grey_of(of), grey_of(of), grey_of(of)}; });
    case pass_kind::invert:
      return each_value(picture, [](std::uint8_t v) { return static_cast<std::uint8_t>(255 - v); });
    case pass_kind::posterize:
      return each_value(picture, [&](std::uint8_t v) {
        return static_cast<std::uint8_t>(v & ((1 << pass.number) - 1) << (8 - pass.number));
      });
    case pass_kind::solarize:
      return each_value(picture,
                        [&](std::uint8_t v) { return static_cast<std::uint8_t>(v >= pass.number ? 255 - v : v); });
    case pass_kind::solarize_add:
      return each_value(picture, [&](std::uint8_t v) {
        return static_cast<std::uint8_t>(v < pass.value ? std::min(255, v + pass.number) : v);
      });
    case pass_kind::autocontrast:
      return each_channel(picture, autocontrast);
    case pass_kind::equalize:
      return each_channel(picture, equalize);
    case pass_kind::sharpness:
      return sharpened(picture, x);
    case pass_kind::gaussian_blur:
      return blurred(picture, pass.number, x);
    case pass_kind::channel_permutation: {
      // The permutations of 0, 1, 2 in their order.
      std::array<std::size_t, 3> order = {0, 1, 2};
      for (int i = 0; i < pass.number; ++i) std::next_permutation(order.begin(), order.end());
      return each_pixel(picture, [&](const rgb& of) { return rgb{of[order[0]], of[order[1]], of[order[2]]}; });
    }
    case pass_kind::warp:
      return warped(picture, pixels::warp_of(pass));
    case pass_kind::lookup:
    case pass_kind::edit:
    case pass_kind::mix_begin:
    case pass_kind::mix_add:
    case pass_kind::operation:
      break;
  }
  throw std::invalid_argument("no reference");
}

}  // namespace leat::testing
