// A loader that tunes itself: within what it may, told step by step, and without a byte that depends on it.
#include "base/cores_quota.hpp"
#include "stages/run/loader_parts.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/slow_parts.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/stats.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::watchdog;
using namespace std::chrono_literals;

std::ptrdiff_t decode_threads_of(const loader& train) {
  const std::vector<thread_stats> all = train.stats().threads;
  return std::count_if(all.begin(), all.end(),
                       [](const thread_stats& each) { return each.name.starts_with("decode-"); });
}

// Four decode threads, of which it needs one.
loader_options for_a_slow_trainer() {
  loader_options options = small_options();
  options.epochs = 1;
  options.digests = false;
  options.decode_threads = 4;
  options.tune = tuning::on;
  options.windows = {.batches = 8, .seconds = 0.02};
  return options;
}

TEST(tuning_of_a_run, gives_cores_back_to_a_slow_trainer_and_says_so) {
  const watchdog dog("tuning");
  const fake_dataset set(testing::labels(480));
  const loader_options options = for_a_slow_trainer();
  loader train(set, options, {testing::slow_field(100us, testing::passing::asleep)});
  EXPECT_EQ(train.stats().tuned.decode_threads, 4U);
  while (const auto got = train.next_blocking()) std::this_thread::sleep_for(8ms);  // a trainer's step
  const tuning_stats seen = train.stats().tuned;
  ASSERT_GE(seen.steps.size(), 1U);
  EXPECT_EQ(seen.steps.front().setting, "decode_threads");
  EXPECT_EQ(seen.steps.front().from, 4U);
  EXPECT_LT(seen.steps.front().to, 4U);
  EXPECT_EQ(seen.steps.front().why, "to spare");
  EXPECT_LE(seen.steps.front().stall_share, 0.01);
  EXPECT_GT(seen.steps.front().at_s, 0);
  EXPECT_EQ(seen.steps_in_all, seen.steps.size());
  std::uint32_t threads = 4;
  for (const tuning_step& each : seen.steps) {
    if (each.setting != "decode_threads") continue;
    EXPECT_EQ(each.from, threads) << "each step goes on where the one before ended";
    threads = each.to;
  }
  EXPECT_EQ(seen.decode_threads, threads);
}

TEST(tuning_of_a_run, has_each_step_in_the_timeline_at_its_time) {
  const watchdog dog("tuning");
  const fake_dataset set(testing::labels(480));
  loader_options options = for_a_slow_trainer();
  options.timeline.bytes = std::size_t{1} << 20;
  loader train(set, options, {testing::slow_field(100us, testing::passing::asleep)});
  while (const auto got = train.next_blocking()) std::this_thread::sleep_for(8ms);  // a trainer's step
  const testing::temporary_directory here;
  const std::string path = here.path() / "t.json";
  train.write_timeline(path);
  const auto trace = nlohmann::json::parse(std::ifstream(path));
  const std::vector<tuning_step> steps = train.stats().tuned.steps;
  ASSERT_FALSE(steps.empty());
  std::vector<nlohmann::json> noted;
  std::vector<double> ends;  // of the calls of next()
  for (const nlohmann::json& each : trace.at("traceEvents")) {
    if (each.at("ph") == "i") noted.push_back(each);
    if (each.at("name") == "next()") ends.push_back(each.at("ts").get<double>() + each.at("dur").get<double>());
  }
  ASSERT_EQ(noted.size(), steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(noted[i].at("name"),
              steps[i].setting + " " + std::to_string(steps[i].from) + " to " + std::to_string(steps[i].to));
    EXPECT_EQ(noted[i].at("args").at("setting"), steps[i].setting);
    EXPECT_EQ(noted[i].at("args").at("from"), steps[i].from);
    EXPECT_EQ(noted[i].at("args").at("to"), steps[i].to);
    EXPECT_EQ(noted[i].at("args").at("why"), steps[i].why);
    EXPECT_NEAR((noted[i].at("ts").get<double>() - noted[0].at("ts").get<double>()) * 1e-6,
                steps[i].at_s - steps[0].at_s, 1e-5);
    // A window ends with a batch that is handed out, at about the end of that call.
    EXPECT_LE(noted[i].at("ts").get<double>(), ends.back() + 1e3);
    EXPECT_GE(noted[i].at("ts").get<double>(), ends.front());
  }
}

