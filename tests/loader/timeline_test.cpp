// What a run leaves in its timeline: each batch's way, in order and with the trainer's waits, and no byte of a batch depends on it.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::watchdog;

constexpr std::size_t timeline_bytes = std::size_t{1} << 20;

nlohmann::json timeline_of(const loader& train) {
  const testing::temporary_directory here;
  const std::filesystem::path path = here.path() / "t.json";
  train.write_timeline(path.string());
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}

TEST(timeline_of_a_run, has_the_way_of_each_batch_in_order) {
  const watchdog dog("timeline");
  const fake_dataset set(testing::make_samples(1, 45));
  loader_options options = small_options();
  options.timeline_bytes = timeline_bytes;
  options.epochs = 2;
  loader train(set, options, testing::all_fields());
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    while (const auto got = train.next_blocking()) {
      ++batches;
      rows += got->valid_rows();
    }
  }
  const nlohmann::json file = timeline_of(train);

  using place = std::pair<std::uint32_t, std::uint64_t>;
  std::map<place, std::map<std::string, std::pair<double, double>>> ways;
  std::map<std::string, std::uint64_t> counts;
  std::map<std::string, int> flows;
  for (const nlohmann::json& each : file["traceEvents"]) {
    const auto kind = each["ph"].get<std::string>();
    if (kind == "s" || kind == "f") ++flows[each["id"].get<std::string>()];
    if (kind != "X") continue;
    const auto name = each["name"].get<std::string>();
    ++counts[name];
    const auto begin = each["ts"].get<double>();
    const auto duration = each["dur"].get<double>();
    EXPECT_GE(begin, 0);
    EXPECT_GE(duration, 0);
    if (!each.contains("args") || name == "decode" || name == "expand") continue;
    ways[{each["args"]["epoch"].get<std::uint32_t>(), each["args"]["batch"].get<std::uint64_t>()}][name] = {
        begin, begin + duration};
  }
  ASSERT_EQ(ways.size(), batches);
  constexpr double rounding = 0.126;  // times are eighths of a microsecond
  for (auto& [at, way] : ways) {
    ASSERT_TRUE(way.contains("plan") && way.contains("rows") && way.contains("collate") && way.contains("transfer") &&
                way.contains("next()"))
        << at.first << ", " << at.second;
    EXPECT_NEAR(way["plan"].first, way["rows"].first, rounding);
    EXPECT_LE(way["plan"].second, way["rows"].second + rounding);
    EXPECT_LE(way["rows"].second, way["collate"].first + rounding);
    EXPECT_LE(way["collate"].second, way["transfer"].first + rounding);
    EXPECT_LE(way["transfer"].first, way["next()"].second + rounding);
  }
  // And two calls that got the end of an epoch.
  EXPECT_EQ(counts["next()"], batches + 2);
  EXPECT_EQ(counts["step"], batches);
  EXPECT_LE(counts["decode"], rows);
  EXPECT_GE(counts["decode"], 1U);
  EXPECT_EQ(flows.size(), batches);
  for (const auto& [id, ends] : flows) EXPECT_EQ(ends, 2) << id;
}

TEST(timeline_of_a_run, changes_no_byte) {
  const watchdog dog("timeline");
  const fake_dataset set(testing::make_samples(2, 60));
  std::vector<digest> digests;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4096}, timeline_bytes}) {
    loader_options options = small_options();
    options.timeline_bytes = bytes;
    options.digests = true;
    options.epochs = 1;
    loader train(set, options, testing::all_fields());
    while (train.next_blocking()) {
    }
    digests.push_back(train.state().run_digest.value());
  }
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
}

TEST(timeline_of_a_run, is_a_part_of_the_budget) {
  const fake_dataset set(testing::make_samples(3, 30));
  loader_options options = small_options();
  const loader without(set, options, testing::all_fields());
  options.timeline_bytes = timeline_bytes;
  const loader with(set, options, testing::all_fields());
  EXPECT_EQ(with.plan().host_bytes_least, without.plan().host_bytes_least + timeline_bytes);
  EXPECT_LE(with.plan().bytes_total, with.plan().host_bytes_max);
  EXPECT_THAT(with.plan().to_string(), HasSubstr("timeline"));
}

TEST(timeline_of_a_run, is_refused_where_the_budget_has_no_room_for_it) {
  const fake_dataset set(testing::make_samples(3, 30));
  loader_options options = small_options();
  for (const std::size_t bytes : {std::size_t{1} << 40, std::numeric_limits<std::size_t>::max()}) {
    options.timeline_bytes = bytes;
    try {
      const loader refused(set, options, testing::all_fields());
      ADD_FAILURE() << "taken";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::limit);
      EXPECT_THAT(refused.what(), HasSubstr("the timeline "));
    }
  }
}

TEST(timeline_of_a_run, is_refused_where_there_is_none_or_no_file) {
  const fake_dataset set(testing::make_samples(4, 30));
  loader_options options = small_options();
  const loader without(set, options, testing::all_fields());
  try {
    without.write_timeline("t.json");
    ADD_FAILURE() << "written";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::usage);
    EXPECT_THAT(refused.what(), HasSubstr("loader_options::timeline_bytes"));
  }
  options.timeline_bytes = timeline_bytes;
  const loader with(set, options, testing::all_fields());
  try {
    with.write_timeline("/nowhere/at/all/t.json");
    ADD_FAILURE() << "written";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::not_found);
    EXPECT_THAT(refused.what(), HasSubstr("/nowhere/at/all/t.json"));
  }
}

}  // namespace
}  // namespace leat
