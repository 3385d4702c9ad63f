// A run that goes on where another one ended, and any batch by itself.
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::AllOf;
using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::seen_batch;
using testing::small_options;
using testing::watchdog;

TEST(batch_at, is_the_batch_that_the_run_delivers_there) {
  const watchdog dog("any batch");
  const fake_dataset set(testing::make_samples(1, 45));
  testing::loader_options options = small_options();
  testing::loader train(set, options, testing::all_fields());
  const std::vector<seen_batch> run = testing::run_epochs(train, options.epochs);
  ASSERT_EQ(run.size(), 12U);
  options.digests = false;
  const testing::loader other(set, options, testing::all_fields());
  // From the last one to the first: none rests on the one before it.
  for (std::size_t k = run.size(); k-- > 0;) {
    const batch alone = other.batch_at(run[k].epoch, run[k].index);
    EXPECT_EQ(alone.content_digest()->hex(), run[k].content) << "batch " << k;
    EXPECT_EQ(std::vector(alone.ids().begin(), alone.ids().end()), run[k].ids);
    EXPECT_EQ(alone.names().size(), run[k].ids.size());
    EXPECT_EQ(alone.epoch(), run[k].epoch);
    EXPECT_EQ(alone.index(), run[k].index);
  }
}

TEST(batch_at, leaves_the_run_alone) {
  const watchdog dog("a batch beside the run");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::loader_options options = small_options();
  testing::loader undisturbed(set, options, testing::all_fields());
  const std::vector<seen_batch> run = testing::run_epochs(undisturbed, options.epochs);
  testing::loader train(set, options, testing::all_fields());
  std::vector<seen_batch> seen;
  for (std::uint32_t epoch = 0; epoch < options.epochs; ++epoch) {
    while (std::optional<batch> got = train.next_blocking()) {
      EXPECT_EQ(train.batch_at(1, 5).content_digest()->hex(), run.back().content);
      seen.push_back(testing::look_at(*got));
    }
  }
  EXPECT_EQ(seen, run);
}

TEST(batch_at, names_how_many_there_are_where_there_is_none) {
  const watchdog dog("no such batch");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::loader train(set, small_options(), testing::label_only());
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(train.batch_at(0, 6)); }),
              AllOf(HasSubstr("batch 6 of epoch 0"), HasSubstr("it has 6")));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(train.batch_at(2, 0)); }),
              AllOf(HasSubstr("no epoch 2"), HasSubstr("the run has 2")));
}

}  // namespace
}  // namespace leat
