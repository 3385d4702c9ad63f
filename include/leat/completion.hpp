// What an asynchronous operation keeps of its caller while it runs: the completion handler of any completion token,
// behind one type, so that operations need not be templates.
//
//     template <asio::completion_token_for<void(error_code)> Token>
//     auto thing::async_wait(Token&& token) {
//       return asio::async_initiate<Token, void(error_code)>(
//           [this](auto handler) { begin_wait(completion<void(error_code)>(std::move(handler))); }, token);
//     }
#pragma once

#include <leat/compiler.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/execution/allocator.hpp>
#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution/relationship.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/version.hpp>

#include <atomic>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#if defined(LEAT_ASIO_VERSION) && LEAT_ASIO_VERSION != BOOST_ASIO_VERSION
#error "leat was built with another version of Boost than this program: build both with the same one (install.md)"
#endif

namespace boost::asio::detail {
template <typename T, typename Blocking>
class promise_executor;  // of the token use_future
}  // namespace boost::asio::detail

#pragma GCC visibility push(default)
namespace leat {

namespace asio = boost::asio;

template <class Signature>
class completion;

namespace detail {

/// A number of the calling thread's, not 0: async/completion.cpp. <thread> takes a tenth of a second to compile.
[[nodiscard]] std::uint64_t number_of_this_thread() noexcept;

/// Decides between completing and cancelling, from two threads: a cancel function runs only while the operation is
/// open, and close() returns only when none is running (but for the one that is on this thread's own stack).
class completion_gate {
 public:
  template <class Function>
  void run_if_open(Function& function, asio::cancellation_type type) {
    if (state_.load(std::memory_order_acquire) != open) return;
    // Written before the exchange that shows `cancelling`, and never again once closed: close() may read it then.
    canceller_ = number_of_this_thread();
    unsigned expected = open;
    if (!state_.compare_exchange_strong(expected, cancelling, std::memory_order_acq_rel)) return;
    function(type);
    if ((state_.fetch_and(~cancelling, std::memory_order_acq_rel) & closed) != 0) state_.notify_all();
  }

  void close() noexcept {
    unsigned before = state_.fetch_or(closed, std::memory_order_acq_rel);
    assert((before & closed) == 0 && "an operation completes once");
    if ((before & cancelling) == 0 || canceller_ == number_of_this_thread()) return;
    for (before |= closed; (before & cancelling) != 0; before = state_.load(std::memory_order_acquire)) {
      state_.wait(before, std::memory_order_acquire);
    }
  }

 private:
  static constexpr unsigned open = 0;
  static constexpr unsigned cancelling = 1;
  static constexpr unsigned closed = 2;
  std::atomic<unsigned> state_{open};
  std::uint64_t canceller_ = 0;
};

/// An executor that runs a function at once, on the calling thread: for a handler without an executor, where the operation
/// has none either. It uses no thread pool of the process, since the threads of such a pool stay in the parent of a fork().
class completing_thread {
 public:
  template <class Function>
  void execute(Function&& function) const {
    std::decay_t<Function> local(std::forward<Function>(function));
    std::move(local)();
  }
  // Claims `never` although it blocks: complete(), which requires it, holds no lock when it calls a handler.
  [[nodiscard]] completing_thread require(asio::execution::blocking_t::never_t) const noexcept { return {}; }
  friend constexpr bool operator==(completing_thread, completing_thread) noexcept { return true; }
  friend constexpr bool operator!=(completing_thread, completing_thread) noexcept { return false; }
};

/// Whether Asio chose a handler's executor and not its user: use_future brings one that stands for the pool of the process.
template <class Executor>
inline constexpr bool stands_for_process_pool = false;
template <class T, class Blocking>
inline constexpr bool stands_for_process_pool<asio::detail::promise_executor<T, Blocking>> = true;

/// Where a handler completes. Hidden, as what follows: made of a Boost's own types, which no library shows another.
template <class Handler, class Fallback>
[[nodiscard, gnu::visibility("hidden")]] auto executor_of(const Handler& handler, const Fallback& fallback) {
  if constexpr (stands_for_process_pool<asio::associated_executor_t<Handler, Fallback>>) {
    return fallback;
  } else {
    return asio::associated_executor_t<Handler, Fallback>(asio::get_associated_executor(handler, fallback));
  }
}

/// One allocation per operation: the handler, its executor with outstanding work, and the gate. Held by the completion
/// or by the function it posted, and by the cancellation slot's handler where there is one.
template <class... Args>
class completion_state {
 public:
  completion_state(const completion_state&) = delete;
  completion_state& operator=(const completion_state&) = delete;

