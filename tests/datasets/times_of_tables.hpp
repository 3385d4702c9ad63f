// Tables of dates, times and decimals, of which Parquet and Arrow have one each: what their columns are.
#pragma once

#include "tests/datasets/numbered_arrays.hpp"

#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

/// As tests/data/{arrow,parquet}/make.py have them. Row 4 is null.
///   second_is, seconds   what the column of seconds is in, and how many of it a second has
inline void expect_times(const dataset& samples, const std::string& second_is, std::int64_t seconds) {
  const std::vector<std::pair<std::string, std::function<std::int64_t(std::int64_t)>>> whole = {
      {"day", [](std::int64_t i) { return i * 100 - 150; }},
      {"clock", [](std::int64_t i) { return i * 3'600'500; }},
      {"tick", [](std::int64_t i) { return i * 3'600'000'007; }},
      {"second", [=](std::int64_t i) { return (i * 86'401 - 200'000) * seconds; }},
      {"milli", [](std::int64_t i) { return i * 86'400'001 - 200'000'000; }},
      {"micro", [](std::int64_t i) { return i * 1'000'003 - 2'000'000; }},
      {"nano", [](std::int64_t i) { return i * 1'000'000'007 - 2'000'000'000; }},
      {"took", [](std::int64_t i) { return i * 1500; }},
      {"count", [](std::int64_t i) { return i * 1'000'000'000'000'000 - 1'000'000'000'000'000; }}};
  const std::vector<std::pair<std::string, std::vector<double>>> reals = {
      {"rate", {-2, -1.3, -0.6, 0.1, 0, 1.5}},
      {"price", {-1000000000, -0.01, 999999999.98, 1999999999.97, 0, 3999999999.95}},
      // Next to the decimal, as Python says of float(Decimal(...)).
      {"long",
       {33333333333333333333333333.3333333333, -33333333333333333333333333.3333333334,
        33333333333333333333333333.3333333335, -33333333333333333333333333.3333333336, 0,
        -33333333333333333333333333.3333333338}}};
  for (std::uint64_t row = 0; row < 6; ++row) {
    for (const auto& [name, value] : whole) {
      const auto expected = row == 4 ? std::nullopt : std::optional(value(static_cast<std::int64_t>(row)));
      EXPECT_EQ(samples.column(row, name), expected) << name << " " << row;
    }
    for (const auto& [name, values] : reals) {
      const std::optional<double> found = samples.number(row, name);
      ASSERT_TRUE(found);
      EXPECT_TRUE(row == 4 ? std::isnan(*found) : *found == values[row]) << name << " " << row << " " << *found;
    }
  }
  const std::vector<field_info> fields = samples.fields();
  for (const field_info& each : fields) {
    const auto real = std::find_if(reals.begin(), reals.end(), [&](const auto& one) { return one.first == each.name; });
    if (real != reals.end()) EXPECT_EQ(each.type, dtype::f64) << each.name;
  }
  for (const char* said :
       {"'day' is in days since 1970-01-01", "'clock' is in milliseconds since midnight",
        "'tick' is in microseconds since midnight", "'milli' is in milliseconds since 1970-01-01 UTC",
        "'micro' is in microseconds since 1970-01-01 UTC", "'nano' is in nanoseconds since 1970-01-01",
        "'days' is in days since 1970-01-01"}) {
    EXPECT_THAT(samples.notes(), ::testing::Contains(::testing::HasSubstr(said)));
  }
  EXPECT_THAT(samples.notes(), ::testing::Contains(::testing::HasSubstr("'second' is in " + second_is)));
  const std::vector<std::byte> days = samples.read(3, "days");
  ASSERT_EQ(days.size(), 8U);
  EXPECT_EQ(number_of(dtype::i32, days.data() + 4), -3);
}

inline const std::vector<std::string> names_of_times = {"day",  "clock", "tick", "second", "milli", "micro",
                                                        "nano", "took",  "rate", "price",  "long",  "count"};

}  // namespace leat::testing
