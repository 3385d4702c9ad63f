// What has to be made of a whole epoch before any batch of it is known: made an epoch ahead, on a thread of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

namespace leat::stages {

/// Keeps the epochs that were asked for last, and the one after the newest.
///   make     (epoch, stop) -> Made, a function of the epoch alone; on any thread, for several epochs at once. When `stop` is
///            requested, what it returns does not matter
///   Thread   of(): any number of them
template <class Made>
class made_ahead {
 public:
  using function = std::function<Made(std::uint32_t, const std::stop_token&)>;
  explicit made_ahead(function make) : make_(std::move(make)) {}

  /// The epoch that is asked for. Makes it here where nobody has begun to; otherwise waits for who has. The epoch after it is then on
  /// its way.
  [[nodiscard]] std::shared_ptr<const Made> of(std::uint32_t epoch) {
    std::promise<std::shared_ptr<const Made>> promise;
    std::shared_future<std::shared_ptr<const Made>> wanted;
    bool made_here = false;
    {
      const std::lock_guard lock(mutex_);
      wanted = find(epoch);
      made_here = !wanted.valid();
      if (made_here) {
        wanted = promise.get_future().share();
        entries_.push_front({epoch, wanted, {}});
      }
      if (!find(epoch + 1).valid()) begin(epoch + 1);
      shrink(epoch);
    }
    if (made_here) fulfil(promise, epoch, {});
    return wanted.get();
  }

 private:
  using promise_of = std::promise<std::shared_ptr<const Made>>;
  struct entry {
    std::uint32_t epoch = 0;
    std::shared_future<std::shared_ptr<const Made>> made;
    std::jthread thread;  // its end asks it to stop, and joins it
  };
  // The one in use, the one after it, and one before it: batches of two epochs are asked for in turn where they meet.
  static constexpr std::size_t entries_kept = 3;

  void fulfil(promise_of& promise, std::uint32_t epoch, const std::stop_token& stop) const {
    try {
      promise.set_value(std::make_shared<const Made>(make_(epoch, stop)));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }

  std::shared_future<std::shared_ptr<const Made>> find(std::uint32_t epoch) const {
    for (const entry& each : entries_) {
      if (each.epoch == epoch) return each.made;
    }
    return {};
  }

  void begin(std::uint32_t epoch) {
    auto promise = std::make_shared<promise_of>();
    entry& added = entries_.emplace_front();
    added.epoch = epoch;
    added.made = promise->get_future().share();
    try {
      added.thread =
          std::jthread([this, promise, epoch](const std::stop_token& stop) { fulfil(*promise, epoch, stop); });
    } catch (const std::system_error&) {  // No thread to be had: who asks for it makes it.
      entries_.pop_front();
    }
  }

  // Only what is made: to let go of another would be to wait for its thread.
  void shrink(std::uint32_t in_use) {
    for (auto at = entries_.end(); entries_.size() > entries_kept && at != entries_.begin();) {
      --at;
      const bool needed = at->epoch == in_use || at->epoch == in_use + 1;
      if (!needed && at->made.wait_for(std::chrono::seconds(0)) == std::future_status::ready) at = entries_.erase(at);
    }
  }

  const function make_;
  std::mutex mutex_;
  std::list<entry> entries_;  // The newest first.
};

}  // namespace leat::stages
