// Numbers in a row, as many as there are, or filled up to one length.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>
#include <leat/loader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::values_of;

// Sample i has i * 5 % 23 numbers, i, i + 1, ...; every seventh sample is damaged where that is asked for.
std::int64_t length_of(std::uint64_t sample) { return static_cast<std::int64_t>(sample * 5 % 23); }

fake_dataset lists(std::uint64_t samples, bool damaged) {
  std::vector<fake_sample> all;
  for (std::uint64_t i = 0; i < samples; ++i) {
    std::string text = i % 2 == 0 ? "[" : "";
    for (std::int64_t k = 0; k < length_of(i); ++k) {
      text += (k == 0 ? "" : i % 3 == 0 ? "," : ", ") + std::to_string(static_cast<std::int64_t>(i) + k);
    }
    if (i % 2 == 0) text += "]";
    if (damaged && i % 7 == 3) text = "[1, x]";
    all.push_back({.members = {{"ids", testing::to_bytes(text)}}, .cls_column = std::nullopt, .defect = ""});
  }
  return fake_dataset(std::move(all));
}

loader_options in_order(corrupt_policy policy) {
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  options.on_corrupt = policy;
  return options;
}

TEST(sequence, rows_of_any_length_lie_side_by_side_and_offsets_count_elements) {
  const testing::watchdog dog("sequences");
  for (const bool damaged : {false, true}) {
    const fake_dataset set = lists(50, damaged);
    loader train(set, in_order(corrupt_policy::skip), sequence("ids").as(dtype::i32));
    std::uint64_t rows = 0;
    for (const batch& got : train.blocking()) {
      EXPECT_EQ(got["ids"].type, dtype::i32);
      const std::vector<std::int32_t> values = values_of<std::int32_t>(got, "ids");
      const std::vector<std::int64_t> offsets = values_of<std::int64_t>(got, "ids.offsets");
      ASSERT_EQ(offsets.size(), got.valid_rows() + 1U);
      ASSERT_EQ(static_cast<std::size_t>(offsets.back()), values.size());
      for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
        const std::uint64_t sample = got.ids()[row];
        ASSERT_EQ(offsets[row + 1] - offsets[row], length_of(sample));
        for (std::int64_t k = 0; k < length_of(sample); ++k) {
          ASSERT_EQ(values[static_cast<std::size_t>(offsets[row] + k)], static_cast<std::int64_t>(sample) + k);
        }
      }
    }
    EXPECT_EQ(rows, damaged ? 43U : 50U);
  }
}

TEST(sequence, rows_are_filled_up_with_their_lengths_and_a_mask_beside_them) {
  const testing::watchdog dog("sequences that are filled up");
  const fake_dataset set = lists(50, true);
  loader train(set, in_order(corrupt_policy::skip),
               sequence("x").from("ids").pad({.multiple = 8, .max = 17, .value = -1}).truncate().mask());
  std::uint64_t rows = 0;
  for (const batch& got : train.blocking()) {
    const auto count = static_cast<std::int64_t>(got.valid_rows());
    ASSERT_EQ(got["x"].shape, (dimensions{count, 24}));
    ASSERT_EQ(got["x.mask"].shape, (dimensions{count, 24}));
    const std::vector<std::int64_t> values = values_of<std::int64_t>(got, "x");
    const std::vector<std::int64_t> lengths = values_of<std::int64_t>(got, "x.length");
    const std::vector<std::uint8_t> mask = values_of<std::uint8_t>(got, "x.mask");
    for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
      const std::uint64_t sample = got.ids()[row];
      ASSERT_EQ(lengths[row], std::min<std::int64_t>(length_of(sample), 17));
      for (std::int64_t k = 0; k < 24; ++k) {
        const std::size_t at = row * 24 + static_cast<std::size_t>(k);
        ASSERT_EQ(values[at], k < lengths[row] ? static_cast<std::int64_t>(sample) + k : -1);
        ASSERT_EQ(mask[at], k < lengths[row] ? 1 : 0);
      }
    }
  }
  EXPECT_EQ(rows, 43U);
}

TEST(sequence, a_row_that_is_longer_and_what_is_no_number_are_corrupt_with_a_reason) {
  const testing::watchdog dog("corrupt sequences");
  const auto reason = [](const std::string& text, const sequence& what) {
    const fake_dataset set({{.members = {{"ids", testing::to_bytes(text)}}, .cls_column = std::nullopt, .defect = ""}});
    try {
      return testing::run_all(set, in_order(corrupt_policy::raise), {what}).message;
    } catch (const error& refused) {
      return std::string(refused.what());
    }
  };
  const sequence ids("ids");
  EXPECT_THAT(reason("[1, 2, 3]", ids.pad({.max = 2})), HasSubstr("has 3 elements, more than 2"));
  EXPECT_THAT(reason("[1, two]", ids), HasSubstr("element 1 is 'two]', no number"));
  EXPECT_THAT(reason("[1, 300]", ids.as(dtype::u8)), HasSubstr("does not fit"));
  EXPECT_THAT(reason("[1.5]", ids), HasSubstr("does not fit"));
  EXPECT_THAT(reason("[1e400]", ids.as(dtype::f64)), HasSubstr("no number"));
  EXPECT_THAT(reason("[1", ids), HasSubstr("a list without an end"));
  EXPECT_THAT(reason("[1] 2", ids), HasSubstr("behind the end"));
  EXPECT_THAT(reason("[[1]]", ids), HasSubstr("no number"));
  EXPECT_THAT(reason("abc", ids.stored(dtype::u16)), HasSubstr("no whole number of u16"));
  EXPECT_THAT(reason("1", ids.mask()), HasSubstr("call pad()"));
  EXPECT_THAT(reason("1", ids.pad({})), HasSubstr("max is the longest row"));
  EXPECT_THAT(reason("1", ids.as(dtype::u8).pad({.max = 4, .value = -1})), HasSubstr("-1 is none of u8"));
  EXPECT_EQ(reason("", ids), "");
  EXPECT_EQ(reason("-0.5 +7, 1e3", ids.as(dtype::f32)), "");
}

TEST(sequence, elements_that_are_stored_are_read_as_they_are_and_lists_in_lines_of_json_by_their_key) {
  const testing::watchdog dog("stored sequences");
  const testing::temporary_directory root;
  const std::string path = (root.path() / "tokens.jsonl").string();
  std::ofstream(path)
      << "{\"ids\": [5, 6, 7], \"text\": \"a\"}\n{\"ids\": [], \"text\": \"bc\"}\n{\"ids\": [70000], \"text\": \"\"}\n";
  loader train(open(path), in_order(corrupt_policy::raise), sequence("ids"),
               sequence("letters").from("text").stored(dtype::u8).as(dtype::i16), text("text"));
  const batch got = *train.next_blocking();
  EXPECT_THAT(values_of<std::int64_t>(got, "ids"), ::testing::ElementsAre(5, 6, 7, 70000));
  EXPECT_THAT(values_of<std::int64_t>(got, "ids.offsets"), ::testing::ElementsAre(0, 3, 3, 4));
  EXPECT_THAT(values_of<std::int16_t>(got, "letters"), ::testing::ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(values_of<std::int64_t>(got, "text.offsets"), ::testing::ElementsAre(0, 1, 3, 3));
}

}  // namespace
}  // namespace leat
