#include "stages/pixels/matrix.hpp"

#include "base/portable_math.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

namespace leat::pixels {

warp_matrix followed(const warp_matrix& first, const warp_matrix& second) noexcept {
  warp_matrix made{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      for (std::size_t k = 0; k < 3; ++k) made[3 * row + column] += first[3 * row + k] * second[3 * k + column];
    }
  }
  return made;
}

std::optional<warp_matrix> inverse(const warp_matrix& of) noexcept {
  const auto minor = [&](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    return of[a] * of[d] - of[b] * of[c];
  };
  warp_matrix made = {minor(4, 5, 7, 8),  -minor(1, 2, 7, 8), minor(1, 2, 4, 5),  -minor(3, 5, 6, 8), minor(0, 2, 6, 8),
                      -minor(0, 2, 3, 5), minor(3, 4, 6, 7),  -minor(0, 1, 6, 7), minor(0, 1, 3, 4)};
  const double determinant = of[0] * made[0] + of[1] * made[3] + of[2] * made[6];
  if (!std::isnormal(determinant)) return std::nullopt;
  for (double& each : made) each /= determinant;
  return made;
}

std::array<double, 3> seen_from(const warp_matrix& m, double x, double y) noexcept {
  return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5], m[6] * x + m[7] * y + m[8]};
}

warp_matrix affine_matrix(const affine_motion& of) noexcept {
  const auto [sine, cosine] = portable_sine_and_cosine(of.degrees);
  const double a = cosine + sine * of.tan_y;
  const double c = sine - cosine * of.tan_y;
  const double b = -(a * of.tan_x + sine);
  const double d = cosine - c * of.tan_x;
  const double m[] = {d / of.scale, -b / of.scale, -c / of.scale, a / of.scale};
  const double x = of.center[0] + of.translate[0];
  const double y = of.center[1] + of.translate[1];
  return {m[0], m[1], of.center[0] - m[0] * x - m[1] * y, m[2], m[3], of.center[1] - m[2] * x - m[3] * y, 0, 0, 1};
}

// Eight equations for eight numbers, the ninth being 1: elimination with the largest pivot.
warp_matrix perspective_matrix(const quadrilateral& from, const quadrilateral& to) noexcept {
  constexpr std::size_t unknowns = 8;
  double rows[unknowns][unknowns + 1];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto [x, y] = from[i];
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const double target = to[i][axis];
      double* const row = rows[2 * i + axis];
      for (std::size_t k = 0; k < 6; ++k) row[k] = 0;
      row[3 * axis] = x;
      row[3 * axis + 1] = y;
      row[3 * axis + 2] = 1;
      row[6] = -target * x;
      row[7] = -target * y;
      row[8] = target;
    }
  }
  for (std::size_t at = 0; at < unknowns; ++at) {
    std::size_t pivot = at;
    for (std::size_t i = at + 1; i < unknowns; ++i) {
      if (std::abs(rows[i][at]) > std::abs(rows[pivot][at])) pivot = i;
    }
    if (!(std::abs(rows[pivot][at]) > 1e-9)) return {};
    std::swap(rows[pivot], rows[at]);
    for (std::size_t i = 0; i < unknowns; ++i) {
      if (i == at) continue;
      const double factor = rows[i][at] / rows[at][at];
      for (std::size_t k = at; k <= unknowns; ++k) rows[i][k] -= factor * rows[at][k];
    }
  }
  warp_matrix made{};
  for (std::size_t i = 0; i < unknowns; ++i) made[i] = rows[i][unknowns] / rows[i][i];
  made[unknowns] = 1;
  return made;
}

}  // namespace leat::pixels