  virtual void post(std::tuple<Args...>&& arguments) noexcept = 0;
  virtual void abandon() noexcept = 0;

  void keep() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) free_memory();
  }

  completion_gate gate;
  asio::cancellation_slot slot;
  /// Set by on_cancel() during initiation, before another thread can know of the operation.
  bool cancellable = false;
  /// Set by the slot, and read when the handler runs: both on the handler's executor.
  bool cancel_asked = false;

 protected:
  completion_state() = default;
  ~completion_state() = default;

 private:
  virtual void free_memory() noexcept = 0;

  std::atomic<int> holders_{1};
};

template <class Handler, class Executor, class... Args>
class [[gnu::visibility("hidden")]] completion_state_of final : public completion_state<Args...> {
  using tracked_executor =
      std::decay_t<typename asio::prefer_result<const Executor&, asio::execution::outstanding_work_t::tracked_t>::type>;
  using allocator =
      typename std::allocator_traits<asio::associated_allocator_t<Handler, asio::recycling_allocator<void>>>::
          template rebind_alloc<completion_state_of>;

  /// What runs on the handler's executor.
  class delivery {
   public:
    delivery(completion_state_of* state, std::tuple<Args...>&& arguments) noexcept
        : state_(state), arguments_(std::move(arguments)) {}
    delivery(delivery&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)), arguments_(std::move(other.arguments_)) {}
    delivery& operator=(delivery&&) = delete;
    ~delivery() {
      if (state_ != nullptr) state_->abandon();  // the executor's context went away without running us
    }
    void operator()() { std::exchange(state_, nullptr)->invoke(std::move(arguments_)); }

   private:
    completion_state_of* state_;
    std::tuple<Args...> arguments_;
  };

 public:
  static completion_state_of* make(Handler&& handler, const Executor& executor) {
    allocator memory(asio::get_associated_allocator(handler, asio::recycling_allocator<void>()));
    completion_state_of* const place = std::allocator_traits<allocator>::allocate(memory, 1);
    try {
      return ::new (static_cast<void*>(place)) completion_state_of(std::move(handler), executor, memory);
    } catch (...) {
      std::allocator_traits<allocator>::deallocate(memory, place, 1);
      throw;
    }
  }

  void post(std::tuple<Args...>&& arguments) noexcept override {
    const auto executor = asio::prefer(asio::require(work_.executor, asio::execution::blocking.never),
                                       asio::execution::relationship.fork, asio::execution::allocator(allocator_));
    executor.execute(delivery(this, std::move(arguments)));
  }

  void abandon() noexcept override {
    std::destroy_at(&handler_.value);
    std::destroy_at(&work_.executor);
    this->release();
  }

 private:
  // Unions, as handler and executor go before the state does: Asio wants memory freed before the handler is called.
  template <class Value>
  union late {
    explicit late(Value&& initial) : value(std::move(initial)) {}
    ~late() {}
    Value value;
  };
  union late_executor {
    explicit late_executor(const Executor& from)
        : executor(asio::prefer(from, asio::execution::outstanding_work.tracked)) {}
    ~late_executor() {}
    tracked_executor executor;
  };

  completion_state_of(Handler&& handler, const Executor& from, const allocator& memory)
      : handler_(std::move(handler)), work_(from), allocator_(memory) {
    this->slot = asio::get_associated_cancellation_slot(handler_.value);
  }
  ~completion_state_of() = default;

  void invoke(std::tuple<Args...>&& arguments) {
    // On the handler's executor: the one place besides the initiation where the slot may be touched.
    if (this->cancellable && this->slot.is_connected()) this->slot.clear();
    // completing_thread has no destructor to run: without the attribute the compiler warns of an unused variable.
    [[maybe_unused]] const tracked_executor work(std::move(work_.executor));
    Handler handler(std::move(handler_.value));
    if constexpr (requires { handler.cancel_asked(); }) {
      if (this->cancel_asked) handler.cancel_asked();
    }
    abandon();
    std::apply(std::move(handler), std::move(arguments));
  }

  void free_memory() noexcept override {
    allocator memory(allocator_);
    this->~completion_state_of();
    std::allocator_traits<allocator>::deallocate(memory, this, 1);
  }

  late<Handler> handler_;
  late_executor work_;
  allocator allocator_;
};

