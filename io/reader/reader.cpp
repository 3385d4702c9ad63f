#include "async/posted_functions.hpp"
#include "base/fork_guard.hpp"
#include "base/hash_map.hpp"
#include "base/intrusive_list.hpp"
#include "base/mutex.hpp"
#include "base/text.hpp"
#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/files/file_description.hpp"
#include "io/files/read_error.hpp"
#include "io/reader/read_queue_state.hpp"
#include "io/reader/source_set.hpp"
#include "io/ring/io_loop.hpp"
#include "io/ring/io_threads.hpp"

#include <leat/read_queue.hpp>
#include <leat/reader.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <deque>
#include <future>
#include <optional>
#include <vector>

namespace leat {
namespace {

std::exception_ptr aborted() {
  return std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted));
}
std::exception_ptr stopped() { return std::make_exception_ptr(error(errc::cancelled, "the reader was stopped")); }
io::arena_options arena_of(std::size_t bytes_max, choice huge_pages) {
  const io::huge_pages pages = huge_pages == choice::on    ? io::huge_pages::on
                               : huge_pages == choice::off ? io::huge_pages::off
                                                           : io::huge_pages::automatic;
  return {.bytes_max = bytes_max, .pages = pages};
}

std::shared_ptr<const io::file_table> table_of(const std::string& path) {
  auto table = std::make_shared<io::file_table>();
  table->add(path);
  return table;
}
std::vector<io::connector*> loops_of(io::io_threads& threads) {
  std::vector<io::connector*> loops;
  for (std::uint32_t k = 0; k < threads.size(); ++k) loops.push_back(&threads.loop(k));
  return loops;
}

}  // namespace

class reader::impl {
 public:
  impl(std::size_t lease_bytes_max, const reader_options& options)
      : timeout_s_(std::chrono::duration<double>(options.read_timeout).count()),
        arena_(std::make_shared<io::arena>(arena_of(lease_bytes_max, options.huge_pages))),
        pool_(arena_, {.bytes_max = lease_bytes_max, .name = "the reader's memory", .as_one = true}),
        lines_(io::io_thread_count(options)),
        threads_(options, arena_),
        sources_(loops_of(threads_)) {
    for (std::uint32_t k = 0; k < threads_.size(); ++k) {
      lines_[k].owner = this;
      lines_[k].number = k;
    }
  }
  ~impl() {
    stop();
    for (line& at : lines_) {
      assert(at.queues.empty() && "a queue outlives its reader");
      while (!at.queues.empty()) at.queues.pop_front().orphan();
    }
  }

  [[nodiscard]] bool in_child() const noexcept { return forked_.in_child(); }

  void open(std::string path, completion<void(std::exception_ptr, file)> done);
  void lease(std::size_t bytes, completion<void(std::exception_ptr, leat::lease)> done) {
    pool_.start(bytes, std::move(done));
  }
  void read(const request& what, completion<void(std::exception_ptr, std::span<const std::byte>)> done);
  void read(std::span<request> what, completion<void(std::exception_ptr)> done);

  [[nodiscard]] std::shared_ptr<io::read_queue_state> make_queue(const read_queue_options& options);

  [[nodiscard]] error explain(const request& failed) const;
  [[nodiscard]] reader_report report() const { return threads_.report(); }
  [[nodiscard]] asio::any_io_executor executor() noexcept { return threads_.executor(0); }
  void stop() noexcept;

 private:
  struct batch;
  struct line;

  /// A read of a batch.
  struct operation : io::set_read {
    batch* owner = nullptr;
    request* asked = nullptr;
  };

  /// Reads that were asked for together. Made once and used again; its line's.
  struct batch {
    impl* owner = nullptr;
    line* home = nullptr;
    std::span<request> requests;
    request only;  // where one read was asked for by itself
    std::deque<operation> operations;
    std::vector<io::read_operation*> starting;
    std::size_t left = 0;
    bool begun = false;
    bool cancelled = false;  // perhaps before it was begun
    /// Tells one use from the next: a cancellation may come too late.
    std::atomic<std::uint64_t> use{0};
    completion<void(std::exception_ptr)> done;
    completion<void(std::exception_ptr, std::span<const std::byte>)> done_one;
  };

