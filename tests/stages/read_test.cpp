#include "stages/run/read.hpp"

#include "async/scope.hpp"
#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/observe/timeline.hpp"
#include "stages/plan/plan.hpp"
#include "stages/run/batch_in_flight.hpp"
#include "tests/support/bound_field.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/test_loop.hpp"
#include "tests/support/verbatim_field.hpp"

#include <leat/field.hpp>
#include <leat/own_samples.hpp>
#include <leat/samples.hpp>
#include <leat/units.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/system/system_error.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

using namespace leat::literals;
using testing::fake_dataset;
using testing::fake_sample;

// A batch of samples of these sizes on its way to memory that nobody has used before, on a loop that the test turns.
class reading : public line_events {
 public:
  struct settings {
    testing::fake_layout layout = testing::fake_layout::file_per_member;
    bool in_order = false;
    bool verbatim = false;
    std::vector<std::uint64_t> damaged = {};
    std::size_t fetched_bytes_max = 0;  // of a field that is fetched beside it: its sample's number
  };
  explicit reading(const std::vector<std::size_t>& sizes) : reading(sizes, settings{}) {}
  reading(const std::vector<std::size_t>& sizes, const settings& given)
      : set_(samples_of(sizes), {.layout = given.layout, .disk = {}}),
        all_(given.fetched_bytes_max == 0 ? set_.get() : zip({set_.get(), numbers(sizes, given.fetched_bytes_max)})) {
    const field wanted = given.verbatim ? testing::verbatim("bin") : field(bytes("bin"));
    programs_.push_back(testing::bound(wanted, *all_.model()));
    if (given.fetched_bytes_max != 0) programs_.push_back(testing::bound(bytes("number"), *all_.model()));
    std::vector<output_spec> outputs;
    for (const auto& program : programs_) {
      outputs.insert(outputs.end(), program->outputs().begin(), program->outputs().end());
    }
    layout_ = std::make_unique<batch_layout>(std::move(outputs), static_cast<std::uint32_t>(sizes.size()));
    const planner::settings how{.in_order = given.in_order};
    for (const std::uint64_t sample : given.damaged) set_.damage(sample, "bin", EIO);
    const planner plan(*all_.model(), programs_, *layout_, how);
    for (std::uint64_t i = 0; i < sizes.size(); ++i) batch_.plan.picks.push_back({.sample = i, .draw = i});
    plan.plan(batch_.plan);
    batch_.begin();
    batch_.take_rows(0, batch_.rows());
    if (given.verbatim) batch_.memory = *rows_.try_lease(layout_->bytes({}));
    stage_.emplace(*all_.model(), programs_, std::vector<io::connector*>{&loop_}, pool_, reader_stage::memory(), *this,
                   seen_);
  }
  ~reading() {
    turn_until_idle();
    for (std::uint32_t row = 0; row < batch_.rows(); ++row) reader_stage::release(batch_.samples[row]);
    std::atomic<bool> gone{false};
    std::thread last([&] {
      stage_.reset();  // It asks the loop to let the sources go.
      gone = true;
    });
    while (!gone) loop_.run_turn();
    last.join();
  }

  void start() {
    asio::co_spawn(loop_.loop().get_executor(),
                   async::with_scope([this](async::scope& fetches) -> asio::awaitable<void> {
                     std::vector<std::uint32_t> rows(batch_.rows());
                     for (std::uint32_t row = 0; row < batch_.rows(); ++row) rows[row] = row;
                     co_await stage_->issue(batch_, rows, fetches);
                   }),
                   asio::bind_cancellation_slot(stop_.slot(), [this](std::exception_ptr thrown) {
                     issued_ = true;
                     thrown_ = thrown;
                   }));
  }
  void turn() { loop_.run_turn(); }
  void turn_until_idle() { loop_.run(); }
  void stop() { stop_.emit(asio::cancellation_type::all); }

  [[nodiscard]] bool issued() const { return issued_; }
  [[nodiscard]] bool was_cancelled() const {
    try {
      if (thrown_) std::rethrow_exception(thrown_);
    } catch (const boost::system::system_error& stopped) {
      return stopped.code() == asio::error::operation_aborted;
    }
    return false;
  }
  [[nodiscard]] std::size_t bytes_populated() const { return memory_->bytes_populated(); }
  [[nodiscard]] std::size_t bytes_leased() const { return pool_.count().bytes_used; }
  [[nodiscard]] std::size_t samples_ready() const { return samples_ready_; }
  /// First rows, and how many: as they were said to be ready.
  [[nodiscard]] const std::vector<std::pair<std::uint32_t, std::uint32_t>>& ready_rows() const { return ready_; }
  [[nodiscard]] const fake_dataset& set() const { return set_; }
  [[nodiscard]] const batch_in_flight& batch() const { return batch_; }

