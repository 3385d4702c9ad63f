#include "stages/pixels/colour/tables.hpp"

#include "base/portable_math.hpp"

#include <algorithm>

namespace leat::pixels {
namespace {

template <class Make>
curve make_curve(Make&& make) noexcept {
  curve made;
  for (std::size_t v = 0; v < 256; ++v) made[v] = make(static_cast<int>(v));
  return made;
}

std::uint8_t clamped(float value) noexcept {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0F, 255.0F));  // truncates
}

}  // namespace

curve brightness_curve(double factor) noexcept {
  const auto f = static_cast<float>(factor);
  return make_curve([f](int v) { return clamped(static_cast<float>(v) * f); });
}

// x^exponent in double, by logarithms that are the same everywhere; then as torchvision takes a float back to u8.
curve gamma_curve(double exponent) noexcept {
  return make_curve([exponent](int v) {
    if (v == 0) return std::uint8_t{0};
    const double power = exponent * portable_log(v / 255.0);
    const double x = power < -690 ? 0 : portable_exp(power);
    return static_cast<std::uint8_t>(std::min(x, 1.0) * 255.999);
  });
}

curve invert_curve() noexcept {
  return make_curve([](int v) { return static_cast<std::uint8_t>(255 - v); });
}

curve posterize_curve(int bits) noexcept {
  return make_curve([bits](int v) { return static_cast<std::uint8_t>(v & (0xFF00 >> bits)); });
}

curve solarize_curve(int threshold) noexcept {
  return make_curve([threshold](int v) { return static_cast<std::uint8_t>(v >= threshold ? 255 - v : v); });
}

curve solarize_add_curve(int amount, int threshold) noexcept {
  return make_curve(
      [amount, threshold](int v) { return static_cast<std::uint8_t>(v < threshold ? std::min(255, v + amount) : v); });
}

curve contrast_curve(double factor, float mean) noexcept {
  const auto f = static_cast<float>(factor);
  const float part = mean * static_cast<float>(1.0 - factor);
  return make_curve([f, part](int v) {
    const float scaled = static_cast<float>(v) * f;
    return clamped(scaled + part);
  });
}

curve autocontrast_curve(int least, int most) noexcept {
  if (least >= most) return make_curve([](int v) { return static_cast<std::uint8_t>(v); });
  const float scale = static_cast<float>(most - least) * static_cast<float>(1.0 / 255.0);
  return make_curve([least, scale](int v) { return clamped(static_cast<float>(v - least) / scale); });
}

curve equalize_curve(const std::array<std::uint32_t, 256>& counts) noexcept {
  std::uint64_t all = 0;
  std::uint64_t largest = 0;  // how often the largest value occurs
  for (const std::uint32_t count : counts) {
    all += count;
    if (count != 0) largest = count;
  }
  const std::uint64_t step = (all - largest) / 255;
  if (step == 0) return make_curve([](int v) { return static_cast<std::uint8_t>(v); });
  curve made;
  std::uint64_t below = step / 2;
  for (std::size_t v = 0; v < 256; ++v) {
    made[v] = static_cast<std::uint8_t>(v == 0 ? 0 : std::min<std::uint64_t>(below / step, 255));
    below += counts[v];
  }
  return made;
}

float mean_of(std::uint64_t sum, std::uint64_t count) noexcept {
  return static_cast<float>(static_cast<double>(sum) / static_cast<double>(count));
}

const table& identity_table() noexcept {
  static const table identity = table::of([](int v) { return v; });
  return identity;
}

void append(table& first, const curve& then) noexcept {
  for (auto& channel : first.values) {
    for (std::uint8_t& value : channel) value = then[value];
  }
}

void append(table& first, const table& then) noexcept {
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::uint8_t& value : first.values[c]) value = then.values[c][value];
  }
}

value_counts pushed_through(const table& by, const value_counts& counts) noexcept {
  value_counts made{};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t v = 0; v < 256; ++v) made[c][by.values[c][v]] += counts[c][v];
  }
  return made;
}

bool is_ascending(const table& which) noexcept {
  return std::all_of(which.values.begin(), which.values.end(),
                     [](const auto& channel) { return std::is_sorted(channel.begin(), channel.end()); });
}

}  // namespace leat::pixels
