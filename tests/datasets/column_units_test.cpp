#include "datasets/tables/column_units.hpp"

#include "tests/support/failures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat::datasets {
namespace {

using ::testing::HasSubstr;

TEST(column_units, are_one_for_each_column_of_all_files) {
  const units_of_file first = {{"taken", "microseconds since 1970-01-01"}, {"day", "days since 1970-01-01"}};
  const units_of_file utc = {{"taken", "microseconds since 1970-01-01 UTC"}};
  const units_of_file other = {{"taken", "milliseconds since 1970-01-01 UTC"}};
  column_units all;
  all.add("a.parquet", first);
  all.add("b.parquet", utc);  // the same numbers, whether it is said of them or not
  const std::string told = testing::message_of(errc::unsupported, [&] { all.add("c.parquet", other); });
  EXPECT_THAT(told,
              HasSubstr("c.parquet: the column 'taken' is in milliseconds since 1970-01-01 UTC, and in a.parquet in "
                        "microseconds since 1970-01-01"));
}

}  // namespace
}  // namespace leat::datasets
