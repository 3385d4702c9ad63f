// jpeg_quality: what a picture is after it was a JPEG. Entropy coding loses nothing and is left out; everything else is as
// libjpeg-turbo encodes (4:2:0, the slow integer transform) and decodes (fancy upsampling), bit for bit.
#include "stages/pixels/operations/operation.hpp"

#include <cstring>

namespace leat::pixels {
namespace {

constexpr std::array<std::uint8_t, 64> luma_table = {
    16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
    69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
    81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99};
constexpr std::array<std::uint8_t, 64> chroma_table = {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99,
                                                       24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99, 99, 99, 99, 99,
                                                       99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
                                                       99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99};

// jpeg_set_quality(), with values that a baseline file holds.
std::array<int, 64> quantisation(const std::array<std::uint8_t, 64>& base, int quality) noexcept {
  const int scale = quality < 50 ? 5000 / quality : 200 - quality * 2;
  std::array<int, 64> made{};
  for (std::size_t i = 0; i < 64; ++i) made[i] = std::clamp((base[i] * scale + 50) / 100, 1, 255);
  return made;
}

// jfdctint.c and jidctint.c: Loeffler, Ligtenberg and Moschytz, ICASSP 1989, in integers of 13 binary places.
constexpr int const_bits = 13;
constexpr int pass_bits = 2;
constexpr int f_0_298 = 2446, f_0_390 = 3196, f_0_541 = 4433, f_0_765 = 6270, f_0_899 = 7373, f_1_175 = 9633,
              f_1_501 = 12299, f_1_847 = 15137, f_1_961 = 16069, f_2_053 = 16819, f_2_562 = 20995, f_3_072 = 25172;

inline int descaled(int x, int bits) noexcept { return (x + (1 << (bits - 1))) >> bits; }

// Eight numbers that are `step` apart.
void forward(int* d, int step, bool is_first) noexcept {
  const auto at = [&](int i) -> int& { return d[i * step]; };
  const int t0 = at(0) + at(7), t7 = at(0) - at(7), t1 = at(1) + at(6), t6 = at(1) - at(6);
  const int t2 = at(2) + at(5), t5 = at(2) - at(5), t3 = at(3) + at(4), t4 = at(3) - at(4);
  const int t10 = t0 + t3, t13 = t0 - t3, t11 = t1 + t2, t12 = t1 - t2;
  const int bits = is_first ? const_bits - pass_bits : const_bits + pass_bits;
  at(0) = is_first ? (t10 + t11) * (1 << pass_bits) : descaled(t10 + t11, pass_bits);
  at(4) = is_first ? (t10 - t11) * (1 << pass_bits) : descaled(t10 - t11, pass_bits);
  const int even = (t12 + t13) * f_0_541;
  at(2) = descaled(even + t13 * f_0_765, bits);
  at(6) = descaled(even - t12 * f_1_847, bits);
  const int z5 = (t4 + t6 + t5 + t7) * f_1_175;
  const int z1 = (t4 + t7) * -f_0_899, z2 = (t5 + t6) * -f_2_562;
  const int z3 = (t4 + t6) * -f_1_961 + z5, z4 = (t5 + t7) * -f_0_390 + z5;
  at(7) = descaled(t4 * f_0_298 + z1 + z3, bits);
  at(5) = descaled(t5 * f_2_053 + z2 + z4, bits);
  at(3) = descaled(t6 * f_3_072 + z2 + z3, bits);
  at(1) = descaled(t7 * f_1_501 + z1 + z4, bits);
}

void inverse(int* d, int step, bool is_first) noexcept {
  const auto at = [&](int i) -> int& { return d[i * step]; };
  const int even = (at(2) + at(6)) * f_0_541;
  const int t2 = even - at(6) * f_1_847, t3 = even + at(2) * f_0_765;
  const int t0 = (at(0) + at(4)) * (1 << const_bits), t1 = (at(0) - at(4)) * (1 << const_bits);
  const int t10 = t0 + t3, t13 = t0 - t3, t11 = t1 + t2, t12 = t1 - t2;
  const int a0 = at(7), a1 = at(5), a2 = at(3), a3 = at(1);
  const int z5 = (a0 + a2 + a1 + a3) * f_1_175;
  const int z1 = (a0 + a3) * -f_0_899, z2 = (a1 + a2) * -f_2_562;
  const int z3 = (a0 + a2) * -f_1_961 + z5, z4 = (a1 + a3) * -f_0_390 + z5;
  const int b0 = a0 * f_0_298 + z1 + z3, b1 = a1 * f_2_053 + z2 + z4;
  const int b2 = a2 * f_3_072 + z2 + z3, b3 = a3 * f_1_501 + z1 + z4;
  const int bits = is_first ? const_bits - pass_bits : const_bits + pass_bits + 3;
  at(0) = descaled(t10 + b3, bits);
  at(7) = descaled(t10 - b3, bits);
  at(1) = descaled(t11 + b2, bits);
  at(6) = descaled(t11 - b2, bits);
  at(2) = descaled(t12 + b1, bits);
  at(5) = descaled(t12 - b1, bits);
  at(3) = descaled(t13 + b0, bits);
  at(4) = descaled(t13 - b0, bits);
}

// A block of a plane, there and back.
void code(std::uint8_t* block, std::size_t stride, const std::array<int, 64>& table) noexcept {
  std::array<int, 64> d{};
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < 8; ++x) d[y * 8 + x] = block[y * stride + x] - 128;
  }
  for (int i = 0; i < 8; ++i) forward(d.data() + i * 8, 1, true);
  for (int i = 0; i < 8; ++i) forward(d.data() + i, 8, false);
  for (std::size_t i = 0; i < 64; ++i) {
    // The transform's numbers are 8 times as large.
    const int divisor = table[i] * 8;
    const int size = (std::abs(d[i]) + divisor / 2) / divisor;
    d[i] = (d[i] < 0 ? -size : size) * table[i];
  }
  for (int i = 0; i < 8; ++i) inverse(d.data() + i, 8, true);
  for (int i = 0; i < 8; ++i) inverse(d.data() + i * 8, 1, false);
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < 8; ++x) {
      block[y * stride + x] = static_cast<std::uint8_t>(std::clamp(d[y * 8 + x] + 128, 0, 255));
    }
  }
}