/// Lives in the cancellation slot.
template <class Function, class... Args>
class completion_cancel {
 public:
  completion_cancel(completion_state<Args...>* state, Function&& function)
      : state_(state), function_(std::move(function)) {
    state_->keep();
  }
  completion_cancel(const completion_cancel&) = delete;
  completion_cancel& operator=(const completion_cancel&) = delete;
  ~completion_cancel() { state_->release(); }

  void operator()(asio::cancellation_type type) {
    state_->cancel_asked = true;
    state_->gate.run_if_open(function_, type);
  }

 private:
  completion_state<Args...>* state_;
  Function function_;
};

}  // namespace detail

/// A completion handler of any type, waiting for its operation: move-only, one allocation.
///
///   executor        the handler's associated one, else (and for use_future) the fallback given; outstanding work is kept
///                   on it until the handler has run, so a run loop does not end under an operation. Without either the
///                   handler runs inside complete(), on the thread that calls it: it must not block there
///   allocation      by the handler's associated allocator, else by Asio's recycling one
///   complete()      from any thread, once; the handler is posted, and not run inside complete() where it has an executor
///   destruction     without complete() destroys the handler unrun, as an execution context does at shutdown: a last
///                   resort, as a coroutine that awaits the operation is destroyed by it
///   cancellation    on_cancel(), below
///
/// Cancelling races with completing. A cancellation signal is emitted on the handler's executor, while the operation
/// completes on any thread; the slot itself must not be touched from two threads. So the slot is written during the
/// initiation and cleared just before the handler runs, both on the handler's executor, and nowhere else. In between a
/// gate decides: the function given to on_cancel() runs only while the operation is open, and complete() returns only
/// when that function is not running and never will again (unless it is the function itself that completes). What the
/// function refers to must therefore live until complete() has returned, and no longer.
///
/// A handler that has cancel_asked() is told so before it runs, if it was cancelled at any time until then: what completed before the
/// signal came may still be undone (operation.hpp).
///
/// Its price: **call complete() with no lock held that the cancel function takes.** Unlink under the lock, unlock,
/// complete.
template <class... Args>
class completion<void(Args...)> {
 public:
  using signature = void(Args...);

  completion() noexcept = default;

  /// Takes a handler over; call it inside the initiation (asio::async_initiate), on the handler's executor.
  ///   fallback   the executor for handlers without one: the operation's own, where it has one
  template <class Handler, class Executor = detail::completing_thread>
    requires(!std::same_as<std::remove_cvref_t<Handler>, completion>)
  explicit completion(Handler handler, const Executor& fallback = Executor()) {
    const auto executor = detail::executor_of(handler, fallback);
    using chosen = std::remove_const_t<decltype(executor)>;
    state_ = detail::completion_state_of<Handler, chosen, Args...>::make(std::move(handler), executor);
  }

  completion(completion&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  completion& operator=(completion&& other) noexcept {
    completion(std::move(other)).swap(*this);
    return *this;
  }
  ~completion() {
    if (state_ == nullptr) return;
    if (state_->cancellable) state_->gate.close();
    state_->abandon();
  }
  void swap(completion& other) noexcept { std::swap(state_, other.state_); }

  /// Whether there is a handler that was not completed yet.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

  /// The handler's cancellation slot. To be emplaced into during the initiation only, and best through on_cancel().
  [[nodiscard]] asio::cancellation_slot get_cancellation_slot() const noexcept {
    return state_ != nullptr ? state_->slot : asio::cancellation_slot();
  }

  /// Has `function(cancellation_type)` called, on the handler's executor, when the operation is asked to stop; it may
  /// complete this completion, or arrange that it soon will be. Nothing happens without a connected slot.
  ///   when   once, during the initiation, before another thread can complete the operation
  template <class Function>
    requires std::invocable<Function&, asio::cancellation_type>
  void on_cancel(Function function) {
    assert(state_ != nullptr && !state_->cancellable);
    if (!state_->slot.is_connected()) return;
    using cancel = detail::completion_cancel<Function, Args...>;
    state_->slot.template emplace<cancel>(state_, std::move(function));
    state_->cancellable = true;
  }

  /// Posts the handler with `args` to its executor. Any thread; afterwards the completion is empty.
  void complete(Args... args) noexcept {
    assert(state_ != nullptr && "nothing to complete: default-made, moved from or completed before");
    detail::completion_state<Args...>* const state = std::exchange(state_, nullptr);
    if (state->cancellable) state->gate.close();
    state->post(std::tuple<Args...>(std::move(args)...));
  }

 private:
  detail::completion_state<Args...>* state_ = nullptr;
};

}  // namespace leat
#pragma GCC visibility pop
