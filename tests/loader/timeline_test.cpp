// What a run leaves in its timeline: each batch's way, in order and with the trainer's waits, and no byte of a batch depends on it.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/slow_parts.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/field.hpp>
#include <leat/loading.hpp>
#include <leat/stats.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
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
  options.timeline.bytes = timeline_bytes;
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
    if ((kind == "s" || kind == "f") && each["name"] == "batch") ++flows[each["id"].get<std::string>()];
    if (kind != "X") continue;
    const auto name = each["name"].get<std::string>();
    ++counts[name];
    const auto begin = each["ts"].get<double>();
    const auto duration = each["dur"].get<double>();
    EXPECT_GE(begin, 0);
    EXPECT_GE(duration, 0);
    if (!each.contains("args") || name == "decode" || name == "expand" || each["args"].contains("row")) continue;
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

// Of one decode thread, whose rows take long enough for a span each: every eighth of them.
TEST(timeline_of_a_run, has_the_way_of_one_sample_in_eight_from_its_reads_on) {
  const watchdog dog("timeline");
  const testing::temporary_directory here;
  const dataset set = testing::write_samples(testing::make_samples(6, 64), {}, here.path());
  loader_options options = small_options();
  options.timeline.bytes = timeline_bytes;
  options.epochs = 1;
  options.decode_threads = 1;
  loader train(set, options, testing::all_fields());
  while (train.next_blocking()) {
  }
  const nlohmann::json file = timeline_of(train);
  using place = std::pair<std::uint64_t, std::uint64_t>;  // a batch and its row
  std::map<place, std::map<std::string, std::pair<double, double>>> samples;
  std::map<std::string, int> flows;
  std::uint64_t decoded = 0;
  for (const nlohmann::json& each : file["traceEvents"]) {
    if ((each["ph"] == "s" || each["ph"] == "f") && each["name"] == "sample") ++flows[each["id"].get<std::string>()];
    if (each["ph"] != "X" || !each.contains("args") || !each["args"].contains("row")) continue;
    decoded += each["name"] == "decode" ? 1 : 0;
    const auto begin = each["ts"].get<double>();
    samples[{each["args"]["batch"], each["args"]["row"]}][each["name"]] = {begin, begin + each["dur"].get<double>()};
  }
  std::uint64_t traced = 0;
  constexpr double rounding = 0.126;  // times are eighths of a microsecond
  for (const auto& [at, spans] : samples) {
    if (!spans.contains("sample")) continue;
    ++traced;
    ASSERT_TRUE(spans.contains("decode") && spans.contains("read of the sample") &&
                spans.contains("wait for a decode thread"));
    const auto& [begin, end] = spans.at("sample");
    EXPECT_NEAR(spans.at("read of the sample").first, begin, rounding);
    EXPECT_NEAR(spans.at("read of the sample").second, spans.at("wait for a decode thread").first, rounding);
    EXPECT_NEAR(spans.at("wait for a decode thread").second, spans.at("decode").first, rounding);
    EXPECT_NEAR(spans.at("decode").second, end, rounding);
  }
  EXPECT_EQ(traced, (decoded + 7) / 8);
  EXPECT_EQ(flows.size(), traced);
}

TEST(timeline_of_a_run, counts_every_read_and_has_the_lengths_of_queues) {
  const watchdog dog("timeline");
  const testing::temporary_directory here;
  const dataset set = testing::write_samples(testing::make_samples(6, 90), {}, here.path());
  loader_options options = small_options();
  options.timeline.bytes = timeline_bytes;
  options.reader.io_threads = 2;
  loader train(set, options, testing::all_fields());
  for (int epoch = 0; epoch < 2; ++epoch) {
    while (train.next_blocking()) {
    }
  }
  std::map<std::string, std::uint64_t> lengths;
  std::uint64_t reads = 0;
  std::uint64_t spans = 0;
  const nlohmann::json file = timeline_of(train);
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] == "C") ++lengths[each["name"].get<std::string>()];
    if (each["ph"] != "X" || each["name"] != "read") continue;
    ++spans;
    reads += each["args"]["reads"].get<std::uint64_t>();
    EXPECT_GT(each["dur"].get<double>(), 0);
  }
  const std::uint64_t all = train.stats().read.count;
  EXPECT_GE(spans, 2U);
  EXPECT_GE(reads, spans);
  EXPECT_LE(reads, all) << "what came after the last span of a loop has none";
  EXPECT_EQ(lengths.size(), 4U);
  EXPECT_EQ(lengths["batches ready"], lengths["reads in flight"]);
}

