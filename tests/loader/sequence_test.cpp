// Numbers in a row, as many as there are, or filled up to one length.
#include "stages/plan/run_spec.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
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

// Rows of u16 elements, i, i + 1, ...: their lengths are known before they are read. And fields that pad them in any way.
struct padded_run {
  std::vector<std::uint64_t> lengths;
  std::vector<bool> damaged;
  std::vector<fake_sample> samples;
  sequence::padding how;
  bool truncate = false;
  loader_options options = small_options();

  explicit padded_run(std::uint64_t seed) {
    testing::seeded_random random(seed);
    const std::uint64_t count = 70 + random.below(50);
    const std::uint64_t longest = std::uint64_t{1} << random.below(8);
    for (std::uint64_t i = 0; i < count; ++i) {
      lengths.push_back(random.below(longest));
      damaged.push_back(random.chance(0.1));
      std::string stored;
      for (std::uint64_t k = 0; k < lengths[i]; ++k) {
        stored += static_cast<char>((i + k) % 256);
        stored += static_cast<char>((i + k) / 256);
      }
      if (damaged[i]) stored += 'x';
      samples.push_back(
          {.members = {{"ids", testing::to_bytes(stored)}, {"txt", testing::to_bytes("t" + std::to_string(i))}},
           .cls_column = std::nullopt,
           .defect = damaged[i] && random.chance(0.2) ? "known" : ""});
    }
    options.on_corrupt = random.chance(0.5) ? corrupt_policy::skip : corrupt_policy::substitute;
    how = {.multiple = static_cast<std::int64_t>(1 + random.below(9)), .value = random.chance(0.5) ? -1.0 : 7.0};
    if (random.chance(0.6)) how.max = static_cast<std::int64_t>(1 + longest / 2 + random.below(longest));
    truncate = how.max != 0 && random.chance(0.5);
    // Of few rows all may be short: no sample is as short as that, and the run ends.
    options.batch_size = static_cast<std::uint32_t>(12 + random.below(20));
    options.drop_last = options.on_corrupt == corrupt_policy::substitute;
    options.shuffle = random.chance(0.7);
    options.decode_threads = static_cast<std::uint32_t>(1 + random.below(3));
    options.digests = random.chance(0.7);
  }

  [[nodiscard]] std::vector<field> fields() const {
    sequence ids = sequence("x").from("ids").stored(dtype::u16).as(dtype::i32).pad(how);
    if (truncate) ids = ids.truncate();
    return {ids.mask(), text("txt")};
  }
  /// Of a row as it is delivered; nothing where it is corrupt.
  [[nodiscard]] std::optional<std::uint64_t> length(std::uint64_t sample) const {
    const bool is_longer = how.max != 0 && lengths[sample] > static_cast<std::uint64_t>(how.max);
    if (damaged[sample] || (is_longer && !truncate)) return std::nullopt;
    return is_longer ? static_cast<std::uint64_t>(how.max) : lengths[sample];
  }
  /// Of the rows of a batch: the longest that was planned, whatever is wrong with it.
  [[nodiscard]] std::uint64_t batch_length(const std::vector<pick>& planned) const {
    std::uint64_t longest = 0;
    bool any = false;
    for (const pick& each : planned) {
      if (!samples[each.sample].defect.empty()) continue;
      any = true;
      longest = std::max(longest, lengths[each.sample]);
    }
    if (!any && options.on_corrupt == corrupt_policy::substitute) {
      longest = *std::max_element(lengths.begin(), lengths.end());
    }
    if (how.max != 0) longest = std::min(longest, static_cast<std::uint64_t>(how.max));
    const auto multiple = static_cast<std::uint64_t>(how.multiple);
    return (longest + multiple - 1) / multiple * multiple;
  }
};

