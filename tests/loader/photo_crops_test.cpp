// Shards with an index of their photo packs: only the rows of a crop are read, and no byte of any batch tells.
#include "datasets/formats/tar/photo_places.hpp"
#include "stages/fields/photo_reach.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/index_options.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/photo_pack.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using datasets::photo_place;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::seen_run;

constexpr std::size_t photo_count = 22;
constexpr std::size_t jpeg_number = 5;  // stays a JPEG

// Large enough that most crops spare more than a page.
const std::vector<std::vector<std::byte>>& photos() {
  static const std::vector<std::vector<std::byte>> once = [] {
    std::vector<std::vector<std::byte>> made;
    for (std::size_t i = 0; i < photo_count; ++i) {
      const bool tall = i % 3 == 1;
      const testing::rgb_picture picture = testing::make_texture(i, tall ? 180 : 260, tall ? 520 : 300);
      const std::vector<std::byte> jpeg = testing::make_jpeg(
          picture, {.colours = i % 7 == 6 ? testing::jpeg_colours::grey : testing::jpeg_colours::ycbcr,
                    .h = i % 7 == 6 ? 1 : 1 + static_cast<int>(i % 2),
                    .v = i % 7 == 6 ? 1 : 1 + static_cast<int>(i / 2 % 2),
                    .quality = 97,
                    .restart_interval = i % 4 == 0 ? 7U : 0U,
                    .orientation = static_cast<int>(i % 9)});
      made.push_back(i == jpeg_number ? jpeg : pack_photo(jpeg));
    }
    return made;
  }();
  return once;
}

enum class label_place : std::uint8_t { before, behind };

// The shards' paths. `change` is given each shard's index before it is written.
using index_change = std::function<void(std::vector<photo_place>&)>;

std::string write_shards(const std::filesystem::path& directory, const index_change& change,
                         label_place labels = label_place::behind, const std::string& extension = "fjpg") {
  constexpr std::size_t per_shard = 8;
  std::filesystem::create_directories(directory);
  for (std::size_t first = 0, shard = 0; first < photo_count; first += per_shard, ++shard) {
    testing::tar_writer made;
    std::vector<photo_place> places;
    for (std::size_t i = first; i < std::min(photo_count, first + per_shard); ++i) {
      const std::string key = std::to_string(i);
      if (labels == label_place::before) made.add_file(key + ".cls", key);
      const bool is_jpeg = i == jpeg_number;
      const testing::tar_place at = made.add_file(key + "." + (is_jpeg ? "jpg" : extension), photos()[i]);
      if (labels == label_place::behind) made.add_file(key + ".cls", key);
      if (is_jpeg) continue;
      photo_place place = stages::place_of_photo(photos()[i]).value();
      place.block = static_cast<std::uint32_t>(at.data_offset / 512);
      places.push_back(place);
    }
    if (change) {
      change(places);
      made.add_file(std::string(datasets::photo_places_member), datasets::as_member(places));
    }
    const std::vector<std::byte> bytes = made.finish();
    std::ofstream out(directory / ("s-" + std::to_string(shard) + ".tar"), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write a shard");
  }
  return (directory / "s-*.tar").string();
}

const index_change as_it_is = [](std::vector<photo_place>&) {};

std::vector<field> training() {
  return {image("jpg").random_resized_crop(24, {0.05, 0.4}).random_flip().normalize(imagenet), label("cls")};
}

std::vector<field> several_views() {
  std::vector<field> fields = training();
  fields.emplace_back(image("a").from("jpg").random_resized_crop(16).as(dtype::f16));
  fields.emplace_back(image("b").from("jpg").resize(40).center_crop(32).as(dtype::u8));
  return fields;
}

std::vector<field> upright() {
  return {image("jpg").exif_orientation().random_resized_crop(24, {0.05, 0.4}).random_flip(), label("cls")};
}

std::vector<field> evaluation() { return {image("jpg").resize(40).center_crop(20).normalize(imagenet), label("cls")}; }

seen_run run(const std::string& shards, const std::vector<field>& fields, const loader_options& options) {
  return testing::run_all(leat::open(shards), options, fields);
}

void expect_same(const seen_run& got, const seen_run& expected) {
  EXPECT_FALSE(got.failed) << got.message;
  ASSERT_EQ(got.batches.size(), expected.batches.size());
  for (std::size_t i = 0; i < got.batches.size(); ++i) ASSERT_EQ(got.batches[i], expected.batches[i]);
}

TEST(photo_crops, are_the_bytes_of_whole_packs_and_fewer_are_read) {
  const testing::watchdog dog("photo crops");
  const testing::temporary_directory directory;
  for (const label_place labels : {label_place::behind, label_place::before}) {
    const std::string name = labels == label_place::before ? "before" : "behind";
    const std::string plain = write_shards(directory.path() / ("plain-" + name), nullptr, labels);
    const std::string indexed = write_shards(directory.path() / ("indexed-" + name), as_it_is, labels);
    for (const auto& fields : {training(), several_views(), upright(), evaluation()}) {
      loader_options options = testing::small_options();
      const seen_run expected = run(plain, fields, options);
      ASSERT_FALSE(expected.failed) << expected.message;
      for (const bool shuffle : {true, false}) {
        options.shuffle = shuffle;
        const seen_run whole = shuffle ? expected : run(plain, fields, options);
        for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
          for (const choice direct : {choice::automatic, choice::on, choice::off}) {
            options.reader = {.backend = backend, .direct = direct};
            const seen_run got = run(indexed, fields, options);
            if (got.failed == errc::unsupported) continue;  // no O_DIRECT here; the fallbacks' tests say what then
            expect_same(got, whole);
            if (shuffle) EXPECT_LT(got.stats.bytes_read, whole.stats.bytes_read);  // else neighbours are one read
          }
        }
        options.reader = {};
      }
    }
    loader_options options = testing::small_options();
    const std::uint64_t all = run(plain, training(), options).stats.bytes_read;
    EXPECT_LT(run(indexed, training(), options).stats.bytes_read, all * 3 / 4);
  }
}