  struct opening : io::set_open {
    impl* owner = nullptr;
    line* home = nullptr;
    std::atomic<std::uint64_t> use{0};
    completion<void(std::exception_ptr, reader::file)> asker;
  };

  /// What belongs to one loop.
  struct line final : io::read_queue_host {
    [[nodiscard]] bool knows(std::uint32_t file) const noexcept override { return owner->knows(file); }
    [[nodiscard]] io::read_target target_at(std::span<std::byte> memory) const noexcept override {
      return owner->pool_.target_at(memory);
    }
    [[nodiscard]] error explain(const read_completion& failed) const override;
    [[nodiscard]] io::source& source_of(std::uint32_t file) override { return owner->sources_.source_of(number, file); }
    void on_idle(io::read_queue_state& /*queue*/) noexcept override { tell_if_idle(); }
    void forget(io::read_queue_state& queue) noexcept override {
      queues.remove(queue);
      tell_if_idle();
    }
    /// Ends the queues. `queues_idle` is set when none of them has a read in flight.
    void end_queues();
    void tell_if_idle() noexcept;

    impl* owner = nullptr;
    std::uint32_t number = 0;
    std::promise<void> queues_idle;
    // Loop thread. What queues read is theirs alone: the set of sources does not know it.
    intrusive_list<io::read_queue_state> queues;
    bool ended = false;  // no queue begins any more
    bool idle_reported = false;
    // Any thread.
    leat::mutex mutex;
    std::deque<batch> batches ABSL_GUARDED_BY(mutex);  // they never move
    std::vector<batch*> spare_batches ABSL_GUARDED_BY(mutex);
    std::deque<opening> openings ABSL_GUARDED_BY(mutex);
    std::vector<opening*> spare_openings ABSL_GUARDED_BY(mutex);
  };

  /// Runs `function` on the line's thread: now if that is this one.
  template <class Function>
  void run_on(const line& there, Function function) {
    const auto loop = threads_.executor(there.number);
    if (loop.running_in_this_thread()) return function();
    posted_.post(loop, std::move(function));
  }

