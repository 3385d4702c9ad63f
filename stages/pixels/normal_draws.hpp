// Numbers of the normal law that are the same on every machine.
#pragma once

#include "base/portable_math.hpp"
#include "base/random.hpp"

#include <cmath>

namespace leat::pixels {

/// Numbers from N(0, 1), by the polar method: the logarithm and the root are the same everywhere.
class normal_draws {
 public:
  explicit normal_draws(random_draws draws) noexcept : draws_(draws) {}

  float next() noexcept {
    if (has_second_) {
      has_second_ = false;
      return second_;
    }
    for (;;) {
      const double u = side();
      const double v = side();
      const double square = u * u + v * v;
      if (square >= 1 || square == 0) continue;
      const double scale = std::sqrt(-2 * portable_log(square) / square);
      second_ = static_cast<float>(v * scale);
      has_second_ = true;
      return static_cast<float>(u * scale);
    }
  }

  /// Where the sequence goes on.
  [[nodiscard]] const random_draws& rest() const noexcept { return draws_; }

 private:
  // Uniform in (-1, 1), 32 bits.
  double side() noexcept { return (static_cast<double>(draws_.bits()) + 0.5) * 0x1.0p-31 - 1; }

  random_draws draws_;
  float second_ = 0;
  bool has_second_ = false;
};

}  // namespace leat::pixels
