// Warps of picture_program.hpp, by a team of threads (picture_work.hpp): each pixel of the new picture is looked up in the old. Compiled by nvcc
// for the device, and by the host's compiler as its twin. The same bits as pixels/warp_kernels.cpp makes: places in integers or in double
// precision, each operation rounded by itself; weights of 14 digits.
#pragma once

#include "stages/device/picture_program.hpp"
#include "stages/device/picture_threads.hpp"

#include <cstdint>

namespace leat::stages::picture_threads {

// Never fused, whatever the flags say.
LEAT_OF_PICTURES double times(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}
LEAT_OF_PICTURES double plus(double a, double b) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, b);
#else
  return a + b;
#endif
}
LEAT_OF_PICTURES double divided(double a, double b) {
#ifdef __CUDA_ARCH__
  return __ddiv_rn(a, b);
#else
  return a / b;
#endif
}
LEAT_OF_PICTURES double floor_of(double value) {
#ifdef __CUDA_ARCH__
  return floor(value);
#else
  return __builtin_floor(value);
#endif
}

inline constexpr std::int32_t warp_weight_one = 1 << 14;

/// Along one axis: the pixel, or of a bilinear warp the first of two, and the weight of the second.
struct warp_place {
  std::int32_t pixel;
  std::int32_t next;
};

/// Modulo 2^64, as the sums of the host are.
LEAT_OF_PICTURES warp_place fixed_place(const std::int64_t* numbers, std::uint32_t x, std::uint32_t y) {
  const std::uint64_t place = static_cast<std::uint64_t>(numbers[0]) * x + static_cast<std::uint64_t>(numbers[1]) * y +
                              static_cast<std::uint64_t>(numbers[2]);
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(place >> 32)),
          static_cast<std::int32_t>(static_cast<std::uint32_t>(place) >> 18)};
}

/// A line of the matrix at the middle of a pixel: what the line begins with, and as many steps.
LEAT_OF_PICTURES double along_line(const double* numbers, std::uint32_t x, double middle) {
  const double first = plus(times(numbers[0], 0.5), plus(times(numbers[1], middle), numbers[2]));
  return plus(first, times(static_cast<double>(x), numbers[0]));
}
/// Far outside where it is not seen, or no number.
LEAT_OF_PICTURES warp_place projected_place(double along, double inverse, bool is_seen, double shift) {
  constexpr double far = 100'000;
  double place = is_seen ? plus(times(along, inverse), -shift) : -far;
  place = place > -far ? place : -far;
  place = place < far ? place : far;
  const double floor = floor_of(place);
  return {static_cast<std::int32_t>(floor),
          static_cast<std::int32_t>(times(plus(place, -floor), static_cast<double>(warp_weight_one)))};
}

LEAT_OF_PICTURES std::int32_t weighed(std::int32_t a, std::int32_t b, std::int32_t next) {
  return a * (warp_weight_one - next) + b * next;
}

/// One pixel. All that is read lies in the picture, whatever the place is.
///   from   u8 [height, width, 3]
LEAT_OF_PICTURES void look_up(const std::uint8_t* from, std::int32_t height, std::int32_t width,
                              const program_warp& how, warp_place across, warp_place down, std::uint8_t* to) {
  const std::int32_t x = across.pixel;
  const std::int32_t y = down.pixel;
  const std::int32_t before = how.bilinear != 0 ? -1 : 0;
  if (x < before || y < before || x >= width || y >= height) {
    LEAT_OF_PICTURES_UNROLLED
    for (std::uint32_t c = 0; c < 3; ++c) to[c] = how.fill[c];
    return;
  }
  const std::uint32_t line = static_cast<std::uint32_t>(width) * 3;
  const std::uint32_t first = static_cast<std::uint32_t>(y) * line + static_cast<std::uint32_t>(x) * 3;
  if (how.bilinear == 0) {
    LEAT_OF_PICTURES_UNROLLED
    for (std::uint32_t c = 0; c < 3; ++c) to[c] = from[first + c];
    return;
  }
  const bool has_left = x >= 0;
  const bool has_right = x + 1 < width;
  const bool has_upper = y >= 0;
  const bool has_lower = y + 1 < height;
  LEAT_OF_PICTURES_UNROLLED
  for (std::uint32_t c = 0; c < 3; ++c) {
    const std::uint32_t at = first + c;
    const std::int32_t fill = how.fill[c];
    const std::int32_t upper =
        weighed(has_left && has_upper ? from[at] : fill, has_right && has_upper ? from[at + 3] : fill, across.next);
    const std::int32_t lower = weighed(has_left && has_lower ? from[at + line] : fill,
                                       has_right && has_lower ? from[at + line + 3] : fill, across.next);
    to[c] = static_cast<std::uint8_t>((weighed((upper + 64) >> 7, (lower + 64) >> 7, down.next) + (1 << 20)) >> 21);
  }
}

/// All pixels.
///   to   as `from`, and no part of it
template <class Team>
LEAT_OF_PICTURES void look_up_pixels(Team& team, const std::uint8_t* from, std::uint32_t height, std::uint32_t width,
                                     const program_warp* how, std::uint8_t* to) {
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    const std::uint32_t pixels = height * width;
    // A copy: for all that a compiler knows, bytes that are written might be these.
    const program_warp numbers = *how;
    const auto put = [&](std::uint32_t i, warp_place across, warp_place down) {
      look_up(from, static_cast<std::int32_t>(height), static_cast<std::int32_t>(width), numbers, across, down,
              to + std::uint64_t{i} * 3);
    };
    if (numbers.is_affine != 0) {
      for (std::uint32_t i = thread; i < pixels; i += threads) {
        const std::uint32_t y = i / width;
        const std::uint32_t x = i - y * width;
        put(i, fixed_place(numbers.fixed, x, y), fixed_place(numbers.fixed + 3, x, y));
      }
      return;
    }
    const double shift = numbers.bilinear != 0 ? 0.5 : 0.0;
    for (std::uint32_t i = thread; i < pixels; i += threads) {
      const std::uint32_t y = i / width;
      const std::uint32_t x = i - y * width;
      const double middle = static_cast<double>(y) + 0.5;
      const double divisor = along_line(numbers.matrix + 6, x, middle);
      const bool is_seen = divisor > 0;
      const double inverse = divided(1.0, is_seen ? divisor : 1.0);
      put(i, projected_place(along_line(numbers.matrix, x, middle), inverse, is_seen, shift),
          projected_place(along_line(numbers.matrix + 3, x, middle), inverse, is_seen, shift));
    }
  });
  team.barrier();
}

}  // namespace leat::stages::picture_threads