 private:
  static std::vector<fake_sample> samples_of(const std::vector<std::size_t>& sizes) {
    std::vector<fake_sample> samples;
    for (const std::size_t bytes : sizes) {
      const auto content = static_cast<std::byte>('1' + samples.size());
      samples.emplace_back().members.push_back({"bin", std::vector<std::byte>(bytes, content)});
    }
    return samples;
  }
  static dataset numbers(const std::vector<std::size_t>& sizes, std::size_t bytes_max) {
    const auto fetch = [](std::uint64_t sample) -> coroutine_of_bytes {
      co_return std::vector<std::byte>{static_cast<std::byte>(sample)};
    };
    return from_coroutine(sizes.size(), fetch, {.field = "number", .bytes_max = bytes_max});
  }

  void ready(sample_in_flight& first, std::uint32_t rows, std::size_t) noexcept override {
    samples_ready_ += rows;
    ready_.emplace_back(first.row, rows);
  }
  void ready(block_in_flight& block, std::size_t) noexcept override { stage_->settle_block(block); }
  void broken(std::exception_ptr) noexcept override { ADD_FAILURE() << "nothing breaks here"; }

  testing::test_loop loop_;
  const std::shared_ptr<io::arena> memory_ = std::make_shared<io::arena>(io::arena_options{.bytes_max = 129_MiB});
  io::lease_pool pool_{memory_, {.bytes_max = 128_MiB, .in_pieces = true}};
  io::lease_pool rows_{memory_, {.bytes_max = 1_MiB}};
  fake_dataset set_;
  const dataset all_;
  std::vector<std::unique_ptr<field_program>> programs_;
  std::unique_ptr<batch_layout> layout_;
  batch_in_flight batch_;
  const timeline seen_{0, 1, 1, 1};
  std::optional<reader_stage> stage_;
  asio::cancellation_signal stop_;
  bool issued_ = false;
  std::exception_ptr thrown_;
  std::size_t samples_ready_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ready_;
};

// A completion, another batch or Ctrl-C waits for one piece, and not for the sample.
TEST(read, faults_in_a_large_sample_piece_by_piece_with_a_turn_of_the_loop_after_each) {
  reading large({100, 50'000'000, 100});
  large.start();
  std::size_t turns = 0;
  for (std::size_t before = 0; !large.issued(); ++turns) {
    large.turn();
    const std::size_t now = large.bytes_populated();
    EXPECT_LE(now - before, io::arena::piece_bytes) << "in turn " << turns;
    before = now;
    ASSERT_LT(turns, 1000U);
  }
  EXPECT_GE(turns, 50'000'000 / io::arena::piece_bytes);
  EXPECT_GE(large.bytes_populated(), 50'000'000U);
  large.turn_until_idle();
  EXPECT_EQ(large.samples_ready(), 3U);
}

// What was asked for before it is on its way meanwhile.
TEST(read, keeps_no_other_read_waiting_for_the_memory_of_a_large_one) {
  reading large({100, 50'000'000, 100});
  large.start();
  while (large.set().count().reads == 0 && !large.issued()) large.turn();
  EXPECT_FALSE(large.issued());
  EXPECT_LE(large.bytes_populated(), 2 * io::arena::piece_bytes);
}

TEST(read, takes_no_turn_for_memory_that_is_there) {
  reading small({100, 100, 100, 100});
  small.start();
  std::size_t turns = 0;
  for (; !small.issued(); ++turns) small.turn();
  EXPECT_LE(turns, 5U);
  EXPECT_EQ(small.bytes_populated(), io::arena::piece_bytes);
}

TEST(read, cancelled_between_two_pieces_faults_in_one_more_at_most_and_gives_the_lease_back) {
  for (const std::size_t pieces : {1U, 2U, 5U}) {
    reading large({50'000'000});
    large.start();
    while (large.bytes_populated() < pieces * io::arena::piece_bytes) large.turn();
    large.stop();
    large.turn_until_idle();
    EXPECT_TRUE(large.issued());
    EXPECT_TRUE(large.was_cancelled());
    EXPECT_LE(large.bytes_populated(), (pieces + 1) * io::arena::piece_bytes);
    EXPECT_EQ(large.bytes_leased(), 0U);
    EXPECT_EQ(large.set().count().reads, 0U);
  }
}

