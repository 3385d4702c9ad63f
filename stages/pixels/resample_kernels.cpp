#include "stages/pixels/resample_kernels.hpp"

#include <cstring>

// This file is compiled once for each instruction set: foreach_target.h includes it again and again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stages/pixels/resample_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leat::pixels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Outputs are made in blocks of 16 bytes, four 32-bit sums each: red, green, blue and one that is not used. A vector
// holds one, two or four blocks, so that a group of four outputs takes four, two or one vectors.
using bytes_tag = hn::CappedTag<std::uint8_t, 64>;
using sums_tag = hn::Repartition<std::int32_t, bytes_tag>;
using block_tag = hn::FixedTag<std::uint8_t, 16>;
using sums = hn::Vec<sums_tag>;
constexpr std::size_t blocks = hn::MaxLanes(bytes_tag()) / 16;
constexpr std::size_t vectors = 4 / blocks;
constexpr int pixels_per_block = 5;

constexpr std::uint8_t none = 0x80;  // TableLookupBytesOr0 makes a zero of it

// The channels of the block's pixel t, each widened to 32 bits.
alignas(16) constexpr std::uint8_t widen[pixels_per_block][16] = {
    {0, none, none, none, 1, none, none, none, 2, none, none, none, none, none, none, none},
    {3, none, none, none, 4, none, none, none, 5, none, none, none, none, none, none, none},
    {6, none, none, none, 7, none, none, none, 8, none, none, none, none, none, none, none},
    {9, none, none, none, 10, none, none, none, 11, none, none, none, none, none, none, none},
    {12, none, none, none, 13, none, none, none, 14, none, none, none, none, none, none, none},
};
// Weight b of four, four times over, for block b.
alignas(64) constexpr std::uint8_t spread[64] = {0,  1,  2,  3,  0,  1,  2,  3,  0,  1,  2,  3,  0,  1,  2,  3,
                                                 4,  5,  6,  7,  4,  5,  6,  7,  4,  5,  6,  7,  4,  5,  6,  7,
                                                 8,  9,  10, 11, 8,  9,  10, 11, 8,  9,  10, 11, 8,  9,  10, 11,
                                                 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15};

// From four outputs of four bytes to four reds, four greens, four blues; or to twelve bytes of RGB. And backwards.
alignas(16) constexpr std::uint8_t planar[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, none, none, none, none};
alignas(16) constexpr std::uint8_t planar_flipped[16] = {12, 8,  4, 0, 13,   9,    5,    1,
                                                         14, 10, 6, 2, none, none, none, none};
alignas(16) constexpr std::uint8_t interleaved[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, none, none, none, none};
alignas(16) constexpr std::uint8_t interleaved_flipped[16] = {12, 13, 14, 8, 9,    10,   4,    5,
                                                              6,  0,  1,  2, none, none, none, none};

template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const std::uint8_t* line, const std::int32_t* first) {
  const block_tag block;
  const auto load = [&](int b) HWY_ATTR { return hn::LoadU(block, line + 3 * static_cast<std::ptrdiff_t>(first[b])); };
  if constexpr (blocks == 1) {
    return load(0);
  } else if constexpr (blocks == 2) {
    return hn::Combine(d, load(1), load(0));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, hn::Combine(half, load(3), load(2)), hn::Combine(half, load(1), load(0)));
  }
}

// Vector v of the group: outputs v * blocks and on.
template <int Taps>
HWY_INLINE sums sum_up(const std::uint8_t* line, const std::int32_t* first, const std::int32_t* weights, int taps,
                       std::size_t v) {
  const bytes_tag d8;
  const sums_tag d32;
  const auto spread_v = hn::LoadU(d8, spread + 16 * blocks * v);
  auto sum = hn::Set(d32, 1 << (weight_bits - 1));
  for (int begin = 0; begin < taps; begin += pixels_per_block) {
    const auto pixels = load_blocks(d8, line + 3 * static_cast<std::ptrdiff_t>(begin), first + blocks * v);
    const int left = taps - begin;
    const int end = Taps != 0 ? Taps : (left < pixels_per_block ? left : pixels_per_block);
    for (int t = 0; t < end; ++t) {
      const auto weight = hn::LoadDup128(d32, weights + 4 * static_cast<std::ptrdiff_t>(begin + t));
      const auto input = hn::TableLookupBytesOr0(pixels, hn::LoadDup128(d8, widen[t]));
      sum = hn::Add(sum, hn::Mul(hn::BitCast(d32, input),
                                 hn::BitCast(d32, hn::TableLookupBytes(hn::BitCast(d8, weight), spread_v))));
    }
  }
  return hn::ShiftRight<weight_bits>(sum);
}

// Four outputs of four bytes, the last of each without meaning.
template <int Taps, class D>
HWY_INLINE hn::Vec<D> make_group(D d, const std::uint8_t* line, const std::int32_t* first, const std::int32_t* weights,
                                 int taps) {
  const hn::Rebind<std::uint8_t, sums_tag> part;
  const auto make = [&](std::size_t v)
                        HWY_ATTR { return hn::DemoteTo(part, sum_up<Taps>(line, first, weights, taps, v)); };
  if constexpr (vectors == 1) {
    return make(0);
  } else if constexpr (vectors == 2) {
    return hn::Combine(d, make(1), make(0));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, hn::Combine(half, make(3), make(2)), hn::Combine(half, make(1), make(0)));
  }
}

