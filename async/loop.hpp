// A run loop that does not know how to sleep: the queue of posted functions and its Asio executor. Who derives from it
// brings the wait: io_uring_enter in the ring, a condition variable in simple_loop.
//
// The loop's thread turns like this; nothing else is needed, and no wake-up is lost:
//
//     const auto bound = bind_to_this_thread();
//     while (...) {
//       run_posted();
//       if (prepare_sleep()) {      // false: something came in meanwhile
//         wait for work of one's own or for wake(), with a deadline if one likes;
//         cancel_sleep();
//       }
//     }
//
// Timers: asio::steady_timer works on this context, as on any execution_context, but Asio then starts a reactor with a
// thread, an epoll and a timer descriptor of its own for each context. That is fine in tests and for a few rare
// deadlines; a loop on a hot path keeps its deadlines itself and bounds its wait by the next one.
#pragma once

#include "async/context_executor.hpp"
#include "async/outstanding_work.hpp"

#include <boost/asio/execution_context.hpp>

#include <atomic>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace leat::async {

/// The queue and the executor of a run loop.
///
///   threads       one thread at a time runs the loop; any thread posts. What is posted from the loop's own thread costs
///                 no atomic operation and recycles its memory; what comes from elsewhere costs one compare-and-swap,
///                 and one wake() if the loop sleeps, not one each.
///   order         functions posted by one thread run in the order posted
///   exceptions    from a posted function leave run_posted(); the functions behind it stay queued
///   destruction   after every other thread has stopped posting (or is returning from a post); what is still queued
///                 is destroyed unrun
class loop : public asio::execution_context {
 public:
  using executor_type = context_executor<loop>;
  class thread_binding;

  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  [[nodiscard]] executor_type get_executor() noexcept { return executor_type(*this); }

  /// Says that the calling thread runs the loop for as long as the result lives. Loops may nest on a thread.
  [[nodiscard]] thread_binding bind_to_this_thread() noexcept;
  [[nodiscard]] bool running_in_this_thread() const noexcept { return current_ == this; }

  /// Runs what is queued at the time of the call, and not what those functions post. Loop thread.
  ///   returns   how many functions ran
  std::size_t run_posted();

  /// First half of going to sleep: from now on the first post from another thread calls wake(). Loop thread.
  ///   returns   false if functions are queued: do not sleep
  [[nodiscard]] bool prepare_sleep() noexcept;
  /// Second half, after the wait, whether it was wake() that ended it or not. Loop thread.
  void cancel_sleep() noexcept;

  /// Wakes the loop if it sleeps, as a post would, without posting anything. Any thread.
  void interrupt() noexcept;

  /// Whether executors with outstanding_work.tracked exist, as in every operation that will complete on this loop.
  [[nodiscard]] bool has_outstanding_work() const noexcept { return work_.any(); }

 protected:
  loop() = default;
  virtual ~loop();

  /// Ends the wait of a sleeping loop. Any thread, once per successful prepare_sleep() at most; may come late, when the
  /// loop no longer sleeps, so the wait must tolerate being ended without a cause.
  virtual void wake() noexcept = 0;

  /// To be called first in the destructor of who derives: waits for other threads' calls of wake() to return, ends the
  /// services of the context, and destroys what is queued while the derived object is still whole.
  void retire() noexcept;

  /// Held around what may end the loop, such as a stop(), by whoever calls interrupt() after it: see outstanding_work.
  [[nodiscard]] outstanding_work::visit visit() noexcept { return outstanding_work::visit(work_); }

 private:
  friend class context_executor<loop>;

  /// A queued function: a header, then the function itself.
  struct posted {
    posted* next = nullptr;
    void (*act)(loop&, posted*, bool run) = nullptr;
  };
  template <class Function>
  struct posted_function final : posted {
    explicit posted_function(Function&& f) : function(std::move(f)) {}
    static void act_on(loop& owner, posted* self, bool run);
    Function function;
  };
  /// First in, first out; the loop's thread only.
  struct posted_list {
    posted* head = nullptr;
    posted** tail = &head;
    std::size_t size = 0;
  };

  // Asio's own posted functions are a pointer or two, ours a pointer and the arguments: they fit with room to spare.
  static constexpr std::size_t block_bytes = 128;
  static constexpr std::size_t free_blocks_max = 512;

  template <class Function>
  void post_function(Function&& function);
  void push_local(posted* function) noexcept;
  void push_remote(posted* function) noexcept;
  void take_remote() noexcept;
  [[nodiscard]] void* allocate_block(std::size_t bytes);
  void free_block(void* block, std::size_t bytes) noexcept;
  void work_started() noexcept { work_.started(); }
  void work_finished() noexcept {
    work_.finished([this] { interrupt(); });
  }
  void destroy_queued() noexcept;
  [[nodiscard]] posted* sleeping() noexcept { return &sleeping_mark_; }

  static inline constinit thread_local const loop* current_ = nullptr;

  // Pushed by any thread, newest first; taken whole. &sleeping_mark_ says that the loop sleeps on an empty list.
  alignas(64) std::atomic<posted*> remote_{nullptr};
  outstanding_work work_;

  alignas(64) posted_list local_;
  posted sleeping_mark_;
  void* free_blocks_ = nullptr;
  std::size_t free_block_count_ = 0;
  bool retired_ = false;
};

/// While it lives, the thread that made it is the loop's thread.
class [[nodiscard]] loop::thread_binding {
 public:
  thread_binding(const thread_binding&) = delete;
  thread_binding& operator=(const thread_binding&) = delete;
  ~thread_binding() { current_ = before_; }

 private:
  friend class loop;
  explicit thread_binding(const loop& bound) noexcept : before_(std::exchange(current_, &bound)) {}
  const loop* before_;
};

inline loop::thread_binding loop::bind_to_this_thread() noexcept { return thread_binding(*this); }

template <class Function>
void loop::post_function(Function&& function) {
  using node = posted_function<std::remove_cvref_t<Function>>;
  static_assert(alignof(node) <= alignof(std::max_align_t), "an over-aligned function cannot be posted");
  void* const block = allocate_block(sizeof(node));
  node* posting = nullptr;
  try {
    posting = ::new (block) node(std::move(function));
  } catch (...) {
    free_block(block, sizeof(node));
    throw;
  }
  posting->act = &node::act_on;
  if (running_in_this_thread()) {
    push_local(posting);
  } else {
    push_remote(posting);
  }
}

template <class Function>
void loop::posted_function<Function>::act_on(loop& owner, posted* self, bool run) {
  auto* const node = static_cast<posted_function*>(self);
  // The memory goes back first: what the function posts next finds it warm.
  Function function(std::move(node->function));
  node->~posted_function();
  owner.free_block(node, sizeof(posted_function));
  if (run) std::move(function)();
}

inline void* loop::allocate_block(std::size_t bytes) {
  if (bytes > block_bytes) return ::operator new(bytes);
  if (running_in_this_thread() && free_blocks_ != nullptr) {
    void* const block = free_blocks_;
    free_blocks_ = *static_cast<void**>(block);
    --free_block_count_;
    return block;
  }
  return ::operator new(block_bytes);
}

inline void loop::free_block(void* block, std::size_t bytes) noexcept {
  if (bytes <= block_bytes && running_in_this_thread() && free_block_count_ < free_blocks_max) {
    *static_cast<void**>(block) = free_blocks_;
    free_blocks_ = block;
    ++free_block_count_;
  } else {
    ::operator delete(block);
  }
}

inline void loop::push_local(posted* function) noexcept {
  *local_.tail = function;
  local_.tail = &function->next;
  ++local_.size;
}

}  // namespace leat::async
