#include "tests/support/slow_parts.hpp"

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "datasets/model/model.hpp"
#include "io/files/source.hpp"

#include <leat/error.hpp>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <string>
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

class slow_model final : public datasets::dataset_model {
 public:
  slow_model(std::uint64_t samples, std::chrono::microseconds per_read, passing how) : samples_(samples) {
    sources_.push_back(std::make_shared<slow_disk>(per_read, how));
    field_info& field = fields_.emplace_back();
    field.name = "cls";
    field.samples = size();
    field.bytes_max = 4;
    field.bytes_total = 4 * size();
  }
  std::uint64_t size() const noexcept override { return samples_; }
  void parts(std::uint64_t sample, std::span<const datasets::need>, datasets::part_list& out) const override {
    out.push_back({.where = {.offset = sample * 100'000, .stored_bytes = 4, .decoded_bytes = 4}});
  }
  std::string name(std::uint64_t sample) const override { return std::to_string(sample); }
  dataset_memory memory() const override { return {}; }

 private:
  const std::uint64_t samples_;
};

}  // namespace

dataset on_slow_disk(std::uint64_t samples, std::chrono::microseconds per_read, passing how) {
  return dataset(std::make_shared<slow_model>(samples, per_read, how));
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
