// What next() and its like return: an operation that begins when it is awaited, by a coroutine of any runtime.
#pragma once

#include <leat/compiler.hpp>
#include <leat/completion.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/is_executor.hpp>

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)
namespace leat {
namespace detail {

using wait_completion = completion<void(std::exception_ptr)>;

[[nodiscard]] std::exception_ptr operation_aborted();  // async/completion.cpp

/// Who calls wait for.
class turn_giver {
 public:
  /// The call takes nothing; if it still waits, it completes as a cancelled one. Thread: any.
  virtual void give_up(std::uint64_t number) noexcept = 0;

 protected:
  ~turn_giver() = default;
};

/// Names a call to who begins it.
struct turn_key {
  turn_giver* of = nullptr;
  std::uint64_t number = 0;
};

/// The place of one call. It takes what it waited for when its caller runs again, and not before: a call that is cancelled
/// or destroyed until then leaves it to the next one.
class turn {
 public:
  turn() = default;
  turn(std::shared_ptr<turn_giver> of, std::uint64_t number) noexcept : of_(std::move(of)), number_(number) {}
  turn(turn&& other) noexcept : of_(std::move(other.of_)), number_(other.number_) {}
  turn& operator=(turn&& other) noexcept {
    give_up();
    of_ = std::move(other.of_);
    number_ = other.number_;
    return *this;
  }
  ~turn() { give_up(); }

  [[nodiscard]] turn_key key() const noexcept { return {of_.get(), number_}; }
  void give_up() noexcept {
    if (const std::shared_ptr<turn_giver> of = std::exchange(of_, nullptr)) of->give_up(number_);
  }
  /// The call has ended already.
  void forget() noexcept { of_ = nullptr; }

 protected:
  [[nodiscard]] std::shared_ptr<turn_giver> leave() noexcept { return std::exchange(of_, nullptr); }

 private:
  std::shared_ptr<turn_giver> of_;
  std::uint64_t number_ = 0;
};

/// The handler of a caller that is told with what its call has taken.
template <class Handler, class Call>
class turn_handler {
 public:
  turn_handler(Handler&& handler, typename Call::turn&& of) : handler_(std::move(handler)), turn_(std::move(of)) {}

  void cancel_asked() noexcept { cancelled_ = true; }
  void operator()(std::exception_ptr failure) {
    if (failure != nullptr) turn_.forget();
    if (failure == nullptr && cancelled_) {
      turn_.give_up();
      failure = operation_aborted();
    }
    if constexpr (std::is_void_v<typename Call::result>) {
      turn_.give_up();
      std::move(handler_)(std::move(failure));
    } else {
      typename Call::result got{};
      if (failure == nullptr) got = turn_.take(failure);
      std::move(handler_)(std::move(failure), std::move(got));
    }
  }
  [[nodiscard]] const Handler& inner() const noexcept { return handler_; }

 private:
  Handler handler_;
  typename Call::turn turn_;
  bool cancelled_ = false;
};

// Has a name, since Asio keeps the names of operations as text, and that of a lambda holds the path of its file.
struct initiate_call {
  template <class Handler, class Call>
  void operator()(Handler handler, const Call& call) const {
    typename Call::turn turn = call.new_turn();
    const turn_key key = turn.key();
    turn_handler<Handler, Call> telling(std::move(handler), std::move(turn));
    // A child of fork() has no I/O thread to complete on.
    call.begin(key, call.has_threads() ? wait_completion(std::move(telling), call.executor())
                                       : wait_completion(std::move(telling)));
  }
};

/// A coroutine that waits. Shared by its awaiter and by what will resume it.
struct suspended {
  explicit suspended(std::coroutine_handle<> waiting) noexcept : handle(waiting) {}
  /// True for the first who asks: whoever resumes the coroutine, or its end.
  [[nodiscard]] bool claim() noexcept { return !claimed.exchange(true, std::memory_order_acq_rel); }

  std::coroutine_handle<> handle;
  std::exception_ptr failure;
  std::atomic<bool> claimed{false};
};

/// Resumes it on an executor.
template <class Executor>
struct resume_there {
  using executor_type = Executor;
  [[nodiscard]] executor_type get_executor() const noexcept { return executor; }
  void operator()(std::exception_ptr failure) const {
    if (!state->claim()) return;
    state->failure = std::move(failure);
    state->handle.resume();
  }

  std::shared_ptr<suspended> state;
  Executor executor;
};

/// Has it resumed by a function of the user's.
template <class Function>
struct resume_by {
  void operator()(std::exception_ptr failure) {
    if (!state->claim()) return;
    state->failure = std::move(failure);
    function(state->handle);
  }

  std::shared_ptr<suspended> state;
  Function function;
};

/// Resumes it on the thread that the loader has for this.
struct own_thread {};

template <class Executor>
concept asio_executor =
    boost::asio::execution::is_executor<Executor>::value || boost::asio::is_executor<Executor>::value;
template <class Context>
concept asio_context = requires(Context& context) {
  { context.get_executor() } -> asio_executor;
};

template <class Call, class Where>
class call_awaiter {
 public:
  call_awaiter(Call call, Where where) : call_(std::move(call)), where_(std::move(where)) {}
  call_awaiter(call_awaiter&&) = delete;
  ~call_awaiter() {
    if (state_ != nullptr) static_cast<void>(state_->claim());
  }