TEST(sequence, padded_rows_are_as_long_as_the_longest_planned_one_whoever_is_corrupt) {
  const testing::watchdog dog("padded sequences");
  testing::for_each_seed(40, [](std::uint64_t seed) {
    const padded_run run(seed);
    const fake_dataset set(run.samples);
    const stages::run_spec bound(set, run.fields(), run.options);
    loader train(set, run.options, run.fields());
    std::vector<testing::seen_batch> seen;
    loader_state middle;
    for (std::uint32_t epoch = 0; epoch < run.options.epochs; ++epoch) {
      for (const batch& got : train.blocking()) {
        seen.push_back(testing::look_at(got));
        if (seen.size() == 2) middle = train.state_after(got);
        const stages::batch_plan planned = bound.plan(got.epoch(), got.index());
        const std::size_t length = run.batch_length(planned.picks);
        ASSERT_EQ(got["x"].shape, (dimensions{got.valid_rows(), static_cast<std::int64_t>(length)}));
        ASSERT_EQ(got["x.mask"].shape, got["x"].shape);
        const std::vector<std::int32_t> values = values_of<std::int32_t>(got, "x");
        const std::vector<std::int64_t> lengths = values_of<std::int64_t>(got, "x.length");
        const std::vector<std::uint8_t> mask = values_of<std::uint8_t>(got, "x.mask");
        std::size_t row = 0;
        for (const pick& each : planned.picks) {
          const bool is_whole = run.length(each.sample).has_value();
          if (!is_whole && run.options.on_corrupt == corrupt_policy::skip) continue;
          const std::uint64_t sample = got.ids()[row];
          if (is_whole) ASSERT_EQ(sample, each.sample);
          ASSERT_EQ(lengths[row], static_cast<std::int64_t>(run.length(sample).value()));
          for (std::size_t k = 0; k < length; ++k) {
            const bool own = k < run.length(sample);
            ASSERT_EQ(values[row * length + k], own ? static_cast<std::int32_t>(sample + k) : run.how.value);
            ASSERT_EQ(mask[row * length + k], own ? 1 : 0);
          }
          ++row;
        }
        ASSERT_EQ(row, got.valid_rows());
      }
    }
    loader_options later = run.options;
    later.resume = middle;
    later.decode_threads = 3;
    loader second(set, later, run.fields());
    std::vector<testing::seen_batch> rest;
    while (rest.size() + 2 < seen.size()) {
      const auto next = second.next_blocking();
      if (next) rest.push_back(testing::look_at(*next));
    }
    ASSERT_TRUE(std::equal(rest.begin(), rest.end(), seen.begin() + 2));
  });
}

TEST(sequence, a_row_has_the_digest_of_what_is_its_own) {
  const testing::watchdog dog("digests of padded sequences");
  const padded_run run(3);
  const fake_dataset set(run.samples);
  std::map<std::uint64_t, std::string> first;
  for (const std::int64_t multiple : {1, 64}) {
    loader_options options = in_order(corrupt_policy::skip);
    options.batch_size = multiple == 1 ? 5 : 9;
    loader train(set, options, sequence("ids").stored(dtype::u16).pad({.multiple = multiple}).mask());
    for (const batch& got : train.blocking()) {
      for (std::uint32_t row = 0; row < got.valid_rows(); ++row) {
        const std::string digest = got.row_digests()[row].hex();
        EXPECT_EQ(first.try_emplace(got.ids()[row], digest).first->second, digest);
      }
    }
  }
  EXPECT_GT(first.size(), 10U);
}

