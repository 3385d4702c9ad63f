// A run that goes on where another one ended, and any batch by itself.
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
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

// --- resume -----------------------------------------------------------------------------------------------------------

/// What next() gives, one after the other: batches, and the ends of epochs.
struct step {
  std::optional<seen_batch> got;
  friend bool operator==(const step&, const step&) = default;
};

/// So many of them, or all there are.
std::vector<step> take(testing::loader& from, std::size_t most = std::numeric_limits<std::size_t>::max()) {
  std::vector<step> taken;
  while (taken.size() < most && !from.finished()) {
    std::optional<batch> got = from.next_blocking();
    taken.push_back({got ? std::optional(testing::look_at(*got)) : std::nullopt});
  }
  return taken;
}

/// The state as another process finds it.
loader_state stored(const loader_state& state) { return loader_state::from_bytes(state.bytes()); }

testing::loader_options resumed(testing::loader_options options, const loader_state& state) {
  options.resume = stored(state);
  return options;
}

TEST(resume, at_any_place_gives_what_would_have_come) {
  const watchdog dog("resume anywhere");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::loader_options options = small_options();
  testing::loader undisturbed(set, options, testing::all_fields());
  const std::vector<step> run = take(undisturbed);
  ASSERT_EQ(run.size(), 14U) << "6 batches and an end, twice";
  const digest whole = *undisturbed.state().run_digest;
  for (std::size_t place = 0; place <= run.size(); ++place) {
    SCOPED_TRACE(place);
    testing::loader first(set, options, testing::all_fields());
    std::vector<step> seen = take(first, place);
    const loader_state state = first.state();
    first.stop();
    testing::loader second(set, resumed(options, state), testing::all_fields());
    const std::vector<step> rest = take(second);
    seen.insert(seen.end(), rest.begin(), rest.end());
    ASSERT_EQ(seen, run);
    EXPECT_EQ(second.state().run_digest, whole);
    EXPECT_TRUE(second.finished());
    EXPECT_FALSE(second.next_blocking()) << "for ever after";
  }
}

TEST(resume, after_each_of_several_batches_that_are_held) {
  const watchdog dog("state_after");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::loader_options options = small_options();
  testing::loader train(set, options, testing::label_only());
  std::vector<batch> held;
  for (int k = 0; k < 3; ++k) held.push_back(*train.next_blocking());
  for (const std::size_t k : {2U, 0U, 1U}) {
    const loader_state state = train.state_after(held[k]);
    EXPECT_EQ(state.epoch, 0U);
    EXPECT_EQ(state.batch, k + 1);
    EXPECT_EQ(state.counted.batches, k + 1);
    testing::loader second(set, resumed(options, state), testing::label_only());
    const batch next = *second.next_blocking();
    EXPECT_EQ(next.index(), k + 1);
  }
  EXPECT_EQ(train.state().batch, 3U);
  testing::loader other(set, options, testing::label_only());
  EXPECT_THAT(testing::message_of(errc::usage, [&] { static_cast<void>(other.state_after(held[0])); }),
              HasSubstr("another loader"));
}

TEST(resume, goes_on_with_the_journal_and_with_what_is_counted_against_corrupt_max) {
  const watchdog dog("resume with corrupt samples");
  std::vector<testing::fake_sample> samples = testing::make_samples(1, 45);
  for (const std::size_t corrupt : {3U, 4U, 17U}) samples[corrupt].find("cls")->bytes.clear();
  for (const std::size_t corrupt : {18U, 30U, 44U}) samples[corrupt].remove("cls");
  const fake_dataset set(samples);
  const testing::temporary_directory root;
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    testing::loader_options options = small_options();
    options.on_corrupt = policy;
    options.corrupt_max.count = 6;
    options.journal = root.path() / "whole";
    testing::loader undisturbed(set, options, testing::label_only());
    const std::vector<step> run = take(undisturbed);
    const std::string journal = testing::whole_file(options.journal);
    const std::vector<corrupt_count> kinds = undisturbed.stats().quarantined_as;
    EXPECT_EQ(kinds,
              (std::vector<corrupt_count>{{.kind = "empty", .samples = 6}, {.kind = "incomplete", .samples = 6}}));
    options.journal = root.path() / "parts";
    for (std::size_t place = 0; place <= run.size(); ++place) {
      SCOPED_TRACE(place);
      testing::loader first(set, options, testing::label_only());
      std::vector<step> seen = take(first, place);
      const loader_state state = first.state();
      take(first, 2);  // Lines that the state does not count.
      first.stop();
      testing::loader second(set, resumed(options, state), testing::label_only());
      const std::vector<step> rest = take(second);
      seen.insert(seen.end(), rest.begin(), rest.end());
      ASSERT_EQ(seen, run);
      EXPECT_EQ(testing::whole_file(options.journal), journal);
    }
    // One less is too little, wherever the run is resumed.
    options.corrupt_max.count = 5;
    options.journal.clear();
    testing::loader first(set, options, testing::label_only());
    take(first, 4);
    testing::loader second(set, resumed(options, first.state()), testing::label_only());
    EXPECT_THAT(testing::message_of(errc::corrupt, [&] { take(second); }), HasSubstr("6 samples of epoch 0"));
  }
}

