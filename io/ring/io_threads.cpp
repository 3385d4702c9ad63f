#include "io/ring/io_threads.hpp"

#include "base/clock.hpp"
#include "base/core_binding.hpp"
#include "base/cpu_clock.hpp"
#include "base/errno_words.hpp"
#include "base/mutex.hpp"
#include "base/option_words.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "io/files/queue_depth.hpp"
#include "io/files/read_error.hpp"
#include "io/ring/io_loop.hpp"
#include "io/ring/make_ring_loop.hpp"
#include "io/ring/preadv_loop.hpp"
#include "io/ring/uring.hpp"

#include <leat/error.hpp>

#include <absl/base/thread_annotations.h>

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <csignal>
#include <cstring>
#include <exception>
#include <future>
#include <system_error>
#include <thread>

namespace leat::io {
namespace {

constexpr std::uint32_t io_threads_max = 64;

/// The fallback that this thread stands on. Each thread finds out for itself: one may be refused what another was given.
std::unique_ptr<io_loop> make_loop(io_context& context) {
  switch (context.options.backend) {
    case read_backend::preadv:
      return make_preadv_loop(context, "asked for");
    case read_backend::io_uring:
    case read_backend::automatic:
      break;
  }
  try {
    return make_ring_loop(context);
  } catch (const uring_refusal& refused) {
    const std::string why = str_cat(refused.call, ": ", std::strerror(refused.code), " (", errno_name(refused.code),
                                    ")", refused.hint.empty() ? "" : "; ", refused.hint);
    if (!refused.means_absent()) throw error(errc::limit, why);
    if (context.options.backend == read_backend::io_uring) {
      throw error(errc::unsupported, str_cat(why, "; or read with ", spelled(option_id::backend, "preadv")),
                  option_id::backend);
    }
    if (context.options.registered_buffers == choice::on) {
      throw error(errc::unsupported, str_cat(spelled(option_id::registered_buffers, "on"), " needs io_uring: ", why),
                  option_id::registered_buffers);
    }
    return make_preadv_loop(context, why);
  }
}

/// While it lives, threads that start have every signal blocked: Ctrl-C is for the program, not for its I/O threads.
class signals_blocked {
 public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

void check(const reader_options& options) {
  if (options.io_threads > io_threads_max) {
    throw error(
        errc::usage,
        str_cat(spelled(option_id::io_threads), " is ", options.io_threads, "; give 0 (automatic) to ", io_threads_max),
        option_id::io_threads);
  }
  if (options.preadv_threads == 0 || options.preadv_threads > 1024) {
    throw error(errc::usage,
                str_cat(spelled(option_id::preadv_threads), " is ", options.preadv_threads, "; give 1 to 1024"),
                option_id::preadv_threads);
  }
  if (options.queue_depth > 4096) {
    throw error(errc::usage,
                str_cat(spelled(option_id::queue_depth), " is ", options.queue_depth, "; give 0 (automatic) to 4096"),
                option_id::queue_depth);
  }
  if (options.read_timeout <= std::chrono::milliseconds(0)) {
    throw error(
        errc::usage,
        str_cat(spelled(option_id::read_timeout), " is ", options.read_timeout.count(), " ms; give a positive time"),
        option_id::read_timeout);
  }
  if (options.backend == read_backend::preadv && options.registered_buffers == choice::on) {
    throw error(errc::usage,
                str_cat(spelled(option_id::registered_buffers, "on"),
                        " needs io_uring, and preadv was asked for; drop one of them"),
                option_id::registered_buffers);
  }
}

}  // namespace

class io_threads::implementation {
 public:
  implementation(const reader_options& options, std::shared_ptr<arena> memory, core_binding* cores)
      : context_(options, std::move(memory)), cores_(cores) {
    const signals_blocked blocked;
    try {
      for (std::uint32_t i = 0; i < io_thread_count(options); ++i) start_loop(i);
    } catch (...) {
      stop();
      throw;
    }
  }
  ~implementation() { stop(); }

  io_context context_;
  std::vector<std::unique_ptr<io_loop>> loops_;
  std::vector<std::thread> threads_;  // joined at the end, and not before

  /// What pages the arena got. The kernel walks all memory of the process to tell: 2 ms in a small one, 90 ms beside 4 GB
  /// of heap, and whoever shows progress asks ten times a second. So it is asked again only when memory was leased for the
  /// first time since, or more of it was touched the last time; and then for a twentieth of the time at most.
  [[nodiscard]] fallback huge_pages() {
    const mutex_lock lock(pages_mutex_);
    const std::size_t leased = context_.memory->bytes_populated();
    const std::uint64_t now = now_ns();
    const bool changes = leased != pages_.leased || !pages_.settled;
    if (pages_.looked_ns == 0 || (changes && now - pages_.looked_ns >= 20 * pages_.took_ns)) {
      const arena::page_report found = context_.memory->report();
      pages_.settled = leased == pages_.leased && found.bytes_resident == pages_.resident;
      pages_.leased = leased;
      pages_.resident = found.bytes_resident;
      pages_.said = found.pages;
      pages_.looked_ns = now_ns();
      pages_.took_ns = pages_.looked_ns - now;
    }
    return pages_.said;
  }

  /// Calls `visit` on each loop's thread, one after the other, behind what was posted to it before.
  void on_each(void (*visit)(io_loop&) noexcept) noexcept {
    struct request {
      void (*visit)(io_loop&) noexcept;
      io_loop& loop;
      std::promise<void> done;
    };
    for (const auto& loop : loops_) {
      request asked{visit, *loop, {}};
      loop->post(
          [](void* argument) noexcept {
            auto& made = *static_cast<request*>(argument);
            made.visit(made.loop);
            made.done.set_value();
          },
          &asked);
      asked.done.get_future().wait();
    }
  }

