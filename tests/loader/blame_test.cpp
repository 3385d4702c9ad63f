// Who is to blame for samples that cannot be had, and how many of them a run puts up with.
#include "stages/run/corrupt_watch.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::labels;
using testing::loader;
using testing::loader_options;
using testing::seen_run;
using ::testing::StartsWith;
using testing::watchdog;

// Samples of nothing but their class; every one of `corrupt` has none that is a number.
testing::fake_dataset_options loose_files(std::uint64_t seed = 1) {
  testing::fake_dataset_options where;
  where.layout = testing::fake_layout::file_per_member;
  where.disk.seed = seed;
  return where;
}

loader_options in_order(corrupt_policy policy) {
  loader_options options = testing::small_options();
  options.on_corrupt = policy;
  options.batch_size = 7;
  options.shuffle = false;
  options.epochs = 1;
  return options;
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The same run on other machines: threads, depths, seeds of the disk.
template <class Check>
void on_every_machine(const loader_options& options, const Check& check) {
  for (const std::uint32_t threads : {1U, 2U, 5U}) {
    for (const std::uint32_t io_threads : {1U, 3U}) {
      loader_options here = options;
      here.decode_threads = threads;
      here.reader.io_threads = io_threads;
      here.prefetch_batches = threads;
      testing::choose_place(here);
      SCOPED_TRACE(std::to_string(threads) + " decode threads, " + std::to_string(io_threads) + " I/O threads");
      check(here, threads * 10 + io_threads);
    }
  }
}

// --- what a source says ------------------------------------------------------------------------------------------------

// Beside an errno that says something else.
TEST(blame, is_whose_the_source_says_and_its_words_are_the_reason) {
  const auto said = [](io::fault whose, errc code, const char* words) {
    return std::make_shared<const io::source_failure>(io::source_failure{whose, error(code, words)});
  };
  const char* const forbidden = "s3://b/k: 403 Forbidden: the profile 'train' may not read it; give it s3:GetObject";
  for (const corrupt_policy policy : {corrupt_policy::raise, corrupt_policy::skip, corrupt_policy::substitute}) {
    on_every_machine(in_order(policy), [&](loader_options options, std::uint64_t seed) {
      const watchdog dog("a source that says why");
      {
        // EIO is a file's fault by itself.
        fake_dataset set(labels(60), loose_files(seed));
        set.damage(20, "cls", EIO, testing::read_fault::always,
                   said(io::fault::environment, errc::permission, forbidden));
        const seen_run run = testing::run_all(set, options, testing::label_only());
        EXPECT_EQ(run.failed, errc::permission);
        EXPECT_EQ(run.message, forbidden) << "under every policy";
      }
      if (policy == corrupt_policy::raise) return;
      // ETIMEDOUT ends a run by itself. As many of the samples' own as there are:
      fake_dataset set(labels(60), loose_files(seed));
      for (std::uint64_t sample = 0; sample < 60; sample += 2) {
        set.damage(sample, "cls", ETIMEDOUT, testing::read_fault::always,
                   said(io::fault::sample, errc::corrupt, "s3://b/k: its checksum is another than the bucket's"));
      }
      const testing::temporary_directory directory;
      options.journal = (directory.path() / "journal").string();
      const seen_run run = testing::run_all(set, options, testing::label_only());
      EXPECT_FALSE(run.failed) << run.message;
      EXPECT_EQ(run.stats.quarantined, 30U * options.epochs);
      EXPECT_THAT(text_of(options.journal), HasSubstr("its checksum is another than the bucket's"));
      // And of files that cannot be read no more than may be.
      fake_dataset gone(labels(60), loose_files(seed));
      for (std::uint64_t sample = 0; sample < 60; sample += 2) {
        gone.damage(sample, "cls", ETIMEDOUT, testing::read_fault::always,
                    said(io::fault::unreadable, errc::not_found, "s3://b/k: 404 Not Found"));
      }
      options.journal.clear();
      const seen_run ended = testing::run_all(gone, options, testing::label_only());
      EXPECT_EQ(ended.failed, errc::io);
      EXPECT_THAT(ended.message, HasSubstr("16 may be (loader_options::unreadable_max)"));
      EXPECT_THAT(ended.message, HasSubstr("s3://b/k: 404 Not Found"));
    });
  }
}

// --- the environment ----------------------------------------------------------------------------------------------------

TEST(blame, of_a_dataset_that_was_deleted_after_it_was_opened_is_the_environment_s_under_every_policy) {
  const testing::temporary_directory directory;
  const std::filesystem::path folder = directory.path() / "photos";
  std::filesystem::create_directory(folder);
  const dataset opened = testing::write_samples(labels(200), loose_files(), folder);
  std::filesystem::remove_all(folder);
  for (const corrupt_policy policy : {corrupt_policy::raise, corrupt_policy::skip, corrupt_policy::substitute}) {
    on_every_machine(in_order(policy), [&](loader_options options, std::uint64_t) {
      const watchdog dog("a dataset that was deleted");
      options.batch_size = 64;
      const seen_run run = testing::run_all(opened, options, testing::label_only());
      EXPECT_TRUE(run.batches.empty());
      if (policy == corrupt_policy::skip) {
        EXPECT_EQ(run.failed, errc::io);
        EXPECT_THAT(
            run.message,
            StartsWith("64 samples of epoch 0 could not be read, and 16 may be (loader_options::unreadable_max); the "
                       "most frequent reason (64 of 64), first of sample "));
        EXPECT_EQ(run.stats.quarantined, 64U);
      } else if (policy == corrupt_policy::raise) {
        EXPECT_THAT(run.message, StartsWith("cannot read sample "));
      } else {
        EXPECT_THAT(run.message, StartsWith("no substitute for ")) << "there is none";
      }
      // It says once which file, and once what to do.
      EXPECT_THAT(run.message,
                  ::testing::EndsWith(": no such file (ENOENT); check the path, or whether it was moved or "
                                      "deleted"));
      EXPECT_EQ(run.message.find('?'), std::string::npos) << run.message;
      EXPECT_EQ(run.message.find(folder.string()), run.message.rfind(folder.string())) << run.message;
      EXPECT_NE(run.message.find(folder.string()), std::string::npos) << run.message;
      EXPECT_EQ(run.stats.samples + run.stats.quarantined, run.stats.planned);
    });
  }
}

TEST(blame, of_a_few_files_that_are_gone_is_the_samples_and_of_one_more_the_environment_s) {
  // Every third sample of the first 51: 17 of them, of which the last is in the batch of 42 to 48.
  for (const int failure : {ENOENT, EIO}) {
    for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
      on_every_machine(in_order(policy), [&](loader_options options, std::uint64_t seed) {
        const watchdog dog("files that are gone");
        fake_dataset set(labels(60), loose_files(seed));
        for (std::uint64_t sample = 0; sample < 48; sample += 3) set.damage(sample, "cls", failure);
        const seen_run few = testing::run_all(set, options, testing::label_only());
        EXPECT_FALSE(few.failed) << few.message;
        EXPECT_EQ(few.stats.quarantined, 16U);

        set.damage(48, "cls", failure);
        const testing::temporary_directory directory;
        options.journal = directory.path() / "journal.jsonl";
        testing::choose_place(options);
        const seen_run many = testing::run_all(set, options, testing::label_only());
        EXPECT_EQ(many.failed, errc::io);
        EXPECT_EQ(many.batches.size(), 6U);
        EXPECT_THAT(
            many.message,
            StartsWith("17 samples of epoch 0 could not be read, and 16 may be (loader_options::unreadable_max); the "
                       "most frequent reason (17 of 17), first of sample sample/0: 0.cls"));
        EXPECT_EQ(many.stats.quarantined, 17U);
        EXPECT_EQ(many.stats.planned, many.stats.samples + many.stats.quarantined);
        const std::string journal = testing::whole_file(options.journal);
        EXPECT_EQ(std::count(journal.begin(), journal.end(), '\n'), 17);
        EXPECT_THAT(journal, HasSubstr("\"raised\""));

        options.unreadable_max = 17;
        testing::choose_place(options);
        const seen_run allowed = testing::run_all(set, options, testing::label_only());
        EXPECT_FALSE(allowed.failed) << allowed.message;
      });
    }
  }
}

