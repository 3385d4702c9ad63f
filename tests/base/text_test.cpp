#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace leat::io {
namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

TEST(text, bytes_take_the_unit_that_fits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1), "1 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(10 * 1024), "10.0 KiB");
  EXPECT_EQ(bytes_text(196'610 * mebibyte), "192 GiB");
  EXPECT_EQ(bytes_text(mebibyte - 1), "1.00 MiB");
}

TEST(text, an_amount_to_give_is_never_less_than_what_is_needed) {
  EXPECT_EQ(bytes_text(0, rounding::up), "0 B");
  EXPECT_EQ(bytes_text(38 * mebibyte, rounding::up), "38.0 MiB");
  EXPECT_EQ(bytes_text(38 * mebibyte + 1, rounding::up), "38.1 MiB");
  EXPECT_EQ(bytes_text(mebibyte - 1, rounding::up), "1.00 MiB");
  EXPECT_EQ(bytes_text(100 * mebibyte - 1, rounding::up), "100 MiB");
  EXPECT_EQ(bytes_text(10 * mebibyte - 1, rounding::up), "10.0 MiB");
  EXPECT_EQ(bytes_text(1023 * mebibyte + 1, rounding::up), "1.00 GiB");
}

}  // namespace
}  // namespace leat::io
