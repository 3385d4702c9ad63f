// Corrupt samples: raised, skipped or substituted, counted and written down, and always the same way.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/make_picture.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_dataset_options;
using testing::fake_sample;
using testing::loader;
using testing::loader_options;
using testing::seen_batch;
using testing::seen_run;

constexpr std::size_t sample_count = 60;

// What is wrong with which sample, and a word of the reason that the journal gives.
struct damage {
  std::string name;
  std::uint64_t sample;
  std::string reason;
  std::function<void(fake_sample&)> in_samples = nullptr;
  std::function<void(fake_dataset&, std::uint64_t)> on_disk = nullptr;
};

std::vector<damage> all_damages() {
  const auto picture = [](fake_sample& sample) -> std::vector<std::byte>& {
    auto* jpg = sample.find("jpg");
    return (jpg != nullptr ? jpg : sample.find("png"))->bytes;
  };
  std::vector<damage> all;
  all.push_back({"zero bytes", 1, "zero bytes", [=](fake_sample& s) { picture(s).clear(); }});
  all.push_back({"unsupported format", 5, "unsupported",
                 [=](fake_sample& s) { picture(s) = testing::to_bytes("8BPS, or so it says of itself"); }});
  all.push_back({"too many pixels", 8, "pixels",
                 [=](fake_sample& s) { picture(s) = testing::make_jpeg(testing::make_texture(1, 90, 90), {}); }});
  all.push_back({"cut in the middle", 13, "jpg", [=](fake_sample& s) { picture(s).resize(picture(s).size() / 3); }});
  all.push_back({"a field is missing", 21, "txt", [](fake_sample& s) { s.remove("txt"); }});
  all.push_back({"no picture at all", 22, "jpg", [](fake_sample& s) { s.remove("jpg"); }});
  all.push_back({"a class that is no number", 34, "number",
                 [](fake_sample& s) { s.find("cls")->bytes = testing::to_bytes("cat"); }});
  all.push_back({"text that is no UTF-8", 40, "UTF-8",
                 [](fake_sample& s) { s.find("txt")->bytes = testing::to_bytes("ab\xC3"); }});
  all.push_back({"a known defect", 41, "cut off by the shard's end",
                 [](fake_sample& s) { s.defect = "cut off by the shard's end"; }});
  all.push_back(
      {"EIO", 47, "EIO", nullptr, [](fake_dataset& set, std::uint64_t sample) { set.damage(sample, "jpg", EIO); }});
  all.push_back({"ENOENT", 48, "ENOENT", nullptr,
                 [](fake_dataset& set, std::uint64_t sample) { set.damage(sample, "jpg", ENOENT); }});
  all.push_back({"EIO after retries", 55, "E", nullptr,
                 [](fake_dataset& set, std::uint64_t sample) { set.damage(sample, "cls", EIO); }});
  return all;
}

// A disk on which nothing is damaged that is not on the list: all members lie in files of their own, so that a bad sector
// hurts one of them alone.
fake_dataset_options loose_files(std::uint64_t seed = 1) {
  fake_dataset_options where;
  where.layout = testing::fake_layout::file_per_member;
  where.disk.seed = seed;
  return where;
}

std::vector<field> fields() {
  return {image("jpg").resize(12, 12).pixels_max(64 * 64), label("cls"), text("txt"), bytes("json")};
}

struct damaged {
  explicit damaged(const std::vector<damage>& what, const fake_dataset_options& where = loose_files())
      : samples(damage_samples(what)), set(samples, where) {
    for (const damage& each : what) {
      if (each.on_disk) each.on_disk(set, each.sample);
    }
  }
  static std::vector<fake_sample> damage_samples(const std::vector<damage>& what) {
    static const std::vector<fake_sample> healthy = testing::make_samples(1, sample_count);
    std::vector<fake_sample> samples = healthy;
    for (const damage& each : what) {
      if (each.in_samples) each.in_samples(samples[each.sample]);
    }
    return samples;
  }
  std::vector<fake_sample> samples;
  fake_dataset set;
};

loader_options options_for(corrupt_policy policy) {
  loader_options options = testing::small_options();
  options.on_corrupt = policy;
  options.batch_size = 7;
  return options;
}

void expect_counted(const loader_stats& stats) {
  EXPECT_EQ(stats.samples + stats.quarantined, stats.planned);
  EXPECT_LE(stats.substituted, stats.quarantined);
}

