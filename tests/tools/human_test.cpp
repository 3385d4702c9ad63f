#include "tools/human.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace leat::tools {
namespace {

TEST(human, counts_have_commas_at_the_thousands) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(~std::uint64_t{0}), "18,446,744,073,709,551,615");
}

TEST(human, one_is_not_many) {
  EXPECT_EQ(counted(1, "sample", "samples"), "1 sample");
  EXPECT_EQ(counted(0, "sample", "samples"), "0 samples");
  EXPECT_EQ(counted(2000, "sample", "samples"), "2,000 samples");
}

TEST(human, bytes_have_three_digits_and_never_reach_the_next_unit) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.00 KiB");
  EXPECT_EQ(bytes_text(117 * 1024), "117 KiB");
  EXPECT_EQ(bytes_text((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(bytes_text(std::uint64_t{512} << 20), "512 MiB");
  EXPECT_EQ(bytes_text(std::uint64_t{5} << 40), "5.00 TiB");
}

TEST(human, durations_take_the_unit_that_fits) {
  EXPECT_EQ(seconds_text(0.0000123), "12.3 us");
  EXPECT_EQ(seconds_text(0.0412), "41.2 ms");
  EXPECT_EQ(seconds_text(0.99999), "1.00 s");
  EXPECT_EQ(seconds_text(1.84), "1.84 s");
  EXPECT_EQ(seconds_text(99.99), "1 min 40 s");
  EXPECT_EQ(seconds_text(192), "3 min 12 s");
  EXPECT_EQ(seconds_text(7500), "2 h 05 min");
  EXPECT_EQ(seconds_text(-1), "-");
}

TEST(human, clocks_count_up_to_the_next_second) {
  EXPECT_EQ(clock_text(0), "0:00");
  EXPECT_EQ(clock_text(3.2), "0:04");
  EXPECT_EQ(clock_text(751), "12:31");
  EXPECT_EQ(clock_text(3729), "1:02:09");
  EXPECT_EQ(clock_text(-1), "-:--");
}

TEST(human, sizes_are_read_as_people_write_them) {
  EXPECT_EQ(parse_bytes("512MiB"), std::uint64_t{512} << 20);
  EXPECT_EQ(parse_bytes("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_bytes("1.5 GiB"), std::uint64_t{3} << 29);
  EXPECT_EQ(parse_bytes("64K"), std::uint64_t{64} << 10);
  EXPECT_EQ(parse_bytes("64kib"), std::uint64_t{64} << 10);
  EXPECT_EQ(parse_bytes("100MB"), std::uint64_t{100'000'000});
  EXPECT_EQ(parse_bytes("4096"), std::uint64_t{4096});
  EXPECT_EQ(parse_bytes("4096B"), std::uint64_t{4096});
  EXPECT_EQ(parse_bytes("9007199254740993"), std::uint64_t{9007199254740993});
}

TEST(human, what_is_no_size_is_refused) {
  for (const char* text : {"", "MiB", "12XB", "1.2.3K", "-5", "5 MiBs", "99999999999PiB", "1e3", "0x10", "512 M i B"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(human, a_line_stays_one_line_whatever_a_file_is_called) {
  EXPECT_EQ(one_line("a\nb\tc\x1b[31md"), "a\\nb\\tc\\x1b[31md");
  EXPECT_EQ(one_line("größe"), "größe");
}

TEST(human, columns_are_characters_without_colours) {
  EXPECT_EQ(columns_of("größe"), 5U);
  EXPECT_EQ(columns_of("\x1b[1mab\x1b[0m"), 2U);
  EXPECT_EQ(columns_of("██▌"), 3U);
}

}  // namespace
}  // namespace leat::tools
