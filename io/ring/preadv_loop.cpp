#include "io/ring/preadv_loop.hpp"

#include "async/simple_loop.hpp"
#include "base/clock.hpp"
#include "base/errno_table.hpp"
#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"
#include "base/option_words.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"
#include "io/files/file_status.hpp"
#include "io/files/read_error.hpp"
#include "io/ring/file_set.hpp"
#include "io/ring/open_files.hpp"

#include <boost/asio/executor_work_guard.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <deque>
#include <limits>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace leat::io {
namespace {

// A thread takes a run of reads at once and tells of them at once: a hop for each costs more than the read (19.7 us
// against 7.9, at 112 KiB). Not more than a share of what is queued, lest the other threads stand idle.
constexpr std::size_t run_max = 8;
constexpr std::uint64_t run_bytes_max = std::uint64_t{1} << 20;
// Between two calls a cancelled read can stop.
constexpr std::uint64_t call_bytes_max = std::uint64_t{4} << 20;
// A read that takes longer may take for ever: those behind it in its thread's run do not wait for it.
constexpr std::uint64_t slow_ns = 100'000'000;

/// An operation that was taken and is not done.
struct request : list_hook {
  read_operation* read = nullptr;  // one of the two
  open_operation* open = nullptr;
  file_set* set = nullptr;
  intrusive_list<request>* queue = nullptr;  // the one list it is in and can be taken back from; under the loop's mutex
  std::atomic<bool> cancelled{false};
  std::atomic<std::uint64_t> since_ns{0};      // a thread is at it
  std::optional<overdue_list::entry> overdue;  // loop thread

  // The outcome, written by the thread before it hands the request back.
  int failure = 0;
  std::span<const std::byte> data;
  std::uint64_t bytes_read = 0;
  unsigned retries = 0;
  file_status status;
};

class preadv_loop final : public io_loop {
 public:
  preadv_loop(io_context& context, std::string why);
  ~preadv_loop() override;

  // connector
  [[nodiscard]] std::unique_ptr<source> connect_files(const file_table& files) override;
  void post(void (*function)(void*) noexcept, void* argument) override {
    loop_.get_executor().require(async::asio::execution::blocking.never).execute([function, argument] {
      function(argument);
    });
  }

  void after_completions(void (*function)(void*) noexcept, void* argument) override {
    after_completions_.push_back({function, argument});
  }
  void turn_until(bool (*over)(const void*) noexcept, const void* argument) override;

  // io_loop
  [[nodiscard]] async::loop& run_loop() noexcept override { return loop_; }
  void run() override;
  void stop() noexcept override { loop_.stop(); }
  [[nodiscard]] fallback backend() const override { return backend_; }
  [[nodiscard]] bool wants_direct() const override { return context_.direct.wants_direct(); }
  [[nodiscard]] fallback registered_buffers() const override { return {"off", "preadv knows of none"}; }
  void add_to(io_counters& sum) const noexcept override {
    count_.add_to(sum);
    sum.opens += files_.opens();
    sum.awake_ns += loop_.awake_ns();
    sum.wait_ns += loop_.slept_ns();
    const mutex_lock lock(mutex_);
    if (all_busy_since_ns_ != 0) sum.held_back_ns += now_ns() - all_busy_since_ns_;
  }
  void add_to(async::histogram_sum& sum) const noexcept override {
    for (const worker& each : workers_) sum.add(each.kernel_times);
  }
  [[nodiscard]] std::uint32_t depth_of(std::uint64_t /*read_bytes*/) const noexcept override {
    return static_cast<std::uint32_t>(workers_.size());
  }

  // For the sources. Loop thread.
  void start(file_set& set, std::span<read_operation* const> operations);
  void start(file_set& set, open_operation& operation);
  void cancel(read_operation& operation);
  void retire_set(std::unique_ptr<file_set> set) { files_.forget(*set); }
  [[nodiscard]] io_context& context() noexcept { return context_; }

 private:
  void join_threads() noexcept;