// Each view has rows of its own of those that are read for all.
TEST(photo_crops, of_views_are_the_same_where_a_device_decodes_them) {
  const testing::watchdog dog("photo crops of views");
  const testing::temporary_directory directory;
  const std::string indexed = write_shards(directory.path() / "indexed", as_it_is);
  const image global = image("jpg").random_resized_crop(128, {0.4, 1}).random_flip().normalize(imagenet);
  const image local = image("jpg").random_resized_crop(64, {0.02, 0.4}).random_flip().hue({-0.1, 0.1});
  const std::vector<field> fields{views(global, 2, "global"), views(local, 4, "local"), label("cls")};
  loader_options options = testing::small_options();
  options.decode_on = decode_on::automatic;
  const seen_run there = run(indexed, fields, options);
  options.decode_on = decode_on::host;
  const seen_run here = run(indexed, fields, options);
  expect_same(here, run(write_shards(directory.path() / "plain", nullptr), fields, options));
  expect_same(there, here);
  const device_report& told = there.stats.device;
  if (told.use.use == "host") return;
  EXPECT_GT(told.photos_decoded, there.stats.samples);
  EXPECT_GT(told.photos_on_host, there.stats.samples) << "without room in their slots";
}

// The least budget, one batch, one read at a time, and as many as there can be.
TEST(photo_crops, need_no_more_memory_than_whole_packs) {
  const testing::watchdog dog("photo crops in little memory");
  const testing::temporary_directory directory;
  const std::string plain = write_shards(directory.path() / "plain", nullptr);
  const std::string indexed = write_shards(directory.path() / "indexed", as_it_is);
  loader_options options = testing::small_options();
  const seen_run expected = run(plain, several_views(), options);
  for (const std::uint32_t depth : {1U, 3U, 64U}) {
    options.reader.queue_depth = depth;
    options.host_bytes_max = std::size_t{256} << 20;
    options.host_bytes_max = loader(leat::open(indexed), options, several_views()).plan().host_bytes_least;
    expect_same(run(indexed, several_views(), options), expected);
  }
}

