#include "stages/pixels/operations/kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

// This file is compiled once for each instruction set: foreach_target.h includes it again and again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stages/pixels/operations/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leat::pixels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// --- medians ----------------------------------------------------------------------------------------------------------

using bytes = hn::CappedTag<std::uint8_t, median_room>;

// The smaller of two goes to `low`, the larger to `high`.
HWY_INLINE void sort(std::uint8_t* low, std::uint8_t* high) {
  const bytes d;
  const auto a = hn::Load(d, low);
  const auto b = hn::Load(d, high);
  hn::Store(hn::Min(a, b), d, low);
  hn::Store(hn::Max(a, b), d, high);
}

// Which values of 3, 5 and 7 are put in order by turns, and all are sorted then.
//   source   D. E. Knuth, The Art of Computer Programming, volume 3, 5.3.4
template <int Side>
constexpr auto network = std::array<std::array<std::uint8_t, 2>, 0>{};
template <>
constexpr auto network<3> = std::to_array<std::array<std::uint8_t, 2>>({{0, 2}, {0, 1}, {1, 2}});
template <>
constexpr auto network<5> = std::to_array<std::array<std::uint8_t, 2>>(
    {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1}, {2, 4}, {1, 2}, {3, 4}, {2, 3}});
template <>
constexpr auto network<7> = std::to_array<std::array<std::uint8_t, 2>>({{0, 6},
                                                                        {2, 3},
                                                                        {4, 5},
                                                                        {0, 2},
                                                                        {1, 4},
                                                                        {3, 6},
                                                                        {0, 1},
                                                                        {2, 5},
                                                                        {3, 4},
                                                                        {1, 2},
                                                                        {4, 6},
                                                                        {2, 3},
                                                                        {4, 5},
                                                                        {1, 2},
                                                                        {3, 4},
                                                                        {5, 6}});

// Where columns are sorted, and then lines, value j of line i is no less than (i + 1) * (j + 1) of all, itself among them, and no more than
// as many from the other corner. What is beyond the middle by that is not the median.
constexpr bool may_be_median(int side, int i, int j) {
  const int half = side * side / 2 + 1;
  return (i + 1) * (j + 1) <= half && (side - i) * (side - j) <= half;
}
constexpr int medians_possible(int side) {
  int count = 0;
  for (int i = 0; i < side * side; ++i) count += may_be_median(side, i / side, i % side) ? 1 : 0;
  return count;
}

// Of squares whose columns are sorted the median: that of the few values that may be it, by forgetting the least and the most of a few more
// than half of them, again and again. As many are above the middle as below.
template <int Side>
HWY_INLINE hn::Vec<bytes> median(const std::uint8_t* sorted, std::size_t stride, std::size_t at) {
  constexpr int all = medians_possible(Side);
  constexpr int first = all / 2 + 2;
  const bytes d;
  // Compilers keep them in registers, as far as there are any.
  HWY_ALIGN std::uint8_t memory[(all + Side) * median_room];
  const auto kept = [&](int i) HWY_ATTR { return memory + static_cast<std::size_t>(i) * hn::Lanes(d); };
  int count = 0;
  for (int i = 0; i < Side; ++i) {
    const auto line = [&](int j) HWY_ATTR { return kept(all + j); };
    for (int j = 0; j < Side; ++j) {
      hn::Store(hn::LoadU(d, sorted + static_cast<std::size_t>(i) * stride + at + static_cast<std::size_t>(j)), d,
                line(j));
    }
    for (const auto& [low, high] : network<Side>) sort(line(low), line(high));
    for (int j = 0; j < Side; ++j) {
      if (may_be_median(Side, i, j)) hn::Store(hn::Load(d, line(j)), d, kept(count++));
    }
  }
  int next = first;
  for (count = first; count > 2; --count) {
    // The least goes to the front, the most to the end.
    for (int i = 0; i < count / 2; ++i) sort(kept(i), kept(count - 1 - i));
    for (int i = 1; i <= (count - 1) / 2; ++i) sort(kept(0), kept(i));
    for (int i = count / 2; i < count - 1; ++i) sort(kept(i), kept(count - 1));
    // Both are forgotten; the next one takes the place of the least.
    if (next < all) hn::Store(hn::Load(d, kept(next++)), d, kept(0));
  }
  return hn::Load(d, kept(1));
}