std::vector<seen_batch> healthy_run(corrupt_policy policy) {
  return testing::run_all(fake_dataset(testing::make_samples(1, sample_count), loose_files()), options_for(policy),
                          fields())
      .batches;
}

TEST(corrupt, samples_are_named_in_the_error_under_raise_each_kind_by_itself) {
  for (const damage& each : all_damages()) {
    SCOPED_TRACE(each.name);
    const testing::watchdog dog("raise: " + each.name);
    damaged data({each});
    loader_options options = options_for(corrupt_policy::raise);
    options.shuffle = false;
    const seen_run run = testing::run_all(data.set, options, fields());
    EXPECT_EQ(run.failed, errc::corrupt);
    EXPECT_NE(run.message.find("sample/" + std::to_string(each.sample)), std::string::npos) << run.message;
    EXPECT_NE(run.message.find(each.reason), std::string::npos) << run.message;
    // In the batch's turn: what comes before it was delivered, all of it.
    EXPECT_EQ(run.batches.size(), each.sample / 7);
    EXPECT_EQ(run.stats.quarantined, 1U);
    expect_counted(run.stats);
  }
}

TEST(corrupt, samples_are_left_out_under_skip_and_nothing_else_changes) {
  const auto healthy = healthy_run(corrupt_policy::skip);
  std::set<std::uint64_t> bad;
  for (const damage& each : all_damages()) bad.insert(each.sample);
  const testing::watchdog dog("skip");
  damaged data(all_damages());
  loader train(data.set, options_for(corrupt_policy::skip), fields());
  std::size_t at = 0;
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) {
      const seen_batch seen = testing::look_at(got);
      ASSERT_LT(at, healthy.size());
      seen_batch expected = healthy[at++];
      std::erase_if(expected.ids, [&](std::uint64_t id) { return bad.contains(id); });
      std::vector<std::int64_t> labels = expected.labels();
      std::erase_if(labels, [&](std::int64_t label) { return bad.contains(static_cast<std::uint64_t>(label - 1000)); });
      EXPECT_EQ(seen.index, expected.index);
      EXPECT_EQ(seen.ids, expected.ids);
      EXPECT_EQ(seen.labels(), labels);
      EXPECT_EQ(got.valid_rows(), expected.ids.size());
      EXPECT_EQ(got["jpg"].shape[0], static_cast<std::int64_t>(expected.ids.size()));
      for (std::size_t row = 0; row < seen.ids.size(); ++row) {
        EXPECT_EQ(testing::as_text(testing::row_of(got, "txt", row)),
                  testing::as_text(data.samples[seen.ids[row]].find("txt")->bytes));
        EXPECT_EQ(testing::as_text(testing::row_of(got, "json", row)),
                  testing::as_text(data.samples[seen.ids[row]].find("json")->bytes));
      }
    }
  }
  EXPECT_EQ(at, healthy.size());
  const loader_stats stats = train.stats();
  expect_counted(stats);
  EXPECT_EQ(stats.planned, 2 * sample_count);
  EXPECT_EQ(stats.quarantined, 2 * bad.size());
  EXPECT_EQ(stats.substituted, 0U);
}

// Row digests of a run in which nothing is corrupt, by sample and epoch.
std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> healthy_rows() {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> rows;
  const fake_dataset set(testing::make_samples(1, sample_count), loose_files());
  loader train(set, options_for(corrupt_policy::raise), fields());
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) {
      for (std::size_t row = 0; row < got.ids().size(); ++row) {
        rows[{epoch, got.ids()[row]}] = got.row_digests()[row].hex();
      }
    }
  }
  return rows;
}

