// Which fields are made of which members: what can be made in no sample is refused when the loader is built.
#include "base/half.hpp"
#include "base/text.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/golden_pictures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tokens.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;

/// Rows of this shape, whose bytes are these.
dataset rows_of(dtype type, const dimensions& row, std::vector<std::byte> bytes) {
  const auto samples = static_cast<std::int64_t>(bytes.size() / size_bytes(type)) / row.elements();
  const auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  dimensions shape = {samples};
  for (const std::int64_t extent : row) shape.push_back(extent);
  return from_tensors({{"y", {type, shape, dense_strides(shape), owner->data(), host}}}, owner);
}

template <class Number>
dataset rows_of(dtype type, std::int64_t row, const std::vector<Number>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(Number));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return rows_of(type, dimensions{row}, std::move(bytes));
}

template <class Number>
std::vector<Number> labels_of(const dataset& samples, const label& how) {
  loader train(samples, testing::one_epoch_in_order(), how);
  std::vector<Number> all;
  for (const batch& each : train.blocking()) {
    const std::vector<Number> some = testing::values_of<Number>(each, "y");
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// As Keras' CIFAR and MedMNIST have it: digits among them are numbers, too.
TEST(member_kinds, one_element_of_a_number_type_is_that_number) {
  const testing::watchdog dog("labels of arrays");
  std::vector<std::uint8_t> bytes(100);
  std::vector<std::int64_t> counted(100);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i);
    counted[i] = static_cast<std::int64_t>(i);
  }
  EXPECT_EQ(labels_of<std::int64_t>(rows_of(dtype::u8, 1, bytes), label("y")), counted);
  EXPECT_EQ(labels_of<std::int64_t>(rows_of(dtype::i8, 1, std::vector<std::int8_t>{-1, 49}), label("y")),
            (std::vector<std::int64_t>{-1, 49}));
  EXPECT_EQ(labels_of<std::int64_t>(rows_of(dtype::u16, 1, std::vector<std::uint16_t>{65535}), label("y")),
            std::vector<std::int64_t>{65535});
  EXPECT_EQ(labels_of<std::int32_t>(rows_of(dtype::i32, 1, std::vector<std::int32_t>{-7}), label("y").as(dtype::i32)),
            std::vector<std::int32_t>{-7});
  EXPECT_EQ(labels_of<std::int64_t>(rows_of(dtype::i64, 1, std::vector<std::int64_t>{1LL << 40}), label("y")),
            std::vector<std::int64_t>{1LL << 40});
  EXPECT_EQ(labels_of<std::int64_t>(rows_of(dtype::boolean, 1, std::vector<std::uint8_t>{0, 1}), label("y")),
            (std::vector<std::int64_t>{0, 1}));
  // Floats stay floats.
  EXPECT_EQ(labels_of<float>(rows_of(dtype::f32, 1, std::vector<float>{0.5F}), label("y")), std::vector<float>{0.5F});
  EXPECT_EQ(labels_of<double>(rows_of(dtype::f64, 1, std::vector<double>{0.1}), label("y")), std::vector<double>{0.1});
  EXPECT_EQ(labels_of<float>(rows_of(dtype::f16, 1, std::vector<std::uint16_t>{f16_bits(1.5F)}), label("y")),
            std::vector<float>{1.5F});
  EXPECT_EQ(labels_of<float>(rows_of(dtype::u8, 1, std::vector<std::uint8_t>{48}), label("y").as(dtype::f32)),
            std::vector<float>{48});
  EXPECT_EQ(
      labels_of<std::int64_t>(rows_of(dtype::u8, 3, std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}), label("y").vector(3)),
      (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(member_kinds, a_number_that_does_not_fit_is_of_its_sample) {
  const testing::watchdog dog("labels that do not fit");
  loader_options options = testing::one_epoch_in_order();
  options.on_corrupt = corrupt_policy::skip;
  loader train(rows_of(dtype::i32, 1, std::vector<std::int32_t>{1, 300, 3}), options, label("y").as(dtype::u8));
  const std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  EXPECT_EQ(testing::values_of<std::uint8_t>(*got, "y"), (std::vector<std::uint8_t>{1, 3}));
}

/// A member, and what each field makes of it.
struct member_row {
  std::string name;
  dataset samples;
  std::string member;
  bool picture, number, words, raw, array, sequence;
};

TEST(member_kinds, each_field_takes_the_kinds_that_it_can_read_and_refuses_the_others) {
  const testing::watchdog dog("fields and kinds of members");
  const testing::temporary_directory root;
  const testing::fake_dataset fakes(testing::make_samples(1, 9));
  const std::string tokens_file = testing::write_file(root.path() / "t.bin", std::string("\1\2\3\4\5\6\7\3", 8));
  const dataset tokens_of = open_tokens(tokens_file, {.type = dtype::u16});
  const std::vector<std::byte> png = testing::from_hex(testing::golden_png);
  // The first one is none: the next ones say what they are.
  const dataset pictures_called_text =
      from_function(9, [&](std::uint64_t sample) { return sample == 0 ? testing::to_bytes("no picture") : png; },
                    {.field = "caption", .bytes_max = std::max<std::uint64_t>(png.size(), 16)});
  const std::vector<member_row> rows = {
      {"a picture", fakes, "jpg", true, false, false, true, false, false},
      {"a number as text", fakes, "cls", false, true, true, true, false, true},
      {"a text", fakes, "txt", false, true, true, true, false, true},
      {"a PNG that is called a text", pictures_called_text, "caption", true, true, true, true, false, true},
      {"bytes", fakes, "json", true, true, true, true, false, true},
      {"one u8 a row", rows_of(dtype::u8, 1, std::vector<std::uint8_t>(4)), "y", false, true, true, true, true, true},
      {"three u8 a row", rows_of(dtype::u8, 3, std::vector<std::uint8_t>(6)), "y", false, false, true, true, true,
       true},
      {"a PNG of one length a row", rows_of(dtype::u8, static_cast<std::int64_t>(png.size()), png), "y", true, false,
       true, true, true, true},
      {"u8 of height and width", rows_of(dtype::u8, {8, 9}, std::vector<std::byte>(144)), "y", true, false, true, true,
       true, true},
      {"f32 of planes", rows_of(dtype::f32, {3, 8, 9}, std::vector<std::byte>(864)), "y", true, false, false, true,
       true, true},
      {"u16 of height and width", rows_of(dtype::u16, {8, 9}, std::vector<std::byte>(144)), "y", false, false, false,
       true, true, true},
      {"i64 of height and width", rows_of(dtype::i64, {8, 9}, std::vector<std::byte>(576)), "y", false, false, false,
       true, true, true},
      {"two channels of u8", rows_of(dtype::u8, {8, 9, 2}, std::vector<std::byte>(144)), "y", false, false, true, true,
       true, true},
      {"one f32 a row", rows_of(dtype::f32, 1, std::vector<float>(4)), "y", false, true, false, true, true, true},
      {"two i64 a row", rows_of(dtype::i64, 2, std::vector<std::int64_t>(4)), "y", false, false, false, true, true,
       true},
      {"tokens", tokens_of, "tokens", false, false, false, true, false, true},
  };
  for (const member_row& row : rows) {
    const std::pair<field, bool> all[] = {{image("out").from(row.member).resize(8).center_crop(8), row.picture},
                                          {label("out").from(row.member), row.number},
                                          {text("out").from(row.member), row.words},
                                          {bytes("out").from(row.member), row.raw},
                                          {array("out").from(row.member), row.array},
                                          {sequence("out").from(row.member), row.sequence}};
    const char* const names[] = {"image", "label", "text", "bytes", "array", "sequence"};
    for (std::size_t i = 0; i < std::size(all); ++i) {
      SCOPED_TRACE(str_cat(names[i], " of ", row.name));
      bool is_built = true;
      try {
        loader train(row.samples, testing::one_epoch_in_order(), all[i].first);
      } catch (const error& refused) {
        is_built = false;
        EXPECT_EQ(refused.code(), errc::usage) << refused.what();
        EXPECT_THAT(refused.what(), AllOf(HasSubstr(row.member), HasSubstr("leat::")));
      }
      EXPECT_EQ(is_built, all[i].second);
    }
  }
}

TEST(member_kinds, what_a_picture_is_asked_of_is_told_with_the_member_and_what_it_is) {
  const testing::watchdog dog("pictures of texts");
  const testing::temporary_directory root;
  const auto refused = [](const dataset& samples, const char* member) {
    return testing::message_of(errc::usage, [&] {
      loader train(samples, testing::one_epoch_in_order(), image("out").from(member).resize(8).center_crop(8));
    });
  };
  const dataset table =
      open_jsonl(testing::write_file(root.path() / "t.jsonl", R"({"words": "a cat", "score": 1.5, "ids": [1, 2]})"
                                                              "\n"
                                                              R"({"words": "a dog", "score": 2, "ids": []})"
                                                              "\n"));
  EXPECT_THAT(refused(table, "words"), HasSubstr("field 'out': the member 'words' holds texts; leat::text reads them"));
  EXPECT_THAT(refused(table, "score"), HasSubstr("the member 'score' holds numbers; leat::label reads them"));
  const testing::fake_dataset fakes(testing::make_samples(1, 9));
  EXPECT_THAT(refused(fakes, "txt"), HasSubstr("the member 'txt' holds texts"));
  // No sample says otherwise.
  const dataset whole = fakes;
  EXPECT_NO_THROW(loader(whole.slice(0, 0), testing::one_epoch_in_order(), image("txt").resize(8).center_crop(8)));
}

}  // namespace
}  // namespace leat