inline int sixteenths(double x) noexcept { return static_cast<int>(x * 65536 + 0.5); }

struct rules {
  using step = transforms::jpeg_quality;
  static constexpr bool in_place = true;

  static void check(const step& what, number_check& to) { to.range("quality", what.quality, 1, 100); }
  static drawn_numbers draw(const step& what, random_draws& draws) {
    const auto more = static_cast<std::uint64_t>(what.quality[1] - what.quality[0]);
    return {what.quality[0] + static_cast<double>(draws.below(more + 1))};
  }

  // Luma in whole pairs of blocks, as MCUs are, and chroma in blocks.
  struct planes_of {
    std::size_t wide, high, half_wide, half_high;
    planes_of(int height, int width) noexcept
        : wide((static_cast<std::size_t>(width) + 15) / 16 * 16),
          high((static_cast<std::size_t>(height) + 15) / 16 * 16),
          half_wide(wide / 2),
          half_high(high / 2) {}
    [[nodiscard]] std::size_t bytes() const noexcept {
      return 3 * wide * high + 2 * half_wide * half_high + 4 * wide * sizeof(int);
    }
  };
  static std::size_t scratch_bytes(const step&, int height, int width) { return planes_of(height, width).bytes(); }

  static void apply(const step&, const operation_run& run) {
    const auto quality = static_cast<int>(run.numbers[0]);
    const int width = run.to.width;
    const int height = run.to.height;
    const planes_of size(height, width);
    auto* const rows = static_cast<int*>(run.scratch);
    auto* const y_plane = reinterpret_cast<std::uint8_t*>(rows + 4 * size.wide);
    std::uint8_t* const full[2] = {y_plane + size.wide * size.high, y_plane + 2 * size.wide * size.high};
    std::uint8_t* const half[2] = {y_plane + 3 * size.wide * size.high,
                                   y_plane + 3 * size.wide * size.high + size.half_wide * size.half_high};
    // jccolor.c, in 16 binary places.
    const int r_y = sixteenths(0.29900), g_y = sixteenths(0.58700), b_y = sixteenths(0.11400);
    const int r_cb = -sixteenths(0.16874), g_cb = -sixteenths(0.33126), half_one = sixteenths(0.5);
    const int g_cr = -sixteenths(0.41869), b_cr = -sixteenths(0.08131);
    constexpr int middle = (128 << 16) + (1 << 15) - 1;
    for (int y = 0; y < height; ++y) {
      const std::uint8_t* const line = run.to.line(y);
      const std::size_t at = static_cast<std::size_t>(y) * size.wide;
      for (std::size_t x = 0; x < size.wide; ++x) {
        const auto from = std::min(x, static_cast<std::size_t>(width) - 1);
        const int r = line[from];
        const int g = line[from + static_cast<std::size_t>(width)];
        const int b = line[from + 2 * static_cast<std::size_t>(width)];
        y_plane[at + x] = static_cast<std::uint8_t>((r_y * r + g_y * g + b_y * b + (1 << 15)) >> 16);
        full[0][at + x] = static_cast<std::uint8_t>((r_cb * r + g_cb * g + half_one * b + middle) >> 16);
        full[1][at + x] = static_cast<std::uint8_t>((half_one * r + g_cr * g + b_cr * b + middle) >> 16);
      }
    }
    const auto line_of = [&](std::uint8_t* plane, int y) { return plane + static_cast<std::size_t>(y) * size.wide; };
    for (int y = height; y < static_cast<int>(size.high); ++y) {
      std::memcpy(line_of(y_plane, y), line_of(y_plane, height - 1), size.wide);
    }
    const int half_height = (height + 1) / 2;
    for (int c = 0; c < 2; ++c) {
      for (int y = 0; y < static_cast<int>(size.half_high); ++y) {
        std::uint8_t* const to = half[c] + static_cast<std::size_t>(y) * size.half_wide;
        if (y >= half_height) {
          std::memcpy(to, to - size.half_wide, size.half_wide);
          continue;
        }
        // jcsample.c, h2v2_downsample(): ties are rounded down and up by turns.
        const std::uint8_t* const upper = line_of(full[c], 2 * y);
        const std::uint8_t* const lower = line_of(full[c], std::min(2 * y + 1, height - 1));
        for (std::size_t x = 0; x < size.half_wide; ++x) {
          const int bias = x % 2 == 0 ? 1 : 2;
          to[x] = static_cast<std::uint8_t>(
              (upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1] + bias) >> 2);
        }
      }
    }
    const std::array<int, 64> of_luma = quantisation(luma_table, quality);
    const std::array<int, 64> of_chroma = quantisation(chroma_table, quality);
    for (std::size_t y = 0; y < size.high; y += 8) {
      for (std::size_t x = 0; x < size.wide; x += 8) code(y_plane + y * size.wide + x, size.wide, of_luma);
    }
    for (std::uint8_t* const plane : half) {
      for (std::size_t y = 0; y < size.half_high; y += 8) {
        for (std::size_t x = 0; x < size.half_wide; x += 8)
          code(plane + y * size.half_wide + x, size.half_wide, of_chroma);
      }
    }
    // What upsampling looks at beyond the picture is as libjpeg has it: the last sample that the file has, again.
    const int half_width = (width + 1) / 2;
    for (int y = 0; y < height; ++y) {
      int* sums[2] = {rows, rows + size.wide};
      int* made[2] = {rows + 2 * size.wide, rows + 3 * size.wide};
      const int near = y / 2;
      const int far = std::clamp(y % 2 == 0 ? near - 1 : near + 1, 0, half_height - 1);
      for (int c = 0; c < 2; ++c) {
        const std::uint8_t* const a = half[c] + static_cast<std::size_t>(near) * size.half_wide;
        const std::uint8_t* const b = half[c] + static_cast<std::size_t>(far) * size.half_wide;
        // Where there are no more than two, libjpeg repeats them.
        if (half_width <= 2) {
          for (int x = 0; x < half_width; ++x) made[c][2 * x] = made[c][2 * x + 1] = a[x];
          continue;
        }
        for (int x = 0; x < half_width; ++x) sums[c][x] = 3 * a[x] + b[x];
        // jdsample.c, h2v2_fancy_upsample(): three quarters of the nearer, in both directions.
        for (int x = 0; x < half_width; ++x) {
          const int left = x == 0 ? 4 * sums[c][x] : 3 * sums[c][x] + sums[c][x - 1];
          const int right = x == half_width - 1 ? 4 * sums[c][x] : 3 * sums[c][x] + sums[c][x + 1];
          made[c][2 * x] = (left + 8) >> 4;
          made[c][2 * x + 1] = (right + 7) >> 4;
        }
      }
      // jdcolor.c
      const int cr_r = sixteenths(1.40200), cb_b = sixteenths(1.77200), cr_g = -sixteenths(0.71414),
                cb_g = -sixteenths(0.34414);
      std::uint8_t* const line = run.to.line(y);
      const std::uint8_t* const luma = line_of(y_plane, y);
      for (int x = 0; x < width; ++x) {
        const int cb = made[0][x] - 128;
        const int cr = made[1][x] - 128;
        const auto value = [&](int v) { return static_cast<std::uint8_t>(std::clamp(v, 0, 255)); };
        line[x] = value(luma[x] + ((cr_r * cr + (1 << 15)) >> 16));
        line[x + width] = value(luma[x] + ((cb_g * cb + cr_g * cr + (1 << 15)) >> 16));
        line[x + 2 * width] = value(luma[x] + ((cb_b * cb + (1 << 15)) >> 16));
      }
    }
  }
  static transform drawn(const step&, const drawn_numbers& n) {
    return step{{static_cast<int>(n[0]), static_cast<int>(n[0])}};
  }
};

}  // namespace

operation jpeg_quality_operation() { return make_operation<rules>(); }

}  // namespace leat::pixels