TEST(corrupt, samples_are_replaced_under_substitute_by_what_ids_labels_and_pixels_agree_on) {
  const auto healthy = healthy_run(corrupt_policy::substitute);
  const auto rows = healthy_rows();
  std::set<std::uint64_t> bad;
  for (const damage& each : all_damages()) bad.insert(each.sample);
  testing::watchdog dog("substitute");
  damaged data(all_damages());
  loader train(data.set, options_for(corrupt_policy::substitute), fields());
  std::size_t at = 0;
  std::size_t replaced = 0;
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) {
      const seen_batch seen = testing::look_at(got);
      ASSERT_LT(at, healthy.size());
      const seen_batch& expected = healthy[at++];
      ASSERT_EQ(seen.ids.size(), expected.ids.size());
      for (std::size_t row = 0; row < seen.ids.size(); ++row) {
        EXPECT_FALSE(bad.contains(seen.ids[row]));
        EXPECT_EQ(seen.labels()[row], 1000 + static_cast<std::int64_t>(seen.ids[row]));
        EXPECT_EQ(got.row_digests()[row].hex(), rows.at({epoch, seen.ids[row]}));
        if (bad.contains(expected.ids[row])) {
          ++replaced;
        } else {
          EXPECT_EQ(seen.ids[row], expected.ids[row]) << "a row that needed no substitute has moved";
        }
      }
    }
  }
  EXPECT_EQ(at, healthy.size());
  EXPECT_EQ(replaced, 2 * bad.size());
  const loader_stats stats = train.stats();
  expect_counted(stats);
  EXPECT_EQ(stats.quarantined, 2 * bad.size());
  EXPECT_EQ(stats.substituted, 2 * bad.size());
}

// What a sample holds is no reason to count it as something else.
TEST(corrupt, samples_are_counted_by_what_is_wrong_and_not_by_the_words_in_them) {
  const testing::watchdog dog("labels that read like reasons");
  std::vector<fake_sample> samples = testing::make_samples(1, 12);
  const char* const words[] = {"seven", "unsupported thing", "zero bytes", "more than pixels_max",
                               "no field 'x' in this sample"};
  for (std::size_t i = 0; i < std::size(words); ++i) samples[i].find("cls")->bytes = testing::to_bytes(words[i]);
  samples[7].remove("cls");
  samples[8].defect = "unsupported format: TIFF; zero bytes";
  const testing::temporary_directory directory;
  loader_options options = testing::small_options();
  options.epochs = 1;
  options.on_corrupt = corrupt_policy::skip;
  options.journal = directory.path() / "journal.jsonl";
  loader train(fake_dataset(samples), options, testing::label_only());
  for (batch& each : train.blocking()) static_cast<void>(each);
  EXPECT_EQ(train.stats().quarantined_as,
            (std::vector<corrupt_count>{{.kind = "damaged", .samples = 6}, {.kind = "incomplete", .samples = 1}}));
  std::istringstream lines(testing::whole_file(options.journal));
  std::map<std::string, int> kinds;
  for (std::string line; std::getline(lines, line);) ++kinds[nlohmann::json::parse(line)["kind"]];
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"damaged", 6}, {"incomplete", 1}}));
}

