// What is counted while shards are opened is what asking each sample finds.
#include "datasets/files/sample_counts.hpp"

#include "datasets/files/index_cache.hpp"
#include "datasets/model/model.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using datasets::sample_counts;
using ::testing::ElementsAre;

struct asked {
  std::map<std::vector<std::uint32_t>, std::vector<std::uint64_t>> sets;  // the samples of each
  std::vector<std::vector<std::uint64_t>> bytes;                          // by field
};

asked ask_each(const dataset& samples) {
  asked found;
  found.bytes.resize(samples.model()->fields().size());
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    datasets::part_list parts;
    samples.model()->parts(i, parts);
    std::vector<std::uint32_t> fields;
    for (const datasets::part& each : parts) {
      fields.push_back(each.field);
      found.bytes[each.field].push_back(each.where.stored_bytes);
    }
    std::sort(fields.begin(), fields.end());
    found.sets[fields].push_back(i);
  }
  for (auto& each : found.bytes) std::sort(each.begin(), each.end(), std::greater<>());
  return found;
}

std::uint64_t sum_of_first(const std::vector<std::uint64_t>& from, std::uint64_t count) {
  return std::accumulate(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(std::min(count, from.size())),
                         std::uint64_t{0});
}

void expect_counted(const dataset& samples) {
  const sample_counts* const counts = samples.model()->counts();
  ASSERT_NE(counts, nullptr);
  const asked expected = ask_each(samples);
  EXPECT_EQ(counts->samples(), samples.size());
  ASSERT_EQ(counts->sets().size(), expected.sets.size());
  for (const sample_counts::field_set& set : counts->sets()) {
    const auto found = expected.sets.find(set.fields);
    ASSERT_NE(found, expected.sets.end());
    EXPECT_EQ(set.samples, found->second.size());
    std::vector<std::uint64_t> first = found->second;
    first.resize(std::min(first.size(), sample_counts::field_set::first_max));
    EXPECT_EQ(set.first, first);
  }
  for (std::uint16_t field = 0; field < expected.bytes.size(); ++field) {
    for (const std::uint64_t rows : {1U, 2U, 7U, 1000U, 1024U}) {
      EXPECT_EQ(counts->largest_bytes(std::vector{field}, rows), sum_of_first(expected.bytes[field], rows));
    }
    // Of more than are kept it is a bound.
    EXPECT_GE(counts->largest_bytes(std::vector{field}, 1500), sum_of_first(expected.bytes[field], 1500));
  }
  if (expected.bytes.size() < 2) return;
  std::vector<std::uint64_t> both = expected.bytes[0];
  both.insert(both.end(), expected.bytes[1].begin(), expected.bytes[1].end());
  std::sort(both.begin(), both.end(), std::greater<>());
  const std::vector<std::uint16_t> fields = {0, 1};
  for (const std::uint64_t rows : {3U, 900U, 2100U}) {
    EXPECT_GE(counts->largest_bytes(fields, rows), sum_of_first(both, rows)) << rows;
  }
  EXPECT_EQ(counts->largest_bytes(fields, 3), sum_of_first(both, 3));
}

/// Mostly a text and a class; now and then another member, or one less.
void save_shard(std::mt19937_64& random, int samples, const std::string& key, const std::string& path) {
  archive made;
  for (int i = 0; i < samples; ++i) {
    const std::string stem = key + std::to_string(i);
    if (random() % 9 != 0) made.file(stem + ".txt", std::string(random() % 40, 't'));
    if (random() % 7 != 0) made.file(stem + ".cls", std::string(1 + random() % 3, '1'));
    if (random() % 50 == 0) made.file(stem + ".json", "{}");
  }
  made.end().save(path);
}

TEST(sample_counts, are_what_each_sample_has_with_an_index_and_without) {
  std::mt19937_64 random(7);
  for (const int samples : {1, 40, 800}) {
    const temporary_directory root;
    for (int shard = 0; shard < 3; ++shard) {
      save_shard(random, samples, std::to_string(shard) + "/",
                 (root.path() / ("s-" + std::to_string(shard) + ".tar")).string());
    }
    const std::string shards = (root.path() / "s-*.tar").string();
    expect_counted(open_tar(shards));
    // trust: these shards are younger than the clock tells apart, so that no index of them would be checked against them.
    index_report::outcome what{};
    const open_options options{.index = {.use = index_use::trust,
                                         .directory = (root.path() / "kept").string(),
                                         .on_report = [&](const index_report& each) { what = each.what; }}};
    for (int tries = 0; tries < 1000 && what != index_report::outcome::used; ++tries) {
      expect_counted(leat::open(shards, options));
    }
    EXPECT_EQ(what, index_report::outcome::used);
  }
}

TEST(sample_counts, of_a_folder_have_its_pictures_and_classes) {
  const temporary_directory root;
  std::uint64_t largest = 0;
  for (int i = 0; i < 90; ++i) {
    const std::filesystem::path folder = root.path() / (i % 2 == 0 ? "even" : "odd");
    std::filesystem::create_directories(folder);
    const auto bytes = static_cast<std::size_t>(100 + i);
    std::ofstream(folder / (std::to_string(i) + ".jpg")) << std::string(bytes, 'j');
    if (i >= 87) largest += bytes;
  }
  const dataset opened = leat::open(root.path().string());
  const sample_counts* const counts = opened.model()->counts();
  ASSERT_NE(counts, nullptr);
  ASSERT_EQ(counts->sets().size(), 1U);
  EXPECT_EQ(counts->sets()[0].samples, 90U);
  EXPECT_THAT(counts->sets()[0].fields, ElementsAre(0, 1));
  EXPECT_EQ(counts->largest_bytes(std::vector<std::uint16_t>{0}, 3), largest);
}

TEST(sample_counts, are_refused_where_they_are_of_other_samples) {
  sample_counts counts;
  const std::vector<std::uint32_t> both = {1, 0, 1};
  const std::vector<std::uint32_t> one = {2};
  for (int i = 0; i < 70; ++i) counts.add(both);
  counts.add(one);
  counts.add_bytes(2, 9);
  EXPECT_THAT(counts.sets()[0].fields, ElementsAre(0, 1));
  EXPECT_THAT(counts.sets()[1].first, ElementsAre(70));
  datasets::section_writer written;
  counts.save(written);
  const auto read = [&](std::uint64_t samples, std::size_t fields) {
    datasets::section_reader from(written.bytes());
    return sample_counts(from, samples, fields);
  };
  EXPECT_EQ(read(71, 3).sets()[0].samples, 70U);
  EXPECT_EQ(read(71, 3).largest_bytes(std::vector<std::uint16_t>{2}, 5), 9U);
  for (const auto& [samples, fields] : {std::pair{70U, 3U}, {72U, 3U}, {71U, 2U}, {0U, 3U}}) {
    EXPECT_THAT(message_of(errc::format, [&] { static_cast<void>(read(samples, fields)); }),
                ::testing::HasSubstr("counted"))
        << samples << " samples, " << fields << " fields";
  }
}

}  // namespace
}  // namespace leat::testing
