// What is excluded is never delivered, and every other row keeps its bytes.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::loader;
using testing::loader_options;

constexpr std::uint64_t sample_count = 60;
const std::vector<std::uint64_t> unwanted = {41, 5, 59, 5};

struct seen_row {
  std::uint64_t sample = 0;
  std::string sum;
  friend bool operator==(const seen_row&, const seen_row&) = default;
};
// By epoch, batch and place in it.
using seen_rows = std::map<std::tuple<std::uint32_t, std::uint64_t, std::size_t>, seen_row>;

loader_options options_for(corrupt_policy policy) {
  loader_options options = testing::small_options();
  options.on_corrupt = policy;
  options.batch_size = 7;
  options.digests = true;
  return options;
}

seen_rows rows_of(const dataset& samples, const loader_options& options, const std::vector<field>& fields,
                  loader_stats* stats = nullptr) {
  seen_rows rows;
  loader train(samples, options, fields);
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    for (const batch& got : train.blocking()) {
      for (std::size_t row = 0; row < got.ids().size(); ++row) {
        rows[{got.epoch(), got.index(), row}] = {got.ids()[row], got.row_digests()[row].hex()};
      }
    }
  }
  if (stats != nullptr) *stats = train.stats();
  return rows;
}

std::vector<field> fields() { return {image("jpg").random_resized_crop(12), label("cls")}; }

std::uint64_t counted_as(const loader_stats& stats, const std::string& kind) {
  for (const corrupt_count& each : stats.quarantined_as) {
    if (each.kind == kind) return each.samples;
  }
  return 0;
}

TEST(excluded_samples, are_replaced_under_substitute_and_every_other_row_keeps_its_digest) {
  const fake_dataset set(testing::make_samples(1, sample_count), {});
  loader_options options = options_for(corrupt_policy::substitute);
  options.corrupt_max = {.count = 0};  // They are not what is counted.
  const seen_rows whole = rows_of(set, options, fields());
  loader_stats stats;
  const seen_rows left = rows_of(dataset(set).exclude(unwanted), options, fields(), &stats);
  const std::set<std::uint64_t> out(unwanted.begin(), unwanted.end());
  ASSERT_EQ(left.size(), whole.size());
  std::size_t replaced = 0;
  for (const auto& [place, row] : whole) {
    EXPECT_FALSE(out.contains(left.at(place).sample));
    if (out.contains(row.sample)) {
      ++replaced;
    } else {
      EXPECT_EQ(left.at(place), row);
    }
  }
  EXPECT_EQ(replaced, 2 * out.size());
  EXPECT_EQ(stats.substituted, 2 * out.size());
  EXPECT_EQ(counted_as(stats, "excluded"), stats.quarantined);
  EXPECT_EQ(stats.samples + stats.quarantined, stats.planned);
}

TEST(excluded_samples, are_left_out_under_skip_and_every_other_row_keeps_its_digest) {
  const fake_dataset set(testing::make_samples(1, sample_count), {});
  const loader_options options = options_for(corrupt_policy::skip);
  const seen_rows whole = rows_of(set, options, fields());
  const seen_rows left = rows_of(dataset(set).exclude(unwanted), options, fields());
  const std::set<std::uint64_t> out(unwanted.begin(), unwanted.end());
  // In their order, batch by batch.
  std::vector<std::tuple<std::uint32_t, std::uint64_t, std::string>> wanted;
  std::vector<std::tuple<std::uint32_t, std::uint64_t, std::string>> seen;
  for (const auto& [place, row] : whole) {
    if (!out.contains(row.sample)) wanted.emplace_back(std::get<0>(place), std::get<1>(place), row.sum);
  }
  for (const auto& [place, row] : left) seen.emplace_back(std::get<0>(place), std::get<1>(place), row.sum);
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(seen.size(), 2 * (sample_count - out.size()));
}

TEST(excluded_samples, end_the_run_under_raise) {
  const fake_dataset set(testing::make_samples(1, sample_count), {});
  loader_options options = options_for(corrupt_policy::raise);
  options.shuffle = false;
  const testing::seen_run run = testing::run_all(dataset(set).exclude(unwanted), options, fields());
  EXPECT_EQ(run.failed, errc::corrupt);
  EXPECT_NE(run.message.find("excluded"), std::string::npos) << run.message;
  EXPECT_TRUE(run.batches.empty()) << "sample 5 is in the first batch";
}

TEST(excluded_samples, may_lie_in_no_file_and_in_a_part_of_a_concatenation) {
  const auto made = [](std::byte value) {
    return from_function(
        10, [value](std::uint64_t sample) { return std::vector<std::byte>{value, static_cast<std::byte>(sample)}; },
        {.field = "x", .bytes_max = 2, .described_as = "two bytes"});
  };
  const dataset both = concat({made(std::byte{1}), made(std::byte{2}).exclude({3})});
  const loader_options options = options_for(corrupt_policy::skip);
  std::set<std::uint64_t> seen;
  for (const auto& [place, row] : rows_of(both, options, {bytes("x")})) seen.insert(row.sample);
  EXPECT_EQ(seen.size(), 19U);
  EXPECT_FALSE(seen.contains(13));
}

TEST(excluded_samples, more_than_a_thousand_in_a_row_do_not_end_a_run) {
  const dataset many = from_function(3000, [](std::uint64_t) { return std::vector<std::byte>(1); },
                                     {.field = "x", .bytes_max = 1, .described_as = "one byte"});
  std::vector<std::uint64_t> out;
  for (std::uint64_t sample = 500; sample < 2900; ++sample) out.push_back(sample);
  loader_options options = options_for(corrupt_policy::skip);
  options.shuffle = false;
  EXPECT_EQ(rows_of(dataset(many).exclude(out), options, {bytes("x")}).size(), 2 * 600U);
}

TEST(excluded_samples, are_named_in_the_state) {
  const fake_dataset set(testing::make_samples(1, sample_count), {});
  loader_options options = options_for(corrupt_policy::skip);
  options.resume = loader(dataset(set).exclude(unwanted), options, fields()).state();
  loader same(dataset(set).exclude({5, 41, 59}), options, fields());
  try {
    loader other(set, options, fields());
    ADD_FAILURE() << "a run went on with what was excluded";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::usage);
    EXPECT_NE(std::string(refused.what()).find("the dataset's excluded"), std::string::npos) << refused.what();
  }
}

TEST(excluded_samples, have_to_be_there_and_not_all_of_them) {
  const fake_dataset set(testing::make_samples(1, 3), {});
  const auto refusal = [&](const std::vector<std::uint64_t>& out) -> std::string {
    try {
      static_cast<void>(dataset(set).exclude(out));
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      return refused.what();
    }
    return {};
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({0, 2}), "");
  EXPECT_NE(refusal({3}).find("sample 3 is not there"), std::string::npos);
  EXPECT_NE(refusal({2, 1, 0}).find("all 3 samples"), std::string::npos);
}

}  // namespace
}  // namespace leat
