#include "tests/support/slow_parts.hpp"

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "datasets/model/model.hpp"
#include "io/files/source.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

void pass(std::chrono::microseconds time, passing how) {
  if (how == passing::asleep) return std::this_thread::sleep_for(time);
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

namespace {

class slow_disk final : public io::source_description {
 public:
  slow_disk(std::chrono::microseconds per_read, passing how) : per_read_(per_read), how_(how) {}
  std::unique_ptr<io::source> connect(io::connector& loop) const override {
    return std::make_unique<connected>(loop, per_read_, how_);
  }
  std::uint32_t files() const override { return 1; }
  std::string file_name(std::uint32_t) const override { return "slow"; }

 private:
  class connected final : public io::source {
   public:
    connected(io::connector& loop, std::chrono::microseconds per_read, passing how)
        : loop_(loop), per_read_(per_read), how_(how), thread_([this] { serve(); }) {}
    ~connected() override {
      {
        const mutex_lock lock(mutex_);
        ended_ = true;
        changed_.notify_one();
      }
      thread_.join();
    }
    void start(std::span<io::read_operation* const> operations) override {
      const mutex_lock lock(mutex_);
      for (io::read_operation* const each : operations) {
        each->started_ns = now_ns();
        queue_.push_back(each);
      }
      changed_.notify_one();
    }
    void start(io::open_operation&) override { std::abort(); }
    void cancel(io::read_operation&) override {
      const mutex_lock lock(mutex_);
      cancelled_ = true;
    }
    error explain(const io::read_operation&) const override { return {errc::io, "slow"}; }
    error explain(const io::open_operation&) const override { return {errc::io, "slow"}; }

   private:
    // On its own thread. What has ended is told on the loop's.
    void serve() {
      mutex_lock lock(mutex_);
      for (;;) {
        while (queue_.empty() && !ended_) changed_.wait(mutex_);
        if (queue_.empty()) return;
        io::read_operation& read = *queue_.front();
        queue_.pop_front();
        const bool is_wanted = !cancelled_;
        lock.unlock();
        if (is_wanted) pass(per_read_, how_);
        std::memset(read.into.bytes.data(), '1', read.into.bytes.size());
        read.data = read.into.bytes.first(read.bytes);
        read.failure = 0;
        loop_.post(
            [](void* argument) noexcept {
              auto& ended = *static_cast<io::read_operation*>(argument);
              ended.done(ended);
            },
            &read);
        lock.lock();
      }
    }

    io::connector& loop_;
    const std::chrono::microseconds per_read_;
    const passing how_;
    mutex mutex_;
    condition_variable changed_;
    std::deque<io::read_operation*> queue_ ABSL_GUARDED_BY(mutex_);
    bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
    bool ended_ ABSL_GUARDED_BY(mutex_) = false;
    std::thread thread_;
  };

  const std::chrono::microseconds per_read_;
  const passing how_;
};

class overlapping_disk final : public io::source_description {
 public:
  explicit overlapping_disk(const timed_drive& drive) : drive_(drive) {}
  std::unique_ptr<io::source> connect(io::connector& loop) const override {
    return std::make_unique<connected>(loop, drive_);
  }
  std::uint32_t files() const override { return 1; }
  std::string file_name(std::uint32_t) const override { return "timed"; }

 private:
  class connected final : public io::source {
   public:
    connected(io::connector& loop, const timed_drive& drive)
        : loop_(loop), drive_(drive), thread_([this] { serve(); }) {}
    ~connected() override {
      {
        const mutex_lock lock(mutex_);
        ended_ = true;
        changed_.notify_one();
      }
      thread_.join();
    }
    void start(std::span<io::read_operation* const> operations) override {
      const mutex_lock lock(mutex_);
      const std::uint64_t now = now_ns();
      for (io::read_operation* const each : operations) {
        each->started_ns = now;
        // All have one latency, so that they come to the path in the order in which they were started.
        const std::uint64_t answered = now + static_cast<std::uint64_t>(drive_.latency.count()) * 1000;
        const double path_s = drive_.bytes_per_s > 0 ? static_cast<double>(each->bytes) / drive_.bytes_per_s : 0;
        path_free_ns_ = std::max(path_free_ns_, answered) + static_cast<std::uint64_t>(path_s * 1e9);
        queue_.push_back({path_free_ns_, each});
      }
      changed_.notify_one();
    }
    void start(io::open_operation&) override { std::abort(); }
    void cancel(io::read_operation&) override {
      const mutex_lock lock(mutex_);
      cancelled_ = true;
      changed_.notify_one();
    }
    error explain(const io::read_operation&) const override { return {errc::io, "timed"}; }
    error explain(const io::open_operation&) const override { return {errc::io, "timed"}; }

   private:
    struct answer {
      std::uint64_t at_ns;
      io::read_operation* read;
    };
    // On its own thread. What has ended is told on the loop's.
    void serve() {
      mutex_lock lock(mutex_);
      for (;;) {
        while (queue_.empty() && !ended_) changed_.wait(mutex_);
        if (queue_.empty()) return;
        const answer next = queue_.front();
        if (!cancelled_ && now_ns() < next.at_ns) {
          changed_.wait_until(mutex_, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next.at_ns)));
          continue;
        }
        queue_.pop_front();
        io::read_operation& read = *next.read;
        std::memset(read.into.bytes.data(), '1', read.into.bytes.size());
        read.data = read.into.bytes.first(read.bytes);
        read.failure = 0;
        loop_.post(
            [](void* argument) noexcept {
              auto& ended = *static_cast<io::read_operation*>(argument);
              ended.done(ended);
            },
            &read);
      }
    }

    io::connector& loop_;
    const timed_drive drive_;
    mutex mutex_;
    condition_variable changed_;
    std::deque<answer> queue_ ABSL_GUARDED_BY(mutex_);
    std::uint64_t path_free_ns_ ABSL_GUARDED_BY(mutex_) = 0;
    bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
    bool ended_ ABSL_GUARDED_BY(mutex_) = false;
    std::thread thread_;
  };

  const timed_drive drive_;
};