// The journal and the batches, at every thread count, for every seed of the disk and under every budget.
TEST(corrupt, samples_leave_the_same_journal_and_the_same_batches_whatever_the_machine_does) {
  const testing::temporary_directory directory;
  for (const corrupt_policy policy : {corrupt_policy::raise, corrupt_policy::skip, corrupt_policy::substitute}) {
    std::optional<std::string> journal;
    std::vector<seen_batch> batches;
    const auto run = [&](std::uint64_t disk_seed, const std::function<void(loader_options&)>& change) {
      testing::watchdog dog("journal");
      damaged data(all_damages(), loose_files(disk_seed));
      loader_options options = options_for(policy);
      options.journal = directory.path() / "journal.jsonl";
      change(options);
      const seen_run got = testing::run_all(data.set, options, fields());
      EXPECT_EQ(got.failed.has_value(), policy == corrupt_policy::raise) << got.message;
      expect_counted(got.stats);
      const std::string text = testing::whole_file(options.journal);
      if (!journal) {
        journal = text;
        batches = got.batches;
        EXPECT_EQ(static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')), got.stats.quarantined);
      }
      EXPECT_EQ(text, *journal);
      EXPECT_EQ(got.batches, batches);
    };
    run(1, [](loader_options&) {});
    ASSERT_FALSE(journal->empty());
    for (const std::uint32_t threads : {1U, 2U, 5U, 8U}) {
      run(2, [=](loader_options& o) { o.decode_threads = threads; });
    }
    run(3, [](loader_options& o) { o.prefetch_batches = 1; });
    run(3, [](loader_options& o) { o.reader.io_threads = 3; });
    run(4, [](loader_options& o) { o.host_bytes_max = std::size_t{512} << 20; });
    testing::for_each_seed(10, [&](std::uint64_t seed) {
      run(seed, [&](loader_options& o) { o.decode_threads = 1 + static_cast<std::uint32_t>(seed % 4); });
    });
  }
}

TEST(corrupt, samples_are_written_down_with_where_they_lie_why_and_what_was_done) {
  const testing::temporary_directory directory;
  const auto damages = all_damages();
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    damaged data(damages);
    loader_options options = options_for(policy);
    options.journal = directory.path() / "journal.jsonl";
    options.epochs = 1;
    const seen_run run = testing::run_all(data.set, options, fields());
    EXPECT_FALSE(run.failed) << run.message;
    std::istringstream lines(testing::whole_file(options.journal));
    std::map<std::uint64_t, nlohmann::json> by_sample;
    std::uint64_t batch_before = 0;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json entry = nlohmann::json::parse(line);
      EXPECT_GE(entry.at("batch").get<std::uint64_t>(), batch_before) << "not in delivery order";
      batch_before = entry.at("batch").get<std::uint64_t>();
      EXPECT_EQ(entry.at("epoch"), 0);
      EXPECT_TRUE(by_sample.emplace(entry.at("sample").get<std::uint64_t>(), entry).second) << "twice: " << line;
    }
    ASSERT_EQ(by_sample.size(), damages.size());
    for (const damage& each : damages) {
      SCOPED_TRACE(each.name);
      ASSERT_TRUE(by_sample.contains(each.sample));
      const nlohmann::json& entry = by_sample.at(each.sample);
      EXPECT_EQ(entry.at("name"), "sample/" + std::to_string(each.sample));
      EXPECT_NE(entry.at("reason").get<std::string>().find(each.reason), std::string::npos) << entry;
      EXPECT_EQ(entry.at("source").get<std::string>().find(std::to_string(each.sample) + "."), 0U) << entry;
      EXPECT_EQ(entry.at("offset"), 0);
      if (policy == corrupt_policy::skip) {
        EXPECT_EQ(entry.at("action"), "skipped");
        EXPECT_FALSE(entry.contains("substitute"));
      } else {
        EXPECT_EQ(entry.at("action"), "substituted");
        EXPECT_TRUE(entry.contains("substitute"));
      }
    }
  }
}

TEST(corrupt, errors_that_go_away_when_tried_again_are_nothing) {
  const auto healthy = healthy_run(corrupt_policy::raise);
  fake_dataset set(testing::make_samples(1, sample_count), loose_files());
  for (std::uint64_t sample = 0; sample < sample_count; sample += 3) set.damage(sample, "cls", EAGAIN, 3);
  const seen_run run = testing::run_all(set, options_for(corrupt_policy::raise), fields());
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_EQ(run.batches, healthy);
  EXPECT_EQ(run.stats.quarantined, 0U);
}

TEST(corrupt, samples_of_a_whole_batch_leave_it_with_0_rows_and_it_still_counts) {
  const testing::watchdog dog("0 rows");
  auto samples = testing::make_samples(1, 24);
  for (std::size_t i = 8; i < 16; ++i) samples[i].find("cls")->bytes = testing::to_bytes("none");
  const fake_dataset set(samples);
  loader_options options = testing::small_options();
  options.on_corrupt = corrupt_policy::skip;
  options.shuffle = false;
  options.epochs = 1;
  options.names = true;
  loader train(set, options, fields());
  for (std::uint64_t index = 0; index < 3; ++index) {
    const auto got = train.next_blocking();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->index(), index);
    EXPECT_EQ(got->valid_rows(), index == 1 ? 0U : 8U);
    EXPECT_EQ(got->names().size(), got->valid_rows());
    EXPECT_EQ((*got)["jpg"].shape, (dimensions{index == 1 ? 0 : 8, 3, 12, 12}));
    EXPECT_EQ((*got)["txt.offsets"].shape, (dimensions{index == 1 ? 1 : 9}));
    if (index == 1) {
      EXPECT_EQ((*got)["txt"].bytes(), 0U);
      EXPECT_EQ(testing::values_of<std::int64_t>(*got, "txt.offsets")[0], 0);
      EXPECT_TRUE(got->content_digest());
    }
  }
  EXPECT_FALSE(train.next_blocking());
  EXPECT_EQ(train.stats().batches, 3U);
  EXPECT_EQ(train.stats().quarantined, 8U);
  expect_counted(train.stats());
}

