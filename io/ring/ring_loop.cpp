#include "io/ring/ring_loop.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "io/ring/file_set.hpp"
#include "io/ring/make_ring_loop.hpp"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace leat::io {
namespace ring {

namespace {

// How long a turn may wait for more than one completion. What is posted to the loop meanwhile waits as long: a wake-up
// is one completion too. While the device has all it is meant to have, no read can be late for it; a batch that is handed
// over may be, by what a slow disk takes for a quarter of its reads, and by this at most: where reads are large, by what a
// drive of 1 GB/s takes for all that it has, since a wait that ends before them is one more. Where somebody wants more large reads
// at a time, that is no longer than for as many as there are else: stop() waits for it, too. A timer so late that another
// one comes first (the scheduler's tick) is never programmed: in a virtual machine that saves 20 us a turn.
constexpr std::uint64_t patience_ns = 50'000;
constexpr std::uint64_t patience_full_ns(std::uint64_t bytes_in_kernel) noexcept {
  return std::clamp<std::uint64_t>(bytes_in_kernel, 20'000'000, queue_depth::reads_min * chunk_bytes_max);
}

}  // namespace

ring_loop::ring_loop(io_context& context, const ring_limits& limits)
    : context_(context),
      timeout_ns_(static_cast<std::uint64_t>(std::chrono::nanoseconds(context.options.read_timeout).count())),
      insists_on_buffers_(context.options.registered_buffers == choice::on) {
  try {
    set_up(limits);
  } catch (...) {
    retire();
    throw;
  }
}

void ring_loop::set_up(const ring_limits& limits) {
  const unsigned descriptors = descriptors_allowed();
  const unsigned files = std::max(1U, std::min(limits.files_max, descriptors));
  const bool wants_buffers = context_.options.registered_buffers != choice::off;
  const unsigned buffers = wants_buffers ? std::min(context_.memory->pieces_max(), arena::registered_pieces_max) : 0;
  // Room for the reads and the opens of a turn; when it is full it is submitted early, which costs a call.
  const unsigned entries = std::max(256U, std::min(context_.options.queue_depth, depth_max) + opens_max);
  ring_.emplace(entries, limits.direct_descriptors ? files : 0, buffers);

  direct_descriptors_ = ring_->files() != 0;
  // Ordinary descriptors are the whole process's: half of what there is may be ours.
  const unsigned slots = direct_descriptors_ ? ring_->files() : std::max(1U, std::min(files, descriptors / 2));
  slots_.reserve(slots);
  free_slots_.reserve(slots);
  for (unsigned i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<file_slot>());
    slots_.back()->index = i;
  }
  for (unsigned i = slots; i-- > 0;) free_slots_.push_back(slots_[i].get());

  const mutex_lock lock(report_mutex_);
  backend_ = {"io_uring", str_cat(ring_->flags(), direct_descriptors_ ? ", direct descriptors" : "", ", ", slots,
                                  " files open at most")};
  if (!wants_buffers) {
    buffers_report_ = {"off", "asked for"};
  } else if (ring_->buffers() == 0) {
    if (context_.options.registered_buffers == choice::on) {
      throw error(errc::unsupported, str_cat("registered_buffers = on: ", ring_->why_no_buffers()));
    }
    buffers_report_ = {"off", ring_->why_no_buffers()};
  } else {
    buffers_report_ = {"on", context_.memory->pins_first()
                                 ? "each 4 MiB when first read into, of batches after it was pinned"
                                 : "each 4 MiB when first read into"};
  }
  buffer_of_.resize(ring_->buffers());

  wake_descriptor_ = ::eventfd(0, EFD_CLOEXEC);
  if (wake_descriptor_ < 0) {
    throw error(errc::limit, str_cat("eventfd: ", std::strerror(errno), "; try `ulimit -n 65536`"));
  }
}

void ring_loop::wake() noexcept {
  const std::uint64_t one = 1;
  // A lost wake-up would leave the loop asleep. EAGAIN: the counter is full, so that a wake-up is pending anyway.
  for (int tries = 0; tries < 1000; ++tries) {
    if (::write(wake_descriptor_, &one, sizeof(one)) == sizeof(one) || errno == EAGAIN) return;
  }
}

void ring_loop::park_wake() {
  // A blocking descriptor on purpose: the kernel then waits for it; with O_NONBLOCK the read would fail.
  io_uring_sqe* const sqe = ring_->next_sqe();
  io_uring_prep_read(sqe, wake_descriptor_, wake_value_.get(), sizeof(*wake_value_), 0);
  io_uring_sqe_set_data64(sqe, tag_wake);
  wake_parked_ = true;
}