TEST(tuning_of_a_run, changes_no_byte) {
  const watchdog dog("tuning");
  const fake_dataset set(testing::make_samples(2, 200));
  std::vector<digest> digests;
  for (const tuning tune : {tuning::off, tuning::on}) {
    loader_options options = small_options();
    options.tune = tune;
    options.epochs = 3;
    options.decode_threads = 3;
    options.windows = {.batches = 2, .seconds = 0.001, .first_batches = 1};
    loader train(set, options, testing::all_fields());
    for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
      while (const auto got = train.next_blocking()) {
        if (got->index() % 3 == 0) std::this_thread::sleep_for(1ms);  // windows of both kinds
      }
    }
    digests.push_back(train.state().run_digest.value());
    if (tune == tuning::off) EXPECT_THAT(train.stats().tuned.steps, IsEmpty());
  }
  EXPECT_EQ(digests[1], digests[0]);
}

TEST(tuning_of_a_run, may_take_more_io_threads_than_it_begins_with) {
  const testing::temporary_directory directory;
  const dataset files = testing::write_samples(testing::make_samples(2, 20), {}, directory.path());
  const auto io_threads = [&](const loader_options& options) {
    const loader train(files, options, testing::label_only());
    return std::pair(stages::depths_of(train).io_threads, stages::depths_max(train).io_threads);
  };
  loader_options options = small_options();
  options.tune = tuning::on;
  EXPECT_EQ(io_threads(options), std::pair(1U, std::clamp(working_cores() / 4, std::min(working_cores(), 2U), 4U)));
  options.reader.io_threads = 3;
  EXPECT_EQ(io_threads(options), std::pair(3U, 3U)) << "as it was given";
  options.reader.io_threads = 0;
  options.cores_max = 4;
  EXPECT_EQ(io_threads(options), std::pair(1U, 1U)) << "the others are decode threads";
}

TEST(cores_max, is_kept_whatever_else_is_asked_for) {
  const fake_dataset set(testing::labels(40));
  loader_options options = small_options();
  options.decode_threads = 0;
  options.tune = tuning::on;
  for (const std::uint32_t cores : {2U, 3U}) {
    options.cores_max = cores;
    const loader train(set, options, testing::label_only());
    EXPECT_LE(train.plan().decode_threads, cores - 1);
    EXPECT_LE(decode_threads_of(train), static_cast<std::ptrdiff_t>(cores - 1));
  }
}

TEST(cores_max, that_leaves_too_few_threads_is_refused_in_words) {
  const fake_dataset set(testing::labels(40));
  const auto refusal = [&](std::uint32_t cores, std::uint32_t threads, std::uint32_t io_threads) {
    loader_options options = small_options();
    options.cores_max = cores;
    options.decode_threads = threads;
    options.reader.io_threads = io_threads;
    return testing::message_of(errc::usage, [&] { const loader refused(set, options, testing::label_only()); });
  };
  EXPECT_THAT(refusal(1, 0, 1),
              HasSubstr("a cores_max of 1 leaves no decode thread beside 1 I/O thread; give at least 2"));
  EXPECT_THAT(refusal(4, 0, 4), HasSubstr("beside 4 I/O threads; give at least 5"));
  EXPECT_THAT(refusal(4, 4, 1), HasSubstr("decode_threads is 4, and a cores_max of 4 leaves 3 beside 1 I/O thread"));
}

}  // namespace
}  // namespace leat