TEST(timeline_of_a_run, changes_no_byte) {
  const watchdog dog("timeline");
  const fake_dataset set(testing::make_samples(2, 60));
  std::vector<digest> digests;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{4096}, timeline_bytes}) {
    loader_options options = small_options();
    options.timeline.bytes = bytes;
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
  options.timeline.bytes = timeline_bytes;
  const loader with(set, options, testing::all_fields());
  EXPECT_EQ(with.plan().host_bytes_least, without.plan().host_bytes_least + timeline_bytes);
  EXPECT_LE(with.plan().bytes_total, with.plan().host_bytes_max);
  EXPECT_THAT(with.plan().to_string(), HasSubstr("timeline"));
}

TEST(timeline_of_a_run, is_refused_where_the_budget_has_no_room_for_it) {
  const fake_dataset set(testing::make_samples(3, 30));
  loader_options options = small_options();
  for (const std::size_t bytes : {std::size_t{1} << 40, std::numeric_limits<std::size_t>::max()}) {
    options.timeline.bytes = bytes;
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
    EXPECT_THAT(refused.what(), HasSubstr("timeline_options::bytes"));
  }
  options.timeline.bytes = timeline_bytes;
  const loader with(set, options, testing::all_fields());
  try {
    with.write_timeline("/nowhere/at/all/t.json");
    ADD_FAILURE() << "written";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::not_found);
    EXPECT_THAT(refused.what(), HasSubstr("/nowhere/at/all/t.json"));
  }
}

TEST(timeline_of_a_run, has_what_the_trainer_marks) {
  const watchdog dog("timeline");
  const fake_dataset set(testing::make_samples(5, 24));
  loader_options options = small_options();
  options.timeline.bytes = timeline_bytes;
  options.epochs = 1;
  loader train(set, options, testing::all_fields());
  std::optional<leat::loader::marked> whole(train.mark("epoch"));
  int batches = 0;
  while (train.next_blocking()) {
    auto forward = train.mark("forward");
    const auto moved = std::move(forward);
    forward.end();  // NOLINT: that one is empty
    ++batches;
  }
  whole.reset();
  std::map<std::string, int> counts;
  std::pair<double, double> epoch;
  std::vector<std::pair<double, double>> steps;
  const nlohmann::json file = timeline_of(train);
  for (const nlohmann::json& each : file["traceEvents"]) {
    if (each["ph"] != "X") continue;
    const auto begin = each["ts"].get<double>();
    const std::pair<double, double> span(begin, begin + each["dur"].get<double>());
    ++counts[each["name"].get<std::string>()];
    if (each["name"] == "epoch") epoch = span;
    if (each["name"] == "forward") steps.push_back(span);
  }
  EXPECT_EQ(counts["forward"], batches);
  EXPECT_EQ(counts["epoch"], 1);
  constexpr double rounding = 0.126;
  for (const auto& [begin, end] : steps) {
    EXPECT_GE(begin + rounding, epoch.first);
    EXPECT_LE(end, epoch.second + rounding);
  }
}

TEST(timeline_of_a_run, takes_marks_without_a_timeline_and_after_the_loader) {
  const fake_dataset set(testing::make_samples(5, 24));
  loader_options options = small_options();
  const loader without(set, options, testing::all_fields());
  static_cast<void>(without.mark("nothing"));
  options.timeline.bytes = timeline_bytes;
  std::optional<loader> train(std::in_place, set, options, testing::all_fields());
  auto last = train->mark("last");
  train.reset();
  last.end();
}

// Its first samples are there at once, those from `slow_from` on when the gate opens.
class gate {
 public:
  explicit gate(std::uint64_t slow_from) : slow_from_(slow_from) {}
  [[nodiscard]] field slow_label() {
    return custom("slow", dtype::u8, {1},
                  [this](std::span<const std::byte>, const sample_context& context, std::span<std::byte> row) {
                    if (context.sample >= slow_from_) open_.wait(false);
                    row[0] = std::byte{1};
                    return std::string();
                  })
        .from("cls");
  }
  void open() {
    open_.store(true);
    open_.notify_all();
  }

 private:
  const std::uint64_t slow_from_;
  std::atomic<bool> open_{false};
};