template <int Side>
HWY_INLINE void medians(const std::uint8_t* const* lines, std::size_t width, std::uint8_t* sorted, std::uint8_t* to) {
  const bytes d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t stride = width + Side + median_room;
  // Each column is part of the squares on its left and right.
  for (std::size_t x = 0; x < width + Side - 1; x += lanes) {
    HWY_ALIGN std::uint8_t memory[Side * median_room];
    const auto column = [&](int i) HWY_ATTR { return memory + static_cast<std::size_t>(i) * lanes; };
    for (int i = 0; i < Side; ++i) hn::Store(hn::LoadU(d, lines[i] + x), d, column(i));
    for (const auto& [low, high] : network<Side>) sort(column(low), column(high));
    for (int i = 0; i < Side; ++i) {
      hn::StoreU(hn::Load(d, column(i)), d, sorted + static_cast<std::size_t>(i) * stride + x);
    }
  }
  std::size_t x = 0;
  for (; x + lanes <= width; x += lanes) hn::StoreU(median<Side>(sorted, stride, x), d, to + x);
  if (x == width) return;
  HWY_ALIGN std::uint8_t rest[median_room];
  hn::Store(median<Side>(sorted, stride, x), d, rest);
  std::memcpy(to + x, rest, width - x);
}

void median_of_lines(const std::uint8_t* const* lines, int side, std::size_t width, std::uint8_t* scratch,
                     std::uint8_t* to) {
  side == 3   ? medians<3>(lines, width, scratch, to)
  : side == 5 ? medians<5>(lines, width, scratch, to)
              : medians<7>(lines, width, scratch, to);
}

// --- JPEG -------------------------------------------------------------------------------------------------------------

// A lane is a block: as many lie beside one another as there are lanes.
using words = hn::CappedTag<std::int32_t, 8>;
using word = hn::Vec<words>;
using half_words = hn::Half<words>;
using rows = hn::Rebind<std::uint64_t, half_words>;  // of eight values of a block
constexpr std::size_t lanes_max = 8;

// jfdctint.c and jidctint.c: Loeffler, Ligtenberg and Moschytz, ICASSP 1989, in integers of 13 binary places.
constexpr int const_bits = 13;
constexpr int pass_bits = 2;
constexpr int f_0_298 = 2446, f_0_390 = 3196, f_0_541 = 4433, f_0_765 = 6270, f_0_899 = 7373, f_1_175 = 9633,
              f_1_501 = 12299, f_1_847 = 15137, f_1_961 = 16069, f_2_053 = 16819, f_2_562 = 20995, f_3_072 = 25172;

template <int Bits>
HWY_INLINE word descaled(word x) {
  return hn::ShiftRight<Bits>(hn::Add(x, hn::Set(words(), 1 << (Bits - 1))));
}
HWY_INLINE word times(word x, int by) { return hn::Mul(x, hn::Set(words(), by)); }

// Eight numbers of each block, `step` apart.
struct eight_numbers {
  std::int32_t* first;
  std::size_t step;

  HWY_INLINE std::int32_t* operator[](std::size_t i) const { return first + i * step * hn::Lanes(words()); }
};

