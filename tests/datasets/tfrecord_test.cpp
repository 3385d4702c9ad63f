// TFRecord files that the package tfrecord wrote (tests/data/tfrecord/make.py): every value is known from its number.
#include "base/text.hpp"
#include "datasets/proto_value.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

const std::string path = std::string(LEAT_TEST_DATA) + "/tfrecord/examples.tfrecord";

std::string content_of(const std::string& file) {
  std::ifstream from(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

TEST(tfrecord, examples_have_a_field_for_each_feature) {
  const dataset samples = open(path);
  ASSERT_EQ(samples.size(), 40U);
  std::vector<std::string> names;
  for (const field_info& each : samples.fields()) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("image", "label", "name", "numbers", "score"));
  EXPECT_EQ(samples.fields()[0].kind, field_kind::picture);
  EXPECT_EQ(samples.fields()[1].kind, field_kind::label);
  EXPECT_EQ(samples.fields()[2].kind, field_kind::text);
  testing::value_reader values(samples);
  std::string numbers;
  for (std::uint64_t i = 0; i < 40; ++i) {
    str_append(numbers, i == 0 ? "" : " ", i);
    std::string image = "\xff\xd8\xff\xe0";
    for (std::uint64_t k = 0; k < i % 9; ++k) image += std::to_string(i);
    ASSERT_EQ(values.text(i, "image"), image);
    ASSERT_EQ(values.text(i, "label"), std::to_string(static_cast<int>(i) - 5));
    ASSERT_EQ(values.text(i, "numbers"), numbers);
    ASSERT_EQ(std::strtod(values.text(i, "score").c_str(), nullptr), static_cast<double>(i) / 4);
    ASSERT_EQ(values.text(i, "name"), str_cat("name ", i));
  }
  EXPECT_EQ(open_tfrecord(path, {.fields = {"image"}, .columns = {"label"}}).column(9, "label"), 4);
}

TEST(tfrecord, damage_is_named_or_concerns_one_sample) {
  const testing::temporary_directory root;
  const std::string changed = (root.path() / "changed.tfrecord").string();
  const std::string whole = content_of(path);
  std::ofstream(changed, std::ios::binary) << whole.substr(0, whole.size() - 1);
  EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(open(changed)); }),
              AllOf(HasSubstr("changed.tfrecord"), HasSubstr("behind the end")));
  std::mt19937_64 random(3);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    std::string content = whole;
    content[random() % content.size()] = static_cast<char>(random());
    std::ofstream(changed, std::ios::binary) << content;
    try {
      const dataset samples = open_tfrecord(changed);
      testing::value_reader values(samples);
      for (std::uint64_t sample = 0; sample < samples.size(); sample += 13) {
        for (const field_info& field : samples.fields()) static_cast<void>(values.read(sample, field.name));
      }
    } catch (const error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5);
}

TEST(datum, members_are_found_in_any_order_and_what_is_none_is_not_taken_for_one) {
  // channels 3, height 2, width 1, data "abcdef", label -1 (ten bytes), encoded false
  const std::string message = std::string(
                                  "\x08\x03\x10\x02\x18\x01\x22\x06"
                                  "abcdef",
                                  14) +
                              "\x28" + std::string(9, '\xff') + "\x01" + std::string("\x38\x00", 2);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(message));
  const auto found = datasets::read_datum(bytes);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->channels * found->height * found->width, 6);
  EXPECT_EQ(found->label, -1);
  EXPECT_FALSE(found->encoded);
  std::string label(20, ' ');
  std::span<std::byte> into = std::as_writable_bytes(std::span(label));
  EXPECT_EQ(datasets::pick_datum_label()->pick(bytes, into), std::nullopt);
  EXPECT_EQ(label.substr(0, into.size()), "-1");
  for (std::size_t i = 0; i + 1 < 14; ++i) {
    if (i != 0) EXPECT_FALSE(datasets::read_datum(bytes.first(i)).has_value()) << i;
  }
  const std::string other = "\x52\x01x";
  EXPECT_FALSE(datasets::read_datum(std::as_bytes(std::span(other))));
}

}  // namespace
}  // namespace leat
