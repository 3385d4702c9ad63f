#include "stages/pixels/colour/kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

// This file is compiled once for each instruction set: foreach_target.h includes it again and again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stages/pixels/colour/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace leat::pixels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using floats = hn::CappedTag<float, 16>;
using words = hn::Rebind<std::int32_t, floats>;
using values = hn::Rebind<std::uint8_t, floats>;
using vector = hn::Vec<floats>;

HWY_INLINE vector load(const std::uint8_t* from) {
  return hn::ConvertTo(floats(), hn::PromoteTo(words(), hn::LoadU(values(), from)));
}

// Truncated, and clamped to 0..255 by what a narrower integer can hold.
HWY_INLINE void store(vector value, std::uint8_t* to) {
  hn::StoreU(hn::DemoteTo(values(), hn::ConvertTo(words(), value)), values(), to);
}

struct pixel {
  vector red;
  vector green;
  vector blue;
};

HWY_INLINE vector floor_of_grey(const pixel& of) {
  const floats d;
  const vector first = hn::Mul(of.red, hn::Set(d, 0.2989F));
  const vector second = hn::Add(first, hn::Mul(of.green, hn::Set(d, 0.587F)));
  const vector third = hn::Add(second, hn::Mul(of.blue, hn::Set(d, 0.114F)));
  return hn::ConvertTo(d, hn::ConvertTo(words(), third));
}

// Calls change(pixel) for each vector of pixels. The rest at the end of the line goes through separate memory, so that no pixel
// is changed twice.
template <class Change>
HWY_INLINE void for_each_pixel(std::uint8_t* red, std::size_t width, const Change& change) {
  const std::size_t lanes = hn::Lanes(floats());
  std::uint8_t* const green = red + width;
  std::uint8_t* const blue = green + width;
  const auto at = [&](std::uint8_t* r, std::uint8_t* g, std::uint8_t* b) HWY_ATTR {
    pixel of{load(r), load(g), load(b)};
    change(of);
    store(of.red, r);
    store(of.green, g);
    store(of.blue, b);
  };
  std::size_t x = 0;
  for (; x + lanes <= width; x += lanes) at(red + x, green + x, blue + x);
  if (x == width) return;
  alignas(64) std::uint8_t rest[3][16] = {};
  std::memcpy(rest[0], red + x, width - x);
  std::memcpy(rest[1], green + x, width - x);
  std::memcpy(rest[2], blue + x, width - x);
  at(rest[0], rest[1], rest[2]);
  std::memcpy(red + x, rest[0], width - x);
  std::memcpy(green + x, rest[1], width - x);
  std::memcpy(blue + x, rest[2], width - x);
}

void saturate_line(std::uint8_t* line, std::size_t width, float factor, float rest) {
  const floats d;
  const vector own = hn::Set(d, factor);
  const vector other = hn::Set(d, rest);
  for_each_pixel(line, width, [&](pixel& of) HWY_ATTR {
    const vector grey = hn::Mul(floor_of_grey(of), other);
    of.red = hn::Add(hn::Mul(of.red, own), grey);
    of.green = hn::Add(hn::Mul(of.green, own), grey);
    of.blue = hn::Add(hn::Mul(of.blue, own), grey);
  });
}

void grey_line(std::uint8_t* line, std::size_t width) {
  for_each_pixel(line, width, [](pixel& of) HWY_ATTR { of.red = of.green = of.blue = floor_of_grey(of); });
}