  /// Goes on at once where nothing has to be waited for.
  [[nodiscard]] bool await_ready() {
    turn_ = call_.new_turn();
    return call_.begin_if_ready(turn_.key());
  }
  void await_suspend(std::coroutine_handle<> waiting) {
    state_ = std::make_shared<suspended>(waiting);
    // Nothing of this object is touched once it has begun: the coroutine may go on, on another thread.
    const turn_key key = turn_.key();
    const Call call = call_;
    if constexpr (std::same_as<Where, own_thread>) {
      call.begin(key, wait_completion(resume_there<boost::asio::any_io_executor>{state_, call.own_thread()}));
    } else if constexpr (asio_executor<Where>) {
      call.begin(key, wait_completion(resume_there<Where>{state_, where_}));
    } else {
      call.begin(key, wait_completion(resume_by<Where>{state_, where_}, call.executor()));
    }
  }
  typename Call::result await_resume() {
    if (state_ != nullptr && state_->failure != nullptr) {
      turn_.forget();
      std::rethrow_exception(std::exchange(state_->failure, nullptr));
    }
    if constexpr (std::is_void_v<typename Call::result>) {
      turn_.give_up();
    } else {
      std::exception_ptr failure;
      typename Call::result got = turn_.take(failure);
      if (failure != nullptr) std::rethrow_exception(std::move(failure));
      return got;
    }
  }

 private:
  Call call_;
  Where where_;
  typename Call::turn turn_;
  std::shared_ptr<suspended> state_;
};

/// An operation with the place where its coroutine goes on.
template <class Call, class Where>
class resumed_operation {
 public:
  resumed_operation(Call call, Where where) : call_(std::move(call)), where_(std::move(where)) {}
  [[nodiscard]] auto operator co_await() const { return call_awaiter<Call, Where>(call_, where_); }

 private:
  Call call_;
  Where where_;
};

}  // namespace detail

/// An operation that begins when it is awaited, or called with a completion token. What it waits for is taken when its
/// caller runs again, and not before: no cancellation, of whatever kind and at whatever moment, loses a batch.
///
///     co_await train.next();                            // any coroutine: of Asio, of your own, of stdexec and others
///     co_await train.next().resume_on(my_executor);     // goes on there: an executor or context of Asio
///     co_await train.next().resume_on([&](std::coroutine_handle<> h) { my_loop.post(h); });
///     train.next(token);                                // any completion token of Asio
///
/// Awaited by a coroutine of Asio it is what asio::deferred gives, and completes on the coroutine's executor, whose context has to outlive
/// the loader: a thread of the loader still holds it when the coroutine goes on. A coroutine of
/// another kind goes on at once if nothing has to be waited for. Else it goes on, without resume_on(), on a thread that
/// the loader has for this alone: it may block there, and may end the loader. The function that resume_on() gets runs on
/// an I/O thread, and must not block.
///
/// A coroutine that is destroyed while it waits has taken nothing.
template <class Call>
class [[nodiscard]] operation {
 public:
  explicit operation(Call call) : call_(std::move(call)) {}

  template <class Token>
  auto operator()(Token&& token) const
      -> decltype(boost::asio::async_initiate<Token, typename Call::signature>(detail::initiate_call{}, token,
                                                                               std::declval<const Call&>())) {
    return boost::asio::async_initiate<Token, typename Call::signature>(detail::initiate_call{}, token, call_);
  }

  [[nodiscard]] auto operator co_await() const { return detail::call_awaiter<Call, detail::own_thread>(call_, {}); }

  template <class Where>
    requires detail::asio_executor<std::remove_cvref_t<Where>> || std::invocable<Where&, std::coroutine_handle<>>
  [[nodiscard]] auto resume_on(Where&& where) const {
    return detail::resumed_operation<Call, std::remove_cvref_t<Where>>(call_, std::forward<Where>(where));
  }
  template <detail::asio_context Context>
  [[nodiscard]] auto resume_on(Context& context) const {
    return resume_on(context.get_executor());
  }

 private:
  Call call_;
};

}  // namespace leat
#pragma GCC visibility pop

template <template <class, class> class Associator, class Handler, class Call, class Default>
struct boost::asio::associator<Associator, leat::detail::turn_handler<Handler, Call>, Default>
    : Associator<Handler, Default> {
  static typename Associator<Handler, Default>::type get(
      const leat::detail::turn_handler<Handler, Call>& handler) noexcept {
    return Associator<Handler, Default>::get(handler.inner());
  }
  static auto get(const leat::detail::turn_handler<Handler, Call>& handler, const Default& otherwise) noexcept
      -> decltype(Associator<Handler, Default>::get(handler.inner(), otherwise)) {
    return Associator<Handler, Default>::get(handler.inner(), otherwise);
  }
};
