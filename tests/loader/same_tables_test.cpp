// One set in many formats (tests/data/same/make.py): samples, order and bytes are the same.
#include "datasets/write/pack.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::loader_options;
using testing::seen_run;

const std::filesystem::path set_folder = std::filesystem::path(LEAT_TEST_DATA) / "same";
constexpr std::uint64_t set_size = 20;
constexpr std::uint64_t samples_per_class = 5;

/// A form of the set, and what its members are called there.
struct written_set {
  std::string name;
  dataset samples;
  std::string picture = "image";
  std::string number = "label";
  std::string words = "caption";
};

std::vector<written_set> written_sets(const std::filesystem::path& made) {
  const auto at = [](const char* name) { return (set_folder / name).string(); };
  std::vector<written_set> all;
  all.push_back({"bare Parquet", open(at("bare.parquet"))});
  all.push_back({"packed Parquet", open(at("packed.parquet"))});
  all.push_back({"bare Arrow", open(at("bare.arrow"))});
  all.push_back({"packed Arrow", open(at("packed.arrow"))});
  all.push_back({"LMDB", open(at("set.mdb"))});
  all.push_back({"TFRecord", open(at("set.tfrecord"))});
  all.push_back({"TFRecord, verified", open({at("set.tfrecord")}, {.tables = {.checksums = true}})});
  all.push_back({"TFRecord, its label a column", open_tfrecord(at("set.tfrecord"), {.columns = {"label"}})});
  all.push_back({"MDS", open(at("mds"))});
  const table_options paths{.path_column = "file_name"};
  all.push_back({"JSONL", open({at("set.jsonl")}, {.tables = paths}), "jpg"});
  all.push_back({"CSV", open({at("set.csv")}, {.tables = paths}), "jpg"});
  datasets::pack(all.front().samples, (made / "shard-%03d.tar").string(), {.samples_per_shard = 7});
  all.push_back({"tar", open((made / "shard-*.tar").string()), "jpg", "label", "caption"});
  return all;
}

loader_options options_of(read_backend backend, choice direct) {
  loader_options options = testing::small_options();
  options.batch_size = 6;
  options.reader = {.backend = backend, .direct = direct};
  return options;
}

std::vector<field> fields_of(const written_set& of, bool with_words) {
  std::vector<field> fields = {
      image("pixels").from(of.picture).random_resized_crop(16).random_flip().normalize(imagenet),
      label("class").from(of.number)};
  if (with_words) fields.emplace_back(text("words").from(of.words));
  return fields;
}

TEST(same_tables, have_one_digest_in_every_format) {
  const testing::watchdog dog("one set in many formats");
  const testing::temporary_directory made;
  const std::vector<written_set> all = written_sets(made.path());
  const seen_run expected = testing::run_all(
      all.front().samples, options_of(read_backend::automatic, choice::automatic), fields_of(all.front(), true));
  ASSERT_FALSE(expected.failed) << expected.message;
  ASSERT_EQ(expected.batches.size(), 8U);
  for (const written_set& each : all) {
    SCOPED_TRACE(each.name);
    ASSERT_EQ(each.samples.size(), set_size);
    for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
      for (const choice direct : {choice::automatic, choice::on, choice::off}) {
        const seen_run got = testing::run_all(each.samples, options_of(backend, direct), fields_of(each, true));
        if (got.failed == errc::unsupported) continue;  // no O_DIRECT here; the fallbacks' tests say what then
        EXPECT_FALSE(got.failed) << got.message;
        EXPECT_EQ(got.batches, expected.batches);
      }
    }
  }
}

// Rows, blocks, records and members side by side.
TEST(same_tables, are_one_dataset_in_every_pair_of_formats) {
  const testing::watchdog dog("pairs of formats");
  const testing::temporary_directory made;
  const std::vector<written_set> all = written_sets(made.path());
  const std::vector<field> fields = {text("words").from("caption"), label("class").from("label"),
                                     sequence("letters").from("caption").stored(dtype::u8).pad({.max = 64})};
  const auto run = [&](const dataset& samples) {
    return testing::run_all(samples, options_of(read_backend::automatic, choice::automatic), fields);
  };
  const seen_run expected = run(all.front().samples);
  ASSERT_FALSE(expected.failed) << expected.message;
  for (const written_set& first : all) {
    for (const written_set& second : all) {
      const seen_run got = run(concat({first.samples.slice(0, 9), second.samples.slice(9, 11)}));
      EXPECT_FALSE(got.failed) << first.name << " and " << second.name << ": " << got.message;
      EXPECT_EQ(got.batches, expected.batches) << first.name << " and " << second.name;
    }
  }
}