// In units of a level and sixths of a turn. Chroma c = most - least; hue h = which side of the hexagon, and how far along it; a channel
// is most - c * clamp(min(k, 4 - k), 0, 1), k = (n + h) mod 6, n = 5, 3, 1.
void turn_hue_line(std::uint8_t* line, std::size_t width, float shift) {
  const floats d;
  const vector zero = hn::Zero(d);
  const vector one = hn::Set(d, 1.0F);
  const vector two = hn::Set(d, 2.0F);
  const vector four = hn::Set(d, 4.0F);
  const vector six = hn::Set(d, 6.0F);
  const vector sixth = hn::Set(d, 1.0F / 6.0F);
  const vector turn = hn::Set(d, shift);
  const vector to_value = hn::Set(d, 255.999F / 255.0F);
  for_each_pixel(line, width, [&](pixel& of) HWY_ATTR {
    const vector most = hn::Max(of.red, hn::Max(of.green, of.blue));
    const vector least = hn::Min(of.red, hn::Min(of.green, of.blue));
    const vector chroma = hn::Sub(most, least);
    const vector inverse = hn::Div(one, hn::Max(chroma, one));
    const auto red_most = hn::Eq(most, of.red);
    const auto green_most = hn::Eq(most, of.green);
    // The difference of two channels, and where on the hexagon it starts.
    const vector difference =
        hn::IfThenElse(red_most, hn::Sub(of.green, of.blue),
                       hn::IfThenElse(green_most, hn::Sub(of.blue, of.red), hn::Sub(of.red, of.green)));
    const vector from = hn::IfThenElse(red_most, zero, hn::IfThenElse(green_most, two, four));
    vector hue = hn::Add(hn::Add(hn::Mul(difference, inverse), from), turn);
    hue = hn::Sub(hue, hn::Mul(hn::Floor(hn::Mul(hue, sixth)), six));
    const auto channel = [&](float n) HWY_ATTR {
      vector k = hn::Add(hue, hn::Set(d, n));
      k = hn::IfThenElse(hn::Ge(k, six), hn::Sub(k, six), k);
      const vector part = hn::Min(hn::Max(hn::Min(k, hn::Sub(four, k)), zero), one);
      return hn::Mul(hn::Sub(most, hn::Mul(chroma, part)), to_value);
    };
    of.red = channel(5.0F);
    of.green = channel(3.0F);
    of.blue = channel(1.0F);
  });
}

std::uint64_t sum_grey_line(const std::uint8_t* red, std::size_t width) {
  const floats d;
  const words dw;
  const std::size_t lanes = hn::Lanes(d);
  const std::uint8_t* const green = red + width;
  const std::uint8_t* const blue = green + width;
  // A lane sums at most 65,535 values below 256.
  auto sum = hn::Zero(dw);
  std::size_t x = 0;
  for (; x + lanes <= width; x += lanes) {
    const pixel of{load(red + x), load(green + x), load(blue + x)};
    sum = hn::Add(sum, hn::ConvertTo(dw, floor_of_grey(of)));
  }
  if (x < width) {
    alignas(64) std::uint8_t rest[3][16] = {};
    std::memcpy(rest[0], red + x, width - x);
    std::memcpy(rest[1], green + x, width - x);
    std::memcpy(rest[2], blue + x, width - x);
    sum = hn::Add(sum, hn::ConvertTo(dw, floor_of_grey({load(rest[0]), load(rest[1]), load(rest[2])})));
  }
  return static_cast<std::uint64_t>(hn::GetLane(hn::SumOfLanes(dw, sum)));
}

void widen_range(const std::uint8_t* plane, std::size_t width, std::uint8_t* least, std::uint8_t* most) {
  const hn::CappedTag<std::uint8_t, value_range::parts> d;
  const std::size_t lanes = hn::Lanes(d);
  if (width < lanes) {
    for (std::size_t x = 0; x < width; ++x) {
      least[x] = std::min(least[x], plane[x]);
      most[x] = std::max(most[x], plane[x]);
    }
    return;
  }
  // The last vector overlaps the one before: those values are checked twice.
  const auto last = hn::LoadU(d, plane + width - lanes);
  auto low = hn::Min(hn::Load(d, least), last);
  auto high = hn::Max(hn::Load(d, most), last);
  for (std::size_t x = 0; x + lanes <= width; x += lanes) {
    const auto value = hn::LoadU(d, plane + x);
    low = hn::Min(low, value);
    high = hn::Max(high, value);
  }
  hn::Store(low, d, least);
  hn::Store(high, d, most);
}

