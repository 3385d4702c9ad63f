// Numbers from the normal law N(0, 1), line by line of a box that is erased. Compiled by nvcc for the device, and by the host's compiler as its
// twin. The same bits as pixels/row_writer.cpp draws: doubles, each operation rounded by itself (--fmad=false, -ffp-contract=off).
#pragma once

#include "stages/device/picture_threads.hpp"

#include <Random123/philox.h>

#include <cstdint>
#include <cstring>

namespace leat::stages::picture_threads {

/// base/portable_math.hpp: portable_log(), of a normal number above 0.
LEAT_OF_PICTURES double log_of(double x) {
  std::uint64_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1022;
  bits = (bits & ~(std::uint64_t{0x7FF} << 52)) | std::uint64_t{1022} << 52;
  double m = 0;
  memcpy(&m, &bits, sizeof m);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double sum = 0;
  for (int n = 25; n >= 3; n -= 2) sum = (1.0 / n + sum) * s2;
  const double k = exponent;
  return k * 0x1.62e42fee00000p-1 + (2 * s + (2 * s * sum + k * 0x1.a39ef35793c76p-33));
}

LEAT_OF_PICTURES double root_of(double x) {
#ifdef __CUDA_ARCH__
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

/// Those of one line of one channel, by the polar method.
class line_of_noise {
 public:
  LEAT_OF_PICTURES line_of_noise(const noise_key& of, std::uint32_t channel, std::uint32_t y)
      : key_{{static_cast<std::uint32_t>(of.seed), static_cast<std::uint32_t>(of.seed >> 32)}},
        counter_{{static_cast<std::uint32_t>(of.draw), static_cast<std::uint32_t>(of.draw >> 32) << 16, of.epoch,
                  of.operation}} {
    // base/random.hpp: operation_key() of what stands behind the operation's name.
    const std::uint8_t bytes[] = {'/',
                                  static_cast<std::uint8_t>(channel),
                                  static_cast<std::uint8_t>(y & 0xFF),
                                  static_cast<std::uint8_t>(y >> 8 & 0xFF),
                                  static_cast<std::uint8_t>(y >> 16 & 0xFF),
                                  'y'};
    std::uint32_t hash = of.operation;
    for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 16777619U;
    counter_[3] = hash;
  }

  LEAT_OF_PICTURES float next() {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    for (;;) {
      const double u = side();
      const double v = side();
      const double square = u * u + v * v;
      if (square >= 1 || square == 0) continue;
      const double scale = root_of(-2 * log_of(square) / square);
      second_ = static_cast<float>(v * scale);
      has_second_ = true;
      return static_cast<float>(u * scale);
    }
  }

 private:
  LEAT_OF_PICTURES double side() {
    if (used_ == 4) {
      block_ = r123::Philox4x32{}(counter_, key_);
      ++counter_[1];
      used_ = 0;
    }
    // Chosen among constants: what is numbered at run time would not stay in registers.
    const std::uint32_t bits = used_ == 0 ? block_[0] : used_ == 1 ? block_[1] : used_ == 2 ? block_[2] : block_[3];
    ++used_;
    return (static_cast<double>(bits) + 0.5) * 0x1.0p-31 - 1;
  }

  r123::Philox4x32::key_type key_;
  r123::Philox4x32::ctr_type counter_;
  r123::Philox4x32::ctr_type block_{};
  std::uint32_t used_ = 4;
  float second_ = 0;
  bool has_second_ = false;
};

/// Where a pixel of the box has its number: planes of the box's own lines.
LEAT_OF_PICTURES std::uint32_t noise_at(const erased_part& box, std::uint32_t channel, std::uint32_t x,
                                        std::uint32_t y) {
  const std::uint32_t width = box.right - box.left;
  return ((channel * (box.bottom - box.top)) + y - box.top) * width + x - box.left;
}

/// All numbers of a row's box, if they fit in `room`.
template <class Team>
LEAT_OF_PICTURES void make_noise(Team& team, const picture_program* program, float* to, std::uint32_t room) {
  const erased_part box = program->erased;
  if (box.right <= box.left || box.bottom <= box.top) return;
  const std::uint64_t count = std::uint64_t{3} * (box.bottom - box.top) * (box.right - box.left);
  if (count > room) return;
  const noise_key key = program->noise;
  team.run([=](std::uint32_t thread, std::uint32_t threads) {
    const std::uint32_t lines = box.bottom - box.top;
    for (std::uint32_t i = thread; i < 3 * lines; i += threads) {
      const std::uint32_t channel = i / lines;
      const std::uint32_t y = box.top + i - channel * lines;
      line_of_noise numbers(key, channel, y);
      float* const line = to + noise_at(box, channel, box.left, y);
      for (std::uint32_t x = 0; x < box.right - box.left; ++x) line[x] = numbers.next();
    }
  });
}

}  // namespace leat::stages::picture_threads