// Whatever the captions are stored in: rows of a table, blocks of many rows, or records with a picture beside them.
TEST(same_tables, have_one_order_by_length_in_every_format) {
  const testing::watchdog dog("one set in many formats, by length");
  const testing::temporary_directory made;
  const std::vector<written_set> all = written_sets(made.path());
  std::uint64_t longest = 0;
  for (std::uint64_t sample = 0; sample < set_size; ++sample) {
    longest = std::max<std::uint64_t>(longest, all.front().samples.read(sample, "caption").size());
  }
  const auto run = [&](const written_set& of, const dataset& samples) {
    loader_options options = options_of(read_backend::automatic, choice::automatic);
    options.order = bucketed({.length = of.words, .tokens_max = 4 * longest, .rows_max = 5});
    return testing::run_all(samples, options, fields_of(of, true));
  };
  const std::vector<std::uint64_t> some = {1, 4, 5, 9, 10, 11, 12, 18};
  const seen_run expected = run(all.front(), all.front().samples);
  const seen_run expected_of_some = run(all.front(), all.front().samples.subset(some));
  ASSERT_FALSE(expected.failed) << expected.message;
  ASSERT_GE(expected.batches.size(), 8U);
  for (const written_set& each : all) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(run(each, each.samples).batches, expected.batches);
    EXPECT_EQ(run(each, each.samples.subset(some)).batches, expected_of_some.batches);
  }
}

// A folder has classes, and no captions.
TEST(same_tables, have_the_digest_of_the_folder_of_their_pictures) {
  const testing::watchdog dog("a folder beside tables");
  const testing::temporary_directory made;
  for (std::uint64_t i = 0; i < set_size; ++i) {
    const std::filesystem::path of_class = made.path() / "photos" / std::to_string(i / samples_per_class);
    std::filesystem::create_directories(of_class);
    const std::string name = (i < 10 ? "0" : "") + std::to_string(i) + ".jpg";
    std::filesystem::copy_file(set_folder / "pictures" / name, of_class / name);
  }
  std::vector<written_set> all = written_sets(made.path());
  all.push_back({"folder", open((made.path() / "photos").string()), "jpg", "cls"});
  const loader_options options = options_of(read_backend::automatic, choice::automatic);
  const seen_run expected = testing::run_all(all.back().samples, options, fields_of(all.back(), false));
  ASSERT_FALSE(expected.failed) << expected.message;
  for (const written_set& each : all) {
    EXPECT_EQ(testing::run_all(each.samples, options, fields_of(each, false)).batches, expected.batches) << each.name;
  }
}

// Of a record whose checksum is wrong, its sample.
TEST(same_tables, samples_of_records_with_a_wrong_checksum_follow_the_policy) {
  const testing::watchdog dog("checksums of records");
  const testing::temporary_directory made;
  std::ifstream from(set_folder / "set.tfrecord", std::ios::binary);
  std::string content(std::istreambuf_iterator<char>(from), {});
  content[content.find("picture 13")] = 'P';
  const std::string path = testing::write_file(made.path() / "changed.tfrecord", content);
  const auto run_with = [&](corrupt_policy policy, bool verified) {
    loader_options options = options_of(read_backend::automatic, choice::automatic);
    options.on_corrupt = policy;
    options.epochs = 1;
    const written_set changed{"changed", open({path}, {.tables = {.checksums = verified}})};
    return testing::run_all(changed.samples, options, fields_of(changed, true));
  };
  EXPECT_EQ(run_with(corrupt_policy::raise, false).failed, errc::corrupt) << "pictures are verified in any case";
  const seen_run raised = run_with(corrupt_policy::raise, true);
  EXPECT_EQ(raised.failed, errc::corrupt);
  EXPECT_THAT(raised.message, AllOf(HasSubstr("changed.tfrecord[13]"), HasSubstr("the record's checksum is")));
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    const seen_run run = run_with(policy, true);
    EXPECT_FALSE(run.failed) << run.message;
    EXPECT_EQ(run.stats.quarantined, 1U);
    EXPECT_EQ(run.stats.substituted, policy == corrupt_policy::substitute ? 1U : 0U);
  }
}

// Tables of the Hub's arrays, as they are and packed: the rows are tensors, whole, cut, with steps, and as pictures.
TEST(same_arrays, in_tables_are_rows_as_arrays_are) {
  const testing::watchdog dog("arrays of tables");
  const std::filesystem::path data(LEAT_TEST_DATA);
  std::vector<std::vector<testing::seen_batch>> all;
  for (const char* name : {"arrow/tensors.arrow", "arrow/tensors-zstd.arrow", "parquet/tensors.parquet"}) {
    SCOPED_TRACE(name);
    const dataset samples = open((data / name).string());
    testing::loader train(samples, testing::small_options(), array("cube"), array("cut").from("cube").slice(0, 1, 2),
                          array("crop").from("cube").random_crop({2, 1}),
                          array("turned").from("cube").transpose({2, 0, 1}),
                          image("picture").from("cube").stored(layout::nchw).resize(4, 4).as(dtype::u8),
                          sequence("list").from("cube"), sequence("open"));
    std::vector<testing::seen_batch> seen;
    while (!train.finished()) {
      while (const std::optional<batch> got = train.next_blocking()) {
        seen.push_back(testing::look_at(*got));
        const std::vector<std::uint8_t> rows = testing::values_of<std::uint8_t>(*got, "cube");
        for (std::size_t row = 0; row < got->valid_rows(); ++row) {
          EXPECT_EQ(rows[row * 12], got->ids()[row]);
          EXPECT_EQ(rows[row * 12 + 11], 255);
        }
      }
    }
    all.push_back(std::move(seen));
  }
  ASSERT_FALSE(all.front().empty());
  EXPECT_EQ(all[1], all[0]);
  EXPECT_EQ(all[2], all[0]);
}

}  // namespace
}  // namespace leat