TEST(photo_crops, are_read_through_views_and_a_kept_index_too) {
  const testing::temporary_directory directory;
  const std::string plain = write_shards(directory.path() / "plain", nullptr);
  const std::string indexed = write_shards(directory.path() / "indexed", as_it_is);
  const loader_options options = testing::small_options();
  const std::vector<std::uint64_t> chosen{3, 1, 5, 20, 21, 8, 9, 9};
  const auto views_of = [&](const std::string& shards) {
    const dataset all = leat::open(shards);
    return std::vector<dataset>{all.subset(chosen), concat({all, all.subset(chosen)})};
  };
  const std::vector<dataset> whole = views_of(plain);
  const std::vector<dataset> crops = views_of(indexed);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const seen_run expected = testing::run_all(whole[i], options, training());
    const seen_run got = testing::run_all(crops[i], options, training());
    expect_same(got, expected);
    EXPECT_LT(got.stats.bytes_read, expected.stats.bytes_read * 3 / 4);
  }

  const auto then = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const auto& each : std::filesystem::directory_iterator(directory.path() / "indexed")) {
    std::filesystem::last_write_time(each.path(), then);
  }
  const seen_run expected = run(plain, training(), options);
  for (const auto outcome : {index_report::outcome::written, index_report::outcome::used}) {
    std::vector<index_report> reports;
    const dataset opened =
        leat::open(indexed, {.index = {.use = index_use::check,
                                       .directory = (directory.path() / "kept").string(),
                                       .on_report = [&](const index_report& each) { reports.push_back(each); }}});
    ASSERT_EQ(reports.size(), 1U);
    EXPECT_EQ(reports.front().what, outcome) << reports.front().why;
    const seen_run got = testing::run_all(opened, options, training());
    expect_same(got, expected);
    EXPECT_LT(got.stats.bytes_read, expected.stats.bytes_read * 3 / 4);
  }
}

// An index of other packs, or of packs that have moved: these are read whole.
TEST(photo_crops, of_packs_that_no_index_fits_are_made_of_whole_ones) {
  const testing::temporary_directory directory;
  const loader_options options = testing::small_options();
  const std::string plain = write_shards(directory.path() / "plain", nullptr);
  const seen_run expected = run(plain, training(), options);
  const std::pair<const char*, index_change> changes[] = {
      {"none", [](std::vector<photo_place>& places) { places.clear(); }},
      {"moved",
       [](std::vector<photo_place>& places) {
         for (photo_place& each : places) ++each.block;
       }},
      {"of_other_length",
       [](std::vector<photo_place>& places) {
         for (photo_place& each : places) ++each.bytes;
       }},
  };
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    const seen_run got = run(write_shards(directory.path() / name, change), training(), options);
    expect_same(got, expected);
    EXPECT_EQ(got.stats.bytes_read, expected.stats.bytes_read);
  }
}

// A plan of memory knows by its name that a field may be read in two pieces.
TEST(photo_crops, of_packs_that_are_not_named_as_such_are_made_of_whole_ones) {
  const testing::temporary_directory directory;
  const std::string indexed = write_shards(directory.path() / "indexed", as_it_is, label_place::behind, "jpg");
  loader_options options = testing::small_options();
  const seen_run expected = run(write_shards(directory.path() / "plain", nullptr), several_views(), options);
  options.host_bytes_max = std::size_t{256} << 20;
  options.host_bytes_max = loader(leat::open(indexed), options, several_views()).plan().host_bytes_least;
  const seen_run got = run(indexed, several_views(), options);
  expect_same(got, expected);
  EXPECT_EQ(got.stats.bytes_read, expected.stats.bytes_read);
}