template <int Taps>
HWY_INLINE void line_of(const std::uint8_t* line, const line_table& table, const line_target& to) {
  const block_tag d;
  const int taps = Taps != 0 ? Taps : table.taps;
  const bool flipped = to.pixel_step < 0;
  const bool is_planar = to.pixel_step == 1 || to.pixel_step == -1;
  const std::uint8_t* const table_of_order =
      is_planar ? (flipped ? planar_flipped : planar) : (flipped ? interleaved_flipped : interleaved);
  const auto order = hn::Load(d, table_of_order);
  const std::int32_t* first = table.first;
  const std::int32_t* weights = table.weights;
  std::uint8_t* out = to.begin;
  int x = 0;
  for (; x + line_table::group <= table.count; x += line_table::group) {
    const auto made = hn::TableLookupBytesOr0(make_group<Taps>(d, line, first, weights, taps), order);
    std::uint8_t* const at = flipped ? out + 3 * to.pixel_step : out;
    alignas(16) std::uint32_t words[4];
    hn::Store(made, d, reinterpret_cast<std::uint8_t*>(words));
    if (is_planar) {
      for (int c = 0; c < 3; ++c) std::memcpy(at + c * to.plane_step, &words[c], 4);
    } else {
      std::memcpy(at, words, 12);
    }
    first += line_table::group;
    weights += line_table::group * static_cast<std::ptrdiff_t>(taps);
    out += line_table::group * to.pixel_step;
  }
  if (x == table.count) return;
  alignas(16) std::uint8_t rest[16];
  hn::Store(make_group<Taps>(d, line, first, weights, taps), d, rest);
  for (int i = 0; x + i < table.count; ++i, out += to.pixel_step) {
    for (int c = 0; c < 3; ++c) out[c * to.plane_step] = rest[4 * i + c];
  }
}

// A number of weights known to the compiler pays off: the loop is unrolled, the constants stay in registers.
void resample_line(const std::uint8_t* line, const line_table& table, const line_target& to) {
  switch (table.taps) {
    case 1:
      return line_of<1>(line, table, to);
    case 2:
      return line_of<2>(line, table, to);
    case 3:
      return line_of<3>(line, table, to);
    case 4:
      return line_of<4>(line, table, to);
    case 5:
      return line_of<5>(line, table, to);
    default:
      return line_of<0>(line, table, to);
  }
}

// `Vectors` of sums at once: enough of them that a multiplication need not wait for the one before.
template <std::size_t Vectors, class D32>
HWY_INLINE void columns_of(D32 d32, const std::uint8_t* const* lines, const std::int32_t* weights, int taps,
                           std::size_t at, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, D32> d8;
  const std::size_t lanes = hn::Lanes(d32);
  const auto rounding = hn::Set(d32, 1 << (weight_bits - 1));
  auto s0 = rounding, s1 = rounding, s2 = rounding, s3 = rounding;
  for (int t = 0; t < taps; ++t) {
    const std::uint8_t* const in = lines[t] + at;
    const auto weight = hn::Set(d32, weights[t]);
    const auto product = [&](std::size_t v)
                             HWY_ATTR { return hn::Mul(hn::PromoteTo(d32, hn::LoadU(d8, in + v * lanes)), weight); };
    s0 = hn::Add(s0, product(0));
    if constexpr (Vectors == 4) {
      s1 = hn::Add(s1, product(1));
      s2 = hn::Add(s2, product(2));
      s3 = hn::Add(s3, product(3));
    }
  }
  const auto put = [&](auto sum, std::size_t v) HWY_ATTR {
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<weight_bits>(sum)), d8, to + at + v * lanes);
  };
  put(s0, 0);
  if constexpr (Vectors == 4) {
    put(s1, 1);
    put(s2, 2);
    put(s3, 3);
  }
}

void resample_lines(const std::uint8_t* const* lines, const std::int32_t* weights, int taps, std::size_t count,
                    std::uint8_t* to) {
  const hn::CappedTag<std::int32_t, 16> wide;
  const hn::CappedTag<std::int32_t, 1> single;
  const std::size_t step = 4 * hn::Lanes(wide);
  if (count < step) {
    for (std::size_t at = 0; at < count; ++at) columns_of<1>(single, lines, weights, taps, at, to);
    return;
  }
  for (std::size_t at = 0; at + step <= count; at += step) columns_of<4>(wide, lines, weights, taps, at, to);
  // The last step overlaps outputs that are made already.
  if (count % step != 0) columns_of<4>(wide, lines, weights, taps, count - step, to);
}

void split_line(const std::uint8_t* line, std::size_t count, std::uint8_t* to) {
  const hn::CappedTag<std::uint8_t, 64> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t x = 0;
  for (; x + lanes <= count; x += lanes) {
    hn::Vec<decltype(d)> red;
    hn::Vec<decltype(d)> green;
    hn::Vec<decltype(d)> blue;
    hn::LoadInterleaved3(d, line + 3 * x, red, green, blue);
    hn::StoreU(red, d, to + x);
    hn::StoreU(green, d, to + count + x);
    hn::StoreU(blue, d, to + 2 * count + x);
  }
  for (; x < count; ++x) {
    for (std::size_t c = 0; c < 3; ++c) to[c * count + x] = line[3 * x + c];
  }
}

}  // namespace leat::pixels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "stages/pixels/vectors/instruction_sets.hpp"

namespace leat::pixels {

LEAT_KERNEL(resample_line);
LEAT_KERNEL(resample_lines);
LEAT_KERNEL(split_line);

void resample_line(const std::uint8_t* line, const line_table& table, const line_target& to) noexcept {
  LEAT_BEST(resample_line)(line, table, to);
}

void resample_lines(const std::uint8_t* const* lines, const std::int32_t* weights, int taps, std::size_t bytes,
                    std::uint8_t* to) noexcept {
  LEAT_BEST(resample_lines)(lines, weights, taps, bytes, to);
}

void split_line(const std::uint8_t* line, std::size_t count, std::uint8_t* to) noexcept {
  LEAT_BEST(split_line)(line, count, to);
}

}  // namespace leat::pixels
#endif
