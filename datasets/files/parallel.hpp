// The same work for many items on a few threads, for opening datasets: there is no loop and no pool yet at that point.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace leat::datasets {

/// Calls work(i) for each i in 0..count-1 on at most `threads` threads, this one among them, and returns when all have
/// ended. Items are taken in order; after one has thrown no further ones are begun, and the exception of the lowest is
/// thrown here: every item below it was begun before it, so the same one is reported however the threads ran.
template <class Work>
void for_each_parallel(std::size_t count, unsigned threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed_item = count;
  const auto run = [&]() noexcept {
    while (!failed.load()) {
      const std::size_t item = next.fetch_add(1);
      if (item >= count) return;
      try {
        work(item);
      } catch (...) {
        failed.store(true);
        const std::lock_guard lock(mutex);
        if (item < failed_item) {
          failed_item = item;
          failure = std::current_exception();
        }
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    const std::size_t helpers_max = std::min<std::size_t>(threads, count);
    try {
      for (std::size_t i = 1; i < helpers_max; ++i) helpers.emplace_back(run);
    } catch (const std::system_error&) {  // No more threads are available: those that exist do all the work.
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

/// The same with something of a thread's own: work(i, own). As many are made as threads work at a time; those that were
/// made before are taken again, but not after work has thrown.
///   make   a std::unique_ptr of it. Called under a lock
template <class Make, class Work>
void for_each_parallel_with(std::size_t count, unsigned threads, const Make& make, const Work& work) {
  std::mutex mutex;
  std::vector<decltype(make())> idle;
  for_each_parallel(count, threads, [&](std::size_t item) {
    decltype(make()) own;
    {
      const std::lock_guard lock(mutex);
      if (idle.empty()) {
        own = make();
      } else {
        own = std::move(idle.back());
        idle.pop_back();
      }
    }
    work(item, *own);
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(own));
  });
}

/// Threads for walking and indexing: they wait for the disk more than they compute.
[[nodiscard]] inline unsigned threads_for_walking(unsigned asked) noexcept {
  if (asked != 0) return std::min(asked, 256U);
  return std::clamp(2 * std::thread::hardware_concurrency(), 4U, 32U);
}

}  // namespace leat::datasets
