// What stats() and plan() say.
#include "stages/transfer.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/delayed_transfer.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loader.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

using namespace std::chrono_literals;
using testing::fake_dataset;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::trainer;
using testing::watchdog;

std::vector<testing::fake_sample> labels(std::size_t count) {
  std::vector<testing::fake_sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i].members = {{"cls", testing::to_bytes(std::to_string(1000 + i))}};
  return samples;
}

void keep_busy(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(stats, count_what_was_handed_out_and_what_it_took) {
  const watchdog dog("stats");
  const fake_dataset set(testing::make_samples(1, 45));
  loader train(set, small_options(), testing::all_fields());
  std::uint64_t rows = 0;
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  const auto check = [&] {
    const loader_stats now = train.stats();
    EXPECT_EQ(now.samples + now.quarantined, now.planned);
    EXPECT_EQ(now.samples, rows);
    EXPECT_EQ(now.batches, batches);
    EXPECT_EQ(now.bytes_delivered, bytes);
    EXPECT_EQ(now.next.count, batches + now.epochs_finished);
    EXPECT_GE(now.decode.count, rows);
    EXPECT_GE(now.collate.count, batches);
    EXPECT_GE(now.transfer.count, batches);
    EXPECT_LE(now.batches_ready, train.plan().batches + 1);  // the end of an epoch waits there, too
    return now;
  };
  check();
  for (int epoch = 0; epoch < 2; ++epoch) {
    while (auto got = train.next_blocking()) {
      rows += got->valid_rows();
      ++batches;
      for (const std::string& output : got->outputs()) bytes += (*got)[output].bytes();
      EXPECT_EQ(check().batches_out, 1U);
    }
    EXPECT_EQ(check().epochs_finished, static_cast<std::uint32_t>(epoch + 1));
  }
  const loader_stats last = check();
  EXPECT_EQ(last.planned, 90U);
  EXPECT_EQ(last.decode.count, 90U);
  EXPECT_EQ(last.collate.count, 12U);
  EXPECT_EQ(last.batches_out, 0U);
  EXPECT_EQ(last.batches_ready, 0U);
  EXPECT_EQ(last.reads_in_flight, 0U);
  EXPECT_EQ(last.read.count, set.count().reads);
  EXPECT_GT(last.bytes_read, 0U);
  EXPECT_GT(last.bytes_delivered, 90U * 12 * 12 * 3 * sizeof(float));
  EXPECT_GT(last.transfer.bytes, last.bytes_delivered) << "what a copy moves has the padding between the tensors in it";
  EXPECT_GT(last.digest_cpu_s, 0.0);
  EXPECT_GT(last.decode.busy_s, 0.0);
  EXPECT_LE(last.next_wait_p50_s, last.next_wait_p99_s);
  EXPECT_GT(last.arena_bytes, 0U);
  EXPECT_GT(last.scratch_bytes_peak, 0U);
}

TEST(stats, may_be_asked_by_any_thread_at_any_time) {
  const watchdog dog("stats by any thread");
  const fake_dataset set(labels(400));
  loader train(set, small_options(), label("cls"));
  std::atomic<bool> ended{false};
  std::thread watcher([&] {
    std::uint64_t before = 0;
    while (!ended) {
      const loader_stats now = train.stats();
      EXPECT_GE(now.samples, before);
      before = now.samples;
    }
  });
  EXPECT_EQ(testing::run_epochs(train, 2).size(), 100U);
  ended = true;
  watcher.join();
}

TEST(stats, of_a_batch_that_is_ready_show_no_hop_to_another_thread) {
  const watchdog dog("ready batch");
  const fake_dataset set(labels(80));
  loader train(set, small_options(), label("cls"));
  while (train.stats().batches_ready < 3) std::this_thread::yield();
  trainer one(train);
  const auto asked = one.ask();
  one.turn();  // this thread alone
  EXPECT_TRUE(asked->completed && asked->got);
}

TEST(stats, keep_within_the_plan) {
  const watchdog dog("plan");
  const auto samples = testing::make_samples(1, 60);
  for (const std::size_t budget : {std::size_t{24} << 20, std::size_t{64} << 20, std::size_t{256} << 20}) {
    const fake_dataset set(samples);
    loader_options options = small_options();
    options.host_bytes_max = budget;
    loader train(set, options, testing::all_fields());
    const loader_plan& plan = train.plan();
    std::size_t sum = 0;
    for (const auto& line : plan.lines) {
      sum += line.bytes;
      EXPECT_FALSE(line.why.empty());
      EXPECT_NE(plan.to_string().find(line.holder), std::string::npos);
    }
    EXPECT_EQ(sum, plan.bytes_total);
    EXPECT_LE(plan.bytes_total, budget);
    EXPECT_EQ(plan.host_bytes_max, budget);
    EXPECT_LE(plan.host_bytes_least, budget);
    EXPECT_EQ(testing::run_epochs(train, 2).size(), 16U);
    const loader_stats stats = train.stats();
    EXPECT_LE(stats.arena_bytes + stats.scratch_bytes_peak, plan.bytes_total);
  }
}

// --- who is the bottleneck --------------------------------------------------------------------------------------------

// A disk that takes its time, and one read after the other.
class slow_disk final : public io::source_description {
 public:
  explicit slow_disk(std::chrono::microseconds per_read) : per_read_(per_read) {}
  std::unique_ptr<io::source> connect(io::connector& loop) const override {
    return std::make_unique<connected>(loop, per_read_);
  }
  std::uint32_t files() const override { return 1; }
  std::string file_name(std::uint32_t) const override { return "slow"; }

 private:
  class connected final : public io::source {
   public:
    connected(io::connector& loop, std::chrono::microseconds per_read) : loop_(loop), per_read_(per_read) {}
    void start(std::span<io::read_operation* const> operations) override {
      queue_.insert(queue_.end(), operations.begin(), operations.end());
      if (!posted_) post();
    }
    void start(io::open_operation&) override { std::abort(); }
    void cancel(io::read_operation&) override {}  // It ends soon.
    error explain(const io::read_operation&) const override { return {errc::io, "slow"}; }
    error explain(const io::open_operation&) const override { return {errc::io, "slow"}; }

   private:
    void post() {
      posted_ = true;
      begun_ = std::chrono::steady_clock::now();
      loop_.post([](void* self) noexcept { static_cast<connected*>(self)->turn(); }, this);
    }
    void turn() {
      if (std::chrono::steady_clock::now() - begun_ < per_read_) {
        std::this_thread::yield();
        loop_.post([](void* self) noexcept { static_cast<connected*>(self)->turn(); }, this);
        return;
      }
      posted_ = false;
      io::read_operation& read = *queue_.front();
      queue_.erase(queue_.begin());
      std::memset(read.into.bytes.data(), '1', read.into.bytes.size());
      read.data = read.into.bytes.first(read.bytes);
      read.failure = 0;
      if (!queue_.empty()) post();
      read.done(read);
    }
    io::connector& loop_;
    const std::chrono::microseconds per_read_;
    std::vector<io::read_operation*> queue_;
    std::chrono::steady_clock::time_point begun_;
    bool posted_ = false;
  };
  const std::chrono::microseconds per_read_;
};

class slow_model final : public datasets::dataset_model {
 public:
  explicit slow_model(std::chrono::microseconds per_read) : sources_{std::make_shared<slow_disk>(per_read)} {
    field_.name = "cls";
    field_.samples = size();
    field_.bytes_max = 4;
    field_.bytes_total = 4 * size();
  }
  std::uint64_t size() const noexcept override { return 400; }
  std::span<const field_info> fields() const noexcept override { return {&field_, 1}; }
  void parts(std::uint64_t sample, std::span<const datasets::need>, datasets::part_list& out) const override {
    parts(sample, out);
  }
  void parts(std::uint64_t sample, datasets::part_list& out) const override {
    out.push_back({0, {.offset = sample * 100'000, .stored_bytes = 4, .decoded_bytes = 4}});
  }
  std::span<const std::shared_ptr<const io::source_description>> sources() const noexcept override { return sources_; }
  std::string name(std::uint64_t sample) const override { return std::to_string(sample); }
  dataset_memory memory() const override { return {}; }

 private:
  field_info field_;
  std::vector<std::shared_ptr<const io::source_description>> sources_;
};

field spinning(std::chrono::microseconds time) {
  return custom("cls", dtype::u8, {1},
                [=](std::span<const std::byte>, const sample_context&, std::span<std::byte> row) {
                  keep_busy(time);
                  row[0] = std::byte{0};
                  return std::string();
                });
}

std::string bottleneck_of(const dataset& samples, loader_options options, const field& what,
                          const std::function<void()>& step) {
  const watchdog dog("bottleneck");
  options.digests = false;
  loader train(samples, options, what);
  for (const batch& got : train.blocking()) {
    static_cast<void>(got);
    step();
  }
  return std::string(name(train.stats().slowest));
}

TEST(bottleneck, is_the_consumer_where_it_is_slow) {
  const fake_dataset set(labels(400));
  // Longer than a batch takes to be read on a busy machine, under sanitizers.
  EXPECT_EQ(bottleneck_of(set, small_options(), label("cls"), [] { std::this_thread::sleep_for(30ms); }), "consumer");
}

TEST(bottleneck, is_reading_where_the_disk_is_slow) {
  const dataset slow(std::make_shared<slow_model>(500us));
  EXPECT_EQ(bottleneck_of(slow, small_options(), label("cls"), [] {}), "read");
}

TEST(bottleneck, is_decoding_where_that_takes_long) {
  const fake_dataset set(labels(400));
  for (const std::uint32_t threads : {1U, 2U}) {
    loader_options options = small_options();
    options.decode_threads = threads;
    EXPECT_EQ(bottleneck_of(set, options, spinning(500us), [] {}), "decode");
  }
}

TEST(bottleneck, is_the_transfer_where_copies_take_long) {
  const fake_dataset set(labels(400));
  loader_options options = small_options();
  const auto events = std::make_shared<testing::delayed_transfer>();
  options.transfer = events;
  std::atomic<bool> ended{false};
  std::thread device([&] {
    while (!ended) {
      std::this_thread::sleep_for(20ms);  // longer than a batch takes to be read on a busy machine, under sanitizers
      events->fire_send(0);
      while (events->fire_return(0)) {
      }
    }
  });
  EXPECT_EQ(bottleneck_of(set, options, label("cls"), [] {}), "transfer");
  ended = true;
  device.join();
}

}  // namespace
}  // namespace leat