 private:
  struct pages_seen {
    fallback said;
    std::size_t leased = 0;
    std::size_t resident = 0;
    bool settled = false;
    std::uint64_t looked_ns = 0;
    std::uint64_t took_ns = 0;
  };

  void start_loop(std::uint32_t number) {
    // A ring belongs to the thread that makes it.
    std::promise<std::unique_ptr<io_loop>> made;
    std::future<std::unique_ptr<io_loop>> there = made.get_future();
    threads_.push_back(
        leat::start_thread({.what = "I/O thread", .number = number, .of = io_thread_count(context_.options)},
                           [this, number, made = std::move(made)]() mutable {
                             if (cores_ != nullptr) cores_->bind_this_thread();  // before its ring takes memory
                             ::pthread_setname_np(::pthread_self(), str_cat("leat-io-", number).c_str());
                             io_loop* loop = nullptr;
                             try {
                               std::unique_ptr<io_loop> own = make_loop(context_);
                               loop = own.get();
                               made.set_value(std::move(own));
                             } catch (...) {
                               made.set_exception(std::current_exception());
                               return;
                             }
                             loop->run();
                           }));
    loops_.push_back(there.get());
  }

  void stop() noexcept {
    for (const auto& loop : loops_) loop->stop();
    for (std::thread& thread : threads_) thread.join();
    loops_.clear();
  }

  core_binding* const cores_;
  mutex pages_mutex_;
  pages_seen pages_ ABSL_GUARDED_BY(pages_mutex_);
};

io_threads::io_threads(const reader_options& options, std::shared_ptr<arena> memory, core_binding* cores) {
  check(options);
  implementation_ = std::make_unique<implementation>(options, std::move(memory), cores);
}

io_threads::~io_threads() = default;

std::uint32_t io_threads::size() const noexcept { return static_cast<std::uint32_t>(implementation_->loops_.size()); }

connector& io_threads::loop(std::uint32_t k) noexcept {
  assert(k < size());
  return *implementation_->loops_[k];
}

async::loop::executor_type io_threads::executor(std::uint32_t k) noexcept {
  assert(k < size());
  return implementation_->loops_[k]->executor();
}

void io_threads::set_epoch_bytes(std::uint64_t bytes, const memory_available& memory) {
  implementation_->context_.direct.set_epoch_bytes(bytes, memory);
}

void io_threads::set_queue_depth(std::uint32_t reads) noexcept {
  assert(reads <= queue_depth_max());
  implementation_->context_.queue_depth.store(reads, std::memory_order_relaxed);
}

// What the rings have entries for, whatever the options say.
std::uint32_t io_threads::queue_depth_max() const noexcept {
  return std::max(queue_depth::reads_max, implementation_->context_.options.queue_depth);
}

void io_threads::on_overdue(std::function<void(const error&)> callback) {
  implementation_->context_.overdue.on_overdue(std::move(callback));
}

void io_threads::on_failure(std::function<void(const error&)> callback) {
  implementation_->context_.failure.on_failure(std::move(callback));
}

std::optional<error> io_threads::failure() const { return implementation_->context_.failure.get(); }

void io_threads::wait_until_quiet() noexcept {
  implementation_->on_each([](io_loop& /*loop*/) noexcept {});
}

void io_threads::unregister_buffers() noexcept {
  implementation_->on_each([](io_loop& loop) noexcept { loop.unregister_buffers(); });
}

std::vector<std::string> io_threads::overdue() const { return implementation_->context_.overdue.list(); }

void join_backends(fallback& all, const fallback& other) {
  if (all.use.find(other.use) != std::string::npos) return;
  all = {str_cat(all.use, " and ", other.use), other.use == "preadv" ? other.why : all.why};
}

void join_fallbacks(fallback& all, const fallback& other) {
  if (other.use != all.use) all = {"partly", other.use == "on" ? all.why : other.why};
}

reader_report io_threads::report() const {
  const auto& loops = implementation_->loops_;
  reader_report made;
  made.backend = loops.front()->backend();
  made.registered_buffers = loops.front()->registered_buffers();
  for (const auto& loop : loops) {
    join_backends(made.backend, loop->backend());
    join_fallbacks(made.registered_buffers, loop->registered_buffers());
  }
  made.direct = implementation_->context_.direct.report();
  made.huge_pages = implementation_->huge_pages();
  return made;
}

io_counters io_threads::count() const noexcept {
  io_counters sum;
  for (const auto& loop : implementation_->loops_) loop->add_to(sum);
  return sum;
}

std::vector<io_thread_counters> io_threads::count_threads() const {
  std::vector<io_thread_counters> all;
  for (std::uint32_t i = 0; i < size(); ++i) {
    io_counters own;
    implementation_->loops_[i]->add_to(own);
    all.push_back({.awake_ns = own.awake_ns,
                   .wait_ns = own.wait_ns,
                   .cpu_ns = cpu_ns_of(implementation_->threads_[i].native_handle())});
  }
  return all;
}

void io_threads::add_to(async::histogram_sum& sum) const noexcept {
  for (const auto& loop : implementation_->loops_) loop->add_to(sum);
}

std::uint32_t io_threads::depth_of(std::uint64_t read_bytes) const noexcept {
  std::uint32_t sum = 0;
  for (const auto& loop : implementation_->loops_) sum += loop->depth_of(read_bytes);
  return sum;
}

}  // namespace leat::io