TEST(blame, of_files_that_are_gone_is_counted_anew_in_each_epoch) {
  const watchdog dog("files that are gone in each epoch");
  fake_dataset set(labels(60), loose_files());
  for (std::uint64_t sample = 0; sample < 48; sample += 3) set.damage(sample, "cls", ENOENT);
  loader_options options = in_order(corrupt_policy::skip);
  options.shuffle = true;
  options.epochs = 4;
  const seen_run run = testing::run_all(set, options, testing::label_only());
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_EQ(run.stats.quarantined, 64U);
}

TEST(blame, of_a_mount_or_a_permission_is_the_environment_s_at_once_and_names_the_file) {
  for (const auto& [failure, kind] : {std::pair{ESTALE, errc::io},
                                      {ENOTCONN, errc::io},
                                      {EACCES, errc::permission},
                                      {EPERM, errc::permission},
                                      {ENODEV, errc::io},
                                      {ETIMEDOUT, errc::io}}) {
    for (const corrupt_policy policy : {corrupt_policy::raise, corrupt_policy::skip, corrupt_policy::substitute}) {
      const watchdog dog("errno " + std::to_string(failure));
      fake_dataset set(labels(60), loose_files());
      set.damage(40, "cls", failure);
      const seen_run run = testing::run_all(set, in_order(policy), testing::label_only());
      EXPECT_EQ(run.failed, kind) << run.message;
      EXPECT_THAT(run.message, HasSubstr("40.cls"));
      EXPECT_EQ(run.stats.quarantined, 0U);
    }
  }
}