TEST(resume, of_a_journal_that_is_not_the_runs_is_refused) {
  const watchdog dog("another journal");
  std::vector<testing::fake_sample> samples = testing::make_samples(1, 45);
  for (testing::fake_sample& each : samples) {
    if (each.find("cls")->bytes.size() % 2 == 1) each.find("cls")->bytes.clear();
  }
  const fake_dataset set(samples);
  const testing::temporary_directory root;
  testing::loader_options options = small_options();
  options.on_corrupt = corrupt_policy::skip;
  options.journal = root.path() / "a";
  testing::loader first(set, options, testing::label_only());
  take(first, 5);
  const loader_state state = first.state();
  ASSERT_GT(state.journal_bytes, 0U);
  first.stop();
  std::ofstream(root.path() / "b") << "{}\n";
  options.journal = root.path() / "b";
  EXPECT_THAT(
      testing::message_of(errc::usage, [&] { testing::loader(set, resumed(options, state), testing::label_only()); }),
      AllOf(HasSubstr("b has 3 bytes"), HasSubstr("name the file that this run has written")));
  EXPECT_EQ(testing::whole_file(root.path() / "b"), "{}\n") << "nothing was lost";
}

TEST(resume, can_go_to_another_place) {
  const watchdog dog("at()");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::loader_options options = small_options();
  testing::loader train(set, options, testing::all_fields());
  const std::vector<step> run = take(train);
  const loader_state state = train.state();
  testing::loader again(set, resumed(options, state.at(1, 2)), testing::all_fields());
  EXPECT_EQ(take(again), std::vector<step>(run.begin() + 9, run.end()));
  EXPECT_FALSE(again.state().run_digest) << "of other batches than the run's";
  EXPECT_THAT(testing::message_of(
                  errc::usage, [&] { testing::loader(set, resumed(options, state.at(1, 7)), testing::all_fields()); }),
              AllOf(HasSubstr("batch 7 of epoch 1"), HasSubstr("6")));
}

TEST(resume, of_an_epoch_that_was_skipped_begins_the_next_one) {
  const watchdog dog("resume after skip_epoch");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::loader_options options = small_options();
  testing::loader undisturbed(set, options, testing::label_only());
  const std::vector<step> run = take(undisturbed);
  testing::loader train(set, options, testing::label_only());
  take(train, 3);
  train.skip_epoch();
  testing::loader second(set, resumed(options, train.state()), testing::label_only());
  EXPECT_EQ(take(second), std::vector<step>(run.begin() + 7, run.end()));
}

TEST(resume, of_a_finished_run_gives_nothing_and_a_longer_one_goes_on) {
  const watchdog dog("resume at the end");
  const fake_dataset set(testing::make_samples(1, 45));
  testing::loader_options options = small_options();
  testing::loader train(set, options, testing::label_only());
  EXPECT_FALSE(train.finished());
  take(train);
  EXPECT_TRUE(train.finished());
  const loader_state state = train.state();
  EXPECT_EQ(state.epoch, 2U);
  testing::loader none(set, resumed(options, state), testing::label_only());
  EXPECT_TRUE(none.finished());
  EXPECT_FALSE(none.next_blocking());
  options.epochs = 3;
  testing::loader longer(set, resumed(options, state), testing::label_only());
  EXPECT_FALSE(longer.finished());
  EXPECT_EQ(longer.next_blocking()->epoch(), 2U);
}

TEST(resume, of_another_run_is_refused_by_name) {
  const watchdog dog("another run");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::loader_options options = small_options();
  testing::loader train(set, options, testing::label_only());
  const loader_state state = train.state();
  testing::loader_options other = resumed(options, state);
  other.seed = 8;
  EXPECT_THAT(testing::message_of(errc::usage, [&] { testing::loader(set, other, testing::label_only()); }),
              HasSubstr("seed is 8, and was 7"));
}

}  // namespace
}  // namespace leat