template <bool IsFirst>
HWY_INLINE void forward(eight_numbers d) {
  const auto at = [d](std::size_t i) HWY_ATTR { return hn::Load(words(), d[i]); };
  const auto put = [d](std::size_t i, word x) HWY_ATTR { hn::Store(x, words(), d[i]); };
  const word t0 = hn::Add(at(0), at(7)), t7 = hn::Sub(at(0), at(7)), t1 = hn::Add(at(1), at(6)),
             t6 = hn::Sub(at(1), at(6));
  const word t2 = hn::Add(at(2), at(5)), t5 = hn::Sub(at(2), at(5)), t3 = hn::Add(at(3), at(4)),
             t4 = hn::Sub(at(3), at(4));
  const word t10 = hn::Add(t0, t3), t13 = hn::Sub(t0, t3), t11 = hn::Add(t1, t2), t12 = hn::Sub(t1, t2);
  constexpr int bits = IsFirst ? const_bits - pass_bits : const_bits + pass_bits;
  if constexpr (IsFirst) {
    put(0, hn::ShiftLeft<pass_bits>(hn::Add(t10, t11)));
    put(4, hn::ShiftLeft<pass_bits>(hn::Sub(t10, t11)));
  } else {
    put(0, descaled<pass_bits>(hn::Add(t10, t11)));
    put(4, descaled<pass_bits>(hn::Sub(t10, t11)));
  }
  const word even = times(hn::Add(t12, t13), f_0_541);
  put(2, descaled<bits>(hn::Add(even, times(t13, f_0_765))));
  put(6, descaled<bits>(hn::Add(even, times(t12, -f_1_847))));
  const word z5 = times(hn::Add(hn::Add(t4, t6), hn::Add(t5, t7)), f_1_175);
  const word z1 = times(hn::Add(t4, t7), -f_0_899), z2 = times(hn::Add(t5, t6), -f_2_562);
  const word z3 = hn::Add(times(hn::Add(t4, t6), -f_1_961), z5), z4 = hn::Add(times(hn::Add(t5, t7), -f_0_390), z5);
  put(7, descaled<bits>(hn::Add(times(t4, f_0_298), hn::Add(z1, z3))));
  put(5, descaled<bits>(hn::Add(times(t5, f_2_053), hn::Add(z2, z4))));
  put(3, descaled<bits>(hn::Add(times(t6, f_3_072), hn::Add(z2, z3))));
  put(1, descaled<bits>(hn::Add(times(t7, f_1_501), hn::Add(z1, z4))));
}

template <bool IsFirst>
HWY_INLINE void inverse(eight_numbers d) {
  const auto at = [d](std::size_t i) HWY_ATTR { return hn::Load(words(), d[i]); };
  const auto put = [d](std::size_t i, word x) HWY_ATTR { hn::Store(x, words(), d[i]); };
  const word even = times(hn::Add(at(2), at(6)), f_0_541);
  const word t2 = hn::Add(even, times(at(6), -f_1_847)), t3 = hn::Add(even, times(at(2), f_0_765));
  const word t0 = hn::ShiftLeft<const_bits>(hn::Add(at(0), at(4)));
  const word t1 = hn::ShiftLeft<const_bits>(hn::Sub(at(0), at(4)));
  const word t10 = hn::Add(t0, t3), t13 = hn::Sub(t0, t3), t11 = hn::Add(t1, t2), t12 = hn::Sub(t1, t2);
  const word a0 = at(7), a1 = at(5), a2 = at(3), a3 = at(1);
  const word z5 = times(hn::Add(hn::Add(a0, a2), hn::Add(a1, a3)), f_1_175);
  const word z1 = times(hn::Add(a0, a3), -f_0_899), z2 = times(hn::Add(a1, a2), -f_2_562);
  const word z3 = hn::Add(times(hn::Add(a0, a2), -f_1_961), z5), z4 = hn::Add(times(hn::Add(a1, a3), -f_0_390), z5);
  const word b0 = hn::Add(times(a0, f_0_298), hn::Add(z1, z3)), b1 = hn::Add(times(a1, f_2_053), hn::Add(z2, z4));
  const word b2 = hn::Add(times(a2, f_3_072), hn::Add(z2, z3)), b3 = hn::Add(times(a3, f_1_501), hn::Add(z1, z4));
  constexpr int bits = IsFirst ? const_bits - pass_bits : const_bits + pass_bits + 3;
  put(0, descaled<bits>(hn::Add(t10, b3)));
  put(7, descaled<bits>(hn::Sub(t10, b3)));
  put(1, descaled<bits>(hn::Add(t11, b2)));
  put(6, descaled<bits>(hn::Sub(t11, b2)));
  put(2, descaled<bits>(hn::Add(t12, b1)));
  put(5, descaled<bits>(hn::Sub(t12, b1)));
  put(3, descaled<bits>(hn::Add(t13, b0)));
  put(4, descaled<bits>(hn::Sub(t13, b0)));
}

