// Arrays in tests/data whose elements are known from their places: what make.py wrote there.
#pragma once

#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace leat::testing {

inline double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  return exponent == 0 ? 0 : std::ldexp((bits & 1023) + 1024, exponent - 25);
}

// The number that an element of this type is.
inline double number_of(dtype type, const std::byte* at) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case dtype::u8:
    case dtype::boolean:
      return as(std::uint8_t{});
    case dtype::u16:
      return as(std::uint16_t{});
    case dtype::i16:
      return as(std::int16_t{});
    case dtype::u32:
      return as(std::uint32_t{});
    case dtype::u64:
      return static_cast<double>(as(std::uint64_t{}));
    case dtype::i32:
      return as(std::int32_t{});
    case dtype::i64:
      return static_cast<double>(as(std::int64_t{}));
    case dtype::f16:
      return half(as(std::uint16_t{}));
    case dtype::f32:
      return static_cast<double>(as(float{}));
    case dtype::f64:
      return as(double{});
    default:
      ADD_FAILURE() << "an element of another type";
      return 0;
  }
}

// As make.py makes it.
inline double expected_number(dtype type, std::uint64_t place) {
  const std::uint64_t value = place * 3;
  if (type == dtype::boolean) return static_cast<double>(value % 2);
  if (size_bytes(type) == 1) return static_cast<double>(value % 128);
  if (size_bytes(type) == 2) return static_cast<double>(value % 2048);
  return static_cast<double>(value);
}

struct numbered_array {
  std::string name;
  dtype type;
  std::vector<std::int64_t> row_shape;
  std::uint64_t rows_written = ~std::uint64_t{0};
  double fill = 0;
};

inline void expect_numbers(const dataset& samples, const numbered_array& what) {
  SCOPED_TRACE(what.name);
  const std::vector<field_info> fields = samples.fields();
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const field_info& each) { return each.name == what.name; });
  ASSERT_NE(found, fields.end());
  EXPECT_EQ(found->kind, field_kind::tensor);
  EXPECT_EQ(found->type, what.type);
  EXPECT_EQ(found->shape, dimensions(std::span(what.row_shape)));
  const auto elements = static_cast<std::uint64_t>(found->shape.elements());
  // Each sample that is read by itself opens the file anew: the last one, and about a hundred before it.
  const std::uint64_t step = 1 + samples.size() / 100;
  for (std::uint64_t row = (samples.size() - 1) % step; row < samples.size(); row += step) {
    const std::vector<std::byte> bytes = samples.read(row, what.name);
    ASSERT_EQ(bytes.size(), elements * size_bytes(what.type));
    for (std::uint64_t i = 0; i < elements; ++i) {
      const double expected = row < what.rows_written ? expected_number(what.type, row * elements + i) : what.fill;
      ASSERT_EQ(number_of(what.type, bytes.data() + i * size_bytes(what.type)), expected) << "row " << row << ", " << i;
    }
  }
}

inline std::string message_of(errc code, const auto& action) {
  try {
    action();
  } catch (const error& said) {
    EXPECT_EQ(said.code(), code) << said.what();
    return said.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace leat::testing