// Samples whose bytes are one read, of which some cannot be read.
void expect_only_the_damaged_to_be_corrupt(reading& joined, const std::vector<std::uint64_t>& damaged) {
  joined.start();
  joined.turn_until_idle();
  const batch_in_flight& batch = joined.batch();
  EXPECT_EQ(joined.samples_ready(), batch.rows());
  for (std::uint32_t row = 0; row < batch.rows(); ++row) {
    const bool hurt = std::find(damaged.begin(), damaged.end(), row) != damaged.end();
    EXPECT_EQ(batch.samples[row].corrupt, hurt) << "row " << row;
    if (hurt) {
      EXPECT_NE(batch.samples[row].trouble->reason.find("EIO"), std::string::npos)
          << batch.samples[row].trouble->reason;
      continue;
    }
    const std::span<const std::byte> got = batch.encoded[row];
    EXPECT_EQ(got.size(), joined.set().where(row, "bin").stored_bytes);
    EXPECT_TRUE(std::all_of(got.begin(), got.end(), [row](std::byte b) { return b == std::byte('1' + row); }))
        << "row " << row;
  }
}

TEST(read, that_failed_for_several_samples_is_tried_again_for_each) {
  for (const std::vector<std::uint64_t>& damaged :
       {std::vector<std::uint64_t>{}, {0}, {3}, {6}, {1, 2, 5}, {0, 1, 2, 3, 4, 5, 6}}) {
    reading leased({1000, 5000, 4096, 1, 9999, 300, 70},
                   {.layout = testing::fake_layout::shards, .in_order = true, .damaged = damaged});
    ASSERT_LE(leased.batch().reads_used, 3U) << "one for each shard";
    expect_only_the_damaged_to_be_corrupt(leased, damaged);
    reading straight(std::vector<std::size_t>(7, 8192),
                     {.layout = testing::fake_layout::columns, .verbatim = true, .damaged = damaged});
    ASSERT_EQ(straight.batch().reads_used, 1U);
    expect_only_the_damaged_to_be_corrupt(straight, damaged);
  }
}

// Each by itself would cost a short row as much as all the rest.
TEST(read, for_several_samples_makes_all_of_them_ready_at_once) {
  using rows = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  reading columns(std::vector<std::size_t>(7, 1000), {.layout = testing::fake_layout::columns, .in_order = true});
  ASSERT_EQ(columns.batch().reads_used, 1U);
  expect_only_the_damaged_to_be_corrupt(columns, {});
  EXPECT_EQ(columns.ready_rows(), (rows{{0, 7}}));
  reading damaged(std::vector<std::size_t>(7, 1000),
                  {.layout = testing::fake_layout::columns, .in_order = true, .damaged = {2}});
  expect_only_the_damaged_to_be_corrupt(damaged, {2});
  EXPECT_EQ(damaged.ready_rows(), (rows{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}));
}

// While a row waits for memory, the read that it shares with the rows behind it may end.
TEST(read, that_ends_before_more_is_fetched_makes_each_row_ready_once_and_with_all_of_it) {
  reading fetched(
      std::vector<std::size_t>(7, 1000),
      {.layout = testing::fake_layout::columns, .in_order = true, .fetched_bytes_max = 2 * io::arena::piece_bytes});
  fetched.start();
  std::size_t fetched_too_late = 0;
  for (std::size_t seen = 0; !fetched.issued();) {
    fetched.turn();
    for (; seen < fetched.ready_rows().size(); ++seen) {
      const auto [first, rows] = fetched.ready_rows()[seen];
      for (std::uint32_t row = first; row < first + rows; ++row) {
        fetched_too_late += fetched.batch().encoded[2 * row + 1].empty() ? 1 : 0;
      }
    }
  }
  fetched.turn_until_idle();
  EXPECT_EQ(fetched_too_late, 0U);
  EXPECT_EQ(fetched.samples_ready(), 7U);
}

TEST(read, direct_to_row_rows_takes_no_read_buffer) {
  reading straight(std::vector<std::size_t>(7, 8192), {.layout = testing::fake_layout::columns, .verbatim = true});
  straight.start();
  while (!straight.issued()) straight.turn();
  EXPECT_EQ(straight.bytes_leased(), 0U);
  straight.turn_until_idle();
  const std::byte* const rows = straight.batch().memory.data();
  for (std::uint32_t row = 0; row < 7; ++row) {
    EXPECT_EQ(straight.batch().encoded[row].data(), rows + row * std::size_t{8192});
  }
}

}  // namespace
}  // namespace leat::stages