TEST(corrupt, samples_that_are_all_there_is_end_the_run_under_substitute_and_say_so) {
  const testing::watchdog dog("nothing to substitute");
  for (const std::size_t count : {std::size_t{1}, std::size_t{12}}) {
    auto samples = testing::make_samples(1, count);
    for (fake_sample& each : samples) each.find("cls")->bytes = testing::to_bytes("none");
    const seen_run run = testing::run_all(fake_dataset(samples), options_for(corrupt_policy::substitute), fields());
    EXPECT_EQ(run.failed, errc::corrupt);
    EXPECT_NE(run.message.find("no substitute for sample/"), std::string::npos) << run.message;
    EXPECT_NE(run.message.find("'none' is no number"), std::string::npos) << run.message;
  }
}

// A planned sample without text has room for none: its substitute's must still fit.
TEST(corrupt, samples_are_replaced_by_larger_ones) {
  const testing::watchdog dog("larger substitutes");
  auto samples = testing::make_samples(1, 40);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].find("txt")->bytes = testing::to_bytes(i % 2 == 0 ? "" : std::string(5000, 'x'));
    if (i % 2 == 0) samples[i].find("cls")->bytes = testing::to_bytes("none");
    if (i % 8 == 0) samples[i].defect = "known beforehand";
  }
  const fake_dataset set(samples);
  loader train(set, options_for(corrupt_policy::substitute), fields());
  for (const batch& got : train.blocking()) {
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      EXPECT_EQ(got.ids()[row] % 2, 1U);
      EXPECT_EQ(testing::row_of(got, "txt", row).size(), 5000U);
    }
  }
  EXPECT_EQ(train.stats().substituted, 20U);
  expect_counted(train.stats());
}

// Damage that the decoder never meets is none: bytes after the picture, and rows below the crop. A file that was cut is corrupt in any case.
TEST(corrupt, is_what_was_decoded_and_not_what_lies_beside_it) {
  const testing::watchdog dog("damage outside the crop");
  const testing::rgb_picture picture = testing::make_texture(3, 64, 256);
  std::vector<std::byte> whole = testing::make_jpeg(picture, {.quality = 95});
  std::vector<fake_sample> samples(4);
  for (fake_sample& each : samples) each.members = {{"jpg", whole}};
  for (int i = 0; i < 100; ++i) samples[1].find("jpg")->bytes.push_back(std::byte{0xFF});  // after the end
  samples[2].find("jpg")->bytes[whole.size() * 3 / 4] = std::byte{0xFF};  // an end marker in the lower rows
  samples[2].find("jpg")->bytes[whole.size() * 3 / 4 + 1] = std::byte{0xD9};
  samples[3].find("jpg")->bytes.resize(whole.size() * 3 / 4);  // the lower rows are missing
  const fake_dataset set(samples);
  loader_options options = testing::small_options();
  options.shuffle = false;
  options.on_corrupt = corrupt_policy::skip;
  options.batch_size = 4;
  {
    // The upper left eighth of a picture that is 64 wide and 256 high.
    loader upper(set, options, image("jpg").center_crop(64).as(dtype::u8));
    const auto got = upper.next_blocking();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->valid_rows(), 3U) << "the middle of the picture is whole";
  }
  loader all(set, options, image("jpg").resize(256, 64).as(dtype::u8));
  const auto got = all.next_blocking();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->valid_rows(), 2U) << "the lower rows are not";
}

// --- samples that the budget cannot hold -------------------------------------------------------------------------------

/// Loose files of which number 37 is a progressive picture: its coefficients take 6 MB, also packed, and small_budget gives
/// a sample 10 MiB.
std::vector<fake_sample> one_large_picture() {
  static const std::vector<std::byte> large =
      testing::make_jpeg(testing::make_noise(9, 1600, 1200), {.quality = 100, .progressive = true});
  std::vector<fake_sample> samples = testing::make_samples(1, sample_count);
  samples[37].remove("png");
  samples[37].remove("jpg");
  samples[37].members.push_back({"jpg", large});
  return samples;
}

std::vector<field> fields_of_any_size() {
  return {image("jpg").resize(12, 12), label("cls"), text("txt"), bytes("json")};
}

