#include "async/thread_pool.hpp"

#include "base/clock.hpp"
#include "base/start_thread.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cassert>

namespace leat::async {
namespace {

std::uint64_t cpu_ns_of(clockid_t clock) noexcept {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

void job_list::push_back(job& added) noexcept {
  added.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &added;
  last_ = &added;
  ++size_;
}

void job_list::append(job_list&& others) noexcept {
  if (others.empty()) return;
  (last_ != nullptr ? last_->next_ : first_) = others.first_;
  last_ = others.last_;
  size_ += others.size_;
  others = job_list();
}

job& job_list::pop_front() noexcept {
  job& first = *first_;
  first_ = first.next_;
  if (first_ == nullptr) last_ = nullptr;
  --size_;
  return first;
}

thread_pool::thread_pool(const thread_pool_options& options) : active_(options.thread_count) {
  assert(options.thread_count > 0);
  workers_.reserve(options.thread_count);
  for (std::size_t i = 0; i < options.thread_count; ++i) workers_.push_back(std::make_unique<worker>());
  try {
    for (std::size_t i = 0; i < options.thread_count; ++i) {
      std::string number = '-' + std::to_string(i);
      std::string name = options.name.substr(0, 15 - std::min<std::size_t>(number.size(), 15)) + number;
      workers_[i]->thread =
          start_thread({.what = options.what, .number = i, .of = options.thread_count, .remedy = options.remedy},
                       [this, i, n = std::move(name)]() mutable { work(i, std::move(n)); });
    }
  } catch (...) {
    stop(stop_mode::drop);  // joins those that did start
    throw;
  }
}

thread_pool::~thread_pool() {
  stop(stop_mode::drop);
  work_.wait_for_visitors();
}

void thread_pool::post(job& posted) noexcept {
  job_list one;
  one.push_back(posted);
  post(std::move(one));
}

void thread_pool::post(job_list jobs) noexcept {
  if (jobs.empty()) return;
  const std::uint64_t now = now_ns();
  for (job* each = jobs.first_; each != nullptr; each = each->next_) each->posted_ns_ = now;
  {
    const mutex_lock lock(mutex_);
    // While draining, jobs may still post jobs; once the threads are gone nobody would run them.
    if (state_ == state::running || (state_ == state::draining && !joined_)) {
      queue_.append(std::move(jobs));
      queued_max_ = std::max(queued_max_, queue_.size());
      wake_one();
      return;
    }
  }
  while (!jobs.empty()) jobs.pop_front().drop();
}

void thread_pool::wake_one() noexcept {
  if (sleeping_ == 0 || woken_ >= queue_.size()) return;
  --sleeping_;
  ++woken_;
  ++wake_count_;
  wake_.notify_one();
}

void thread_pool::wake_all() noexcept {
  woken_ += std::exchange(sleeping_, 0);
  wake_.notify_all();
  activated_.notify_all();
}

void thread_pool::set_active(std::size_t threads) noexcept {
  assert(threads != 0 && threads <= thread_count());
  const mutex_lock lock(mutex_);
  active_ = threads;
  // Each looks again which of the two it is. Jobs that are queued wait for no other event.
  wake_all();
}

void thread_pool::sleep(worker& self) noexcept {
  const std::uint64_t from = now_ns();
  ++sleeping_;
  wake_.wait(mutex_);
  // Chosen, or awake by accident: either way one less sleeps, and one less is on its way if any is.
  if (woken_ != 0) {
    --woken_;
  } else {
    --sleeping_;
  }
  self.idle_ns.fetch_add(now_ns() - from, std::memory_order_relaxed);
}

void thread_pool::work(std::size_t index, std::string name) noexcept {
  pthread_setname_np(pthread_self(), name.c_str());
  current_ = this;
  worker_context context{.index = index};
  worker& self = *workers_[index];
  mutex_.lock();
  for (;;) {
    if (state_ == state::dropping) break;
    if (index >= active_ && state_ == state::running) {
      wake_one();  // Whoever woke this thread wanted a job done.
      activated_.wait(mutex_);
      continue;
    }
    if (queue_.empty()) {
      if (state_ == state::draining && !work_.any()) break;
      sleep(self);
      continue;
    }
    job& next = queue_.pop_front();
    if (!queue_.empty()) wake_one();
    mutex_.unlock();
    const std::uint64_t start = now_ns();
    self.queue_wait_ns.fetch_add(start - std::min(start, next.posted_ns_), std::memory_order_relaxed);
    next.run(context);
    self.busy_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
    self.job_count.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
  }
  // Draining: the others look again too, as this may have been the job they were waiting for.
  wake_all();
  // Not 0: that would mean that the thread can still be asked.
  self.cpu_ns.store(std::max<std::uint64_t>(cpu_ns_of(CLOCK_THREAD_CPUTIME_ID), 1), std::memory_order_relaxed);
  mutex_.unlock();
}

void thread_pool::last_work_finished() noexcept {
  const mutex_lock lock(mutex_);
  if (state_ == state::running) return;
  wake_all();
}

void thread_pool::stop(stop_mode mode) noexcept {
  assert(!running_in_this_thread() && "a thread of the pool cannot wait for itself");
  {
    const mutex_lock lock(mutex_);
    if (joined_) return;
    state_ = mode == stop_mode::drain ? state::draining : state::dropping;
    wake_all();
  }
  for (auto& each : workers_) {
    if (each->thread.joinable()) each->thread.join();
  }
  job_list left;
  {
    const mutex_lock lock(mutex_);
    joined_ = true;
    left = std::move(queue_);
  }
  while (!left.empty()) left.pop_front().drop();
  // What waits in a strand or on a timer of this context is destroyed now, not with the pool: somebody may join it.
  shutdown();
}

thread_pool::counters thread_pool::count() const noexcept {
  counters sum;
  const mutex_lock lock(mutex_);  // no thread ends, and so no clock of one, while it is held
  for (const auto& each : workers_) {
    sum.job_count += each->job_count.load(std::memory_order_relaxed);
    sum.busy_ns += each->busy_ns.load(std::memory_order_relaxed);
    sum.idle_ns += each->idle_ns.load(std::memory_order_relaxed);
    sum.queue_wait_ns += each->queue_wait_ns.load(std::memory_order_relaxed);
    std::uint64_t cpu_ns = each->cpu_ns.load(std::memory_order_relaxed);
    clockid_t clock{};
    if (cpu_ns == 0 && pthread_getcpuclockid(const_cast<std::thread&>(each->thread).native_handle(), &clock) == 0) {
      cpu_ns = cpu_ns_of(clock);
    }
    sum.cpu_ns += cpu_ns;
  }
  sum.wake_count = wake_count_;
  sum.queued = queue_.size();
  sum.queued_max = queued_max_;
  return sum;
}

}  // namespace leat::async
