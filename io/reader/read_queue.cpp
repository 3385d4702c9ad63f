#include "base/text.hpp"
#include "io/reader/read_queue_state.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace leat {
namespace io {

read_queue_state::read_queue_state(read_queue_host& host, connector& loop, async::loop::executor_type executor,
                                   std::uint32_t reads_max)
    : host_(host),
      loop_(loop),
      executor_(std::move(executor)),
      reads_max_(reads_max),
      operations_(std::make_unique<operation[]>(reads_max)) {
  incoming_.reserve(reads_max);
  starting_.reserve(reads_max);
  begun_.reserve(reads_max);
  ready_.reserve(reads_max);
  given_.reserve(reads_max);
  for (std::uint32_t i = reads_max; i-- > 0;) {
    operation& made = operations_[i];
    made.owner = this;
    made.done = [](read_operation& ended) noexcept {
      auto& self = static_cast<operation&>(ended);
      self.owner->on_completion(self);
    };
    made.next_free = std::exchange(free_, &made);
  }
}

void read_queue_state::check() const {
  // Thrown here: after a fork the handler's executor may have no threads either.
  if (forked_.in_child()) {
    throw error(errc::usage,
                "this queue was made before fork(): its threads stayed in the parent; make a reader after fork()");
  }
  if (orphaned_.load(std::memory_order_relaxed)) {
    throw error(errc::usage, "the reader of this queue is gone; destroy the queue first");
  }
}

// ---- Pushing ------------------------------------------------------------------------------------------------------

std::string read_queue_state::wrong_with(const read_request& asked) const {
  if (!host_.knows(asked.file.number)) return "its file was not opened by this reader";
  if (asked.offset + asked.bytes < asked.offset) return "its range ends beyond 2^64";
  const std::size_t needed = reader::lease_bytes(asked.offset, asked.bytes);
  if (asked.into.size() < needed) {
    return str_cat("its memory has ", asked.into.size(), " bytes and lease_bytes(", asked.offset, ", ", asked.bytes,
                   ") is ", needed);
  }
  if (reinterpret_cast<std::uintptr_t>(asked.into.data()) % alignment_max_bytes != 0) {
    return "its memory does not begin on a multiple of 4096";
  }
  return {};
}

/// Allocates room for so many reads.
void read_queue_state::take(std::size_t count) {
  std::size_t before = size_.load(std::memory_order_relaxed);
  do {
    if (count > reads_max_ - before) {
      throw error(errc::limit, str_cat("a queue of ", reads_max_, " reads holds ", before, ", and ", count,
                                       " more do not fit; take what has ended first, or make it larger (reads_max)"));
    }
  } while (!size_.compare_exchange_weak(before, before + count, std::memory_order_relaxed));
}

void read_queue_state::push(std::span<const read_request> reads) {
  check();
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (const std::string wrong = wrong_with(reads[i]); !wrong.empty()) {
      throw error(errc::usage, str_cat("read ", i, " cannot be made: ", wrong));
    }
  }
  if (reads.empty()) return;
  take(reads.size());
  if (executor_.running_in_this_thread()) return begin(reads);
  bool first = false;
  {
    const mutex_lock lock(mutex_);
    incoming_.insert(incoming_.end(), reads.begin(), reads.end());
    first = !std::exchange(incoming_posted_, true);
  }
  if (first) post([](read_queue_state& self) { self.take_incoming(); });
}

void read_queue_state::take_incoming() {
  {
    const mutex_lock lock(mutex_);
    incoming_posted_ = false;
    begun_.swap(incoming_);
  }
  begin(begun_);
  begun_.clear();
}

source& read_queue_state::source_of(std::uint32_t file) {
  if (file >= sources_.size()) sources_.resize(file + std::size_t{1}, nullptr);
  source*& known = sources_[file];
  if (known == nullptr) known = &host_.source_of(file);
  return *known;
}

void read_queue_state::begin(std::span<const read_request> reads) {
  source* from = nullptr;
  const auto start = [&] {
    if (!starting_.empty()) from->start(starting_);
    starting_.clear();
  };
  for (const read_request& asked : reads) {
    if (ended_) {
      ready_.push_back({asked.tag, {}, asked.offset, asked.bytes, asked.file.number, ECANCELED});
      continue;
    }
    source& next = source_of(asked.file.number);
    // Consecutive reads of one file go to its source in one call.
    if (&next != from) start();
    from = &next;
    operation& taken = *free_;
    free_ = taken.next_free;
    taken.file = 0;
    taken.offset = asked.offset;
    taken.bytes = asked.bytes;
    taken.into = host_.target_at(asked.into);
    taken.tag = asked.tag;
    taken.number = asked.file.number;
    taken.from = from;
    ++in_flight_;
    starting_.push_back(&taken);
  }
  start();
  if (!ready_.empty() && waiter_) deliver();
}

// ---- What has ended -----------------------------------------------------------------------------------------------

