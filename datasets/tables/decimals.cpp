#include "datasets/tables/decimals.hpp"

#include "base/numbers.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace leat::datasets {
namespace {

__extension__ using bits_of_decimal = unsigned __int128;

// The powers that a double holds as they are: a division of such numbers is rounded once.
constexpr int exact_power_max = 22;
constexpr std::int64_t exact_whole_max = std::int64_t{1} << 53;

constexpr std::array<double, exact_power_max + 1> powers = [] {
  std::array<double, exact_power_max + 1> all{};
  double power = 1;
  for (double& each : all) {
    each = power;
    power *= 10;
  }
  return all;
}();

std::string text_of(unscaled_decimal unscaled, int scale) {
  auto left = static_cast<bits_of_decimal>(unscaled);
  if (unscaled < 0) left = ~left + 1;
  std::string text;
  do {
    text += static_cast<char>('0' + static_cast<int>(left % 10));
    left /= 10;
  } while (left != 0);
  if (unscaled < 0) text += '-';
  std::reverse(text.begin(), text.end());
  return text + "e" + std::to_string(-std::int64_t{scale});
}

}  // namespace

unscaled_decimal unscaled_of_big_endian(std::span<const std::byte> bytes) noexcept {
  bits_of_decimal bits = !bytes.empty() && (bytes.front() & std::byte{0x80}) != std::byte{} ? ~bits_of_decimal{0} : 0;
  for (const std::byte each : bytes) bits = bits << 8 | std::to_integer<unsigned>(each);
  return static_cast<unscaled_decimal>(bits);
}

unscaled_decimal unscaled_of_little_endian(std::span<const std::byte> bytes) noexcept {
  bits_of_decimal bits = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{} ? ~bits_of_decimal{0} : 0;
  for (std::size_t i = bytes.size(); i > 0; --i) bits = bits << 8 | std::to_integer<unsigned>(bytes[i - 1]);
  return static_cast<unscaled_decimal>(bits);
}

double real_of_decimal(unscaled_decimal unscaled, int scale) {
  const bool is_exact = unscaled >= -exact_whole_max && unscaled <= exact_whole_max;
  if (is_exact && scale >= 0 && scale <= exact_power_max) {
    return static_cast<double>(static_cast<std::int64_t>(unscaled)) / powers[static_cast<std::size_t>(scale)];
  }
  // A number that is out of range is infinite, or zero: what it is next to.
  return parse_real(text_of(unscaled, scale)).value_or(0);
}

}  // namespace leat::datasets
