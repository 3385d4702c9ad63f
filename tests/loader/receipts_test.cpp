// loader_options::receipts: which rows a run has had.
#include "stages/state/receipt_tree.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/tar_writer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/dataset.hpp>
#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::small_options;
using testing::watchdog;

/// The digests' beginnings of the rows that a run handed out, by name.
using rows_by_name = std::map<std::string, std::multiset<std::string>>;

rows_by_name note_rows(loader& train, std::uint64_t batches_max = ~std::uint64_t{0}) {
  rows_by_name seen;
  for (std::uint64_t taken = 0; taken < batches_max && !train.finished();) {
    const std::optional<batch> got = train.next_blocking();
    if (!got) continue;
    ++taken;
    for (std::size_t row = 0; row < got->names().size(); ++row) {
      seen[got->names()[row]].insert(got->row_digests()[row].hex().substr(0, 2 * stages::receipt_row::digest_bytes));
    }
  }
  return seen;
}

/// What the receipt proves of each name.
rows_by_name proved_of(const std::string& path, const std::vector<std::string>& names) {
  const stages::sealed_receipt sealed = stages::seal_receipt(path, names, stages::receipt_proofs::of_each_name);
  rows_by_name proved;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const stages::proved_rows found = stages::prove(sealed.of, names[i], sealed.proofs[i]);
    EXPECT_EQ(found.root, sealed.root);
    for (const stages::receipt_row& row : found.rows) {
      digest tail;
      std::copy(row.bytes.begin() + stages::receipt_row::key_bytes, row.bytes.end(), tail.bytes.begin());
      proved[names[i]].insert(tail.hex().substr(0, 2 * stages::receipt_row::digest_bytes));
    }
  }
  return proved;
}

std::vector<std::string> names_of(const dataset& samples) {
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < samples.size(); ++i) names.push_back(samples.name(i));
  return names;
}

loader_options with_receipts(const std::string& path) {
  loader_options options = small_options();
  options.receipts = path;
  options.names = true;
  return options;
}

TEST(receipts_of_a_run, have_each_row_that_was_handed_out_and_no_other) {
  const watchdog dog("receipts");
  std::vector<testing::fake_sample> samples = testing::make_samples(1, 45);
  for (const std::size_t corrupt : {3U, 4U, 17U}) samples[corrupt].find("cls")->bytes.clear();
  const fake_dataset set(samples);
  const testing::temporary_directory root;
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    loader_options options = with_receipts(root.path() / "run.receipt");
    options.on_corrupt = policy;
    options.last = last_batch::pad;
    loader train(set, options, testing::all_fields());
    const rows_by_name seen = note_rows(train);
    const loader_stats stats = train.stats();
    const std::uint64_t rows = stats.samples + stats.substituted;
    EXPECT_EQ(rows, policy == corrupt_policy::skip ? 2U * 48 - stats.quarantined : 2U * 48);
    std::vector<std::string> names = names_of(set);
    names.push_back("no sample");
    EXPECT_FALSE(seen.contains(names[3])) << "it is corrupt";
    EXPECT_EQ(proved_of(options.receipts, names), seen);
    const stages::sealed_receipt sealed = stages::seal_receipt(options.receipts, {});
    EXPECT_EQ(sealed.of.rows, rows);
    EXPECT_TRUE(sealed.of.ended);
  }
}

TEST(receipts_of_a_run, are_the_same_for_any_threads_and_need_no_other_option) {
  const watchdog dog("receipts and threads");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::temporary_directory root;
  std::string first;
  for (const std::uint32_t threads : {1U, 2U, 5U}) {
    loader_options options = small_options();
    options.decode_threads = threads;
    options.digests = false;
    options.receipts = root.path() / "run.receipt";
    loader train(set, options, testing::all_fields());
    EXPECT_TRUE(train.options().digests);
    while (!train.finished()) {
      const std::optional<batch> got = train.next_blocking();
      if (got) EXPECT_TRUE(got->names().empty());
    }
    const std::string whole = testing::whole_file(options.receipts);
    EXPECT_EQ(whole.size(), stages::receipt_head::bytes + 2 * 45 * sizeof(stages::receipt_row));
    if (first.empty()) first = whole;
    EXPECT_EQ(whole, first) << threads << " threads";
  }
}

