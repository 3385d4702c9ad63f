#include "stages/pixels/operations/normal_numbers.hpp"

#include "base/portable_math.hpp"

#include <cmath>

namespace leat::pixels {
namespace {

template <std::size_t Count>
double polynomial(const std::array<double, Count>& of, double x) noexcept {
  double sum = 0;
  for (const double each : of) sum = sum * x + each;
  return sum;
}

// Where the normal law's distribution has `tail` above it, 2^-17 <= tail <= 1/2.
//   source   Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37, 1988: PPND16,
//            without what it has for tails below e^-25
double quantile_above(double tail) noexcept {
  constexpr std::array a = {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
                            4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
                            1.3314166789178437745e+2, 3.3871328727963666080e+0};
  constexpr std::array b = {
      5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
      5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0};
  constexpr std::array c = {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
                            1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
                            4.63033784615654529590e+0, 1.42343711074968357734e+0};
  constexpr std::array d = {
      1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
      6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0};
  const double q = 0.5 - tail;
  if (q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  const double r = std::sqrt(-portable_log(tail)) - 1.6;
  return polynomial(c, r) / polynomial(d, r);
}

}  // namespace

normal_numbers::normal_numbers() noexcept {
  for (std::size_t i = 0; i < half_.size(); ++i) {
    half_[i] = static_cast<float>(quantile_above((static_cast<double>(half_.size() - i) - 0.5) * 0x1.0p-16));
  }
}

const normal_numbers& normal_numbers::get() noexcept {
  static const normal_numbers made;
  return made;
}

}  // namespace leat::pixels