  [[nodiscard]] line& next_line() noexcept {
    return lines_[turn_.fetch_add(1, std::memory_order_relaxed) % lines_.size()];
  }
  [[nodiscard]] std::uint32_t number_of(const std::string& path);
  [[nodiscard]] bool knows(std::uint32_t number) const noexcept {
    return number < file_count_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::string path_of(std::uint32_t number) const;
  [[nodiscard]] std::string wrong_with(const request& asked) const;

  [[nodiscard]] batch& take_batch();
  void give_back(batch& used) noexcept;
  void submit(batch& begun);
  void begin(batch& begun);
  void cancel(batch& asked);
  void ended(operation& read) noexcept;
  void complete(batch& ended) noexcept;

  [[nodiscard]] opening& take_opening(line& at);
  void ended(opening& looked) noexcept;
  [[nodiscard]] error why_not_opened(const opening& looked) const;
  void abandon(opening& asked) noexcept;

  [[nodiscard]] error explain(std::uint32_t file, io::failed_read failed) const;

  const double timeout_s_;
  const fork_guard forked_;
  const std::shared_ptr<io::arena> arena_;  // leases share it, and may outlive us
  io::lease_pool pool_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::uint32_t> file_count_{0};

  mutable mutex files_mutex_;
  std::deque<io::file_description> files_ ABSL_GUARDED_BY(files_mutex_);  // by number, also in the set; they never move
  hash_map<std::string, std::uint32_t> numbers_ ABSL_GUARDED_BY(files_mutex_);

  std::vector<line> lines_;
  io::io_threads threads_;  // joined before anything that they may still look at goes
  async::posted_functions posted_;
  io::source_set sources_;  // whose sources end on their threads
  mutex stop_mutex_;
  bool stopped_ ABSL_GUARDED_BY(stop_mutex_) = false;
};

// ---- Files --------------------------------------------------------------------------------------------------------

std::uint32_t reader::impl::number_of(const std::string& path) {
  const mutex_lock lock(files_mutex_);
  const auto [place, is_new] = numbers_.try_emplace(path, static_cast<std::uint32_t>(files_.size()));
  if (is_new) {
    const std::uint32_t number = sources_.add_later(files_.emplace_back(table_of(path)));
    assert(number == place->second);
    file_count_.store(number + 1, std::memory_order_release);
  }
  return place->second;
}

std::string reader::impl::path_of(std::uint32_t number) const {
  const mutex_lock lock(files_mutex_);
  return files_[number].file_name(0);
}

void reader::impl::open(std::string path, completion<void(std::exception_ptr, file)> done) {
  if (path.empty()) {
    return done.complete(std::make_exception_ptr(error(errc::usage, "an empty path names no file")), {});
  }
  const std::uint32_t number = number_of(path);
  line& at = lines_[number % lines_.size()];
  opening& begun = take_opening(at);
  begun.source = number;
  begun.asker = std::move(done);
  begun.asker.on_cancel([this, o = &begun, use = begun.use.load()](asio::cancellation_type) {
    run_on(*o->home, [this, o, use] {
      if (o->use.load() == use) abandon(*o);
    });
  });
  run_on(at, [this, o = &begun] {
    if (!stopping_.load()) return sources_.start(o->home->number, *o);
    o->failure = ECANCELED;
    ended(*o);
  });
}

reader::impl::opening& reader::impl::take_opening(line& at) {
  const mutex_lock lock(at.mutex);
  if (at.spare_openings.empty()) {
    opening& made = at.openings.emplace_back();
    at.spare_openings.reserve(at.openings.size());
    made.owner = this;
    made.home = &at;
    made.file = 0;
    made.io::set_open::ended = [](io::set_open& looked) noexcept {
      auto& self = static_cast<opening&>(looked);
      self.owner->ended(self);
    };
    return made;
  }
  opening& taken = *at.spare_openings.back();
  at.spare_openings.pop_back();
  return taken;
}

void reader::impl::ended(opening& looked) noexcept {
  line& at = *looked.home;
  if (looked.asker) {
    if (looked.failure == ECANCELED) {
      looked.asker.complete(stopped(), {});
    } else if (looked.failure != 0) {
      looked.asker.complete(std::make_exception_ptr(why_not_opened(looked)), {});
    } else {
      looked.asker.complete(nullptr, {looked.source, looked.size_bytes, looked.version, looked.alignment});
    }
  }
  looked.use.fetch_add(1);
  const mutex_lock lock(at.mutex);
  at.spare_openings.push_back(&looked);
}

error reader::impl::why_not_opened(const opening& looked) const {
  if (const auto why = threads_.failure(); why && looked.failure == io::loop_failed) return *why;
  return io::explain_open(looked.failure, path_of(looked.source));
}

/// The kernel writes its answer into memory of ours: who asked need not wait for it.
void reader::impl::abandon(opening& asked) noexcept {
  if (asked.asker) asked.asker.complete(aborted(), {});
}

// ---- Reads --------------------------------------------------------------------------------------------------------

std::string reader::impl::wrong_with(const request& asked) const {
  if (!knows(asked.file.number)) return "its file was not opened by this reader";
  if (asked.into == nullptr || !*asked.into) return "it has no lease to read into";
  if (asked.offset + asked.bytes < asked.offset) return "its range ends beyond 2^64";
  if (asked.into->size() < lease_bytes(asked.offset, asked.bytes)) {
    return str_cat("its lease has ", asked.into->size(), " bytes and lease_bytes(", asked.offset, ", ", asked.bytes,
                   ") is ", lease_bytes(asked.offset, asked.bytes));
  }
  return {};
}

reader::impl::batch& reader::impl::take_batch() {
  line& at = next_line();
  const mutex_lock lock(at.mutex);
  if (at.spare_batches.empty()) {
    batch& made = at.batches.emplace_back();
    at.spare_batches.reserve(at.batches.size());
    made.owner = this;
    made.home = &at;
    return made;
  }
  batch& taken = *at.spare_batches.back();
  at.spare_batches.pop_back();
  return taken;
}

void reader::impl::give_back(batch& used) noexcept {
  const mutex_lock lock(used.home->mutex);
  used.home->spare_batches.push_back(&used);
}

void reader::impl::read(const request& what, completion<void(std::exception_ptr, std::span<const std::byte>)> done) {
  if (const std::string wrong = wrong_with(what); !wrong.empty()) {
    return done.complete(std::make_exception_ptr(error(errc::usage, "a read cannot be made: " + wrong)), {});
  }
  batch& begun = take_batch();
  begun.only = what;
  begun.requests = {&begun.only, 1};
  begun.done_one = std::move(done);
  begun.done_one.on_cancel([this, b = &begun, use = begun.use.load()](asio::cancellation_type) {
    run_on(*b->home, [this, b, use] {
      if (b->use.load() == use) cancel(*b);
    });
  });
  submit(begun);
}

void reader::impl::read(std::span<request> what, completion<void(std::exception_ptr)> done) {
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (const std::string wrong = wrong_with(what[i]); !wrong.empty()) {
      return done.complete(
          std::make_exception_ptr(error(errc::usage, str_cat("request ", i, " cannot be made: ", wrong))));
    }
  }
  batch& begun = take_batch();
  begun.requests = what;
  begun.done = std::move(done);
  begun.done.on_cancel([this, b = &begun, use = begun.use.load()](asio::cancellation_type) {
    run_on(*b->home, [this, b, use] {
      if (b->use.load() == use) cancel(*b);
    });
  });
  submit(begun);
}