TEST(receipts_of_a_run, are_those_of_the_whole_wherever_it_was_resumed) {
  const watchdog dog("receipts of a resumed run");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::temporary_directory root;
  loader_options options = with_receipts(root.path() / "whole");
  loader undisturbed(set, options, testing::label_only());
  const rows_by_name seen = note_rows(undisturbed);
  const std::string whole = testing::whole_file(options.receipts);
  EXPECT_EQ(proved_of(options.receipts, names_of(set)), seen);
  options.receipts = root.path() / "parts";
  for (std::uint64_t place = 0; place <= 12; ++place) {
    SCOPED_TRACE(place);
    loader first(set, options, testing::label_only());
    note_rows(first, place);
    const loader_state state = loader_state::from_bytes(first.state().bytes());
    note_rows(first, 2);  // Rows that the state does not count.
    first.stop();
    loader_options again = options;
    again.resume = state;
    loader second(set, again, testing::label_only());
    note_rows(second);
    EXPECT_EQ(testing::whole_file(options.receipts), whole);
  }
}

TEST(receipts_of_a_run, that_are_not_there_when_it_is_resumed_are_refused) {
  const watchdog dog("receipts that are not there");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::temporary_directory root;
  loader_options options = small_options();
  loader first(set, options, testing::label_only());
  note_rows(first, 3);
  options.resume = first.state();
  options.receipts = root.path() / "r";
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, options, testing::label_only()); }),
              HasSubstr("is not there, and the state to resume from counts 24 rows"));
  EXPECT_FALSE(std::filesystem::exists(options.receipts));
}

// The rows would be of two names for one sample.
TEST(receipts_of_a_run, are_refused_where_a_shard_is_opened_by_another_path) {
  const watchdog dog("receipts of another path");
  const testing::temporary_directory root;
  const std::string path = root.path() / "a.tar";
  {
    testing::tar_writer tar;
    for (int i = 0; i < 20; ++i) tar.add_file(std::to_string(i) + ".cls", std::to_string(i));
    const std::vector<std::byte> bytes = tar.finish();
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  }
  loader_options options = with_receipts(root.path() / "r");
  loader first(open_tar(path), options, testing::label_only());
  note_rows(first, 1);
  first.stop();
  options.resume = first.state();
  std::filesystem::create_directory_symlink(root.path(), root.path() / "there");
  const std::string before = testing::whole_file(options.receipts);
  EXPECT_THAT(
      testing::message_of(errc::usage,
                          [&] { loader(open_tar(root.path() / "there" / "a.tar"), options, testing::label_only()); }),
      HasSubstr("other names of these samples"));
  EXPECT_EQ(testing::whole_file(options.receipts), before);
  loader second(open_tar(path), options, testing::label_only());
  note_rows(second);
  EXPECT_EQ(stages::seal_receipt(options.receipts, {}).of.rows, 40U);
}

TEST(receipts_of_a_run, in_another_world_begin_there_and_replace_nothing) {
  const watchdog dog("receipts in another world");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::temporary_directory root;
  loader_options options = with_receipts(root.path() / "r");
  loader first(set, options, testing::label_only());
  note_rows(first, 3);
  first.stop();
  options.resume = first.state();
  options.world = {.rank = 1, .size = 2};
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, options, testing::label_only()); }),
              HasSubstr("the receipt " + options.receipts + " is there already"));
  options.receipts = root.path() / "r-1";
  loader second(set, options, testing::label_only());
  const rows_by_name seen = note_rows(second);
  const stages::sealed_receipt sealed = stages::seal_receipt(options.receipts, {});
  EXPECT_EQ(sealed.of.of.begin_batch, 3U);
  EXPECT_EQ(sealed.of.of.rank, 1U);
  EXPECT_TRUE(sealed.of.ended);
  EXPECT_EQ(proved_of(options.receipts, names_of(set)), seen);
}