// As many blocks as there are lanes, side by side, there and back.
HWY_INLINE void code_blocks(std::uint8_t* block, std::size_t stride, const std::array<std::int32_t, 64>& table) {
  const words w;
  const half_words h;
  const rows r;
  const hn::Rebind<std::uint32_t, half_words> hu;
  const hn::Rebind<float, words> f;
  const std::size_t lanes = hn::Lanes(w);
  const std::size_t half = hn::Lanes(h);
  HWY_ALIGN std::int32_t d[64 * lanes_max];
  const auto middle = hn::Set(w, 128);
  for (std::size_t y = 0; y < 8; ++y) {
    HWY_ALIGN std::uint64_t line[lanes_max];
    std::memcpy(line, block + y * stride, lanes * sizeof(std::uint64_t));
    const auto low = hn::Load(r, line);
    const auto high = hn::Load(r, line + half);
    for (std::size_t x = 0; x < 8; ++x) {
      const auto value = [&](hn::Vec<rows> of) HWY_ATTR {
        return hn::BitCast(
            h, hn::TruncateTo(hu, hn::And(hn::ShiftRightSame(of, static_cast<int>(8 * x)), hn::Set(r, 255))));
      };
      hn::Store(hn::Sub(hn::Combine(w, value(high), value(low)), middle), w, d + (y * 8 + x) * lanes);
    }
  }
  for (std::size_t i = 0; i < 8; ++i) forward<true>({d + i * 8 * lanes, 1});
  for (std::size_t i = 0; i < 8; ++i) forward<false>({d + i * lanes, 8});
  for (std::size_t i = 0; i < 64; ++i) {
    // The transform's numbers are 8 times as large. Of whole numbers below 2^23 a rounded quotient never reaches the next whole one.
    const int divisor = table[i] * 8;
    const auto x = hn::Load(w, d + i * lanes);
    const auto size = hn::ConvertTo(w, hn::Div(hn::ConvertTo(f, hn::Add(hn::Abs(x), hn::Set(w, divisor / 2))),
                                               hn::Set(f, static_cast<float>(divisor))));
    const auto coded = hn::Mul(size, hn::Set(w, table[i]));
    hn::Store(hn::IfThenElse(hn::Lt(x, hn::Zero(w)), hn::Neg(coded), coded), w, d + i * lanes);
  }
  for (std::size_t i = 0; i < 8; ++i) inverse<true>({d + i * lanes, 8});
  for (std::size_t i = 0; i < 8; ++i) inverse<false>({d + i * 8 * lanes, 1});
  for (std::size_t y = 0; y < 8; ++y) {
    auto low = hn::Zero(r);
    auto high = hn::Zero(r);
    for (std::size_t x = 0; x < 8; ++x) {
      const auto made =
          hn::Min(hn::Max(hn::Add(hn::Load(w, d + (y * 8 + x) * lanes), middle), hn::Zero(w)), hn::Set(w, 255));
      const auto value = [&](hn::Vec<half_words> of) HWY_ATTR {
        return hn::ShiftLeftSame(hn::PromoteTo(r, hn::BitCast(hu, of)), static_cast<int>(8 * x));
      };
      low = hn::Or(low, value(hn::LowerHalf(h, made)));
      high = hn::Or(high, value(hn::UpperHalf(h, made)));
    }
    HWY_ALIGN std::uint64_t line[lanes_max];
    hn::Store(low, r, line);
    hn::Store(high, r, line + half);
    std::memcpy(block + y * stride, line, lanes * sizeof(std::uint64_t));
  }
}

// All blocks of a plane. The last ones of a line, where they are fewer than lanes, in memory of their own.
HWY_INLINE void code_plane(std::uint8_t* plane, std::size_t wide, std::size_t high,
                           const std::array<std::int32_t, 64>& table) {
  const std::size_t step = 8 * hn::Lanes(words());
  for (std::size_t y = 0; y < high; y += 8) {
    std::uint8_t* const line = plane + y * wide;
    std::size_t x = 0;
    for (; x + step <= wide; x += step) code_blocks(line + x, wide, table);
    if (x == wide) continue;
    HWY_ALIGN std::uint8_t rest[8 * 8 * lanes_max] = {};
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(rest + i * step, line + i * wide + x, wide - x);
    code_blocks(rest, step, table);
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(line + i * wide + x, rest + i * step, wide - x);
  }
}

