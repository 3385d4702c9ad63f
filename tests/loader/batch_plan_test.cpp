// What run_spec::plan() says of a batch, and what a loader then reads.
#include "stages/batch/batch_plan.hpp"

#include "stages/plan/run_spec.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace leat {
namespace {

using stages::batch_plan;
using stages::run_spec;
using testing::fake_dataset;
using testing::loader;
using testing::loader_options;
using testing::small_options;

TEST(batch_plan, of_any_batch_is_the_same_whenever_it_is_asked_for) {
  const fake_dataset set(testing::make_samples(1, 45));
  const run_spec run(set, testing::all_fields(), small_options());
  std::vector<batch_plan> plans;
  for (std::uint64_t batch = 0; batch < run.batches(1); ++batch) plans.push_back(run.plan(1, batch));
  const run_spec again(set, testing::all_fields(), small_options());
  for (std::uint64_t batch = run.batches(1); batch-- != 0;) {
    EXPECT_EQ(again.plan(1, batch), plans[batch]);
    EXPECT_EQ(plans[batch].epoch, 1U);
    EXPECT_EQ(plans[batch].index, batch);
  }
  EXPECT_NE(plans[0].picks, plans[1].picks);
}

TEST(batch_plan, of_all_batches_together_is_what_a_loader_reads) {
  const testing::watchdog dog("plans");
  for (const bool in_order : {false, true}) {
    for (const testing::fake_layout layout : {testing::fake_layout::shards, testing::fake_layout::file_per_member}) {
      const fake_dataset set(testing::make_samples(2, 45), {.layout = layout, .disk = {}});
      loader_options options = small_options();
      options.shuffle = !in_order;
      const run_spec run(set, testing::all_fields(), options);
      std::uint64_t reads = 0;
      std::uint64_t rows = 0;
      std::uint64_t bytes = 0;
      for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
        for (std::uint64_t index = 0; index < run.batches(epoch); ++index) {
          const batch_plan plan = run.plan(epoch, index);
          EXPECT_TRUE(plan.corrupt.empty());
          reads += plan.reads.size();
          rows += plan.rows();
          for (const batch_plan::read& read : plan.reads) bytes += read.bytes;
        }
      }
      loader train(set, options, testing::all_fields());
      std::uint64_t delivered = 0;
      for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
        for (const batch& got : train.blocking()) delivered += got.valid_rows();
      }
      EXPECT_EQ(delivered, rows);
      EXPECT_EQ(train.stats().read.count, reads);
      EXPECT_EQ(train.stats().bytes_read, bytes);
      EXPECT_EQ(set.count().reads, reads);
    }
  }
}

}  // namespace
}  // namespace leat
