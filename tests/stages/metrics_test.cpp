// The text that scrapers read, by a parser that forgives nothing.
#include "tests/support/parse_metrics.hpp"

#include <leat/error.hpp>
#include <leat/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>
#include <string>

namespace leat {
namespace {

using ::testing::HasSubstr;

std::string text_of(const loader_stats& stats, const std::vector<metric_label>& labels = {}) {
  std::ostringstream out;
  write_metrics(out, stats, labels);
  return out.str();
}

loader_stats some_stats() {
  loader_stats now;
  now.samples = 1000;
  now.planned = 1003;
  now.quarantined = 3;
  now.quarantined_as = {{"TIFF", 2}, {"damaged", 1}};
  now.bytes_read = 9'007'199'254'740'993;  // no double has it
  now.decode.busy_s = 1.5;
  now.decode.items_s = 1.4;
  now.decode.items.counts = {0, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 5};
  now.threads = {{.name = "io-0", .busy_s = 1, .idle_s = 2, .cpu_s = 3}};
  now.reader.backend.use = "io_uring";
  now.verdict.who = bottleneck::decode;
  now.verdict.decode.per_s = 1690;
  return now;
}

TEST(metrics, are_what_a_strict_parser_takes) {
  const testing::metrics read = testing::parse_metrics(text_of(some_stats(), {{"job", "resnet"}}));
  EXPECT_EQ(read.value("leat_samples_total{job=\"resnet\"}"), 1000);
  EXPECT_EQ(read.value("leat_quarantined_samples_total{kind=\"TIFF\",job=\"resnet\"}"), 2);
  EXPECT_EQ(read.value("leat_bottleneck{who=\"decode\",job=\"resnet\"}"), 1);
  EXPECT_EQ(read.value("leat_bottleneck{who=\"read\",job=\"resnet\"}"), 0);
  EXPECT_EQ(read.value("leat_stage_seconds_bucket{stage=\"decode\",le=\"1.6384e-05\",job=\"resnet\"}"), 1);
  EXPECT_EQ(read.value("leat_stage_seconds_bucket{stage=\"decode\",le=\"+Inf\",job=\"resnet\"}"), 11);
  EXPECT_EQ(read.value("leat_stage_seconds_count{stage=\"decode\",job=\"resnet\"}"), 11);
  EXPECT_EQ(read.value("leat_rung{kind=\"backend\",use=\"io_uring\",job=\"resnet\"}"), 1);
  EXPECT_THAT(text_of(some_stats()), HasSubstr("leat_bytes_total{of=\"read\"} 9007199254740993\n"));
}

TEST(metrics, of_a_loader_that_has_done_nothing_are_whole) {
  const testing::metrics read = testing::parse_metrics(text_of({}));
  EXPECT_EQ(read.value("leat_samples_total"), 0);
  EXPECT_EQ(read.value("leat_bottleneck{who=\"unknown\"}"), 1);
}

TEST(metrics, escape_what_a_label_holds) {
  const std::string odd = "a \"quoted\"\nback\\slash";
  const testing::metrics read = testing::parse_metrics(text_of({}, {{"job", odd}}));
  EXPECT_EQ(read.value("leat_samples_total{job=\"a \\\"quoted\\\"\\nback\\\\slash\"}"), 0);
}

TEST(metrics, refuse_names_of_labels_that_are_none) {
  for (const char* name : {"", "9lives", "a-b", "a b", "__name__", "le", "stage"}) {
    EXPECT_THROW(static_cast<void>(text_of({}, {{name, "x"}})), error) << name;
  }
  EXPECT_THROW(static_cast<void>(text_of({}, {{"job", "a"}, {"job", "b"}})), error);
}

TEST(metrics, write_what_is_no_number_as_the_format_has_it) {
  loader_stats odd;
  odd.stalled_s = std::numeric_limits<double>::infinity();
  EXPECT_THAT(text_of(odd), HasSubstr("leat_wait_seconds_total{side=\"consumer\"} +Inf\n"));
}

}  // namespace
}  // namespace leat
