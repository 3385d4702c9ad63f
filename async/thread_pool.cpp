#include "async/thread_pool.hpp"

#include "base/clock.hpp"
#include "base/core_binding.hpp"
#include "base/cpu_clock.hpp"
#include "base/start_thread.hpp"

#include <pthread.h>

#include <algorithm>
#include <cassert>

namespace leat::async {

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
  active_count_.set(options.thread_count);
  workers_.reserve(options.thread_count);
  for (std::size_t i = 0; i < options.thread_count; ++i) workers_.push_back(std::make_unique<worker>());
  try {
    for (std::size_t i = 0; i < options.thread_count; ++i) {
      std::string number = '-' + std::to_string(i);
      std::string name = options.name.substr(0, 15 - std::min<std::size_t>(number.size(), 15)) + number;
      workers_[i]->thread = start_thread(
          {.what = options.what, .number = i, .of = options.thread_count, .remedy = options.remedy},
          [this, i, n = std::move(name), cores = options.cores]() mutable { work(i, std::move(n), cores); });
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
      queued_.add(jobs.size());
      queue_.append(std::move(jobs));
      queued_max_.raise_to(queue_.size());
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
  wake_count_.add(1);
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
  active_count_.set(threads);
  // Each looks again which of the two it is. Jobs that are queued wait for no other event.
  wake_all();
}

// Returns when it woke.
std::uint64_t thread_pool::sleep(worker& self, std::uint64_t from_ns) noexcept {
  ++sleeping_;
  wake_.wait(mutex_);
  // Chosen, or awake by accident: either way one less sleeps, and one less is on its way if any is.
  if (woken_ != 0) {
    --woken_;
  } else {
    --sleeping_;
  }
  const std::uint64_t woke_ns = now_ns();
  self.idle_ns.add(woke_ns - from_ns);
  return woke_ns;
}

void thread_pool::work(std::size_t index, std::string name, core_binding* cores) noexcept {
  if (cores != nullptr) cores->bind_this_thread();
  pthread_setname_np(pthread_self(), name.c_str());
  current_ = this;
  worker_context context{.index = index};
  worker& self = *workers_[index];
  std::uint64_t since_ns = now_ns();  // the end of what this thread did last is the start of what it does next
  mutex_.lock();
  for (;;) {
    if (state_ == state::dropping) break;
    if (index >= active_ && state_ == state::running) {
      wake_one();  // Whoever woke this thread wanted a job done.
      activated_.wait(mutex_);
      since_ns = now_ns();
      continue;
    }
    if (queue_.empty()) {
      if (state_ == state::draining && !work_.any()) break;
      since_ns = sleep(self, since_ns);
      continue;
    }
    job& next = queue_.pop_front();
    queued_.subtract(1);
    if (!queue_.empty()) wake_one();
    mutex_.unlock();
    self.queue_wait_ns.add(since_ns - std::min(since_ns, next.posted_ns_));
    next.run(context);
    const std::uint64_t ended_ns = now_ns();
    self.busy_ns.add(ended_ns - since_ns);
    self.job_times.record_alone(ended_ns - since_ns);
    self.job_count.add(1);
    since_ns = ended_ns;
    mutex_.lock();
  }
  // Draining: the others look again too, as this may have been the job they were waiting for.
  wake_all();
  mutex_.unlock();
  const mutex_lock lock(clocks_mutex_);
  // Not 0: that would mean that the thread can still be asked.
  self.cpu_ns.add(std::max<std::uint64_t>(thread_cpu_ns(), 1));
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
    queued_.set(0);
  }
  while (!left.empty()) left.pop_front().drop();
  // What waits in a strand or on a timer of this context is destroyed now, not with the pool: somebody may join it.
  shutdown();
}

std::uint64_t thread_pool::cpu_ns_of(const worker& one) const noexcept {
  const std::uint64_t ended_with = one.cpu_ns.get();
  return ended_with != 0 ? ended_with : leat::cpu_ns_of(const_cast<std::thread&>(one.thread).native_handle());
}

thread_pool::counters thread_pool::count() const noexcept {
  counters sum;
  for (const auto& each : workers_) {
    sum.job_count += each->job_count.get();
    sum.busy_ns += each->busy_ns.get();
    sum.idle_ns += each->idle_ns.get();
    sum.queue_wait_ns += each->queue_wait_ns.get();
  }
  sum.wake_count = wake_count_.get();
  sum.queued = queued_.get();
  sum.queued_max = queued_max_.get();
  return sum;
}

std::vector<thread_pool::thread_counters> thread_pool::count_threads() const {
  std::vector<thread_counters> all;
  all.reserve(workers_.size());
  const mutex_lock lock(clocks_mutex_);
  for (const auto& each : workers_) {
    all.push_back({.busy_ns = each->busy_ns.get(), .idle_ns = each->idle_ns.get(), .cpu_ns = cpu_ns_of(*each)});
  }
  return all;
}

void thread_pool::add_to(histogram_sum& sum) const noexcept {
  for (const auto& each : workers_) sum.add(each->job_times);
}

}  // namespace leat::async
