// The page that scripts/gpu leaves behind, written from numbers made up here: no GPU is needed to see that it says them.
#include "benchmarks/gpu_report.hpp"

#include "benchmarks/rounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <pthread.h>

#include <limits>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace leat::benchmarks {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

figure values_of(std::initializer_list<double> values) {
  figure made;
  for (const double value : values) made.add(value);
  return made;
}

gpu_report made_up() {
  gpu_report report;
  report.facts = {{"device", "a device | of no make"}, {"commit", "0000000"}};
  report.lines = {{.what = {"step with / without", values_of({1.25, 1.0, 1.125}), "", 3},
                   .under = "records, 5 ms",
                   .target = target{target::sense::at_most, 1.01},
                   .of = {{"with", values_of({5.5, 5, 6}), "ms", 1}}},
                  {.what = {"bytes", values_of({0.96875}), "", 2},
                   .under = "38 MB",
                   .target = target{target::sense::at_least, 0.95}},
                  {.what = {"told", values_of({3}), "us", 0}, .under = "no target"},
                  {.what = {"nothing", {}, "us", 0}, .under = "", .target = target{target::sense::at_most, 5}}};
  report.left_out = {"initcheck: not installed"};
  return report;
}

TEST(gpu_report, a_table_says_the_median_the_spread_and_whether_the_target_was_met) {
  const std::string table = made_up().as_table();
  EXPECT_THAT(table, HasSubstr("1.125 (1.000..1.250)"));
  EXPECT_THAT(table, HasSubstr("at most 1.010    MISSED"));
  EXPECT_THAT(table, HasSubstr("with 5.5 (5.0..6.0) ms"));
  EXPECT_THAT(table, HasSubstr("at least 0.95    met"));
  EXPECT_THAT(table, HasSubstr("left out: initcheck: not installed"));
}

TEST(gpu_report, what_was_not_measured_has_met_no_target) {
  const gpu_report report = made_up();
  EXPECT_FALSE(report.lines.back().met());
  EXPECT_THAT(report.as_table(), HasSubstr("not measured"));
}

TEST(gpu_report, json_has_what_the_table_has) {
  const auto json = nlohmann::json::parse(made_up().as_json());
  EXPECT_EQ(json["facts"]["commit"], "0000000");
  ASSERT_EQ(json["figures"].size(), 4U);
  const auto& first = json["figures"][0];
  EXPECT_EQ(first["median"], 1.125);
  EXPECT_EQ(first["rounds"], 3);
  EXPECT_EQ(first["target"]["at"], "most");
  EXPECT_EQ(first["target"]["met"], false);
  EXPECT_EQ(first["of"][0]["unit"], "ms");
  EXPECT_FALSE(json["figures"][2].contains("target"));
  EXPECT_FALSE(json["figures"][3].contains("median"));
  EXPECT_EQ(json["left_out"][0], "initcheck: not installed");
}

TEST(gpu_report, tells_what_the_first_steps_cost_that_no_figure_of_steps_counts) {
  first_steps steps;
  steps.add({.steps = 8, .took_ms = 50, .later_ms = 5, .pins = 6, .pinning_ms = 9.5});
  steps.add({.steps = 8, .took_ms = 42, .later_ms = 5, .pins = 7, .pinning_ms = 8.5});
  steps.add({.steps = 8, .took_ms = 44, .later_ms = 5, .pins = 6, .pinning_ms = 8});
  gpu_report report;
  report.lines = {steps.report("records, 5 ms, 64 rows")};
  for (const std::string& text : {report.as_table(), report.as_markdown("On a device")}) {
    EXPECT_THAT(text, HasSubstr("what the first steps take longer, while memory is pinned"));
    EXPECT_THAT(text, HasSubstr("records, 5 ms, 64 rows"));
    EXPECT_THAT(text, HasSubstr("4.00 (2.00..10.00) ms"));
    EXPECT_THAT(text, HasSubstr("first steps 8 (8..8), each of them 5.500 (5.250..6.250) ms, a later one 5.000 "
                                "(5.000..5.000) ms, calls that pin 6 (6..7), all of those 8.50 (8.00..9.50) ms"));
  }
  const auto json = nlohmann::json::parse(report.as_json());
  const auto& line = json["figures"][0];
  EXPECT_EQ(line["median"], 4);
  EXPECT_EQ(line["unit"], "ms");
  EXPECT_FALSE(line.contains("target")) << "it is a fact";
  EXPECT_EQ(line["of"][3]["name"], "calls that pin");
  EXPECT_EQ(line["of"][3]["median"], 6);
}

