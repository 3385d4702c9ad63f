// TFRecord files that the package tfrecord wrote (tests/data/tfrecord/make.py): every value is known from its number.
#include "base/crc32c.hpp"
#include "base/text.hpp"
#include "datasets/wire/proto_value.hpp"
#include "tests/datasets/numbered_arrays.hpp"
#include "tests/datasets/value_reader.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

const std::string path = std::string(LEAT_TEST_DATA) + "/tfrecord/examples.tfrecord";

std::string text_in(const std::string& file) {
  std::ifstream from(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

// A record as the format has it: its length, the checksum of that, and its own behind it.
std::string tfrecord_of(std::string_view record) {
  const auto masked = [](std::string_view bytes) {
    const std::uint32_t crc = crc32c(std::as_bytes(std::span(bytes)));
    return (crc >> 15 | crc << 17) + 0xA282EAD8U;
  };
  const auto text_of = [](auto number) { return std::string(reinterpret_cast<const char*>(&number), sizeof number); };
  const std::string length = text_of(std::uint64_t{record.size()});
  return str_cat(length, text_of(masked(length)), record, text_of(masked(record)));
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
  const std::string whole = text_in(path);
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

// A byte is changed in the pixels of each of some records: nothing but their checksums can tell.
TEST(tfrecord, checksums_of_records_are_verified_where_that_is_asked_for) {
  const testing::temporary_directory root;
  const std::string unchanged = (root.path() / "whole.tfrecord").string();
  const std::string changed = (root.path() / "changed.tfrecord").string();
  const table_options verified{.checksums = true};
  for (const bool are_examples : {true, false}) {
    std::string content = text_in(path);
    if (!are_examples) {
      // Records of one text each.
      content.clear();
      for (int i = 0; i < 40; ++i) content += tfrecord_of(str_cat("record ", i, i % 9 == 0 ? "" : " again"));
    }
    std::ofstream(unchanged, std::ios::binary) << content;
    const std::string field = are_examples ? "image" : "value";
    const dataset as_is = open(unchanged);
    const dataset whole = open_tfrecord(unchanged, verified);
    testing::value_reader expected(as_is);
    testing::value_reader values(whole);
    ASSERT_EQ(whole.size(), 40U);
    for (std::uint64_t i = 0; i < 40; ++i) {
      for (const field_info& each : as_is.fields()) ASSERT_EQ(values.text(i, each.name), expected.text(i, each.name));
    }
    const std::vector<std::uint64_t> damaged = {8, 17, 26};
    for (const std::uint64_t sample : damaged) {
      const std::string value = expected.text(sample, field);
      const std::size_t at = content.find(value);
      ASSERT_NE(at, std::string::npos);
      content[at + value.size() - 1] ^= 1;
    }
    std::ofstream(changed, std::ios::binary) << content;
    const dataset passed_over = open(changed);
    const dataset found = open({changed}, {.tables = verified});
    for (std::uint64_t i = 0; i < 40; ++i) {
      if (std::find(damaged.begin(), damaged.end(), i) == damaged.end()) {
        EXPECT_EQ(testing::value_reader(found).text(i, field), expected.text(i, field));
        continue;
      }
      // Of pictures always.
      if (are_examples) {
        EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(passed_over.read(i, field)); }),
                    HasSubstr("the record's checksum is"));
      } else {
        EXPECT_NE(testing::value_reader(passed_over).text(i, field), expected.text(i, field));
        EXPECT_THAT(passed_over.notes(), Contains(HasSubstr("checksums present, not verified where 'value'")));
      }
      for (const field_info& each : found.fields()) {
        EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(found.read(i, each.name)); }),
                    AllOf(HasSubstr(str_cat("changed.tfrecord[", i, "]")), HasSubstr("the record's checksum is")));
      }
    }
    // The checksum itself.
    content.back() ^= 1;
    std::ofstream(changed, std::ios::binary) << content;
    EXPECT_THAT(message_of(errc::corrupt, [&] { static_cast<void>(open_tfrecord(changed, verified).read(39, field)); }),
                HasSubstr("checksum"));
  }
  const std::string lines = (root.path() / "x.jsonl").string();
  std::ofstream(lines) << "{}\n";
  for (const std::string& other :
       {lines, std::string(LEAT_TEST_DATA) + "/arrow/file.arrow", std::string(LEAT_TEST_DATA) + "/lmdb/ocr.mdb"}) {
    EXPECT_THAT(
        message_of(errc::usage, [&] { static_cast<void>(open({other}, {.tables = verified})); }),
        AllOf(HasSubstr(other), HasSubstr("table_options::checksums is of Parquet, TFRecord and MDS, and this is ")));
  }
}

// A member of a message: its number, and that bytes follow.
std::string proto_bytes(int number, std::string_view content) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  for (std::size_t length = content.size(); true; length >>= 7U) {
    text += static_cast<char>((length & 0x7FU) | (length > 0x7F ? 0x80U : 0));
    if (length <= 0x7F) break;
  }
  return text.append(content);
}

