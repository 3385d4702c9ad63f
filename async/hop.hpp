// Crossing to other threads. An idle crossing costs 7 us (the wake-up), so it is done once per sample or batch.
#pragma once

#include "async/error.hpp"

#include <leat/completion.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace leat::async {

namespace detail {

/// What run_on() posts. Destroyed without having run, because the executor's context was stopped, it wakes the coroutine
/// with an error: a coroutine that nobody resumes is one whose parent joins for ever.
template <class Call>
class call_elsewhere {
 public:
  call_elsewhere(Call& call, std::exception_ptr& thrown, completion<void()> done)
      : call_(&call), thrown_(&thrown), done_(std::move(done)) {}
  call_elsewhere(call_elsewhere&&) = default;
  call_elsewhere& operator=(call_elsewhere&&) = delete;
  ~call_elsewhere() {
    if (!done_) return;
    *thrown_ = std::make_exception_ptr(
        boost::system::system_error(async_errc::closed, "the executor was stopped before it ran what it was given"));
    done_.complete();
  }
  void operator()() {
    try {
      (*call_)();
    } catch (...) {
      *thrown_ = std::current_exception();
    }
    done_.complete();
  }

 private:
  Call* call_;
  std::exception_ptr* thrown_;
  completion<void()> done_;
};

}  // namespace detail

/// Runs `function` on `executor` while the coroutine waits; the coroutine itself stays where it is.
///
///     auto listing = co_await run_on(pool.get_executor(), [path] { return list_directory(path); });
///
///   function       called once; it and its captures live in the coroutine's frame until it has returned
///   returns        what the function returns
///   throws         what the function throws; async_errc::closed if the executor was stopped before
///   cancellation   none: waits until the function has returned, as there is no way to stop it
template <class Executor, class Function>
asio::awaitable<std::invoke_result_t<Function&>> run_on(Executor executor, Function function) {
  using result = std::invoke_result_t<Function&>;
  constexpr bool returns_nothing = std::is_void_v<result>;
  std::optional<std::conditional_t<returns_nothing, std::monostate, result>> value;
  std::exception_ptr thrown;
  auto call = [&function, &value] {
    if constexpr (returns_nothing) {
      function();
      value.emplace();
    } else {
      value.emplace(function());
    }
  };
  auto initiate = [&](auto handler) {
    detail::call_elsewhere<decltype(call)> posted(call, thrown, completion<void()>(std::move(handler)));
    asio::post(executor, std::move(posted));
  };
  co_await asio::async_initiate<const asio::deferred_t&, void()>(std::move(initiate), asio::deferred);
  if (thrown) std::rethrow_exception(std::move(thrown));
  if constexpr (!returns_nothing) co_return std::move(*value);
}

/// `co_await resume_on(executor)`: the coroutine goes on on a thread of `executor`.
///
/// Until its next asynchronous operation, that is: what it awaits then resumes it on its own executor again, the one it
/// was spawned on. And while it is away it must not be cancelled: Asio's cancellation state belongs to the coroutine's
/// own executor, so a cancel from there would race with it. For work on other threads take run_on().
template <class Executor>
[[nodiscard]] auto resume_on(Executor executor) {
  return asio::post(asio::bind_executor(std::move(executor), asio::deferred));
}

}  // namespace leat::async
