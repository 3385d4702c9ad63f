#include "base/text.hpp"

#include <cmath>
#include <cstdio>

namespace leat {
namespace {

std::string with_decimals(double value, int decimals, rounding how) {
  if (how == rounding::up) {
    const double step = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    value = std::ceil(value * step) / step;
  }
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.*f", decimals, value);
  return digits;
}

}  // namespace

std::string count_text(std::uint64_t count) {
  std::string text = absl::StrCat(count);
  for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, 1, ',');
  return text;
}

std::string three_digits(double value, rounding how) {
  // 9.996 would be written 10.00.
  const double slack = how == rounding::up ? 0 : 0.5;
  if (value <= 9.99 || value < 9.99 + slack * 0.01) return with_decimals(value, 2, how);
  if (value <= 99.9 || value < 99.9 + slack * 0.1) return with_decimals(value, 1, how);
  return with_decimals(value, 0, how);
}

std::string scaled(double value, double base, std::span<const char* const> units, rounding how) {
  std::size_t unit = 0;
  // 999.6 would be written 1000: the next unit then.
  const double most = base == 1000 ? 999 : 1023;
  const double slack = how == rounding::up ? 0 : 0.5;
  while (unit + 1 < units.size() && (slack == 0 ? value > most : value >= most + slack)) {
    value /= base;
    ++unit;
  }
  return str_cat(unit == 0 ? with_decimals(value, 0, how) : three_digits(value, how), " ", units[unit]);
}

std::string bytes_text(std::uint64_t bytes, rounding how) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return scaled(static_cast<double>(bytes), 1024, units, how);
}

}  // namespace leat