  // On the threads.
  void work(unsigned number);
  void do_read(request& given);
  void do_open(request& given);
  [[nodiscard]] static int read_range(const open_files::use& file, request& given);

  /// A thread and the run it has taken: it begins one after the other, and what it has not begun can be taken back.
  struct worker {
    intrusive_list<request> run;  // under the loop's mutex
    std::uint64_t begun_ns = 0;   // likewise; the one it is at; 0: none
    async::histogram kernel_times;
    std::thread thread;
  };
  [[nodiscard]] request* take_next(worker& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // On the loop.
  [[nodiscard]] request& take_request(file_set& set);
  void queue(std::span<request* const> requests);
  void take_back();
  void deliver(request& done, std::uint64_t now);
  void give_back(request& done);
  void look_for_overdue();
  void free_those_behind();
  // How often to look for late reads. A timeout is minutes, in tests a fraction of a second.
  [[nodiscard]] std::chrono::nanoseconds period() const noexcept {
    return std::chrono::nanoseconds(std::clamp<std::uint64_t>(timeout_ns_ / 4, 1'000'000, 1'000'000'000));
  }

  io_context& context_;
  fallback backend_;
  async::simple_loop loop_;
  open_files files_;
  const std::uint64_t timeout_ns_;
  loop_counters count_;

  std::deque<request> requests_;  // they never move
  std::vector<request*> spare_requests_;
  std::vector<request*> starting_;
  struct bound_function {
    void (*function)(void*) noexcept;
    void* argument;
  };
  std::vector<bound_function> after_completions_;

  mutable mutex mutex_;
  condition_variable work_there_;
  intrusive_list<request> queue_ ABSL_GUARDED_BY(mutex_);
  intrusive_list<request> done_ ABSL_GUARDED_BY(mutex_);
  unsigned idle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t all_busy_since_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: some thread has nothing to do
  condition_variable done_there_;                                // for turn_until()
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;  // the loop has been asked to look at done_, and has not yet
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<worker> workers_;  // they never move; made before the first thread
};

// Half of what the process may have; the rest of it wants some too.
std::size_t files_open_max() { return std::clamp(descriptors_allowed() / 2, 1U, 1024U); }

// ---- The threads --------------------------------------------------------------------------------------------------

preadv_loop::preadv_loop(io_context& context, std::string why)
    : context_(context),
      files_(files_open_max()),
      timeout_ns_(static_cast<std::uint64_t>(std::chrono::nanoseconds(context.options.read_timeout).count())) {
  const unsigned count = std::max(1U, context.options.preadv_threads);
  const std::string remedy = str_cat("or give fewer ", spelled(option_id::preadv_threads));
  backend_ = {"preadv", str_cat(why, "; ", count, " threads")};
  workers_.resize(count);
  try {
    for (unsigned i = 0; i < count; ++i) {
      workers_[i].thread =
          start_thread({.what = "reading thread", .number = i, .of = count, .remedy = remedy}, [this, i] { work(i); });
    }
  } catch (...) {
    join_threads();
    throw;
  }
}

preadv_loop::~preadv_loop() { join_threads(); }

void preadv_loop::join_threads() noexcept {
  {
    const mutex_lock lock(mutex_);
    ending_ = true;
    work_there_.notify_all();
  }
  for (worker& each : workers_) {
    if (each.thread.joinable()) each.thread.join();
  }
}

/// The next of the thread's run, or of a new one; nullptr where there is nothing to do.
request* preadv_loop::take_next(worker& self) {
  if (self.run.empty()) {
    const std::size_t share = std::clamp<std::size_t>(queue_.size() / workers_.size(), 1, run_max);
    std::uint64_t bytes = 0;
    for (std::size_t count = 0; count < share && bytes < run_bytes_max && !queue_.empty(); ++count) {
      request& next = queue_.pop_front();
      next.queue = &self.run;
      bytes += next.read != nullptr ? next.read->bytes : 0;
      self.run.push_back(next);
    }
    if (self.run.empty()) return nullptr;
  }
  request& next = self.run.pop_front();
  next.queue = nullptr;
  return &next;
}

void preadv_loop::work(unsigned number) {
  ::pthread_setname_np(::pthread_self(), str_cat("leat-read-", number).c_str());
  worker& self = workers_[number];
  request* done = nullptr;
  for (;;) {
    request* given = nullptr;
    bool tell = false;
    {
      const mutex_lock lock(mutex_);
      if (done != nullptr) {
        done_.push_back(*done);
        done_there_.notify_one();
      }
      // Once for a run, and one post for all that completes before the loop has looked.
      tell = self.run.empty() && !done_.empty() && !std::exchange(notified_, true);
      if (!tell) {
        self.begun_ns = 0;
        ++idle_;
        while ((given = take_next(self)) == nullptr && !ending_) {
          if (const std::uint64_t since = std::exchange(all_busy_since_ns_, 0); since != 0) {
            count_.held_back_ns.add(now_ns() - since);
          }
          work_there_.wait(mutex_);
        }
        --idle_;
        if (given == nullptr) return;
        self.begun_ns = now_ns();
        if (idle_ == 0 && all_busy_since_ns_ == 0) all_busy_since_ns_ = self.begun_ns;
        given->since_ns.store(self.begun_ns, std::memory_order_relaxed);
      }
    }
    done = given;
    if (tell) {
      loop_.get_executor().execute([this] { take_back(); });
      continue;
    }
    if (given->read != nullptr) {
      do_read(*given);
      self.kernel_times.record_alone(now_ns() - self.begun_ns);
    } else {
      do_open(*given);
    }
    given->since_ns.store(0, std::memory_order_relaxed);
  }
}

void preadv_loop::do_read(request& given) {
  const read_operation& asked = *given.read;
  for (unsigned tries = 0;; ++tries) {
    if (given.cancelled.load(std::memory_order_relaxed)) {
      given.failure = ECANCELED;
      return;
    }
    const open_files::use file = files_.take(*given.set, asked.file);
    given.failure = file.failure;
    if (file.failure != 0) return;
    given.failure = read_range(file, given);
    const bool refused = refuses_direct(given.failure) && file.mode.direct && tries < 2;
    files_.give_back(file, !refused);
    if (!refused) return;
    file_modes& modes = given.set->modes;
    if (!modes.refused(given.set->files->directory(asked.file), given.set->files->path(asked.file), given.failure)) {
      return;
    }
  }
}

int preadv_loop::read_range(const open_files::use& file, request& given) {
  const read_operation& asked = *given.read;
  const std::uint64_t unit = file.mode.alignment;
  const auto [begin, end, is_whole] = range_of(*given.set, asked, unit);
  const std::uint64_t wanted_end = asked.offset + asked.bytes;
  std::byte* const memory = asked.into.bytes.data();
  std::uint64_t at = begin;
  std::uint64_t reached = begin;
  int failure = 0;
  unsigned tries = 0;
  while (reached < wanted_end) {
    if (given.cancelled.load(std::memory_order_relaxed)) {
      failure = ECANCELED;
      break;
    }
    const std::uint64_t bytes = std::min(end - at, call_bytes_max);
    const ssize_t result = ::pread(file.descriptor, memory + (at - begin), bytes, static_cast<off_t>(at));
    if (result < 0) {
      if (is_tried_again(errno) && ++tries < tries_max) {
        ++given.retries;
        continue;
      }
      failure = errno;
      break;
    }
    given.bytes_read += static_cast<std::uint64_t>(result);
    const std::uint64_t now = at + static_cast<std::uint64_t>(result);
    // No progress is the end of the file; see the ring for reads that end between multiples of the alignment.
    if (now <= reached) {
      failure = ENODATA;
      break;
    }
    if (now < at + bytes && now < wanted_end) ++given.retries;
    reached = now;
    at = now / unit * unit;
  }
  if (failure == 0 && is_whole && reached > wanted_end) failure = EFBIG;
  if (failure == 0 || failure == ENODATA) {
    const std::uint64_t last = std::min(wanted_end, reached);
    given.data = {memory + (asked.offset - begin), last > asked.offset ? last - asked.offset : 0};
  }
  return failure;
}

void preadv_loop::do_open(request& given) {
  const std::string path = given.set->files->path(given.open->file);
  given.failure = look_at(path.c_str(), given.status);
  if (given.failure != 0) return;
  given.failure = given.status.is_directory()       ? EISDIR
                  : !has_offsets(given.status.mode) ? ESPIPE
                                                    : given.set->modes.failure_of(given.status);
}

// ---- The loop -----------------------------------------------------------------------------------------------------

void preadv_loop::run() {
  const auto keep = boost::asio::make_work_guard(loop_.get_executor());
  while (!loop_.stopped()) {
    loop_.run_for(period());
    look_for_overdue();
    free_those_behind();
    count_.turns.add(1);
  }
  // What was stopped for must see its operations end.
  loop_.restart();
  while (spare_requests_.size() != requests_.size()) loop_.run_for(std::chrono::milliseconds(1));
}

std::unique_ptr<source> preadv_loop::connect_files(const file_table& files) {
  return std::make_unique<file_source<preadv_loop>>(*this, std::make_unique<file_set>(files, context_.direct));
}

request& preadv_loop::take_request(file_set& set) {
  if (spare_requests_.empty()) {
    spare_requests_.reserve(requests_.size() + 1);
    spare_requests_.push_back(&requests_.emplace_back());
  }
  request& taken = *spare_requests_.back();
  spare_requests_.pop_back();
  taken.read = nullptr;
  taken.open = nullptr;
  taken.set = &set;
  taken.cancelled.store(false, std::memory_order_relaxed);
  taken.since_ns.store(0, std::memory_order_relaxed);
  taken.failure = 0;
  taken.data = {};
  taken.bytes_read = 0;
  taken.retries = 0;
  ++set.operations;
  count_.in_flight.add(1);
  return taken;
}

void preadv_loop::queue(std::span<request* const> requests) {
  std::size_t to_wake = 0;
  {
    const mutex_lock lock(mutex_);
    for (request* const one : requests) {
      one->queue = &queue_;
      queue_.push_back(*one);
    }
    to_wake = std::min<std::size_t>(idle_, requests.size());
  }
  for (; to_wake != 0; --to_wake) work_there_.notify_one();
}

void preadv_loop::start(file_set& set, std::span<read_operation* const> operations) {
  const std::uint64_t now = now_ns();
  starting_.clear();
  for (read_operation* const operation : operations) {
    assert(operation->done != nullptr);
    assert(operation->bytes == 0 || operation->into.bytes.size() >= aligned_bytes(operation->offset, operation->bytes));
    assert(reinterpret_cast<std::uintptr_t>(operation->into.bytes.data()) % alignment_max_bytes == 0);
    request& taken = take_request(set);
    taken.read = operation;
    operation->state = &taken;
    operation->started_ns = now;
    operation->failure = 0;
    operation->data = {};
    starting_.push_back(&taken);
  }
  queue(starting_);
}

void preadv_loop::start(file_set& set, open_operation& operation) {
  request& taken = take_request(set);
  taken.open = &operation;
  operation.state = &taken;
  operation.failure = 0;
  request* const one[] = {&taken};
  queue(one);
}

void preadv_loop::cancel(read_operation& operation) {
  auto* const asked = static_cast<request*>(operation.state);
  if (asked == nullptr) return;
  asked->cancelled.store(true, std::memory_order_relaxed);
  bool tell = false;
  {
    const mutex_lock lock(mutex_);
    if (asked->queue == nullptr) return;  // a thread is at it, and looks between two calls
    std::exchange(asked->queue, nullptr)->remove(*asked);
    asked->failure = ECANCELED;
    done_.push_back(*asked);
    tell = !std::exchange(notified_, true);
  }
  if (tell) {
    loop_.get_executor().require(async::asio::execution::blocking.never).execute([this] { take_back(); });
  }
}

void preadv_loop::take_back() {
  intrusive_list<request> back;
  {
    const mutex_lock lock(mutex_);
    notified_ = false;
    while (!done_.empty()) back.push_back(done_.pop_front());
  }
  // Of all of them, as the ring has it: a look at the clock takes as long as much of the rest.
  const std::uint64_t now = back.empty() ? 0 : now_ns();
  while (!back.empty()) deliver(back.pop_front(), now);
  for (std::size_t i = 0; i < after_completions_.size(); ++i)
    after_completions_[i].function(after_completions_[i].argument);
  after_completions_.clear();
}

void preadv_loop::turn_until(bool (*over)(const void*) noexcept, const void* argument) {
  while (take_back(), !over(argument)) {
    {
      const auto until = std::chrono::steady_clock::now() + period();
      const mutex_lock lock(mutex_);
      while (done_.empty() && done_there_.wait_until(mutex_, until)) {
      }
    }
    look_for_overdue();
    free_those_behind();
  }
}

void preadv_loop::deliver(request& done, std::uint64_t now) {
  --done.set->operations;
  count_.in_flight.subtract(1);
  const bool late = done.overdue.has_value();
  if (late) {
    context_.overdue.remove(*done.overdue);
    done.overdue.reset();
  }
  if (open_operation* const operation = done.open; operation != nullptr) {
    operation->failure = late ? ETIMEDOUT : done.failure;
    operation->state = nullptr;
    if (operation->failure == 0) {
      operation->size_bytes = done.status.size_bytes;
      operation->version = done.status.version();
      operation->alignment = done.set->modes.mode_of(done.status).alignment;
    }
    give_back(done);
    return operation->done(*operation);
  }
  count_.reads.add(1);
  count_.bytes_read.add(done.bytes_read);
  count_.retries.add(done.retries);
  read_operation& operation = *done.read;
  operation.failure = late ? ETIMEDOUT : done.failure;
  operation.ended_ns = now;
  operation.data = late ? std::span<const std::byte>() : done.data;
  operation.state = nullptr;
  give_back(done);
  operation.done(operation);
}

void preadv_loop::give_back(request& done) {
  done.read = nullptr;
  done.open = nullptr;
  spare_requests_.push_back(&done);
}

/// What lies in a run behind a read that takes its time goes to other threads, and what completed before it is reported.
void preadv_loop::free_those_behind() {
  std::size_t to_wake = 0;
  bool tell = false;
  {
    const mutex_lock lock(mutex_);
    const std::uint64_t now = now_ns();
    for (worker& each : workers_) {
      if (each.begun_ns == 0 || now < each.begun_ns + slow_ns) continue;
      while (!each.run.empty()) {
        request& freed = each.run.pop_front();
        freed.queue = &queue_;
        queue_.push_back(freed);
        ++to_wake;
      }
    }
    to_wake = std::min<std::size_t>(idle_, to_wake);
    tell = !done_.empty() && !std::exchange(notified_, true);
  }
  for (; to_wake != 0; --to_wake) work_there_.notify_one();
  if (tell) loop_.get_executor().execute([this] { take_back(); });
}

void preadv_loop::look_for_overdue() {
  const std::uint64_t now = now_ns();
  for (request& one : requests_) {
    const std::uint64_t since = one.since_ns.load(std::memory_order_relaxed);
    if (since == 0 || one.overdue || now < since + timeout_ns_) continue;
    one.cancelled.store(true, std::memory_order_relaxed);
    if (one.read != nullptr) {
      one.overdue = add_overdue(*one.set, *one.read, one.read->offset, context_);
    } else {
      const std::string path = one.set->files->path(one.open->file);
      one.overdue = context_.overdue.add(path, explain_open(ETIMEDOUT, path));
    }
  }
}

}  // namespace

std::unique_ptr<io_loop> make_preadv_loop(io_context& context, std::string why) {
  return std::make_unique<preadv_loop>(context, std::move(why));
}

}  // namespace leat::io