void scale_line(std::uint8_t* line, std::size_t count, float factor, float part) {
  const floats d;
  const std::size_t lanes = hn::Lanes(d);
  const vector by = hn::Set(d, factor);
  const vector more = hn::Set(d, part);
  const auto at = [&](std::uint8_t* values) HWY_ATTR { store(hn::Add(hn::Mul(load(values), by), more), values); };
  std::size_t x = 0;
  for (; x + lanes <= count; x += lanes) at(line + x);
  if (x == count) return;
  alignas(64) std::uint8_t rest[16] = {};
  std::memcpy(rest, line + x, count - x);
  at(rest);
  std::memcpy(line + x, rest, count - x);
}

void to_floats(const std::uint8_t* from, std::size_t count, float* to) {
  const floats d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t x = 0;
  for (; x + lanes <= count; x += lanes) hn::StoreU(load(from + x), d, to + x);
  for (; x < count; ++x) to[x] = static_cast<float>(from[x]);
}

// `Vectors` of sums at once: enough of them that an addition need not wait for the one before. All is exact, so that fusing changes no bit.
template <std::size_t Vectors>
HWY_INLINE void blur_across_at(const float* from, const float* weights, int radius, std::uint16_t* to) {
  const floats d;
  const words dw;
  const hn::Rebind<std::uint16_t, floats> d16;
  const std::size_t lanes = hn::Lanes(d);
  vector sums[Vectors];
  const vector middle = hn::Set(d, weights[0]);
  for (std::size_t v = 0; v < Vectors; ++v) sums[v] = hn::Mul(hn::LoadU(d, from + v * lanes), middle);
  for (int j = 1; j <= radius; ++j) {
    const vector weight = hn::Set(d, weights[j]);
    for (std::size_t v = 0; v < Vectors; ++v) {
      const float* const at = from + v * lanes;
      sums[v] = hn::MulAdd(hn::Add(hn::LoadU(d, at - j), hn::LoadU(d, at + j)), weight, sums[v]);
    }
  }
  for (std::size_t v = 0; v < Vectors; ++v) {
    const auto sum = hn::Add(hn::ConvertTo(dw, sums[v]), hn::Set(dw, 128));
    hn::StoreU(hn::DemoteTo(d16, hn::ShiftRight<8>(sum)), d16, to + v * lanes);
  }
}

void blur_across(const float* from, std::size_t count, const float* weights, int radius, std::uint16_t* to) {
  const std::size_t lanes = hn::Lanes(floats());
  std::size_t x = 0;
  for (; x + 4 * lanes <= count; x += 4 * lanes) blur_across_at<4>(from + x, weights, radius, to + x);
  // Both have room for one vector behind the last value.
  for (; x < count; x += lanes) blur_across_at<1>(from + x, weights, radius, to + x);
}

template <std::size_t Vectors>
HWY_INLINE void blur_down_at(const std::uint16_t* const* lines, std::size_t at, const std::int32_t* weights, int radius,
                             std::uint8_t* to) {
  const words dw;
  const hn::Rebind<std::uint16_t, words> d16;
  const values d8;
  const std::size_t lanes = hn::Lanes(dw);
  const auto value = [&](int line, std::size_t v)
                         HWY_ATTR { return hn::PromoteTo(dw, hn::LoadU(d16, lines[line] + at + v * lanes)); };
  hn::Vec<words> sums[Vectors];
  const auto middle = hn::Set(dw, weights[0]);
  for (std::size_t v = 0; v < Vectors; ++v) sums[v] = hn::Add(hn::Set(dw, 1 << 22), hn::Mul(value(0, v), middle));
  for (int j = 1; j <= radius; ++j) {
    const auto weight = hn::Set(dw, weights[j]);
    for (std::size_t v = 0; v < Vectors; ++v) {
      sums[v] = hn::Add(sums[v], hn::Mul(hn::Add(value(2 * j - 1, v), value(2 * j, v)), weight));
    }
  }
  for (std::size_t v = 0; v < Vectors; ++v) {
    hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<23>(sums[v])), d8, to + at + v * lanes);
  }
}