void ring_loop::run() {
  const auto bound = bind_to_this_thread();
  park_wake();
  now_ = woke_ns_ = now_ns();
  for (;;) {
    run_posted();
    expire();
    finish_all();
    // What pump() gives the kernel is timed from here, without what was done before it.
    now_ = now_ns();
    if (held_back_) count_.held_back_ns.add(now_ - pumped_ns_);
    pump();
    held_back_ = !ready_.empty();
    pumped_ns_ = now_;
    if (stopping_.load(std::memory_order_relaxed) && is_over()) break;
    sleep(!finished_.empty() || !queries_done_.empty() || (ring_ && !wake_parked_));
    break_off_if_failed();
  }
  if (ring_) {
    // The kernel may still write into our slots (statx) and must not find them gone.
    for (const auto& slot : slots_) {
      if (slot->now == phase::opening || slot->now == phase::waiting_for_status) {
        cancel_in_kernel(reinterpret_cast<std::uintptr_t>(slot.get()) | tag_slot);
      }
    }
    cancel_in_kernel(tag_wake);
    collect_from_ring(now_ns() + 5'000'000'000);
    if (kernel_has_books()) keep_books();  // on a dead mount the kernel does not give them back
    ring_.reset();
  }
  for (const auto& slot : slots_) dequeue(*slot);
}

/// No operation is in flight, and none waits for its done() to be called.
bool ring_loop::is_over() const noexcept { return reads_.out() == 0 && querying_.empty() && queries_done_.empty(); }

void ring_loop::sleep(bool awake) {
  if (awake || !prepare_sleep()) {
    if (ring_) ring_->submit();
  } else if (stopping_.load() && is_over()) {
    cancel_sleep();
    return;
  } else {
    const std::uint64_t slept_at_ns = now_;
    count_.awake_ns.add(slept_at_ns - woke_ns_);
    if (ring_) {
      const std::uint64_t due_ns = next_deadline_ns();
      const std::uint64_t left_ns =
          due_ns == 0 ? 0 : std::max<std::uint64_t>(due_ns > slept_at_ns ? due_ns - slept_at_ns : 0, 1000);
      // Waiting for a quarter of the reads in flight saves wake-ups, and the device always has reads left.
      const auto count = static_cast<unsigned>(std::max<std::size_t>(in_kernel_.size() / 4, 1));
      ring_->submit_and_wait(count, is_full() ? patience_full_ns(bytes_in_kernel_) : patience_ns, left_ns);
    } else {
      sleep_without_ring(1000);
    }
    cancel_sleep();
    now_ = now_ns();
    count_.wait_ns.add(now_ - slept_at_ns);
    woke_ns_ = now_;
  }
  count_.turns.add(1);
  if (!ring_) return;
  if (awake) now_ = now_ns();
  // All of them before anybody resumes: who resumes starts more, and must find the books in order.
  reap();
  if (!wake_parked_) park_wake();
  finish_all();
}

// Something waits for room, or hardly anything more would find any.
bool ring_loop::is_full() const noexcept { return !ready_.empty() || !admits(queue_depth::bytes / 8); }

void ring_loop::on_completion(std::uint64_t user_data, int result) {
  const std::uint64_t address = user_data & ~std::uint64_t{tag_mask};
  switch (user_data & tag_mask) {
    case tag_chunk:
      return on_chunk(*reinterpret_cast<chunk*>(address), result);
    case tag_slot:
      return on_slot(*reinterpret_cast<file_slot*>(address), result);
    case tag_query:
      return on_query(*reinterpret_cast<status_query*>(address), result);
    case tag_wake:
      wake_parked_ = false;
      return;
    default:
      --closing_;
  }
}

std::uint64_t ring_loop::next_deadline_ns() const noexcept {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  if (!in_kernel_.empty()) first = std::min(first, in_kernel_.front().since_ns + timeout_ns_);
  if (!opening_.empty()) first = std::min(first, opening_.front().since_ns + timeout_ns_);
  if (!querying_.empty()) first = std::min(first, querying_.front().since_ns + timeout_ns_);
  for (const chunk& part : in_kernel_) {
    if (part.owner->slot->type_checked) continue;
    first = std::min(first, part.since_ns + slow_ns);
    break;
  }
  if (open_again_at_ns_ != 0) first = std::min(first, open_again_at_ns_);
  return first == std::numeric_limits<std::uint64_t>::max() ? 0 : first;
}

std::unique_ptr<source> ring_loop::connect_files(const file_table& files) {
  return std::make_unique<file_source<ring_loop>>(*this, std::make_unique<file_set>(files, context_.direct));
}

void ring_loop::retire_set(std::unique_ptr<file_set> set) {
  if (running_in_this_thread()) return close_files_of(*set);
  get_executor().execute([this, gone = std::move(set)] { close_files_of(*gone); });
}

void ring_loop::finish_all() {
  // Those that end while done() of others is called have their turn in the next round: a chain of reads of nothing must not keep
  // the loop from its ring.
  for (std::size_t left = finished_.size(); left != 0; --left) {
    pending_read& ended = finished_.front();
    dequeue(ended);
    deliver(ended);
  }
  for (std::size_t left = queries_done_.size(); left != 0; --left) {
    open_operation* const ended = queries_done_.front();
    queries_done_.pop_front();
    ended->done(*ended);
  }
  for (std::size_t i = 0; i < after_completions_.size(); ++i) after_completions_[i]();
  after_completions_.clear();
}

void ring_loop::turn_until(bool (*over)(const void*) noexcept, const void* argument) {
  // This runs within a turn of run(), which handles posted functions and the wake-up afterwards.
  for (;;) {
    now_ = now_ns();
    expire();
    finish_all();
    pump();
    if (over(argument)) return;
    if (!ring_) {
      sleep_without_ring(1);  // all operations have failed; the caller may wait for other threads
      continue;
    }
    if (finished_.empty() && queries_done_.empty()) {
      const std::uint64_t due_ns = next_deadline_ns();
      ring_->submit_and_wait(1, 0, due_ns == 0 ? 0 : std::max<std::uint64_t>(due_ns > now_ ? due_ns - now_ : 0, 1000));
      now_ = now_ns();
    }
    reap();
    break_off_if_failed();
  }
}

void ring_loop::cancel_in_kernel(std::uint64_t user_data) {
  if (failing_) return;
  io_uring_sqe* const sqe = ring_->next_sqe();
  io_uring_prep_cancel64(sqe, user_data, 0);
  io_uring_sqe_set_data64(sqe, tag_none);
  ++closing_;
}

void ring_loop::expire() {
  const auto is_old = [this](std::uint64_t since_ns) { return now_ >= since_ns + timeout_ns_; };
  while (!in_kernel_.empty() && is_old(in_kernel_.front().since_ns)) {
    chunk& part = in_kernel_.front();
    pending_read& owner = *part.owner;
    in_kernel_.remove(part);
    late_chunks_.push_back(part);
    part.overdue = add_overdue(*owner.set, *owner.operation, part.offset, context_);
    if (owner.failure == 0) owner.failure = ETIMEDOUT;
    dequeue(owner);
    cancel_in_kernel(part);
  }
  while (!opening_.empty() && is_old(opening_.front().since_ns)) {
    file_slot& slot = opening_.front();
    dequeue(slot);
    enqueue(late_, slot);
    slot.overdue = context_.overdue.add(str_cat(slot.path, " (opening)"), explain_open(ETIMEDOUT, slot.path));
    cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&slot) | tag_slot);
    // The kernel has none of their memory: they need not wait for it.
    if (slot.stale) continue;
    slot.stale = true;
    slot_of_.erase(slot.set->key_of(slot.file));
    while (!slot.waiting.empty()) {
      pending_read& failed = slot.waiting.front();
      dequeue(failed);
      failed.failure = ETIMEDOUT;
      failed.slot = nullptr;
      --slot.users;
      finish(failed);
    }
    const file_set& set = *std::exchange(slot.set, nullptr);
    if (slot.now == phase::waiting_for_status) ask_again(set, set.files->directory(slot.file));
  }
  while (!querying_.empty() && is_old(querying_.front().since_ns)) {
    status_query& old = querying_.front();
    querying_.remove(old);
    late_queries_.push_back(old);
    old.overdue = context_.overdue.add(old.path, explain_open(ETIMEDOUT, old.path));
    cancel_in_kernel(reinterpret_cast<std::uintptr_t>(&old) | tag_query);
    open_operation* const operation = std::exchange(old.operation, nullptr);
    operation->failure = ETIMEDOUT;
    operation->state = nullptr;
    --old.set->operations;
    queries_done_.push_back(operation);
  }
  check_slow_reads();
  if (open_again_at_ns_ != 0 && now_ >= open_again_at_ns_) open_again_at_ns_ = 0;
  place_waiting();
}

}  // namespace ring

std::unique_ptr<io_loop> make_ring_loop(io_context& context, const ring_limits& limits) {
  return std::make_unique<ring::ring_loop>(context, limits);
}

}  // namespace leat::io