void reader::impl::submit(batch& begun) {
  run_on(*begun.home, [this, b = &begun] { begin(*b); });
}

void reader::impl::begin(batch& begun) {
  begun.begun = true;
  // One more than there are reads: nothing completes before all have been started.
  begun.left = begun.requests.size() + 1;
  while (begun.operations.size() < begun.requests.size()) {
    operation& made = begun.operations.emplace_back();
    made.owner = &begun;
    made.io::set_read::ended = [](io::set_read& read) noexcept {
      auto& self = static_cast<operation&>(read);
      self.owner->owner->ended(self);
    };
  }
  const bool too_late = begun.cancelled || stopping_.load();
  for (std::size_t i = 0; i < begun.requests.size(); ++i) {
    operation& next = begun.operations[i];
    request& asked = begun.requests[i];
    next.asked = &asked;
    next.source = asked.file.number;
    next.file = 0;
    next.offset = asked.offset;
    next.bytes = asked.bytes;
    next.into = io::target_of(*asked.into);
    if (too_late) {
      next.failure = ECANCELED;
      next.data = {};
      ended(next);
    } else {
      begun.starting.push_back(&next);
    }
  }
  sources_.start(begun.home->number, begun.starting);
  begun.starting.clear();
  if (--begun.left == 0) complete(begun);
}

void reader::impl::ended(operation& read) noexcept {
  batch& owner = *read.owner;
  read.asked->data = read.data;
  read.asked->failure = read.failure;
  if (--owner.left == 0) complete(owner);
}

void reader::impl::cancel(batch& asked) {
  asked.cancelled = true;
  if (!asked.begun) return;  // begin() is still on its way to this thread.
  for (std::size_t i = 0; i < asked.requests.size(); ++i) {
    operation& one = asked.operations[i];
    if (one.in_flight()) io::source_set::cancel(one);
  }
}

void reader::impl::complete(batch& ended) noexcept {
  std::exception_ptr failure;
  for (const request& one : ended.requests) {
    if (one.failure == 0) continue;
    if (one.failure != ECANCELED) {
      failure = std::make_exception_ptr(explain(one));
    } else if (ended.cancelled && !stopping_.load(std::memory_order_relaxed)) {
      failure = aborted();
    } else {
      failure = stopped();
    }
    break;
  }
  if (ended.done_one) {
    ended.done_one.complete(std::move(failure), ended.only.data);
  } else {
    ended.done.complete(std::move(failure));
  }
  ended.use.fetch_add(1);
  ended.begun = ended.cancelled = false;
  give_back(ended);
}

error reader::impl::explain(std::uint32_t file, io::failed_read failed) const {
  if (failed.failure == ECANCELED) return {errc::cancelled, "the read was cancelled"};
  if (const auto why = threads_.failure(); why && failed.failure == io::loop_failed) return *why;
  const std::string path = path_of(file);
  failed.path = path;
  failed.timeout_s = timeout_s_;
  return io::explain_read(failed);
}