TEST(photo_crops, of_shards_whose_index_is_damaged_are_made_of_whole_packs_and_it_is_said) {
  const testing::temporary_directory directory;
  const loader_options options = testing::small_options();
  const std::string plain = write_shards(directory.path() / "plain", nullptr);
  const std::string shards = write_shards(directory.path() / "damaged", as_it_is);
  const std::filesystem::path first = directory.path() / "damaged" / "s-0.tar";
  std::ifstream in(first, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  bytes[bytes.find("leatphot") + 100] ^= 1;
  std::ofstream(first, std::ios::binary) << bytes;
  const dataset opened = leat::open(shards);
  ASSERT_EQ(opened.notes().size(), 1U);
  EXPECT_THAT(opened.notes().front(), HasSubstr("s-0.tar: its index of photo packs is not used, it is damaged"));
  const seen_run expected = run(plain, training(), options);
  const seen_run got = testing::run_all(opened, options, training());
  expect_same(got, expected);
  EXPECT_LT(got.stats.bytes_read, expected.stats.bytes_read);
}

// Digests of rows, by epoch and sample.
std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> rows_of(const std::string& shards,
                                                                       const loader_options& options,
                                                                       std::uint64_t& quarantined) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> rows;
  loader train(leat::open(shards), options, training());
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (const auto got = train.next_blocking()) {
      for (std::size_t row = 0; row < got->valid_rows(); ++row) {
        const std::vector<std::byte> bytes = testing::row_of(*got, "jpg", row);
        rows[{epoch, got->ids()[row]}].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
    }
  }
  quarantined = train.stats().quarantined;
  return rows;
}

// A forged one, whose checksums are right, may lose samples; it never makes other pixels.
TEST(photo_crops, by_an_index_that_lies_are_right_or_corrupt_samples) {
  const testing::watchdog dog("an index that lies");
  const testing::temporary_directory directory;
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  options.corrupt_max = {.share = 1};
  std::uint64_t none = 0;
  const auto expected = rows_of(write_shards(directory.path() / "plain", nullptr), options, none);
  ASSERT_EQ(none, 0U);
  ASSERT_EQ(expected.size(), 2 * photo_count);
  const std::pair<const char*, index_change> lies[] = {
      {"other_marks",
       [](std::vector<photo_place>& places) {
         for (photo_place& each : places) {
           for (std::uint8_t& mark : each.marks) mark = static_cast<std::uint8_t>(mark / 2 + 100);
         }
       }},
      {"other_size",
       [](std::vector<photo_place>& places) {
         for (photo_place& each : places) each.width = static_cast<std::uint16_t>(each.width * 3);
       }},
      {"other_orientation",
       [](std::vector<photo_place>& places) {
         for (photo_place& each : places) each.orientation = 4;
       }},
      {"other_head",
       [](std::vector<photo_place>& places) {
         for (photo_place& each : places) each.head_bytes = 60;
       }},
      {"no_rows",
       [](std::vector<photo_place>& places) {
         for (photo_place& each : places) {
           each.mcu_height = 8;
           each.height = 9;
           each.mcu_rows = 2;
           each.marks = {};
         }
       }},
  };
  for (const auto& [name, change] : lies) {
    SCOPED_TRACE(name);
    std::uint64_t quarantined = 0;
    const auto got = rows_of(write_shards(directory.path() / name, change), options, quarantined);
    EXPECT_EQ(got.size() + quarantined, 2 * photo_count);
    for (const auto& [which, row] : got) EXPECT_EQ(row, expected.at(which)) << which.first << ' ' << which.second;
  }
}

// Rows that nobody reads may be damaged; those that are read make a corrupt sample, as without an index.
TEST(photo_crops, of_damaged_packs_are_lost_only_where_the_damage_is) {
  const testing::temporary_directory directory;
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  options.corrupt_max = {.share = 1};
  std::vector<seen_run> runs;
  for (const bool with_index : {false, true}) {
    const std::filesystem::path folder = directory.path() / (with_index ? "indexed" : "plain");
    const std::string shards = write_shards(folder, with_index ? as_it_is : index_change());
    const std::filesystem::path first = folder / "s-0.tar";
    std::ifstream in(first, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    for (std::size_t at = bytes.find("FJPG\r\n"); at != std::string::npos; at = bytes.find("FJPG\r\n", at + 1)) {
      bytes[at + photos().front().size() / 3] ^= 1;
    }
    std::ofstream(first, std::ios::binary) << bytes;
    runs.push_back(run(shards, training(), options));
  }
  expect_same(runs[1], runs[0]);
  EXPECT_GT(runs[0].stats.quarantined, 0U);
  EXPECT_EQ(runs[1].stats.quarantined, runs[0].stats.quarantined);
}

}  // namespace
}  // namespace leat
