#include "stages/pixels/wide_store.hpp"

#include "base/half.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace leat::pixels {
namespace {

// Elements that are no C++ type.
struct wide_f16 {
  std::uint16_t bits;
};
struct wide_bf16 {
  std::uint16_t bits;
};

// 65520 is the first number that f16 rounds to infinity, and 0x1.FFp127 that of bf16: the ones before them.
constexpr float f16_largest = 0x1.FFDFFEp15F;
constexpr float bf16_largest = 0x1.FEFFFEp127F;

// Bicubic weights overshoot. What is stored lies inside: the reader's numbers are looked at before.
template <class Element>
Element wide_element(float value, double scale, double bias) noexcept {
  if constexpr (std::is_integral_v<Element>) {
    using limits = std::numeric_limits<Element>;
    const double number = std::nearbyint(static_cast<double>(value));
    return static_cast<Element>(
        std::clamp(number, static_cast<double>(limits::min()), static_cast<double>(limits::max())));
  } else {
    auto number = static_cast<float>(static_cast<double>(value) * scale + bias);
    // Where infinities meet in a resized picture, x86-64 makes a NaN with a sign, and AArch64 one without.
    if (std::isnan(number)) number = std::numeric_limits<float>::quiet_NaN();
    if constexpr (std::is_same_v<Element, float>) return number;
    const auto inside = [&](float largest) {
      return std::isfinite(value) ? std::clamp(number, -largest, largest) : number;
    };
    if constexpr (std::is_same_v<Element, wide_f16>) return {f16_bits(inside(f16_largest))};
    if constexpr (std::is_same_v<Element, wide_bf16>) return {bf16_bits(inside(bf16_largest))};
  }
}

}  // namespace

std::array<double, 2> wide_store::range() const noexcept {
  switch (type) {
    case dtype::u8:
      return {0, 255};
    case dtype::u16:
      return {0, 65'535};
    case dtype::i16:
      return {-32'768, 32'767};
    default:
      return {-2'147'483'648.0, 2'147'483'647.0};
  }
}

float wide_store::largest() const noexcept {
  return type == dtype::f16 ? f16_largest : type == dtype::bf16 ? bf16_largest : std::numeric_limits<float>::max();
}

wide_row::wide_row(const wide_store& how, const wide_info& info, int height, int width, const rectangle& part,
                   bool flip, std::byte* row) noexcept
    : how_(how), height_(height), width_(width), part_(part), flip_(flip), row_(row), stored_channels_(info.channels) {
  const double largest = info.kind == sample_kind::whole && info.bits <= 16 ? std::exp2(info.bits) - 1 : 1;
  const double white = how.white.value_or(largest);
  for (std::size_t c = 0; c < 3; ++c) {
    const double deviation = how.statistics ? how.statistics->deviation[c] : 1;
    scale_[c] = 1 / (white * deviation);
    bias_[c] = how.statistics ? -how.statistics->mean[c] / deviation : 0;
  }
  const double ends = std::exp2(info.bits - (info.kind == sample_kind::signed_whole ? 1 : 0));
  const double most = info.kind == sample_kind::real ? double{std::numeric_limits<float>::max()} : ends - 1;
  const double least = info.kind == sample_kind::real ? -most : info.kind == sample_kind::signed_whole ? -ends : 0;
  for (std::size_t c = 0; c < 3; ++c) fits_all_ = fits_all_ && fits(least, c) && fits(most, c);
}

void wide_row::start() noexcept {
  if (part_.width < width_ || part_.height < height_) with_element([&](auto element) { clear(element); });
}

void wide_row::take(const float* line, int y) noexcept {
  with_element([&](auto element) { put(element, line, y); });
}

bool wide_row::fits(double value, std::size_t channel) const noexcept {
  if (how_.is_whole()) {
    const auto [least, most] = how_.range();
    return value >= least && value <= most;
  }
  const auto [scale, bias] = scaling(channel);
  return std::abs(static_cast<float>(value * scale + bias)) <= how_.largest();
}

std::optional<float> wide_row::first_beyond(const float* line, std::size_t pixels) const noexcept {
  if (fits_all_) return std::nullopt;
  const auto stored = static_cast<std::size_t>(stored_channels_);
  for (std::size_t c = 0; c < static_cast<std::size_t>(how_.channels); ++c) {
    for (std::size_t i = stored == 1 ? 0 : c; i < pixels * stored; i += stored) {
      if (!fits(line[i], c) && std::isfinite(line[i])) return line[i];
    }
  }
  return std::nullopt;
}

template <class Visit>
void wide_row::with_element(const Visit& visit) noexcept {
  switch (how_.type) {
    case dtype::u8:
      return visit(std::uint8_t{});
    case dtype::u16:
      return visit(std::uint16_t{});
    case dtype::i16:
      return visit(std::int16_t{});
    case dtype::i32:
      return visit(std::int32_t{});
    case dtype::f16:
      return visit(wide_f16{});
    case dtype::bf16:
      return visit(wide_bf16{});
    default:
      assert(how_.type == dtype::f32);
      return visit(float{});
  }
}

template <class Element>
void wide_row::clear(Element) noexcept {
  const bool planar = how_.order == layout::nchw;
  const auto channels = static_cast<std::size_t>(how_.channels);
  const std::size_t plane = static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_);
  auto* const row = reinterpret_cast<Element*>(row_);
  for (std::size_t c = 0; c < channels; ++c) {
    const auto [scale, bias] = scaling(c);
    const auto black = wide_element<Element>(0, scale, bias);
    Element* to = planar ? row + c * plane : row + c;
    const std::size_t step = planar ? 1 : channels;
    for (std::size_t i = 0; i < plane; ++i, to += step) *to = black;
  }
}

template <class Element>
void wide_row::put(Element, const float* line, int y) noexcept {
  const bool planar = how_.order == layout::nchw;
  const auto channels = static_cast<std::size_t>(how_.channels);
  const auto stored = static_cast<std::size_t>(stored_channels_);
  const auto width = static_cast<std::size_t>(width_);
  const std::size_t pixel_of_line = static_cast<std::size_t>(y) * width;
  const std::size_t plane = static_cast<std::size_t>(height_) * width;
  const std::ptrdiff_t step = (planar ? 1 : static_cast<std::ptrdiff_t>(channels)) * (flip_ ? -1 : 1);
  const auto first = static_cast<std::size_t>(flip_ ? width_ - 1 - part_.x : part_.x);
  auto* const row = reinterpret_cast<Element*>(row_);
  for (std::size_t c = 0; c < channels; ++c) {
    Element* to = planar ? row + c * plane + pixel_of_line + first : row + (pixel_of_line + first) * channels + c;
    const float* from = line + (stored == 1 ? 0 : c);
    const auto [scale, bias] = scaling(c);
    if (stored == 1 && step == 1) {
      for (int x = 0; x < part_.width; ++x) to[x] = wide_element<Element>(from[x], scale, bias);
      continue;
    }
    for (int x = 0; x < part_.width; ++x, to += step, from += stored) {
      *to = wide_element<Element>(*from, scale, bias);
    }
  }
}

}  // namespace leat::pixels
