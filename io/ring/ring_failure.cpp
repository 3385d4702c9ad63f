// How a loop goes on when io_uring_enter(2) fails for good. It waits for the reads that the kernel has, as long as the kernel
// still answers; fails all operations; and keeps running without a ring, so that these failures are delivered.
//
// Only a completion proves that the kernel has let go of memory: close(2) of a ring ends its reads at some later time, without
// notice. Memory without that proof is kept until the process ends.
#include "base/clock.hpp"
#include "base/errno_table.hpp"
#include "base/errno_words.hpp"
#include "base/leak_on_purpose.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/files/read_error.hpp"
#include "io/ring/ring_loop.hpp"

#include <poll.h>
#include <time.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace leat::io::ring {

namespace {

// The first is what a slow disk takes for a queue of reads; the second is for a kernel that refuses every call.
constexpr std::uint64_t collect_max_ns = 5'000'000'000;
constexpr std::uint64_t refused_max_ns = 500'000'000;
constexpr long ask_again_ns = 500'000;

error explain_enter(int failure) {
  return {errc::io,
          str_cat("io_uring_enter: ", std::strerror(failure), " (", errno_name(failure),
                  "): the ring of an I/O thread has failed", meaning_of(failure).ring.cause, "; read with ",
                  spelled(option_id::backend, "preadv"), ", which needs no io_uring"),
          option_id::backend};
}

}  // namespace

void ring_loop::break_off_if_failed() {
  if (ring_ && ring_->failure() != 0) break_off(ring_->failure());
}

void ring_loop::break_off(int failure) {
  failing_ = true;
  const error why = explain_enter(failure);
  context_.failure.set(why);
  collect_from_ring(now_ns() + collect_max_ns);
  const bool has_reads = !in_kernel_.empty() || !late_chunks_.empty();
  give_up_what_the_kernel_has();
  fail_what_is_left();
  if (!has_reads) unregister_buffers();
  buffer_of_.clear();
  // This closes direct descriptors, too.
  ring_.reset();
  {
    const mutex_lock lock(report_mutex_);
    backend_ = {"io_uring", why.what()};
  }
  finish_all();
}

/// Reaps completions until the kernel has no operation of ours, or until `until_ns`. Returns earlier if the ring has failed and
/// refuses to be asked.
void ring_loop::collect_from_ring(std::uint64_t until_ns) {
  const auto kernel_has_some = [this] {
    return kernel_has_books() || !in_kernel_.empty() || !late_chunks_.empty() || closing_ != 0;
  };
  std::uint64_t answered_ns = now_ns();
  bool taken_back = false;
  for (std::uint64_t now = answered_ns; kernel_has_some() && now < until_ns; now = now_ns()) {
    if (!failing_ && ring_->failure() == 0) {
      ring_->submit_and_wait(1, 0, 100'000'000);
      reap();
      finish_all();
      answered_ns = now_ns();
      continue;
    }
    if (!std::exchange(taken_back, true)) {
      failing_ = true;
      // Entries that the kernel has not taken from the queue are not in flight.
      ring_->take_back([this](std::uint64_t user_data) { on_completion(user_data, -loop_failed); });
      wake();  // ends the read that waits for wake-ups
    }
    const bool answers = ring_->fetch();
    const unsigned reaped = reap();
    if (answers) answered_ns = now_ns();
    if (reaped == 0) {
      if (!answers && now - answered_ns > refused_max_ns) return;
      const timespec time{0, ask_again_ns};
      ::nanosleep(&time, nullptr);
    }
  }
}

bool ring_loop::kernel_has_books() const noexcept {
  return wake_parked_ || !opening_.empty() || !late_.empty() || !querying_.empty() || !late_queries_.empty() ||
         !own_queries_.empty();
}

/// Fails the operations that the kernel still has, and gives up their memory.
void ring_loop::give_up_what_the_kernel_has() {
  for (intrusive_list<chunk>* const chunks : {&in_kernel_, &late_chunks_}) {
    while (!chunks->empty()) {
      chunk& part = chunks->front();
      if (part.owner->operation->into.piece != read_target::no_piece)
        context_.memory->give_up({part.memory, part.bytes});
      on_chunk(part, -loop_failed);
    }
  }
  if (!kernel_has_books()) return;
  for (intrusive_list<file_slot>* const slots : {&opening_, &late_}) {
    while (!slots->empty()) on_slot(slots->front(), -loop_failed);
  }
  for (intrusive_list<status_query>* const list : {&querying_, &late_queries_, &own_queries_}) {
    while (!list->empty()) on_query(list->front(), -loop_failed);
  }
  keep_books();
}

/// Keeps slots and status queries for ever, since the kernel may write to them. Operations no longer use them.
void ring_loop::keep_books() {
  leak_on_purpose(std::move(wake_value_));
  for (const auto& slot : slots_) {
    dequeue(*slot);
    if (slot->now != phase::open) continue;
    if (!direct_descriptors_) ::close(slot->descriptor);
    slot->now = phase::free;
  }
  leak_on_purpose(std::move(slots_));
  leak_on_purpose(std::move(queries_));
  wake_parked_ = false;
}

void ring_loop::fail_what_is_left() {
  while (!asking_.empty()) {
    file_slot& slot = asking_.front();
    dequeue(slot);
    fail_open(slot, loop_failed);
  }
  for (intrusive_list<pending_read>* const list : {&unplaced_, &ready_}) {
    while (!list->empty()) {
      pending_read& left = list->front();
      dequeue(left);
      if (left.failure == 0) left.failure = left.cancelled ? ECANCELED : loop_failed;
      assert(left.chunks == 0);
      finish(left);
    }
  }
  closing_ = 0;
}

void ring_loop::sleep_without_ring(int patience_ms) {
  pollfd awaited{wake_descriptor_, POLLIN, 0};
  if (::poll(&awaited, 1, patience_ms) <= 0) return;
  std::uint64_t value = 0;
  static_cast<void>(::read(wake_descriptor_, &value, sizeof(value)));
}

}  // namespace leat::io::ring
