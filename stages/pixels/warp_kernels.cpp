#include "stages/pixels/warp_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

// This file is compiled once for each instruction set: foreach_target.h includes it again and again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stages/pixels/warp_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leat::pixels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int block = 64;
constexpr int weight_bits = 14;
constexpr std::int32_t weight_one = 1 << weight_bits;

/// Of pixels side by side: the pixel, or that at the upper left, and the weights of the pixel itself (lower half) and the next one (upper).
struct block_places {
  alignas(64) std::int32_t x[block];
  alignas(64) std::int32_t y[block];
  alignas(64) std::int32_t across[block];
  alignas(64) std::int32_t down[block];
};

// Of the next pixel's.
template <class D, class V>
HWY_INLINE V weight_pair(D d, V next) {
  return hn::Add(hn::Set(d, weight_one), hn::Sub(hn::ShiftLeft<16>(next), next));
}

using longs = hn::CappedTag<std::int64_t, 8>;
using words = hn::Repartition<std::int32_t, longs>;

// Whole parts and weights of numbers with 32 digits behind the point.
HWY_INLINE void find_axis(std::int64_t start, std::int64_t step, std::int32_t* whole, std::int32_t* weights) {
  const longs d;
  const words to;
  const hn::RebindToUnsigned<words> bits;
  const std::size_t lanes = hn::Lanes(d);
  alignas(64) std::int64_t first[16];
  for (std::size_t i = 0; i < 2 * lanes; ++i) first[i] = start + static_cast<std::int64_t>(i) * step;
  auto low = hn::Load(d, first);
  auto high = hn::Load(d, first + lanes);
  const auto on = hn::Set(d, static_cast<std::int64_t>(2 * lanes) * step);
  for (std::size_t i = 0; i < block; i += 2 * lanes) {
    const auto a = hn::BitCast(to, low);
    const auto b = hn::BitCast(to, high);
    hn::Store(hn::ConcatOdd(to, b, a), to, whole + i);
    const auto part = hn::ShiftRight<32 - weight_bits>(hn::BitCast(bits, hn::ConcatEven(to, b, a)));
    hn::Store(weight_pair(to, hn::BitCast(to, part)), to, weights + i);
    low = hn::Add(low, on);
    high = hn::Add(high, on);
  }
}

HWY_INLINE void find(const fixed_places& of, int first, block_places& to) {
  find_axis(of.x + first * of.step_x, of.step_x, to.x, to.across);
  find_axis(of.y + first * of.step_y, of.step_y, to.y, to.down);
}

HWY_INLINE void find(const projected_places& of, int first, block_places& to) {
  // Far outside, and no more than an integer holds: sides are below 2^16.
  constexpr double far = 100'000;
  const hn::CappedTag<double, 8> d;
  const hn::Rebind<std::int32_t, hn::CappedTag<double, 8>> whole;
  const auto zero = hn::Zero(d);
  const auto one = hn::Set(d, 1.0);
  for (std::size_t i = 0; i < block; i += hn::Lanes(d)) {
    const auto at = hn::Add(hn::Iota(d, 0.0), hn::Set(d, first + static_cast<double>(i)));
    const auto w = hn::Add(hn::Set(d, of.w), hn::Mul(at, hn::Set(d, of.step_w)));
    const auto is_seen = hn::Gt(w, zero);
    const auto inverse = hn::Div(one, hn::IfThenElse(is_seen, w, one));
    const auto place = [&](double start, double step, std::int32_t* pixels, std::int32_t* weights) HWY_ATTR {
      const auto along = hn::Add(hn::Set(d, start), hn::Mul(at, hn::Set(d, step)));
      const auto there = hn::Sub(hn::Mul(along, inverse), hn::Set(d, of.shift));
      const auto kept =
          hn::Min(hn::Max(hn::IfThenElse(is_seen, there, hn::Set(d, -far)), hn::Set(d, -far)), hn::Set(d, far));
      const auto floor = hn::Floor(kept);
      hn::StoreU(hn::DemoteTo(whole, floor), whole, pixels + i);
      const auto part = hn::DemoteTo(whole, hn::Mul(hn::Sub(kept, floor), hn::Set(d, double{weight_one})));
      hn::StoreU(weight_pair(whole, part), whole, weights + i);
    };
    place(of.x, of.step_x, to.x, to.across);
    place(of.y, of.step_y, to.y, to.down);
  }
}