error reader::impl::explain(const request& failed) const {
  return explain(failed.file.number, {.failure = failed.failure,
                                      .path = {},
                                      .offset = failed.offset,
                                      .bytes = failed.bytes,
                                      .data_bytes = failed.data.size()});
}

error reader::impl::line::explain(const read_completion& failed) const {
  return owner->explain(failed.file, {.failure = failed.failure,
                                      .path = {},
                                      .offset = failed.offset,
                                      .bytes = failed.bytes,
                                      .data_bytes = failed.data.size()});
}

std::shared_ptr<io::read_queue_state> reader::impl::make_queue(const read_queue_options& options) {
  constexpr std::uint32_t most = 1U << 20;
  if (options.reads_max == 0 || options.reads_max > most) {
    throw error(errc::usage, str_cat("reads_max of a queue is ", options.reads_max, "; give 1 to ", most));
  }
  line& at = next_line();
  auto made = std::make_shared<io::read_queue_state>(at, threads_.loop(at.number), threads_.executor(at.number),
                                                     options.reads_max);
  run_on(at, [this, &at, made] {
    at.queues.push_back(*made);
    if (stopping_.load()) made->end();
  });
  return made;
}

void reader::impl::stop() noexcept {
  if (in_child()) return;  // The threads that would have to end are not here.
  const mutex_lock lock(stop_mutex_);
  if (stopped_) return;
  stopped_ = true;
  stopping_.store(true);
  pool_.close();
  assert(std::none_of(lines_.begin(), lines_.end(),
                      [&](const line& at) { return threads_.executor(at.number).running_in_this_thread(); }) &&
         "stop() would wait for itself");
  sources_.cancel();
  for (line& at : lines_) {
    std::future<void> idle = at.queues_idle.get_future();
    run_on(at, [&at] { at.end_queues(); });
    idle.wait();
  }
  sources_.drain();
  posted_.wait();
}

void reader::impl::line::end_queues() {
  ended = true;
  for (io::read_queue_state& queue : queues) queue.end();
  tell_if_idle();
}

void reader::impl::line::tell_if_idle() noexcept {
  if (!ended || idle_reported) return;
  for (const io::read_queue_state& queue : queues) {
    if (!queue.idle()) return;
  }
  idle_reported = true;
  // In a turn of its own: whoever calls this is still on its way out of our books.
  owner->posted_.post(owner->threads_.executor(number), [this] { queues_idle.set_value(); });
}

// ---- The public face ----------------------------------------------------------------------------------------------

reader::reader(std::size_t lease_bytes_max, reader_options options)
    : impl_(std::make_unique<impl>(lease_bytes_max, options)) {}

reader::~reader() {
  // In a child of fork() the threads are not there to be joined, nor their locks to be trusted: the memory goes with
  // the process.
  if (impl_ != nullptr && impl_->in_child()) static_cast<void>(impl_.release());
}

void reader::check_process() const {
  // Thrown and not delivered: the executor to deliver it on may have lost its threads in the fork, too.
  if (impl_->in_child()) {
    throw error(errc::usage,
                "this reader was made before fork(): its threads stayed in the parent; make one after fork()");
  }
}

void reader::start_open(std::string path, completion<void(std::exception_ptr, file)> done) {
  impl_->open(std::move(path), std::move(done));
}
void reader::start_lease(std::size_t bytes, completion<void(std::exception_ptr, leat::lease)> done) {
  impl_->lease(bytes, std::move(done));
}
void reader::start_read(const request& what, completion<void(std::exception_ptr, std::span<const std::byte>)> done) {
  impl_->read(what, std::move(done));
}
void reader::start_batch(std::span<request> what, completion<void(std::exception_ptr)> done) {
  impl_->read(what, std::move(done));
}
read_queue reader::queue(read_queue_options options) {
  check_process();
  return read_queue(impl_->make_queue(options));
}
error reader::explain(const request& failed) const { return impl_->explain(failed); }
reader_report reader::report() const { return impl_->report(); }
asio::any_io_executor reader::get_executor() const noexcept { return impl_->executor(); }
void reader::stop() noexcept { impl_->stop(); }

}  // namespace leat