/// The budget that the message says would do, which is in whole MiB.
std::size_t budget_named(const std::string& message) {
  constexpr std::string_view before = "host_bytes_max of ";
  const std::size_t at = message.find(before);
  if (at == std::string::npos) return 0;
  return std::stoull(message.substr(at + before.size())) << 20;
}

TEST(over_budget, a_picture_is_left_out_under_skip_and_the_journal_says_what_it_needs) {
  const fake_dataset set(one_large_picture(), loose_files());
  const testing::temporary_directory directory;
  const testing::watchdog dog("over budget");
  loader_options options = options_for(corrupt_policy::skip);
  options.epochs = 1;
  const seen_run whole = testing::run_all(set, options, fields_of_any_size());
  EXPECT_FALSE(whole.failed) << whole.message;
  EXPECT_EQ(whole.stats.samples, sample_count);

  options.host_bytes_max = std::size_t{20} << 20;  // a quarter is 5 MiB
  options.journal = directory.path() / "journal.jsonl";
  std::string journal;
  for (const std::uint32_t threads : {1U, 2U, 3U}) {
    options.decode_threads = threads;
    const seen_run run = testing::run_all(set, options, fields_of_any_size());
    EXPECT_FALSE(run.failed) << run.message;
    expect_counted(run.stats);
    EXPECT_EQ(run.stats.samples, sample_count - 1);
    ASSERT_EQ(run.stats.quarantined_as.size(), 1U);
    EXPECT_EQ(run.stats.quarantined_as[0], (corrupt_count{"over budget", 1}));
    const std::string written = testing::whole_file(options.journal);
    if (!journal.empty()) EXPECT_EQ(written, journal) << "whatever the threads";
    journal = written;
  }
  const nlohmann::json line = nlohmann::json::parse(journal);
  EXPECT_EQ(line.at("name"), "sample/37");
  EXPECT_EQ(line.at("kind"), "over budget");
  EXPECT_EQ(line.at("action"), "skipped");
  EXPECT_GT(line.at("bytes_needed"), options.host_bytes_max / 4);

  const std::size_t would_do = budget_named(line.at("reason"));
  ASSERT_GT(would_do, options.host_bytes_max) << line;
  options.host_bytes_max = would_do;
  options.journal.clear();
  for (const std::uint32_t threads : {1U, 3U}) {
    options.decode_threads = threads;
    const seen_run enough = testing::run_all(set, options, fields_of_any_size());
    EXPECT_FALSE(enough.failed) << enough.message;
    EXPECT_EQ(enough.batches, whole.batches);
  }
}

TEST(over_budget, a_picture_ends_the_run_under_raise_and_says_which_budget_would_do) {
  const fake_dataset set(one_large_picture(), loose_files());
  const testing::watchdog dog("over budget");
  loader_options options = options_for(corrupt_policy::raise);
  options.epochs = 1;
  options.host_bytes_max = std::size_t{20} << 20;
  const seen_run run = testing::run_all(set, options, fields_of_any_size());
  EXPECT_EQ(run.failed, errc::limit);
  EXPECT_EQ(run.message.find("sample sample/37 (37.jpg): jpg: decoding needs "), 0U) << run.message;
  EXPECT_NE(run.message.find("on_corrupt = skip"), std::string::npos) << run.message;
  EXPECT_GT(budget_named(run.message), options.host_bytes_max) << run.message;
}

TEST(over_budget, a_picture_is_substituted_and_no_substitute) {
  const testing::watchdog dog("substitute over budget");
  auto samples = one_large_picture();
  for (std::size_t i = 0; i < samples.size(); i += 2) samples[i].find("cls")->bytes = testing::to_bytes("none");
  loader_options options = options_for(corrupt_policy::substitute);
  options.host_bytes_max = std::size_t{20} << 20;
  const seen_run run = testing::run_all(fake_dataset(samples, loose_files()), options, fields_of_any_size());
  EXPECT_FALSE(run.failed) << run.message;
  EXPECT_EQ(run.stats.samples + run.stats.substituted, run.stats.planned);
  for (const auto& each : run.batches) EXPECT_EQ(std::count(each.ids.begin(), each.ids.end(), 37), 0);
}