class slow_model final : public datasets::dataset_model {
 public:
  slow_model(std::uint64_t samples, std::uint32_t sample_bytes, std::shared_ptr<const io::source_description> disk)
      : samples_(samples), sample_bytes_(sample_bytes) {
    sources_.push_back(std::move(disk));
    field_info& field = fields_.emplace_back();
    field.name = "cls";
    field.samples = size();
    field.bytes_max = sample_bytes_;
    field.bytes_total = sample_bytes_ * size();
  }
  std::uint64_t size() const noexcept override { return samples_; }
  void parts(std::uint64_t sample, std::span<const datasets::need>, datasets::part_list& out) const override {
    out.push_back({.where = {.offset = sample * (100'000 + sample_bytes_),
                             .stored_bytes = sample_bytes_,
                             .decoded_bytes = sample_bytes_}});
  }
  std::string name(std::uint64_t sample) const override { return std::to_string(sample); }
  dataset_memory memory() const override { return {}; }

 private:
  const std::uint64_t samples_;
  const std::uint32_t sample_bytes_;
};

}  // namespace

dataset on_slow_disk(std::uint64_t samples, std::chrono::microseconds per_read, passing how) {
  return dataset(std::make_shared<slow_model>(samples, 4, std::make_shared<slow_disk>(per_read, how)));
}

dataset on_timed_drive(std::uint64_t samples, std::uint32_t sample_bytes, const timed_drive& drive) {
  return dataset(std::make_shared<slow_model>(samples, sample_bytes, std::make_shared<overlapping_disk>(drive)));
}

field slow_field(std::chrono::microseconds per_sample, passing how) {
  return custom("cls", dtype::u8, {1},
                [=](std::span<const std::byte>, const sample_context&, std::span<std::byte> row) {
                  pass(per_sample, how);
                  row[0] = std::byte{0};
                  return std::string();
                });
}

slow_transfer::slow_transfer(std::chrono::microseconds per_batch, passing how)
    : device_([this, per_batch, how] {
        while (!ended_) {
          // Also while nothing is sent: what is sent next may wait for this memory.
          while (events_->fire_return(0)) {
          }
          if (events_->sends_pending() == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            continue;
          }
          pass(per_batch, how);
          events_->fire_send(0);
        }
      }) {}

slow_transfer::~slow_transfer() {
  ended_ = true;
  device_.join();
}

}  // namespace leat::testing
