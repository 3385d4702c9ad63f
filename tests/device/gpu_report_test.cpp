// The page that scripts/gpu leaves behind, written from numbers made up here: no GPU is needed to see that it says them.
#include "benchmarks/gpu_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <string>

namespace leat::benchmarks {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

figure rounds(std::initializer_list<double> values) {
  figure made;
  for (const double value : values) made.add(value);
  return made;
}

gpu_report made_up() {
  gpu_report report;
  report.facts = {{"device", "a device | of no make"}, {"commit", "0000000"}};
  report.lines = {
      {.what = {"step with / without", rounds({1.25, 1.0, 1.125}), "", 3},
       .under = "records, 5 ms",
       .target = target{target::sense::at_most, 1.01},
       .of = {{"with", rounds({5.5, 5, 6}), "ms", 1}}},
      {.what = {"bytes", rounds({0.96875}), "", 2}, .under = "38 MB", .target = target{target::sense::at_least, 0.95}},
      {.what = {"told", rounds({3}), "us", 0}, .under = "no target"},
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
  report.lines = {{.what = {"a", rounds({std::numeric_limits<double>::infinity()}), "", 2}, .under = ""}};
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
  barred.lines = {{.what = {"a|b", rounds({1}), "", 0}, .under = "c\nd"}};
  EXPECT_THAT(barred.as_markdown(""), HasSubstr("| a\\|b | c d | 1 (1..1) |"));
}

}  // namespace
}  // namespace leat::benchmarks