void blur_down(const std::uint16_t* const* lines, std::size_t count, const std::int32_t* weights, int radius,
               std::uint8_t* to) {
  const std::size_t lanes = hn::Lanes(words());
  std::size_t x = 0;
  for (; x + 4 * lanes <= count; x += 4 * lanes) blur_down_at<4>(lines, x, weights, radius, to);
  for (; x + lanes <= count; x += lanes) blur_down_at<1>(lines, x, weights, radius, to);
  if (x == count) return;
  alignas(64) std::uint8_t rest[16];
  // Lines have room for a vector behind their last value; `to` has not.
  const std::uint16_t* moved[2 * 64 + 1];
  for (int k = 0; k <= 2 * radius; ++k) moved[k] = lines[k] + x;
  blur_down_at<1>(moved, 0, weights, radius, rest);
  std::memcpy(to + x, rest, count - x);
}

void sharpen_inner(const std::uint8_t* above, const std::uint8_t* middle, const std::uint8_t* below, std::size_t count,
                   float rest, std::uint8_t* to) {
  const floats d;
  const words dw;
  const values d8;
  const std::size_t lanes = hn::Lanes(d);
  const vector part = hn::Set(d, rest);
  const auto one = [&](const std::uint8_t* up, const std::uint8_t* at, const std::uint8_t* down,
                       std::uint8_t* out) HWY_ATTR {
    const auto value = [&](const std::uint8_t* from) HWY_ATTR { return hn::PromoteTo(dw, hn::LoadU(d8, from)); };
    auto sum = hn::Add(value(up), hn::Add(value(up + 1), value(up + 2)));
    sum = hn::Add(sum, hn::Add(value(down), hn::Add(value(down + 1), value(down + 2))));
    sum = hn::Add(sum, hn::Add(value(at), value(at + 2)));
    const auto centre = value(at + 1);
    sum = hn::Add(sum, hn::Add(hn::ShiftLeft<2>(centre), centre));
    // (sum + 6) / 13, rounded down; exact for sums up to 6,553.
    const auto smooth = hn::ShiftRight<16>(hn::Mul(hn::Add(sum, hn::Set(dw, 6)), hn::Set(dw, 5042)));
    const vector own = hn::ConvertTo(d, centre);
    const vector difference = hn::ConvertTo(d, hn::Sub(smooth, centre));
    const vector made = hn::Add(own, hn::Mul(difference, part));
    hn::StoreU(hn::DemoteTo(d8, hn::ConvertTo(dw, made)), d8, out);
  };
  std::size_t x = 0;
  for (; x + lanes <= count; x += lanes) one(above + x, middle + x, below + x, to + x);
  if (x == count) return;
  alignas(64) std::uint8_t lines[3][32] = {};
  alignas(64) std::uint8_t out[16];
  std::memcpy(lines[0], above + x, count - x + 2);
  std::memcpy(lines[1], middle + x, count - x + 2);
  std::memcpy(lines[2], below + x, count - x + 2);
  one(lines[0], lines[1], lines[2], out);
  std::memcpy(to + x, out, count - x);
}

}  // namespace leat::pixels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "stages/pixels/vectors/instruction_sets.hpp"