TEST(stalls_of_a_run, get_a_file_while_one_lasts_and_none_again_when_it_ends) {
  const watchdog dog("stalls");
  const testing::temporary_directory here;
  const std::string folder = (here.path() / "traces").string();
  const fake_dataset set(testing::labels(40));
  gate held(16);
  loader_options options = small_options();
  options.shuffle = false;
  options.epochs = 1;
  options.digests = false;
  options.timeline = {.bytes = timeline_bytes, .on_stall = std::chrono::milliseconds(1), .directory = folder};
  loader train(set, options, {label("cls"), held.slow_label()});
  std::thread trainer([&] {
    while (train.next_blocking()) {
    }
  });
  while (train.stats().stalls.files == 0) std::this_thread::yield();
  EXPECT_LE(train.stats().batches, 2U) << "the third has a sample that waits";
  held.open();
  trainer.join();
  train.stop();
  const stall_stats seen = train.stats().stalls;
  EXPECT_GE(seen.waits, 1U);
  EXPECT_EQ(seen.failure, "");
  EXPECT_TRUE(std::filesystem::exists(folder + "/stall-rank-0-1.json"));
  std::ifstream in(folder + "/stall-rank-0-1.json");
  EXPECT_TRUE(nlohmann::json::parse(in).contains("traceEvents"));
}

TEST(stalls_of_a_run, get_so_many_files_and_replace_none) {
  const watchdog dog("stalls");
  const testing::temporary_directory here;
  std::ofstream(here.path() / "stall-rank-0-1.json") << "of another run";
  const fake_dataset set(testing::labels(80));
  loader_options options = small_options();
  options.epochs = 1;
  options.digests = false;
  options.prefetch_batches = 1;  // else several are ready together
  options.timeline = {.bytes = timeline_bytes,
                      .on_stall = std::chrono::milliseconds(1),
                      .directory = here.path().string(),
                      .files_max = 2};
  loader train(set, options, {testing::slow_field(std::chrono::milliseconds(4), testing::passing::asleep)});
  while (train.next_blocking()) {
  }
  train.stop();
  const stall_stats seen = train.stats().stalls;
  EXPECT_GE(seen.waits, 3U);
  EXPECT_EQ(seen.files, 2U);
  EXPECT_EQ(seen.last_file, (here.path() / "stall-rank-0-3.json").string());
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(here.path())) names.push_back(each.path().filename());
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre("stall-rank-0-1.json", "stall-rank-0-2.json", "stall-rank-0-3.json"));
  std::string kept;
  std::getline(std::ifstream(here.path() / "stall-rank-0-1.json"), kept);
  EXPECT_EQ(kept, "of another run");
  // What the trainer waited for is in the file.
  std::ifstream in(seen.last_file);
  bool waited = false;
  const nlohmann::json file = nlohmann::json::parse(in);
  for (const nlohmann::json& each : file["traceEvents"]) {
    waited |= each["name"] == "next()" && each["dur"].get<double>() > 1'000;
  }
  EXPECT_TRUE(waited);
}

TEST(stalls_of_a_run, options_that_cannot_be_are_refused_by_name) {
  const testing::temporary_directory here;
  const std::string file = (here.path() / "file").string();
  std::ofstream(file) << "no folder";
  const fake_dataset set(testing::labels(8));
  using std::chrono::milliseconds;
  const std::vector<std::pair<timeline_options, const char*>> wrong = {
      {{.bytes = 1 << 20, .on_stall = milliseconds(-1), .directory = "t"}, "timeline_options::on_stall is -1 ms"},
      {{.bytes = 1 << 20, .on_stall = milliseconds::max(), .directory = "t"}, "give a day at most"},
      {{.on_stall = milliseconds(5), .directory = "t"}, "give timeline_options::bytes"},
      {{.bytes = 1 << 20, .on_stall = milliseconds(5)}, "give timeline_options::directory"},
      {{.bytes = 1 << 20, .directory = "t"}, "timeline_options::on_stall asks for; give that, too"},
      {{.bytes = 1 << 20, .on_stall = milliseconds(5), .directory = "t", .files_max = 0}, "files_max is 0"},
      {{.bytes = 1 << 20, .on_stall = milliseconds(5), .directory = file}, "which is no folder"},
      {{.bytes = 1 << 20, .on_stall = milliseconds(5), .directory = "/nowhere/at/all"}, "/nowhere/at/all: "}};
  for (const auto& [given, said] : wrong) {
    loader_options options = small_options();
    options.timeline = given;
    try {
      const loader refused(set, options, testing::label_only());
      ADD_FAILURE() << "taken: " << said;
    } catch (const error& refused) {
      EXPECT_THAT(refused.what(), HasSubstr(said));
    }
  }
  EXPECT_FALSE(std::filesystem::exists("t"));
}

}  // namespace
}  // namespace leat