// Of a shard that is cut, the samples behind the cut have lost their bytes.
TEST(blame, of_a_file_that_was_cut_is_the_samples) {
  const testing::temporary_directory directory;
  const watchdog dog("a file that was cut");
  testing::fake_dataset_options where;
  where.shards = 1;
  const dataset opened = testing::write_samples(labels(60), where, directory.path());
  for (const auto& each : std::filesystem::directory_iterator(directory.path())) {
    std::filesystem::resize_file(each.path(), std::filesystem::file_size(each.path()) / 2);
  }
  const seen_run run = testing::run_all(opened, in_order(corrupt_policy::skip), testing::label_only());
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_GT(run.stats.quarantined, 20U) << "more than unreadable_max";
  EXPECT_GT(run.stats.samples, 20U);
}

// --- how many -----------------------------------------------------------------------------------------------------------

TEST(corrupt_max, is_a_number_or_a_share_of_an_epoch_and_one_more_ends_the_run_with_the_most_frequent_reason) {
  std::vector<std::uint64_t> corrupt;
  for (std::uint64_t i = 4; i < 60; i += 5) corrupt.push_back(i);  // 12 of 60, the last of them 59
  auto samples = labels(60, corrupt);
  samples[4].members[0].bytes = testing::to_bytes("");
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    on_every_machine(in_order(policy), [&](loader_options options, std::uint64_t seed) {
      const watchdog dog("corrupt_max");
      const fake_dataset set(samples, loose_files(seed));
      options.epochs = 3;
      const auto run_with = [&](const corrupt_bound& bound) {
        options.corrupt_max = bound;
        testing::choose_place(options);
        return testing::run_all(set, options, testing::label_only());
      };
      for (const corrupt_bound& enough :
           {corrupt_bound{.count = 12}, {.share = 0.2}, {.count = 12, .share = 0.2}, {}}) {
        const seen_run run = run_with(enough);
        EXPECT_FALSE(run.failed) << run.message;
        EXPECT_EQ(run.stats.quarantined, 36U);
      }
      for (const corrupt_bound& less : {corrupt_bound{.count = 11}, {.share = 0.19}, {.count = 12, .share = 0.19}}) {
        const seen_run run = run_with(less);
        EXPECT_EQ(run.failed, errc::corrupt);
        EXPECT_EQ(run.batches.size(), 8U) << "all but the last";
        EXPECT_THAT(
            run.message,
            StartsWith(
                "12 samples of epoch 0 are corrupt, and 11 may be (loader_options::corrupt_max); the most frequent "
                "reason (11 of 12), first of sample sample/9 (9.cls): cls: 'cat 9'"));
        EXPECT_EQ(run.stats.quarantined, 12U);
        EXPECT_EQ(run.stats.samples + run.stats.quarantined, run.stats.planned);
      }
      const seen_run none = run_with({.count = 0});
      EXPECT_EQ(none.batches.size(), 0U);
      EXPECT_THAT(none.message,
                  StartsWith("1 sample of epoch 0 is corrupt, and 0 may be (loader_options::corrupt_max)"));
    });
  }
}