TEST(sequence, of_texts_the_length_is_that_of_the_longest_row_and_max_is_asked_for) {
  const testing::watchdog dog("padded texts");
  const fake_dataset set = lists(50, true);
  loader train(set, in_order(corrupt_policy::skip),
               sequence("x").from("ids").pad({.multiple = 8, .max = 17, .value = -1}).truncate());
  std::uint64_t rows = 0;
  for (const batch& got : train.blocking()) {
    const std::int64_t length = got["x"].shape[1];
    const std::vector<std::int64_t> values = values_of<std::int64_t>(got, "x");
    const std::vector<std::int64_t> lengths = values_of<std::int64_t>(got, "x.length");
    const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
    EXPECT_EQ(length, (longest + 7) / 8 * 8);
    for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
      const std::uint64_t sample = got.ids()[row];
      ASSERT_EQ(lengths[row], std::min<std::int64_t>(length_of(sample), 17));
      for (std::int64_t k = 0; k < length; ++k) {
        ASSERT_EQ(values[row * static_cast<std::size_t>(length) + static_cast<std::size_t>(k)],
                  k < lengths[row] ? static_cast<std::int64_t>(sample) + k : -1);
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
  EXPECT_THAT(reason("1", ids.pad({.max = -1})), HasSubstr("max is the longest row"));
  EXPECT_THAT(reason("1", ids.pad({})), HasSubstr(".pad({.max = 2048})"));
  EXPECT_THAT(reason("1", ids.stored(dtype::u8).pad({}).truncate()), HasSubstr("which is not given"));
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

// Texts, bytes and sequences alike: what is longer is corrupt by name, and a batch has no room for it.
TEST(sequence, samples_of_more_than_bytes_max_are_corrupt_and_no_room_is_planned_for_them) {
  const testing::watchdog dog("bytes_max");
  const testing::temporary_directory root;
  const std::string path = (root.path() / "set.jsonl").string();
  constexpr std::size_t samples = 100;
  {
    std::ofstream lines(path);
    for (std::size_t i = 0; i < samples; ++i) {
      const std::string word(i % 50 == 7 ? 100'000 : i % 20, 'a');
      lines << R"({"text": ")" << word << R"(", "ids": [1, 2, )" << i << "]}\n";
    }
  }
  const dataset set = open(path);
  // A substitute may be the longest sample: each row has room for it, 64 x 100,000 bytes for each field.
  loader_options options = in_order(corrupt_policy::substitute);
  options.batch_size = 64;
  options.prefetch_batches = 1;
  options.decode_threads = 2;
  options.host_bytes_max = std::size_t{20} << 20;
  const auto reason = [&](const loader_options& how, const std::vector<field>& fields) {
    try {
      return testing::run_all(set, how, fields).message;
    } catch (const error& refused) {
      return std::string(refused.what());
    }
  };
  EXPECT_THAT(reason(options, {text("text"), bytes("raw").from("text")}), HasSubstr("host_bytes_max"));
  const testing::seen_run run = testing::run_all(
      set, options,
      {text("text").bytes_max(19), bytes("raw").from("text").bytes_max(1000), sequence("ids").bytes_max(100)});
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_EQ(run.stats.quarantined, 2U);
  EXPECT_EQ(run.stats.substituted, 2U);
  const loader_options raising = in_order(corrupt_policy::raise);
  EXPECT_THAT(reason(raising, {text("text").bytes_max(20)}),
              AllOf(HasSubstr("set.jsonl[7]"), HasSubstr("has 100000 bytes, and bytes_max() says at most 20")));
  EXPECT_THAT(reason(raising, {bytes("text").bytes_max(99'999)}), HasSubstr("set.jsonl[7]"));
  EXPECT_EQ(reason(raising, {bytes("text").bytes_max(100'000)}), "");
  EXPECT_THAT(reason(raising, {sequence("ids").bytes_max(9)}),
              AllOf(HasSubstr("set.jsonl[10]"), HasSubstr("has 10 bytes")));
  EXPECT_THAT(reason(raising, {text("text").bytes_max(0)}), HasSubstr("'text': bytes_max(0)"));
}

// As shards of WebDataset have them.
TEST(sequence, members_that_are_npy_files_are_their_elements) {
  const testing::watchdog dog("sequences of .npy members");
  constexpr std::uint64_t samples = 30;
  const auto npy = [](const char* type, const std::string& shape, const std::string& values) {
    return testing::npy_text(testing::npy_dict(type, shape), values);
  };
  std::vector<fake_sample> all;
  for (std::uint64_t i = 0; i < samples; ++i) {
    std::string wide;
    std::string reals;
    for (std::int64_t k = 0; k < length_of(i); ++k) {
      const auto element = static_cast<std::uint16_t>(i * 1000 + static_cast<std::uint64_t>(k));
      wide.append(reinterpret_cast<const char*>(&element), sizeof element);
      const double real = static_cast<double>(k) / 4;
      reals.append(reinterpret_cast<const char*>(&real), sizeof real);
    }
    const std::string shape = std::to_string(length_of(i)) + ",";
    all.push_back({.members = {{"ids.npy", testing::to_bytes(npy("<u2", shape, wide))},
                               {"npy", testing::to_bytes(npy("<f8", shape, reals))}},
                   .cls_column = std::nullopt,
                   .defect = ""});
  }
  const fake_dataset set(all);
  loader train(set, in_order(corrupt_policy::raise), sequence("ids").from("ids.npy"),
               sequence("npy").as(dtype::f32).pad({.multiple = 4, .max = 16, .value = -1}).truncate());
  std::uint64_t rows = 0;
  for (const batch& got : train.blocking()) {
    const std::vector<std::int64_t> ids = values_of<std::int64_t>(got, "ids");
    const std::vector<std::int64_t> offsets = values_of<std::int64_t>(got, "ids.offsets");
    const std::vector<float> reals = values_of<float>(got, "npy");
    const std::vector<std::int64_t> lengths = values_of<std::int64_t>(got, "npy.length");
    const auto width = static_cast<std::size_t>(got["npy"].shape[1]);
    ASSERT_EQ(width, (*std::max_element(lengths.begin(), lengths.end()) + 3) / 4 * 4);
    for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
      const std::uint64_t sample = got.ids()[row];
      ASSERT_EQ(offsets[row + 1] - offsets[row], length_of(sample));
      for (std::int64_t k = 0; k < length_of(sample); ++k) {
        ASSERT_EQ(ids[static_cast<std::size_t>(offsets[row] + k)], static_cast<std::int64_t>(sample) * 1000 + k);
      }
      ASSERT_EQ(lengths[row], std::min<std::int64_t>(length_of(sample), 16));
      for (std::size_t k = 0; k < width; ++k) {
        const float expected = static_cast<std::int64_t>(k) < lengths[row] ? static_cast<float>(k) / 4 : -1.0F;
        ASSERT_EQ(reals[row * width + k], expected);
      }
    }
  }
  EXPECT_EQ(rows, samples);
  const auto reason = [&](const std::string& content, const sequence& wanted) {
    const fake_dataset one(std::vector<fake_sample>{
        {.members = {{"x.npy", testing::to_bytes(content)}}, .cls_column = std::nullopt, .defect = ""}});
    return testing::run_all(one, in_order(corrupt_policy::raise), {wanted}).message;
  };
  const sequence x = sequence("x.npy");
  EXPECT_EQ(reason(npy("<i4", "1,", "abcd"), x), "");
  EXPECT_THAT(reason(npy("<i4", "1, 1", "abcd"), x), HasSubstr("array of 2 axes"));
  EXPECT_THAT(reason(npy("<f2", "2,", "abcd"), x), HasSubstr("elements of f16"));
  EXPECT_THAT(reason(npy("<i4", "2,", "abcd"), x), HasSubstr("before its array of 8 bytes"));
  EXPECT_THAT(reason("[1, 2]", x), HasSubstr("does not start as a .npy does"));
  EXPECT_THAT(reason(npy("<i4", "1,", "abcd"), x.as(dtype::u8)), HasSubstr("does not fit"));
  EXPECT_THAT(reason(npy("<i4", "1,", "abcd"), x.pad({})), HasSubstr(".pad({.max = 2048})"));
}

// Columns of lists say themselves what their elements are, in blocks and where they lie as they are.
TEST(sequence, lists_of_parquet_are_those_of_arrow) {
  const testing::watchdog dog("lists of tables");
  const std::string folder = std::string(LEAT_TEST_DATA) + "/";
  const auto digests = [&](const std::string& file, const std::string& member) {
    loader_options options = small_options();
    options.on_corrupt = corrupt_policy::substitute;  // for rows that are null
    std::vector<std::string> all;
    loader train(open({folder + file}, {.tables = {.fields = {member}}}), options,
                 sequence("x").from(member).pad({.multiple = 2}).mask(), sequence("y").from(member).as(dtype::f32));
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const batch& got : train.blocking()) all.push_back(got.content_digest().value().hex());
    }
    return all;
  };
  const std::vector<std::string> expected = digests("arrow/file.arrow", "ids");
  ASSERT_EQ(expected.size(), 26U);
  for (const char* const file : {"arrow/lz4.arrow", "parquet/lists-bare.parquet", "parquet/lists-snappy.parquet",
                                 "parquet/lists-zstd.parquet"}) {
    EXPECT_EQ(digests(file, "ids"), expected) << file;
  }
}

}  // namespace
}  // namespace leat