void read_queue_state::on_completion(operation& ended) noexcept {
  ready_.push_back({ended.tag, ended.data, ended.offset, ended.bytes, ended.number, ended.failure});
  ended.from = nullptr;
  ended.next_free = std::exchange(free_, &ended);
  --in_flight_;
  if (std::exchange(collecting_, true)) return;
  loop_.after_completions([](void* self) noexcept { static_cast<read_queue_state*>(self)->after_completions(); }, this);
}

void read_queue_state::after_completions() noexcept {
  collecting_ = false;
  if (waiter_) deliver();
  if (in_flight_ != 0) return;
  host_.on_idle(*this);
  close_if_idle();
}

void read_queue_state::deliver() noexcept {
  given_.clear();
  given_.swap(ready_);
  size_.fetch_sub(given_.size(), std::memory_order_relaxed);
  wait_completion served = std::move(waiter_);
  served.complete(nullptr, std::span<const read_completion>(given_));
}

void read_queue_state::wait(wait_completion done) {
  const std::uint64_t number = waits_.fetch_add(1, std::memory_order_relaxed) + 1;
  done.on_cancel([self = shared_from_this(), number](asio::cancellation_type) {
    if (self->executor_.running_in_this_thread()) return self->cancel_wait(number);
    self->post([number](read_queue_state& queue) { queue.cancel_wait(number); });
  });
  if (executor_.running_in_this_thread()) return begin_wait(std::move(done), number);
  executor_.require(async::asio::execution::blocking.never)
      .execute([self = shared_from_this(), waiting = std::move(done), number]() mutable {
        self->begin_wait(std::move(waiting), number);
      });
}

void read_queue_state::begin_wait(wait_completion done, std::uint64_t number) {
  if (waiter_) {
    return done.complete(
        std::make_exception_ptr(
            error(errc::usage, "a completed() of this queue is waiting already; call it when that has ended")),
        {});
  }
  waiter_ = std::move(done);
  waiter_number_ = number;
  if (!ready_.empty() || size() == 0) deliver();
}

void read_queue_state::cancel_wait(std::uint64_t number) noexcept {
  if (!waiter_ || waiter_number_ != number) return;
  wait_completion ended = std::move(waiter_);
  ended.complete(std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted)), {});
}

error read_queue_state::explain(const read_completion& failed) const {
  check();
  return host_.explain(failed);
}

// ---- Ending -------------------------------------------------------------------------------------------------------

void read_queue_state::cancel() {
  check();
  if (executor_.running_in_this_thread()) return cancel_all();
  post([](read_queue_state& self) { self.cancel_all(); });
}

void read_queue_state::cancel_all() noexcept {
  if (in_flight_ == 0) return;
  for (std::uint32_t i = 0; i < reads_max_; ++i) {
    operation& one = operations_[i];
    if (one.from != nullptr) one.from->cancel(one);
  }
}

void read_queue_state::end() noexcept {
  ended_ = true;
  cancel_all();
}

void read_queue_state::begin_close() noexcept {
  end();
  if (!waiter_) return;
  wait_completion left = std::move(waiter_);
  left.complete(std::make_exception_ptr(error(errc::cancelled, "the queue was destroyed")), {});
}

void read_queue_state::close() noexcept {
  if (forked_.in_child()) {
    // The loop's thread stayed in the parent, perhaps in the middle of a change to the reader's list. So the list is not
    // touched, and this object, which is in it, stays.
    kept_ = shared_from_this();
    return;
  }
  if (orphaned_.load(std::memory_order_relaxed)) return;  // its reads have ended
  if (executor_.running_in_this_thread()) {
    begin_close();
    loop_.turn_until([](const void* self) noexcept { return static_cast<const read_queue_state*>(self)->idle(); },
                     this);
    return host_.forget(*this);
  }
  const std::future<void> closed = closed_.get_future();
  post([](read_queue_state& self) {
    self.begin_close();
    self.closing_ = true;
    self.close_if_idle();
  });
  closed.wait();
}

void read_queue_state::close_if_idle() noexcept {
  if (!closing_ || in_flight_ != 0) return;
  closing_ = false;
  const auto keep = shared_from_this();  // the waiting destructor may release its reference as soon as it is notified
  host_.forget(*this);
  closed_.set_value();
}

}  // namespace io

// ---- The public face ----------------------------------------------------------------------------------------------

read_queue& read_queue::operator=(read_queue&& other) noexcept {
  if (this == &other) return *this;
  if (state_ != nullptr) state_->close();
  state_ = std::move(other.state_);
  return *this;
}

read_queue::~read_queue() {
  if (state_ != nullptr) state_->close();
}

void read_queue::check() const { state_->check(); }
void read_queue::push(std::span<const read_request> reads) { state_->push(reads); }
void read_queue::start_wait(completion<void(std::exception_ptr, std::span<const read_completion>)> done) {
  state_->wait(std::move(done));
}
void read_queue::cancel() { state_->cancel(); }
std::size_t read_queue::size() const noexcept { return state_->size(); }
std::size_t read_queue::room() const noexcept { return state_->reads_max() - state_->size(); }
asio::any_io_executor read_queue::get_executor() const noexcept { return state_->executor(); }
error read_queue::explain(const read_completion& failed) const { return state_->explain(failed); }

}  // namespace leat