// A budget that has no room for a batch of the largest samples.
TEST(over_budget, a_text_is_left_out_under_skip) {
  const testing::watchdog dog("a long text");
  std::vector<fake_sample> samples = testing::make_samples(1, sample_count);
  samples[37].find("txt")->bytes.assign(std::size_t{40} << 20, std::byte{'a'});
  const fake_dataset set(samples, loose_files());
  loader_options options = options_for(corrupt_policy::raise);
  options.epochs = 1;
  options.host_bytes_max = std::size_t{40} << 20;
  const std::vector<field> fields = {label("cls"), text("txt")};
  EXPECT_EQ(testing::run_all(set, options, fields).failed, errc::limit);
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    options.on_corrupt = policy;
    const seen_run run = testing::run_all(set, options, fields);
    EXPECT_FALSE(run.failed) << run.message;
    EXPECT_EQ(run.stats.quarantined, 1U);
    ASSERT_EQ(run.stats.quarantined_as.size(), 1U);
    EXPECT_EQ(run.stats.quarantined_as[0].kind, "over budget");
  }
}

// Too many pixels is a property of the picture and no matter of budgets.
TEST(over_budget, is_not_what_more_than_pixels_max_is) {
  const testing::watchdog dog("pixels_max");
  const fake_dataset set(one_large_picture(), loose_files());
  for (const std::size_t budget : {std::size_t{20} << 20, std::size_t{256} << 20}) {
    loader_options options = options_for(corrupt_policy::skip);
    options.host_bytes_max = budget;
    const seen_run run =
        testing::run_all(set, options, {image("jpg").resize(12, 12).pixels_max(1'000'000), label("cls")});
    EXPECT_FALSE(run.failed) << run.message;
    EXPECT_EQ(run.stats.quarantined, 2U) << "one in each epoch";
  }
}

// A run that goes on with another budget has the samples that it had.

std::vector<seen_batch> batches_of(loader& run) {
  std::vector<seen_batch> seen;
  while (!run.finished()) {
    while (const std::optional<batch> got = run.next_blocking()) seen.push_back(testing::look_at(*got));
  }
  return seen;
}

/// The batches of a run that has `first` for its first `steps` batches, and then goes on with `then`.
std::vector<seen_batch> in_two_budgets(const dataset& set, loader_options options, const std::vector<field>& fields,
                                       std::size_t first, std::size_t then, int steps) {
  std::vector<seen_batch> seen;
  options.host_bytes_max = first;
  loader before(set, options, fields);
  for (int step = 0; step < steps; ++step) seen.push_back(testing::look_at(*before.next_blocking()));
  options.resume = loader_state::from_bytes(before.state().bytes(), "run.state");
  before.stop();
  options.host_bytes_max = then;
  loader after(set, options, fields);
  EXPECT_EQ(after.state().limits, options.resume->limits) << "and so does whoever goes on with this one";
  for (const seen_batch& each : batches_of(after)) seen.push_back(each);
  return seen;
}

TEST(over_budget, a_picture_that_a_run_left_out_stays_out_with_a_larger_budget) {
  const testing::watchdog dog("over budget, resumed");
  const fake_dataset set(one_large_picture(), loose_files());
  for (const corrupt_policy policy : {corrupt_policy::skip, corrupt_policy::substitute}) {
    loader_options options = options_for(policy);
    constexpr std::size_t little = std::size_t{20} << 20;
    constexpr std::size_t much = std::size_t{256} << 20;
    options.host_bytes_max = little;
    loader undisturbed(set, options, fields_of_any_size());
    const std::vector<seen_batch> run = batches_of(undisturbed);
    EXPECT_EQ(in_two_budgets(set, options, fields_of_any_size(), little, much, 1), run);
    options.host_bytes_max = much;
    loader roomy(set, options, fields_of_any_size());
    EXPECT_NE(batches_of(roomy), run) << "without the state it is another run";
  }
}