TEST(receipts_of_a_run, in_another_world_are_gone_on_with_there) {
  const watchdog dog("receipts resumed in another world");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::temporary_directory root;
  loader_options options = with_receipts(root.path() / "r");
  loader first(set, options, testing::label_only());
  note_rows(first, 3);
  first.stop();
  options.resume = first.state();
  options.world = {.rank = 1, .size = 2};
  options.receipts = root.path() / "whole";
  loader undisturbed(set, options, testing::label_only());
  note_rows(undisturbed);
  const std::string whole = testing::whole_file(options.receipts);
  for (const std::uint64_t place : {0U, 1U, 4U}) {
    SCOPED_TRACE(place);
    loader_options again = options;
    again.receipts = root.path() / ("parts-" + std::to_string(place));
    loader second(set, again, testing::label_only());
    note_rows(second, place);
    again.resume = second.state();
    note_rows(second, 1);  // Rows that the state does not count.
    second.stop();
    loader third(set, again, testing::label_only());
    note_rows(third);
    EXPECT_EQ(testing::whole_file(again.receipts), whole);
  }
}

TEST(receipts_of_a_run, have_no_rows_of_an_epoch_that_was_skipped_and_end_when_the_loader_is_stopped) {
  const watchdog dog("receipts of a skipped epoch");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::temporary_directory root;
  const loader_options options = with_receipts(root.path() / "r");
  loader train(set, options, testing::label_only());
  rows_by_name seen = note_rows(train, 2);
  train.skip_epoch();
  for (const auto& [name, rows] : note_rows(train, 3)) seen[name].insert(rows.begin(), rows.end());
  train.stop();
  EXPECT_EQ(proved_of(options.receipts, names_of(set)), seen);
  EXPECT_FALSE(stages::seal_receipt(options.receipts, {}).of.ended);
}

TEST(receipts_of_a_run, are_not_those_of_a_batch_by_itself) {
  const watchdog dog("receipts and batch_at");
  const fake_dataset set(testing::make_samples(1, 45));
  const testing::temporary_directory root;
  const loader_options options = with_receipts(root.path() / "r");
  loader train(set, options, testing::label_only());
  note_rows(train, 2);
  static_cast<void>(train.batch_at(1, 0));
  train.stop();
  EXPECT_EQ(stages::seal_receipt(options.receipts, {}).of.rows, 16U);
}

TEST(receipts_of_a_run, that_cannot_be_written_are_an_error_before_a_byte_is_read) {
  const fake_dataset set(testing::make_samples(1, 4));
  const testing::temporary_directory root;
  EXPECT_THAT(
      testing::message_of(errc::not_found,
                          [&] { loader(set, with_receipts(root.path() / "none" / "r"), testing::label_only()); }),
      HasSubstr("make its folder first"));
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, with_receipts("/dev/null"), testing::label_only()); }),
              HasSubstr("no regular file"));
  const std::string other = root.path() / "other";
  std::ofstream(other) << "data";
  EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, with_receipts(other), testing::label_only()); }),
              HasSubstr("would replace a file that is none"));
  EXPECT_EQ(testing::whole_file(other), "data");
}

// One of the three that is refused: the others are as a run before has left them.
TEST(receipts_of_a_run, journal_and_record_are_looked_at_before_one_is_emptied) {
  const fake_dataset set(testing::make_samples(1, 4));
  const testing::temporary_directory root;
  const std::string other = root.path() / "other";
  std::ofstream(other) << "data";
  loader_options options = with_receipts((root.path() / "r").string());
  options.journal = (root.path() / "j").string();
  options.record = (root.path() / "e").string();
  const std::string line = R"({"epoch":0,"batch":0,"sample":3})"
                           "\n";
  std::ofstream(options.journal) << line;
  {
    loader_options first = options;
    first.journal.clear();
    loader train(set, first, testing::label_only());
    while (train.next_blocking()) {
    }
  }
  const std::string receipts = testing::whole_file(options.receipts);
  const std::string record = testing::whole_file(options.record);
  ASSERT_GT(receipts.size(), 128U);
  for (std::string loader_options::* each :
       {&loader_options::journal, &loader_options::receipts, &loader_options::record}) {
    loader_options refused = options;
    refused.*each = other;
    EXPECT_THAT(testing::message_of(errc::usage, [&] { loader(set, refused, testing::label_only()); }),
                HasSubstr("would replace a file that is none"));
    EXPECT_EQ(testing::whole_file(options.journal), line);
    EXPECT_EQ(testing::whole_file(options.receipts), receipts);
    EXPECT_EQ(testing::whole_file(options.record), record);
    EXPECT_EQ(testing::whole_file(other), "data");
  }
}

}  // namespace
}  // namespace leat
