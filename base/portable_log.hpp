// A logarithm that is the same number on every machine. (base/portable_math.hpp has another, which differs in the last bits: orders
// have been drawn with this one, and crops with that one, and neither may change.)
#pragma once

#include <bit>
#include <cstdint>

namespace leat {

/// The natural logarithm, of additions, multiplications and divisions alone: the C library's differs from machine to machine, and with
/// it would the order. Within 1e-15 of the value; x > 0 and normal.
[[nodiscard]] inline double portable_log(double x) noexcept {
  auto bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1023} << 52);
  auto mantissa = std::bit_cast<double>(bits);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double t = (mantissa - 1) / (mantissa + 1);  // |t| < 0.172: nine terms of 2 atanh(t)
  const double square = t * t;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return static_cast<double>(exponent) * 0.6931471805599453 + 2 * t * sum;
}

}  // namespace leat
