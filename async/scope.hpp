// Structured concurrency: coroutines that run side by side and are joined on every path out.
#pragma once

#include "base/intrusive_list.hpp"

#include <leat/completion.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace leat::async {

/// The children of one with_scope(). They are asked to stop when one of them fails, when the scope's body fails, when the
/// coroutine that awaits the scope is cancelled, or by cancel(); and waited for in any case.
///
/// All members are called on the scope's executor, by the body and by the children that run there.
class scope {
 public:
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  ~scope();

  /// Starts `body` on the scope's executor: by post, so none of it runs inside spawn(). Cancelled before that, or spawned
  /// into a cancelled scope, it never begins.
  void spawn(asio::awaitable<void> body) { start(executor_, std::move(body), role::child); }

  /// Starts `body` on `executor`, through a strand, so that it may be a pool's. An error still arrives here.
  template <class Executor>
  void spawn_on(const Executor& executor, asio::awaitable<void> body) {
    start(asio::make_strand(executor), std::move(body), role::child_elsewhere);
  }

  /// Asks all children, and the body, to stop: "the rest is not needed". A child that then ends as cancelled is no
  /// error of the scope's; a body that does is, as its result is missing.
  void cancel() noexcept;

  [[nodiscard]] bool cancelled() const noexcept { return cancelled_; }
  /// Children that have not ended, the body among them.
  [[nodiscard]] std::size_t size() const noexcept { return children_.size() + to_cancel_.size(); }
  [[nodiscard]] const asio::any_io_executor& get_executor() const noexcept { return executor_; }

 private:
  enum class role { body, child, child_elsewhere };
  struct child;
  class child_end;
  class news;
  template <class Body>
  friend auto with_scope(Body body) -> asio::awaitable<typename std::invoke_result_t<Body&, scope&>::value_type>;

  explicit scope(asio::any_io_executor executor) noexcept : executor_(std::move(executor)) {}

  void start(const asio::any_io_executor& executor, asio::awaitable<void> body, role what);
  void cancel(child& one) noexcept;
  void ended(child& one, std::exception_ptr thrown) noexcept;
  void lost(child& one) noexcept;
  void start_join(completion<void()> done);
  /// Waits for all, whatever happens, and throws what failed first.
  [[nodiscard]] asio::awaitable<void> join();

  asio::any_io_executor executor_;
  intrusive_list<child> children_;
  intrusive_list<child> to_cancel_;  // during cancel(): those not asked yet
  std::exception_ptr first_thrown_;
  completion<void()> joined_;
  bool cancelled_ = false;
  bool parent_cancelled_ = false;
};

/// Runs `body(scope)` and the children it spawns, and returns when all of them have ended.
///
///     co_await with_scope([&](scope& s) -> asio::awaitable<void> {
///       s.spawn(read_shard(first));
///       s.spawn(read_shard(second));
///       co_return;
///     });
///
///   body           a function object that returns a coroutine; it is kept until the scope has ended, so its captures
///                  may be used inside
///   returns        what the body returns
///   throws         the first exception of body or children; it cancels the others, whose exceptions are dropped (but an
///                  error is worth more than an operation_aborted that came before it)
///   cancellation   of the awaiting coroutine, of whatever type it lets through, is passed on to body and children as
///                  cancellation_type::all; they are waited for, and if they all end well the scope does, too
///   executor       that of the awaiting coroutine, which must run one thing at a time: a loop, an io_context run by
///                  one thread, a strand
template <class Body>
auto with_scope(Body body) -> asio::awaitable<typename std::invoke_result_t<Body&, scope&>::value_type> {
  using result = typename std::invoke_result_t<Body&, scope&>::value_type;
  constexpr bool returns_nothing = std::is_void_v<result>;
  std::optional<std::conditional_t<returns_nothing, std::monostate, result>> value;
  scope children(co_await asio::this_coro::executor);
  // The body is the first child, so that a child's failure cancels it like any other.
  auto run_body = [](Body& called, scope& s, decltype(value)& into) -> asio::awaitable<void> {
    if constexpr (returns_nothing) {
      co_await called(s);
      into.emplace();
    } else {
      into.emplace(co_await called(s));
    }
  };
  children.start(children.executor_, run_body(body, children, value), scope::role::body);
  co_await children.join();
  if constexpr (!returns_nothing) co_return std::move(*value);
}

}  // namespace leat::async