constexpr int sixteenths(double x) { return static_cast<int>(x * 65536 + 0.5); }

// jccolor.c, in 16 binary places. What a line lacks to whole MCUs is its last value.
HWY_INLINE void to_ycc(const std::uint8_t* HWY_RESTRICT line, std::size_t width, std::size_t wide,
                       std::uint8_t* HWY_RESTRICT luma, std::uint8_t* HWY_RESTRICT cb, std::uint8_t* HWY_RESTRICT cr) {
  constexpr int r_y = sixteenths(0.29900), g_y = sixteenths(0.58700), b_y = sixteenths(0.11400);
  constexpr int r_cb = -sixteenths(0.16874), g_cb = -sixteenths(0.33126), half_one = sixteenths(0.5);
  constexpr int g_cr = -sixteenths(0.41869), b_cr = -sixteenths(0.08131);
  constexpr int middle = (128 << 16) + (1 << 15) - 1;
  for (std::size_t x = 0; x < width; ++x) {
    const int r = line[x];
    const int g = line[x + width];
    const int b = line[x + 2 * width];
    luma[x] = static_cast<std::uint8_t>((r_y * r + g_y * g + b_y * b + (1 << 15)) >> 16);
    cb[x] = static_cast<std::uint8_t>((r_cb * r + g_cb * g + half_one * b + middle) >> 16);
    cr[x] = static_cast<std::uint8_t>((half_one * r + g_cr * g + b_cr * b + middle) >> 16);
  }
  for (std::uint8_t* const plane : {luma, cb, cr}) std::memset(plane + width, plane[width - 1], wide - width);
}

// jcsample.c, h2v2_downsample(): ties are rounded down and up by turns.
HWY_INLINE void halve(const std::uint8_t* HWY_RESTRICT upper, const std::uint8_t* HWY_RESTRICT lower,
                      std::size_t half_wide, std::uint8_t* HWY_RESTRICT to) {
  for (std::size_t x = 0; x < half_wide; ++x) {
    const int bias = 1 + static_cast<int>(x % 2);
    to[x] = static_cast<std::uint8_t>((upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1] + bias) >> 2);
  }
}

// jdsample.c, h2v2_fancy_upsample(): three quarters of the nearer, in both directions. `sums` has room for a value on either side.
HWY_INLINE void widen(const std::uint8_t* HWY_RESTRICT near, const std::uint8_t* HWY_RESTRICT far,
                      std::size_t half_width, std::int32_t* HWY_RESTRICT sums, std::int32_t* HWY_RESTRICT to) {
  // Where there are no more than two, libjpeg repeats them.
  if (half_width <= 2) {
    for (std::size_t x = 0; x < half_width; ++x) to[2 * x] = to[2 * x + 1] = near[x];
    return;
  }
  for (std::size_t x = 0; x < half_width; ++x) sums[x] = 3 * near[x] + far[x];
  sums[-1] = sums[0];
  sums[half_width] = sums[half_width - 1];
  for (std::size_t x = 0; x < half_width; ++x) {
    to[2 * x] = (3 * sums[x] + sums[static_cast<std::ptrdiff_t>(x) - 1] + 8) >> 4;
    to[2 * x + 1] = (3 * sums[x] + sums[x + 1] + 7) >> 4;
  }
}

// jdcolor.c
HWY_INLINE void to_rgb(const std::uint8_t* HWY_RESTRICT luma, const std::int32_t* HWY_RESTRICT of_cb,
                       const std::int32_t* HWY_RESTRICT of_cr, std::size_t width, std::uint8_t* HWY_RESTRICT line) {
  constexpr int cr_r = sixteenths(1.40200), cb_b = sixteenths(1.77200);
  constexpr int cr_g = -sixteenths(0.71414), cb_g = -sixteenths(0.34414);
  for (std::size_t x = 0; x < width; ++x) {
    const int cb = of_cb[x] - 128;
    const int cr = of_cr[x] - 128;
    const int r = luma[x] + ((cr_r * cr + (1 << 15)) >> 16);
    const int g = luma[x] + ((cb_g * cb + cr_g * cr + (1 << 15)) >> 16);
    const int b = luma[x] + ((cb_b * cb + (1 << 15)) >> 16);
    line[x] = static_cast<std::uint8_t>(std::min(std::max(r, 0), 255));
    line[x + width] = static_cast<std::uint8_t>(std::min(std::max(g, 0), 255));
    line[x + 2 * width] = static_cast<std::uint8_t>(std::min(std::max(b, 0), 255));
  }
}

