#include "datasets/model/columns.hpp"

#include "base/half.hpp"

#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstring>
#include <system_error>

namespace leat::datasets {

std::optional<std::int64_t> whole_of(const column_value& value) noexcept {
  if (const std::int64_t* const whole = std::get_if<std::int64_t>(&value)) return *whole;
  const double real = std::get<double>(value);
  constexpr double end = 9223372036854775808.0;  // 2^63
  if (!(real >= -end && real < end) || std::trunc(real) != real) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

double real_of(const column_value& value) noexcept {
  return std::visit([](auto number) { return static_cast<double>(number); }, value);
}

std::string text_of(const column_value& value) {
  return std::visit(
      [](auto number) {
        std::array<char, 32> digits{};
        const auto [end, failure] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
        assert(failure == std::errc{});
        return std::string(digits.data(), end);
      },
      value);
}

void store(const column_value& value, dtype type, std::byte* to) noexcept {
  const auto put = [to](auto number) { std::memcpy(to, &number, sizeof number); };
  switch (type) {
    case dtype::f64:
      return put(real_of(value));
    case dtype::f32:
      return put(static_cast<float>(real_of(value)));
    case dtype::f16:
      return put(f16_bits(static_cast<float>(real_of(value))));
    case dtype::bf16:
      return put(bf16_bits(static_cast<float>(real_of(value))));
    default:
      assert(type == dtype::i64);
      return put(whole_of(value).value_or(0));
  }
}

}  // namespace leat::datasets
