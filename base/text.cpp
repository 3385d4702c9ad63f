#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace leat {
namespace {

std::string written(double value, std::chars_format format, int precision) {
  if (std::isnan(value)) return "nan";
  char digits[400];  // the largest double has 309 before the point
  const std::to_chars_result made = std::to_chars(digits, digits + sizeof digits, value, format, precision);
  return {digits, made.ptr};
}

std::string with_decimals(double value, int decimals, rounding how) {
  if (how == rounding::up) {
    const double step = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    value = std::ceil(value * step) / step;
  }
  return written(value, std::chars_format::fixed, decimals);
}

}  // namespace

namespace detail {

void text_piece::set(std::int64_t value) noexcept {
  text_ = {digits_, std::to_chars(digits_, digits_ + sizeof digits_, value).ptr};
}
void text_piece::set(std::uint64_t value) noexcept {
  text_ = {digits_, std::to_chars(digits_, digits_ + sizeof digits_, value).ptr};
}
void text_piece::set(double value) noexcept {
  if (std::isnan(value)) {
    text_ = "nan";
    return;
  }
  text_ = {digits_, std::to_chars(digits_, digits_ + sizeof digits_, value, std::chars_format::general, 6).ptr};
}

void append(std::string& text, std::initializer_list<std::string_view> pieces) {
  std::size_t bytes = text.size();
  for (const std::string_view each : pieces) bytes += each.size();
  // As push_back() grows it: a text that is put together line by line is not copied for each of them.
  if (bytes > text.capacity()) text.reserve(text.empty() ? bytes : std::max(bytes, 2 * text.capacity()));
  for (const std::string_view each : pieces) text += each;
}

}  // namespace detail

std::string with_decimals(double value, int decimals) { return written(value, std::chars_format::fixed, decimals); }
std::string with_digits(double value, int digits) { return written(value, std::chars_format::general, digits); }

std::string to_right(std::string_view text, std::size_t width) {
  std::string made(width - std::min(width, text.size()), ' ');
  return made += text;
}
std::string to_left(std::string_view text, std::size_t width) {
  std::string made(text);
  made.resize(std::max(width, text.size()), ' ');
  return made;
}

std::string count_text(std::uint64_t count) {
  std::string text = str_cat(count);
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