HWY_INLINE std::int32_t between(std::int32_t a, std::int32_t b, std::int32_t weights) {
  return (a * (weights & 0xFFFF) + b * (weights >> 16) + 64) >> 7;
}
HWY_INLINE std::uint8_t rounded(std::int32_t upper, std::int32_t lower, std::int32_t weights) {
  return static_cast<std::uint8_t>((upper * (weights & 0xFFFF) + lower * (weights >> 16) + (1 << 20)) >> 21);
}

// The sum of both halves' products, in each lane.
template <class D, class V>
HWY_INLINE V sum_of_products(D d, V a, V b) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
  // pmaddwd, which adds neighbours; elsewhere the order of the sums is another.
  const hn::Repartition<std::int16_t, D> halves;
  auto none = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(halves, a), hn::BitCast(halves, b), hn::Zero(d), none);
#else
  const V lower = hn::Set(d, 0xFFFF);
  return hn::Add(hn::Mul(hn::And(a, lower), hn::And(b, lower)), hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b)));
#endif
}

// between() and rounded() of pairs of values side by side.
HWY_INLINE void weigh(const std::uint16_t* upper, const std::uint16_t* lower, const block_places& places,
                      std::uint8_t* to) {
  const hn::CappedTag<std::int32_t, 16> d;
  const hn::Repartition<std::int16_t, hn::CappedTag<std::int32_t, 16>> halves;
  const hn::Rebind<std::uint8_t, hn::CappedTag<std::int32_t, 16>> values;
  const hn::Rebind<std::uint8_t, hn::Repartition<std::int16_t, hn::CappedTag<std::int32_t, 16>>> pairs;
  for (std::size_t i = 0; i < block; i += hn::Lanes(d)) {
    const auto across = hn::Load(d, places.across + i);
    const auto line = [&](const std::uint16_t* from) HWY_ATTR {
      const auto both = hn::PromoteTo(halves, hn::LoadU(pairs, reinterpret_cast<const std::uint8_t*>(from + i)));
      return hn::ShiftRight<7>(hn::Add(sum_of_products(d, hn::BitCast(d, both), across), hn::Set(d, 64)));
    };
    const auto column = hn::Or(line(upper), hn::ShiftLeft<16>(line(lower)));
    const auto sum = sum_of_products(d, column, hn::Load(d, places.down + i));
    hn::StoreU(hn::DemoteTo(values, hn::ShiftRight<21>(hn::Add(sum, hn::Set(d, 1 << 20)))), values, to + i);
  }
}

// Pixels first..last, where the picture ends or lies elsewhere.
HWY_INLINE void look_up_rim(const warp_source& from, const block_places& places, int first, int last,
                            std::uint8_t* to) {
  const auto line_bytes = static_cast<std::size_t>(from.width) * 3;
  const std::int32_t before = from.bilinear ? -1 : 0;
  for (int i = first; i < last; ++i) {
    const std::int32_t x = places.x[i];
    const std::int32_t y = places.y[i];
    if (x < before || y < before || x >= from.width || y >= from.height) {
      for (int c = 0; c < 3; ++c) to[c * from.to_width + i] = from.fill[c];
      continue;
    }
    for (int c = 0; c < 3; ++c) {
      const auto value = [&](std::int32_t at_x, std::int32_t at_y) -> std::int32_t {
        if (at_x < 0 || at_y < 0 || at_x >= from.width || at_y >= from.height) return from.fill[c];
        return from
            .first[static_cast<std::size_t>(at_y) * line_bytes + static_cast<std::size_t>(c * from.width + at_x)];
      };
      std::uint8_t& made = to[c * from.to_width + i];
      if (from.bilinear) {
        made = rounded(between(value(x, y), value(x + 1, y), places.across[i]),
                       between(value(x, y + 1), value(x + 1, y + 1), places.across[i]), places.down[i]);
      } else {
        made = static_cast<std::uint8_t>(value(x, y));
      }
    }
  }
}