TEST(over_budget, a_picture_that_a_run_has_is_not_left_out_with_a_smaller_budget) {
  const testing::watchdog dog("over budget, resumed with less");
  const fake_dataset set(one_large_picture(), loose_files());
  constexpr std::size_t little = std::size_t{20} << 20;
  constexpr std::size_t much = std::size_t{256} << 20;
  for (const corrupt_policy before : {corrupt_policy::skip, corrupt_policy::raise}) {
    loader_options options = options_for(before);
    options.host_bytes_max = much;
    loader undisturbed(set, options, fields_of_any_size());
    const std::vector<seen_batch> run = batches_of(undisturbed);
    loader begun(set, options, fields_of_any_size());
    static_cast<void>(begun.next_blocking());
    options.resume = loader_state::from_bytes(begun.state().bytes(), "run.state");
    options.on_corrupt = corrupt_policy::skip;  // A run that was begun with raise may go on with it.
    options.host_bytes_max = little;
    loader after(set, options, fields_of_any_size());
    const std::string told = testing::message_of(errc::limit, [&] { batches_of(after); });
    EXPECT_EQ(told.find("sample sample/37 (37.jpg): jpg: decoding needs "), 0U) << told;
    EXPECT_NE(told.find("where the run was begun with 64 MiB"), std::string::npos) << told;
    const std::size_t would_do = budget_named(told);
    ASSERT_GT(would_do, little) << told;
    options.host_bytes_max = would_do;
    loader enough(set, options, fields_of_any_size());
    std::vector<seen_batch> rest = batches_of(enough);
    rest.insert(rest.begin(), run.front());
    EXPECT_EQ(rest, run);
  }
}

// Raise ends at such a sample, so that the next part may have what it needs: the message of the error says so.
TEST(over_budget, a_picture_that_ended_a_run_under_raise_is_loaded_with_a_larger_budget) {
  const testing::watchdog dog("over budget, raised");
  const fake_dataset set(one_large_picture(), loose_files());
  loader_options options = options_for(corrupt_policy::raise);
  options.host_bytes_max = std::size_t{256} << 20;
  loader undisturbed(set, options, fields_of_any_size());
  const std::vector<seen_batch> run = batches_of(undisturbed);
  options.host_bytes_max = std::size_t{20} << 20;
  loader first(set, options, fields_of_any_size());
  std::vector<seen_batch> seen;
  const std::string told = testing::message_of(errc::limit, [&] {
    while (const std::optional<batch> got = first.next_blocking()) seen.push_back(testing::look_at(*got));
  });
  options.resume = loader_state::from_bytes(first.state().bytes(), "run.state");
  options.host_bytes_max = budget_named(told);
  for (const corrupt_policy then : {corrupt_policy::raise, corrupt_policy::skip}) {
    options.on_corrupt = then;
    loader second(set, options, fields_of_any_size());
    std::vector<seen_batch> whole = seen;
    for (const seen_batch& each : batches_of(second)) whole.push_back(each);
    EXPECT_EQ(whole, run);
  }
}

TEST(over_budget, a_text_that_a_run_left_out_stays_out_and_one_that_it_has_stays) {
  const testing::watchdog dog("a long text, resumed");
  std::vector<fake_sample> samples = testing::make_samples(1, sample_count);
  samples[37].find("txt")->bytes.assign(std::size_t{40} << 20, std::byte{'a'});
  const fake_dataset set(samples, loose_files());
  loader_options options = options_for(corrupt_policy::skip);
  const std::vector<field> fields = {label("cls"), text("txt")};
  constexpr std::size_t little = std::size_t{40} << 20;
  constexpr std::size_t much = std::size_t{512} << 20;
  options.host_bytes_max = little;
  loader undisturbed(set, options, fields);
  const std::vector<seen_batch> run = batches_of(undisturbed);
  EXPECT_EQ(undisturbed.state().limits->value_bytes, little / 4);
  for (const int steps : {1, 3}) EXPECT_EQ(in_two_budgets(set, options, fields, little, much, steps), run);
  // Any batch by itself, too.
  EXPECT_EQ(undisturbed.batch_at(1, 0).content_digest()->hex(),
            std::find_if(run.begin(), run.end(), [](const seen_batch& each) { return each.epoch == 1; })->content);

  options.host_bytes_max = much;
  loader roomy(set, options, fields);
  static_cast<void>(roomy.next_blocking());
  options.resume = loader_state::from_bytes(roomy.state().bytes(), "run.state");
  EXPECT_EQ(options.resume->limits->value_bytes, sample_limits::none);
  options.host_bytes_max = little;
  const std::string told = testing::message_of(errc::limit, [&] { const loader refused(set, options, fields); });
  EXPECT_NE(told.find("the run of run.state has loaded all values"), std::string::npos) << told;
}

}  // namespace
}  // namespace leat
