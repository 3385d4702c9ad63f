// exp, log, sine and cosine that give the same bits on every machine. The C library's differ in the last one between versions and
// between processors (glibc picks an FMA variant at run time), and a crop drawn from them would differ with them.
// Only operations that IEEE 754 defines exactly are used: + - * / and scaling by powers of two.
#pragma once

#include <cassert>
#include <cmath>

namespace leat::pixels {

/// e^x for |x| < 700, within 2 units in the last place.
[[nodiscard]] inline double portable_exp(double x) noexcept {
  assert(x > -700 && x < 700);
  // ln 2 in two parts; the first has 21 zero bits at its end, so that its product with k is exact.
  constexpr double ln2_high = 0x1.62e42fee00000p-1;
  constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  const double k = std::nearbyint(x / 0x1.62e42fefa39efp-1);
  const double r = (x - k * ln2_high) - k * ln2_low;  // |r| <= 0.35
  double sum = 1;
  for (int n = 16; n >= 1; --n) sum = 1 + r / n * sum;  // 0.35^17 / 17! < 2^-73
  return std::ldexp(sum, static_cast<int>(k));
}

/// The natural logarithm of a positive, normal x, within 2 units in the last place (absolute 2^-52 near 1).
[[nodiscard]] inline double portable_log(double x) noexcept {
  assert(x > 0 && std::isfinite(x));
  constexpr double ln2_high = 0x1.62e42fee00000p-1;
  constexpr double ln2_low = 0x1.a39ef35793c76p-33;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) {  // sqrt(1/2)
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1);  // |s| <= 0.172, log m = 2 artanh s
  const double s2 = s * s;
  double sum = 0;
  for (int n = 25; n >= 3; n -= 2) sum = (1.0 / n + sum) * s2;  // 0.172^27 < 2^-68
  const double k = exponent;
  return k * ln2_high + (2 * s + (2 * s * sum + k * ln2_low));
}

struct sine_and_cosine {
  double sine = 0;
  double cosine = 0;
};

/// Of an angle in degrees, within 2^-51; of multiples of 90 exact.
[[nodiscard]] inline sine_and_cosine portable_sine_and_cosine(double degrees) noexcept {
  assert(std::isfinite(degrees));
  constexpr double radians_of_degree = 0x1.1df46a2529d39p-6;
  const double turned = std::fmod(degrees, 360.0);                  // exact
  const double quarters = std::nearbyint(turned / 90.0);            // -4..4
  const double x = (turned - quarters * 90.0) * radians_of_degree;  // at most an eighth of a turn
  const double x2 = x * x;
  double sine = 0;                                                           // of what stands behind x
  for (int n = 19; n >= 3; n -= 2) sine = -(1 + sine) * x2 / (n * (n - 1));  // 0.79^21 / 21! < 2^-72
  double cosine = 0;
  for (int n = 20; n >= 2; n -= 2) cosine = -(1 + cosine) * x2 / (n * (n - 1));
  const double s = x + x * sine;
  const double c = 1 + cosine;
  switch ((static_cast<int>(quarters) + 4) % 4) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

}  // namespace leat::pixels