TEST(gpu_report, json_stays_json_whatever_was_measured) {
  gpu_report report;
  report.facts = {{"device", "\xFF"}};
  report.lines = {{.what = {"a", values_of({std::numeric_limits<double>::infinity()}), "", 2}, .under = ""}};
  EXPECT_TRUE(nlohmann::json::parse(report.as_json())["figures"][0]["median"].is_null());
}

TEST(gpu_report, a_page_is_one_table_whose_cells_stay_cells) {
  const std::string page = made_up().as_markdown("On a device");
  EXPECT_THAT(page, HasSubstr("# On a device\n"));
  EXPECT_THAT(page, HasSubstr("- device: a device | of no make\n"));
  EXPECT_THAT(page,
              HasSubstr("| step with / without | records, 5 ms | 1.125 (1.000..1.250) | at most 1.010 | MISSED |"));
  EXPECT_THAT(page, HasSubstr("- initcheck: not installed\n"));
  gpu_report barred;
  barred.lines = {{.what = {"a|b", values_of({1}), "", 0}, .under = "c\nd"}};
  EXPECT_THAT(barred.as_markdown(""), HasSubstr("| a\\|b | c d | 1 (1..1) |"));
}

void spin(double cpu_s) {
  const double until_s = thread_cpu_s() + cpu_s;
  while (thread_cpu_s() < until_s) continue;
}

TEST(other_threads_cpu, holds_what_threads_of_other_names_have_done_since) {
  std::counting_semaphore<2> begin(0), done(0), end(0);
  std::thread other([&] {
    spin(0.05);
    done.release();
    begin.acquire();
    spin(0.02);
    done.release();
    end.acquire();
  });
  done.acquire();
  const other_threads_cpu from_now("leat-decode");
  const double here_s = thread_cpu_s();
  std::thread decoder([&] {
    ::pthread_setname_np(::pthread_self(), "leat-decode-1");
    spin(0.2);
    done.release();
    end.acquire();
  });
  done.acquire();
  begin.release();
  done.acquire();
  const double spent_s = from_now.spent_s();
  const double this_thread_s = thread_cpu_s() - here_s;
  end.release(2);
  other.join();
  decoder.join();
  EXPECT_GE(spent_s, 0.02);
  // Without the decoder's 0.2 s, and without the 0.05 s from before.
  EXPECT_LE(spent_s, 0.02 + this_thread_s + 0.02);
}

TEST(rounds, what_is_written_before_a_part_names_it_and_all_that_is_not_done) {
  std::vector<std::string> written;
  std::vector<std::string> seen_by_second;
  rounds all([&](const std::vector<std::string>& left_out) { written = left_out; });
  all.add("first", [] {});
  all.add("second", [&] { seen_by_second = written; });
  all.add("third", [] {});
  all.run(1, 0);
  EXPECT_THAT(seen_by_second, ElementsAre(HasSubstr("ended in round 1 of 1, during \"second\""), "second: not done",
                                          "third: not done"));
  EXPECT_THAT(written, IsEmpty());
}

TEST(rounds, a_part_that_fails_is_named_and_the_others_go_on) {
  std::vector<std::string> written;
  std::string calls;
  rounds all([&](const std::vector<std::string>& left_out) { written = left_out; });
  all.add_once("once", [&] { calls += "o"; });
  all.add("bad", [&] {
    calls += "b";
    throw std::runtime_error("broken");
  });
  all.add("idle", [&] {
    calls += "i";
    throw nothing_to_measure("too slow");
  });
  all.add("good", [&] { calls += "g"; });
  all.run(3, 60);
  EXPECT_EQ(calls, "obiggg");
  EXPECT_THAT(written, ElementsAre("FAILED: bad: broken", "idle: too slow"));
  EXPECT_TRUE(all.any_failed());
}

TEST(rounds, only_some_are_measured_and_what_others_need_is_made) {
  std::string calls;
  rounds all([](const std::vector<std::string>&) {}, "copies");
  all.add_once("memory", [&] { calls += "m"; });
  all.add("copies alone", [&] { calls += "c"; });
  all.add("steps", [&] { calls += "s"; });
  all.run(2, 60);
  EXPECT_EQ(calls, "mcc");
}

TEST(rounds, the_first_round_is_whole_and_after_it_nothing_begins_when_the_time_is_up) {
  std::vector<std::string> written;
  std::string calls;
  rounds all([&](const std::vector<std::string>& left_out) { written = left_out; });
  all.add("a", [&] { calls += "a"; });
  all.add("b", [&] { calls += "b"; });
  all.run(5, -1);
  EXPECT_EQ(calls, "ab");
  EXPECT_THAT(written, ElementsAre(HasSubstr("round 2 of 5 from \"a\" on")));
  EXPECT_FALSE(all.any_failed());
}

}  // namespace
}  // namespace leat::benchmarks
