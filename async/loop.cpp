#include "async/loop.hpp"

#include <cassert>

namespace leat::async {

loop::~loop() {
  assert(retired_ && "the destructor of who derives calls retire() first");
  destroy_queued();
  while (free_blocks_ != nullptr) ::operator delete(std::exchange(free_blocks_, *static_cast<void**>(free_blocks_)));
}

void loop::retire() noexcept {
  // A thread that found us asleep is still on its way through wake(), although something else may have woken us first.
  work_.wait_for_visitors();
  asio::execution_context::shutdown();
  destroy_queued();
  retired_ = true;
}

void loop::destroy_queued() noexcept {
  // Destroying a handler may post: Asio unwinds the coroutine that awaited it on its executor.
  for (;;) {
    take_remote();
    posted* const first = local_.head;
    if (first == nullptr) return;
    local_.head = first->next;
    if (--local_.size == 0) local_.tail = &local_.head;
    first->act(*this, first, false);
  }
}

void loop::push_remote(posted* function) noexcept {
  posted* head = remote_.load(std::memory_order_relaxed);
  for (;;) {
    if (head == sleeping()) break;
    function->next = head;
    if (remote_.compare_exchange_weak(head, function, std::memory_order_release, std::memory_order_relaxed)) return;
  }
  // The loop sleeps. Something else may wake it at any time, after which it may run our function, end, and be
  // destroyed; retire() waits for us as long as we are counted.
  const outstanding_work::visit inside(work_);
  for (;;) {
    const bool asleep = head == sleeping();
    function->next = asleep ? nullptr : head;
    if (remote_.compare_exchange_weak(head, function)) {
      if (asleep) wake();
      break;
    }
  }
}

void loop::take_remote() noexcept {
  if (remote_.load(std::memory_order_relaxed) == nullptr) return;
  posted* taken = remote_.exchange(nullptr, std::memory_order_acquire);
  if (taken == sleeping()) return;
  // Newest first; turn it around onto the end of the local list.
  posted* oldest = nullptr;
  std::size_t size = 0;
  posted** const tail = taken != nullptr ? &taken->next : nullptr;
  while (taken != nullptr) {
    posted* const next = taken->next;
    taken->next = oldest;
    oldest = taken;
    taken = next;
    ++size;
  }
  if (oldest == nullptr) return;
  *local_.tail = oldest;
  local_.tail = tail;
  local_.size += size;
}

std::size_t loop::run_posted() {
  assert(running_in_this_thread() && "bind_to_this_thread() first");
  take_remote();
  const std::size_t count = local_.size;
  for (std::size_t i = 0; i < count; ++i) {
    posted* const first = local_.head;
    local_.head = first->next;
    if (--local_.size == 0) local_.tail = &local_.head;
    first->act(*this, first, true);
  }
  return count;
}

bool loop::prepare_sleep() noexcept {
  assert(running_in_this_thread());
  if (local_.size != 0) return false;
  posted* expected = nullptr;
  return remote_.compare_exchange_strong(expected, sleeping());
}

void loop::cancel_sleep() noexcept {
  posted* expected = sleeping();
  remote_.compare_exchange_strong(expected, nullptr);
}

void loop::interrupt() noexcept {
  if (running_in_this_thread()) return;  // awake, evidently
  const outstanding_work::visit inside(work_);
  posted* expected = sleeping();
  if (remote_.compare_exchange_strong(expected, nullptr)) wake();
}

}  // namespace leat::async
