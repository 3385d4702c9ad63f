// Tables of the Hub's arrays, of which Parquet and Arrow have one each: what their columns are.
#pragma once

#include <leat/error.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace leat::testing {

template <class T>
std::vector<T> numbers_of(const dataset& samples, std::uint64_t row, const std::string& field) {
  const std::vector<std::byte> bytes = samples.read(row, field);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// As tests/data/{arrow,parquet}/make.py have them: rows 2 to 4 of `grid` are of another shape, null, and have a null.
inline void expect_tensors(const dataset& samples) {
  ASSERT_EQ(samples.size(), 6U);
  for (const field_info& field : samples.fields()) {
    if (field.name == "cube") {
      EXPECT_TRUE(field.kind == field_kind::tensor && field.type == dtype::u8 && field.samples == 6);
      EXPECT_EQ(field.shape, (dimensions{3, 2, 2}));
    }
    if (field.name == "grid") {
      EXPECT_TRUE(field.kind == field_kind::tensor && field.type == dtype::f32 && field.samples == 3);
      EXPECT_EQ(field.shape, (dimensions{2, 3}));
    }
    if (field.name == "open") EXPECT_EQ(field.kind, field_kind::bytes) << "for a sequence";
  }
  for (std::uint64_t row = 0; row < 6; ++row) {
    const auto i = static_cast<std::uint8_t>(row);
    const auto at = [&](int more) { return static_cast<std::uint8_t>(i + more); };
    EXPECT_EQ(numbers_of<std::uint8_t>(samples, row, "cube"),
              (std::vector<std::uint8_t>{i, at(1), at(2), at(3), at(4), at(5), 250, 251, 0, 0, 0, 255}));
    // Of 16 bits, or of the 32 that Parquet stores.
    const std::size_t open_bytes = samples.read(row, "open").size();
    EXPECT_TRUE(open_bytes == row * 2 * 2 || open_bytes == row * 2 * 4) << row << " " << open_bytes;
    if (row >= 2 && row <= 4) {
      EXPECT_THROW(static_cast<void>(samples.read(row, "grid")), error) << row;
      continue;
    }
    const auto number = static_cast<float>(row);
    EXPECT_EQ(numbers_of<float>(samples, row, "grid"), (std::vector<float>{number * 0.5F, 1, 2, 3, 4, number}));
  }
  using ::testing::AllOf;
  using ::testing::Contains;
  using ::testing::HasSubstr;
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("'grid' has 1 array of another shape than 2 x 3"),
                                              HasSubstr("the first in row 2"))));
  EXPECT_THAT(samples.notes(), Contains(AllOf(HasSubstr("grid"), HasSubstr("1 list with a null in it"))));
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("'open' has arrays of any x 2")));
}

}  // namespace leat::testing