// An Example; values are packed, as TensorFlow writes them.
std::string example_of(const std::vector<std::pair<std::string, std::vector<float>>>& floats,
                       const std::vector<std::pair<std::string, std::string>>& integers) {
  std::string entries;
  const auto add = [&](std::string_view name, int list, std::string_view values) {
    const std::string feature = proto_bytes(list, values.empty() ? "" : proto_bytes(1, values));
    entries += proto_bytes(1, proto_bytes(1, name) + proto_bytes(2, feature));
  };
  for (const auto& [name, values] : floats) {
    add(name, 2, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  for (const auto& [name, values] : integers) add(name, 3, values);
  return tfrecord_of(proto_bytes(1, entries));
}

TEST(tfrecord, a_feature_is_what_its_lists_are_in_the_records_that_were_looked_at) {
  const testing::temporary_directory root;
  const auto put = [&](const char* name, const std::string& content) {
    const std::string file = (root.path() / name).string();
    std::ofstream(file, std::ios::binary) << content;
    return file;
  };
  using std::string_literals::operator""s;
  // Floats that begin with a whole number, boxes of one picture and of three, a feature that the first record lacks.
  const std::string one = put("1.tfrecord", example_of({{"score", {0}}}, {{"ids", "\1"}, {"n", "\5"}}) +
                                                example_of({{"score", {0.5F}}}, {{"ids", "\1\2\3"}, {"n", "\6"}}));
  const std::string other = put("2.tfrecord", example_of({{"score", {2}}, {"both", {0.5F}}}, {{"ids", ""}}));
  const std::string third = put("3.tfrecord", example_of({}, {{"both", "\7"}, {"n", "\4"}, {"late", "\3"}}));
  const dataset samples = open({one, other, third});
  ASSERT_EQ(samples.size(), 4U);
  const auto info = [&](std::string_view name) {
    for (const field_info& each : samples.fields()) {
      if (each.name == name) return each;
    }
    ADD_FAILURE() << "no " << name;
    return field_info();
  };
  EXPECT_EQ(info("score").kind, field_kind::label);
  EXPECT_EQ(info("score").type, dtype::f32);
  EXPECT_EQ(info("n").type, dtype::i64);
  EXPECT_EQ(info("both").type, dtype::f64);
  EXPECT_EQ(info("ids").kind, field_kind::bytes);
  EXPECT_EQ(info("late").kind, field_kind::label);
  testing::value_reader values(samples);
  EXPECT_EQ(values.text(0, "score") + " " + values.text(1, "score"), "0 0.5");
  EXPECT_EQ(values.text(1, "ids"), "1 2 3");
  EXPECT_EQ(values.text(3, "late"), "3");
  EXPECT_THAT(samples.notes(), ::testing::Contains(HasSubstr("'n' is missing in 1 of the 4 records")));
}

// As tf.train.SequenceExample has it: a context of features, and lists of features by name, one for each frame.
TEST(tfrecord, sequence_examples_have_their_context_and_their_frames_one_after_another) {
  const auto feature = [](int list, std::string_view values) {
    return proto_bytes(list, values.empty() ? "" : proto_bytes(1, values));
  };
  const auto floats = [&](std::vector<float> values) {
    return feature(2, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  };
  const auto entry = [](std::string_view name, std::string_view value) {
    return proto_bytes(1, proto_bytes(1, name) + proto_bytes(2, value));
  };
  const auto record = [&](std::string_view id, const std::vector<std::string>& points,
                          const std::vector<std::string>& tags) {
    std::string frames, ids, pictures;
    for (const std::string& each : points) frames += proto_bytes(1, each);
    for (const std::string& each : tags) ids += proto_bytes(1, feature(3, each));
    for (int i = 0; i < 2; ++i) pictures += proto_bytes(1, feature(1, "\xff\xd8\xff\xe0"));
    return tfrecord_of(proto_bytes(1, entry("id", feature(3, id))) +
                       proto_bytes(2, entry("points", frames) + entry("tags", ids) + entry("pictures", pictures)));
  };
  const testing::temporary_directory root;
  const std::string file = (root.path() / "s.tfrecord").string();
  std::ofstream(file, std::ios::binary) << record("\7", {floats({0.5F, 1}), floats({2}), floats({})}, {"\1\2", "\3"})
                                        << record("\11", {floats({4})}, {}) << record("\12", {}, {"\5"});
  const dataset samples = open(file);
  ASSERT_EQ(samples.size(), 3U);
  std::vector<std::string> names;
  for (const field_info& each : samples.fields()) names.push_back(each.name);
  EXPECT_THAT(names, ElementsAre("id", "points", "tags"));
  EXPECT_THAT(samples.notes(), Contains(HasSubstr("the frames 'pictures' of a SequenceExample are bytes")));
  testing::value_reader values(samples);
  EXPECT_EQ(values.text(0, "id") + " " + values.text(2, "id"), "7 10");
  EXPECT_EQ(values.text(0, "points"), "0.5 1 2");
  EXPECT_EQ(values.text(0, "tags"), "1 2 3");
  EXPECT_EQ(values.text(1, "points"), "4");
  EXPECT_EQ(values.text(1, "tags"), "");
  EXPECT_EQ(values.text(2, "points"), "");
  EXPECT_EQ(values.text(2, "tags"), "5");
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