// Pixels first..last, with all that they look at inside of the picture.
HWY_INLINE void look_up_inside(const warp_source& from, const block_places& places, int first, int last,
                               std::uint8_t* to) {
  const auto line_bytes = static_cast<std::size_t>(from.width) * 3;
  const std::uint8_t* at[block];
  for (int i = first; i < last; ++i) {
    at[i] = from.first + static_cast<std::size_t>(places.y[i]) * line_bytes + static_cast<std::size_t>(places.x[i]);
  }
  alignas(64) std::uint16_t upper[block] = {};
  alignas(64) std::uint16_t lower[block] = {};
  for (int c = 0; c < 3; ++c) {
    const auto plane = static_cast<std::size_t>(c * from.width);
    std::uint8_t* const made = to + static_cast<std::size_t>(c * from.to_width);
    if (!from.bilinear) {
      for (int i = first; i < last; ++i) made[i] = at[i][plane];
      continue;
    }
    for (int i = first; i < last; ++i) {
      std::memcpy(&upper[i], at[i] + plane, sizeof upper[i]);
      std::memcpy(&lower[i], at[i] + plane + line_bytes, sizeof lower[i]);
    }
    alignas(64) std::uint8_t values[block];
    weigh(upper, lower, places, values);
    std::memcpy(made + first, values + first, static_cast<std::size_t>(last - first));
  }
}

// A line crosses a picture once, and what lies inside is one run.
template <class Places>
HWY_INLINE void look_up_line(const warp_source& from, const Places& all, std::uint8_t* to) {
  const std::int32_t width = from.width - (from.bilinear ? 1 : 0);
  const std::int32_t height = from.height - (from.bilinear ? 1 : 0);
  block_places places;
  for (int start = 0; start < from.to_width; start += block) {
    const int count = std::min(block, from.to_width - start);
    find(all, start, places);
    const auto is_inside = [&](int i) HWY_ATTR {
      return places.x[i] >= 0 && places.y[i] >= 0 && places.x[i] < width && places.y[i] < height;
    };
    int first = 0;
    while (first < count && !is_inside(first)) ++first;
    int last = count;
    while (last > first && !is_inside(last - 1)) --last;
    // Not so where a rim is met along a line, and a division's rounding says which side of it a pixel is on.
    bool is_one_run = true;
    for (int i = first; i < last; ++i) is_one_run = is_one_run & is_inside(i);
    if (!is_one_run) last = first;
    std::uint8_t* const here = to + start;
    look_up_rim(from, places, 0, first, here);
    if (first < last) look_up_inside(from, places, first, last, here);
    look_up_rim(from, places, last, count, here);
  }
}

void warp_fixed(const warp_source& from, const fixed_places& places, std::uint8_t* to) {
  look_up_line(from, places, to);
}
void warp_projected(const warp_source& from, const projected_places& places, std::uint8_t* to) {
  look_up_line(from, places, to);
}

}  // namespace leat::pixels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "stages/pixels/vectors/instruction_sets.hpp"

namespace leat::pixels {

LEAT_KERNEL(warp_fixed);
LEAT_KERNEL(warp_projected);

void warp_line(const warp_source& from, const fixed_places& places, std::uint8_t* to) noexcept {
  LEAT_BEST(warp_fixed)(from, places, to);
}
void warp_line(const warp_source& from, const projected_places& places, std::uint8_t* to) noexcept {
  LEAT_BEST(warp_projected)(from, places, to);
}

}  // namespace leat::pixels
#endif