namespace leat::pixels {

LEAT_KERNEL(scale_line);
LEAT_KERNEL(to_floats);
LEAT_KERNEL(saturate_line);
LEAT_KERNEL(turn_hue_line);
LEAT_KERNEL(grey_line);
LEAT_KERNEL(sum_grey_line);
LEAT_KERNEL(widen_range);
LEAT_KERNEL(blur_across);
LEAT_KERNEL(blur_down);
LEAT_KERNEL(sharpen_inner);

void saturate_line(const plane_line& line, double factor) noexcept {
  LEAT_BEST(saturate_line)
  (line.first, line.width, static_cast<float>(factor), static_cast<float>(1.0 - factor));
}

void turn_hue_line(const plane_line& line, double shift) noexcept {
  LEAT_BEST(turn_hue_line)(line.first, line.width, static_cast<float>(shift * 6));
}

void grey_line(const plane_line& line) noexcept { LEAT_BEST(grey_line)(line.first, line.width); }

void permute_line(const plane_line& line, int order) noexcept {
  constexpr std::array<std::array<std::uint8_t, 3>, 6> orders = {
      {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};
  const auto& from = orders[static_cast<std::size_t>(order)];
  std::array<std::uint8_t, 3> holds = {0, 1, 2};
  for (std::size_t c = 0; c < 2; ++c) {
    const auto where = static_cast<std::size_t>(std::find(holds.begin(), holds.end(), from[c]) - holds.begin());
    if (where == c) continue;
    std::swap_ranges(line.plane(c), line.plane(c) + line.width, line.plane(where));
    std::swap(holds[c], holds[where]);
  }
}

void map_line(const plane_line& line, const table& by) noexcept {
  for (std::size_t c = 0; c < 3; ++c) map_values(line.plane(c), line.width, by.values[c].data(), line.plane(c));
}

std::uint64_t sum_grey_line(const plane_line& line) noexcept {
  return LEAT_BEST(sum_grey_line)(line.first, line.width);
}

// Four parts, so that equal neighbouring values do not wait for one another.
void count_line(const plane_line& line, value_counts* counts) noexcept {
  for (std::size_t c = 0; c < 3; ++c) {
    const std::uint8_t* const plane = line.plane(c);
    auto& first = counts[0][c];
    auto& second = counts[1][c];
    auto& third = counts[2][c];
    auto& fourth = counts[3][c];
    std::size_t x = 0;
    for (; x + 4 <= line.width; x += 4) {
      ++first[plane[x]];
      ++second[plane[x + 1]];
      ++third[plane[x + 2]];
      ++fourth[plane[x + 3]];
    }
    for (; x < line.width; ++x) ++first[plane[x]];
  }
}

void widen_range_line(const plane_line& line, value_range& range) noexcept {
  for (std::size_t c = 0; c < 3; ++c) {
    LEAT_BEST(widen_range)(line.plane(c), line.width, range.least[c].data(), range.most[c].data());
  }
}

void value_range::clear() noexcept {
  for (std::size_t c = 0; c < 3; ++c) {
    least[c].fill(255);
    most[c].fill(0);
  }
}
std::uint8_t value_range::least_of(std::size_t channel) const noexcept {
  return *std::min_element(least[channel].begin(), least[channel].end());
}
std::uint8_t value_range::most_of(std::size_t channel) const noexcept {
  return *std::max_element(most[channel].begin(), most[channel].end());
}

void scale_line(const plane_line& line, float factor, float part) noexcept {
  LEAT_BEST(scale_line)(line.first, line.width * 3, factor, part);
}

void to_floats(const std::uint8_t* from, std::size_t count, float* to) noexcept {
  LEAT_BEST(to_floats)(from, count, to);
}

void blur_across(const float* from, std::size_t count, const float* weights, int radius, std::uint16_t* to) noexcept {
  LEAT_BEST(blur_across)(from, count, weights, radius, to);
}

void blur_down(const std::uint16_t* const* lines, std::size_t count, const std::int32_t* weights, int radius,
               std::uint8_t* to) noexcept {
  LEAT_BEST(blur_down)(lines, count, weights, radius, to);
}

void sharpen_inner(const std::uint8_t* above, const std::uint8_t* middle, const std::uint8_t* below, std::size_t count,
                   double factor, std::uint8_t* to) noexcept {
  LEAT_BEST(sharpen_inner)(above, middle, below, count, static_cast<float>(1.0 - factor), to);
}

}  // namespace leat::pixels
#endif