TEST(corrupt_max, that_says_nothing_or_cannot_be_is_refused) {
  const fake_dataset set(labels(8));
  const auto refused = [&](corrupt_policy policy, const corrupt_bound& bound) {
    loader_options options = in_order(policy);
    options.corrupt_max = bound;
    return testing::message_of(errc::usage, [&] { const loader never(set, options, testing::label_only()); });
  };
  EXPECT_THAT(refused(corrupt_policy::raise, {.count = 3}), HasSubstr("skip or substitute"));
  EXPECT_THAT(refused(corrupt_policy::skip, {.share = 1.5}), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused(corrupt_policy::skip, {.share = -0.1}), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused(corrupt_policy::skip, {.share = std::nan("")}), HasSubstr("from 0 to 1"));
}

TEST(corrupt_max, is_not_needed_to_end_a_run_whose_first_epoch_gives_nothing) {
  std::vector<std::uint64_t> all(60);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  on_every_machine(in_order(corrupt_policy::skip), [&](loader_options options, std::uint64_t seed) {
    const watchdog dog("nothing in an epoch");
    options.epochs = 0;
    const fake_dataset set(labels(60, all), loose_files(seed));
    loader train(set, options, testing::label_only());
    for (int batch = 0; batch < 9; ++batch) {
      const auto got = train.next_blocking();
      ASSERT_TRUE(got);
      EXPECT_EQ(got->valid_rows(), 0U);
    }
    const std::string said = testing::message_of(errc::corrupt, [&] { static_cast<void>(train.next_blocking()); });
    EXPECT_THAT(said,
                StartsWith("nothing was delivered: all 60 samples planned are corrupt; the most frequent reason (60 of "
                           "60), first of sample sample/0 (0.cls): cls: 'cat 0' is no number"));
    EXPECT_EQ(train.stats().epochs_finished, 0U);
    EXPECT_EQ(train.stats().quarantined, 60U);
  });
}

TEST(corrupt_max, is_not_needed_to_end_a_run_whose_first_thousand_samples_give_nothing) {
  const watchdog dog("nothing in 1,000 samples");
  std::vector<std::uint64_t> all(1000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  loader_options options = in_order(corrupt_policy::skip);
  options.batch_size = 100;
  const seen_run run = testing::run_all(fake_dataset(labels(1400, all)), options, testing::label_only());
  EXPECT_EQ(run.failed, errc::corrupt);
  EXPECT_EQ(run.batches.size(), 9U);
  EXPECT_THAT(run.message, StartsWith("nothing was delivered: all 1000 samples planned are corrupt; "));

  // Later in the run it is the same.
  std::vector<std::uint64_t> later;
  for (std::uint64_t i = 200; i < 1200; ++i) later.push_back(i);
  const seen_run dry = testing::run_all(fake_dataset(labels(1400, later)), options, testing::label_only());
  EXPECT_EQ(dry.failed, errc::corrupt);
  EXPECT_EQ(dry.batches.size(), 11U);
  EXPECT_THAT(dry.message, StartsWith("nothing is delivered any more: the last 1000 samples planned, up to epoch 0, "));
  later.pop_back();
  EXPECT_FALSE(testing::run_all(fake_dataset(labels(1400, later)), options, testing::label_only()).failed);

  all.pop_back();
  const seen_run one = testing::run_all(fake_dataset(labels(1400, all)), options, testing::label_only());
  EXPECT_FALSE(one.failed) << one.message;
  EXPECT_EQ(one.stats.samples, 401U);
}

}  // namespace
}  // namespace leat
