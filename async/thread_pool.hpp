// A fixed pool of threads: jobs that carry their own memory for the hot path, an Asio executor for everything else.
#pragma once

#include "async/context_executor.hpp"
#include "async/histogram.hpp"
#include "async/outstanding_work.hpp"
#include "base/mutex.hpp"
#include "base/relaxed_counter.hpp"

#include <boost/asio/execution_context.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace leat {
class core_binding;
}

namespace leat::async {

/// What a job learns about the thread it runs on.
struct worker_context {
  std::size_t index = 0;  ///< 0 .. thread_count - 1: selects per-thread scratch
};

/// Work for a thread_pool. The poster owns it and keeps it alive until run() or drop() was called, exactly one of which
/// is; the pool touches it no more from the moment of that call, so a job may free or repost itself.
class job {
 public:
  job(const job&) = delete;
  job& operator=(const job&) = delete;

  /// Does the work, on a thread of the pool.
  virtual void run(worker_context& worker) noexcept = 0;
  /// Told instead of run() when the pool was stopped first, on the thread of stop() or of the post that came too late.
  virtual void drop() noexcept = 0;

 protected:
  job() = default;
  ~job() = default;

 private:
  friend class job_list;
  friend class thread_pool;
  job* next_ = nullptr;
  std::uint64_t posted_ns_ = 0;
};

/// Jobs to be posted together, first in, first out. Owns nothing.
class job_list {
 public:
  job_list() = default;
  job_list(job_list&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)),
        last_(std::exchange(other.last_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  job_list& operator=(job_list&& other) noexcept {
    first_ = std::exchange(other.first_, nullptr);
    last_ = std::exchange(other.last_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void push_back(job& added) noexcept;

 private:
  friend class thread_pool;
  void append(job_list&& others) noexcept;
  [[nodiscard]] job& pop_front() noexcept;

  job* first_ = nullptr;
  job* last_ = nullptr;
  std::size_t size_ = 0;
};

struct thread_pool_options {
  std::size_t thread_count = 1;
  /// Shown by top -H and debuggers, with the thread's number behind it; 15 characters in all, pthread_setname_np(3).
  std::string name = "leat";
  /// What an error calls one of them, and what else to do where one cannot be started.
  std::string what = "thread";
  std::string remedy = {};
  core_binding* cores = nullptr;  ///< that they run on; null: those of who makes the pool. It outlives the pool
};

/// A fixed pool of threads with one queue, first in, first out.
///
///   threads      post() and stats() from any; jobs run on the pool's own
///   wake-ups     an idle hop costs 7 us and its system call is paid by the poster, so a post wakes one sleeper at most,
///                be it for one job or for sixteen; who wakes and sees more jobs wakes the next
///   executor     for coroutines and functions; running several of one coroutine's operations at a time needs a strand,
///                as on any pool. An exception that leaves a posted function ends the program, as from any thread
///   stop         stop(drain) or stop(drop), or the destructor, which drops
class thread_pool : public asio::execution_context {
 public:
  using executor_type = context_executor<thread_pool>;

  enum class stop_mode {
    drain,  ///< runs all that is queued, and what that posts, until no work is outstanding
    drop    ///< tells what is queued that it will not run
  };

  struct counters {
    std::uint64_t job_count = 0;      ///< jobs and posted functions run
    std::uint64_t busy_ns = 0;        ///< time in them, summed over the threads
    std::uint64_t idle_ns = 0;        ///< time the threads slept for want of jobs, finished sleeps only
    std::uint64_t queue_wait_ns = 0;  ///< time from post to run, summed over the jobs
    std::uint64_t wake_count = 0;     ///< sleepers woken
    std::size_t queued = 0;           ///< now
    std::size_t queued_max = 0;       ///< the most at any time
  };
  /// Of one thread, as in counters.
  struct thread_counters {
    std::uint64_t busy_ns = 0;
    std::uint64_t idle_ns = 0;
    std::uint64_t cpu_ns = 0;  ///< user and system; asking for it is a system call
  };

  /// Starts the threads. Throws std::system_error where the system gives no more of them.
  explicit thread_pool(const thread_pool_options& options);
  ~thread_pool();
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  [[nodiscard]] executor_type get_executor() noexcept { return executor_type(*this); }
  [[nodiscard]] std::size_t thread_count() const noexcept { return workers_.size(); }
  [[nodiscard]] bool running_in_this_thread() const noexcept { return current_ == this; }

  void post(job& posted) noexcept;
  /// Posts all of `jobs`, in order, with one lock and one wake-up.
  void post(job_list jobs) noexcept;

  /// Lets only the first `threads` take jobs from now on: at least 1, at most thread_count(). The others end the job that they have, and
  /// sleep. While the pool is stopped by `drain` all of them take part. Thread: any.
  void set_active(std::size_t threads) noexcept;
  /// How many take jobs now. Thread: any.
  [[nodiscard]] std::size_t active_count() const noexcept { return active_count_.get(); }

  /// Ends the pool and joins its threads; jobs that run are waited for. Not from a thread of the pool. What is posted
  /// later is dropped. The second call does nothing.
  void stop(stop_mode mode) noexcept;

  [[nodiscard]] counters count() const noexcept;
  /// Asks the system for each thread's CPU time, with nothing locked that a job waits for.
  [[nodiscard]] std::vector<thread_counters> count_threads() const;
  /// Adds what each job has taken. Each thread counts its own.
  void add_to(histogram_sum& sum) const noexcept;

 private:
  friend class context_executor<thread_pool>;

  template <class Function>
  class function_job;
  /// A thread with its counters, on cache lines of its own.
  struct alignas(64) worker {
    std::thread thread;
    relaxed_counter job_count;
    relaxed_counter busy_ns;
    relaxed_counter idle_ns;
    relaxed_counter queue_wait_ns;
    relaxed_counter cpu_ns;  // once the thread has ended
    histogram job_times;
  };
  enum class state { running, draining, dropping };

  template <class Function>
  void post_function(Function&& function);
  void work_started() noexcept { work_.started(); }
  void work_finished() noexcept {
    work_.finished([this] { last_work_finished(); });
  }
  void last_work_finished() noexcept;
  void wake_one() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void wake_all() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t sleep(worker& self, std::uint64_t from_ns) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::uint64_t cpu_ns_of(const worker& one) const noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(clocks_mutex_);
  void work(std::size_t index, std::string name, core_binding* cores) noexcept;

  static inline constinit thread_local const thread_pool* current_ = nullptr;

  mutable mutex clocks_mutex_;  // no thread ends, and so no clock of one, while it is held
  mutable mutex mutex_;
  condition_variable wake_;
  condition_variable activated_;  // those beyond active_ sleep there, and are counted nowhere
  std::size_t active_ ABSL_GUARDED_BY(mutex_);
  job_list queue_ ABSL_GUARDED_BY(mutex_);
  state state_ ABSL_GUARDED_BY(mutex_) = state::running;
  std::size_t sleeping_ ABSL_GUARDED_BY(mutex_) = 0;  // those not yet chosen to be woken
  std::size_t woken_ ABSL_GUARDED_BY(mutex_) = 0;     // those chosen that have not got here yet
  relaxed_counter active_count_;                      // these four are written under mutex_, and read without it
  relaxed_counter queued_;
  relaxed_counter queued_max_;
  relaxed_counter wake_count_;
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  outstanding_work work_;
  std::vector<std::unique_ptr<worker>> workers_;
};

/// A function posted through the executor.
template <class Function>
class thread_pool::function_job final : public job {
 public:
  explicit function_job(Function&& function) : function_(std::move(function)) {}
  void run(worker_context&) noexcept override {
    Function function(std::move(function_));
    delete this;
    std::move(function)();
  }
  void drop() noexcept override { delete this; }

 private:
  ~function_job() = default;
  Function function_;
};

template <class Function>
void thread_pool::post_function(Function&& function) {
  post(*new function_job<std::remove_cvref_t<Function>>(std::move(function)));
}

}  // namespace leat::async