void recode_as_jpeg(const picture& to, const std::array<std::int32_t, 64>& luma,
                    const std::array<std::int32_t, 64>& chroma, void* scratch) {
  const auto width = static_cast<std::size_t>(to.width);
  const auto height = static_cast<std::size_t>(to.height);
  const jpeg_planes size(to.height, to.width);
  auto* const sums = static_cast<std::int32_t*>(scratch) + 16;
  std::int32_t* const wide_cb = sums + size.wide + 16;
  std::int32_t* const wide_cr = wide_cb + size.wide + 16;
  auto* const y_plane = static_cast<std::uint8_t*>(scratch) + 8 * (size.wide + 16) * sizeof(std::int32_t);
  const std::size_t whole = size.wide * size.high;
  std::uint8_t* const full[2] = {y_plane + whole, y_plane + 2 * whole};
  std::uint8_t* const half[2] = {y_plane + 3 * whole, y_plane + 3 * whole + size.half_wide * size.half_high};
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t at = y * size.wide;
    to_ycc(to.line(static_cast<int>(y)), width, size.wide, y_plane + at, full[0] + at, full[1] + at);
  }
  for (std::size_t y = height; y < size.high; ++y) {
    std::memcpy(y_plane + y * size.wide, y_plane + (height - 1) * size.wide, size.wide);
  }
  const std::size_t half_height = (height + 1) / 2;
  for (int c = 0; c < 2; ++c) {
    for (std::size_t y = 0; y < size.half_high; ++y) {
      std::uint8_t* const line = half[c] + y * size.half_wide;
      if (y < half_height) {
        halve(full[c] + 2 * y * size.wide, full[c] + std::min(2 * y + 1, height - 1) * size.wide, size.half_wide, line);
      } else {
        std::memcpy(line, line - size.half_wide, size.half_wide);
      }
    }
  }
  code_plane(y_plane, size.wide, size.high, luma);
  for (std::uint8_t* const plane : half) code_plane(plane, size.half_wide, size.half_high, chroma);
  // What upsampling looks at beyond the picture is as libjpeg has it: the last sample that the file has, again.
  const std::size_t half_width = (width + 1) / 2;
  for (std::size_t y = 0; y < height; ++y) {
    const std::size_t near = y / 2;
    const std::size_t far = y % 2 == 1 ? std::min(near + 1, half_height - 1) : near == 0 ? 0 : near - 1;
    for (int c = 0; c < 2; ++c) {
      widen(half[c] + near * size.half_wide, half[c] + far * size.half_wide, half_width, sums,
            c == 0 ? wide_cb : wide_cr);
    }
    to_rgb(y_plane + y * size.wide, wide_cb, wide_cr, width, to.line(static_cast<int>(y)));
  }
}

}  // namespace leat::pixels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "stages/pixels/vectors/instruction_sets.hpp"

namespace leat::pixels {

LEAT_KERNEL(median_of_lines);
LEAT_KERNEL(recode_as_jpeg);

void median_of_lines(const std::uint8_t* const* lines, int side, std::size_t width, std::uint8_t* scratch,
                     std::uint8_t* to) noexcept {
  LEAT_BEST(median_of_lines)(lines, side, width, scratch, to);
}

void recode_as_jpeg(const picture& to, const std::array<std::int32_t, 64>& luma,
                    const std::array<std::int32_t, 64>& chroma, void* scratch) noexcept {
  LEAT_BEST(recode_as_jpeg)(to, luma, chroma, scratch);
}

}  // namespace leat::pixels
#endif
