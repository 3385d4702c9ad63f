#include "async/scope.hpp"

#include "async/error.hpp"

#include <leat/error.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>

namespace leat::async {
namespace {

bool says_cancelled(const std::exception_ptr& thrown) noexcept {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& failed) {
    return failed.code() == asio::error::operation_aborted;
  } catch (const leat::error& failed) {
    return failed.code() == errc::cancelled;
  } catch (...) {
    return false;
  }
}

/// Puts a suspension before the first step of a child. A coroutine of Boost 1.81's that is cancelled and ends before it
/// was ever suspended throws out of co_spawn() instead of into its handler: its last co_await, there to make the end
/// asynchronous, throws once more.
asio::awaitable<void> start_later(asio::awaitable<void> body) {
  co_await asio::post(asio::deferred);
  co_await std::move(body);
}

}  // namespace

/// A running child. Shared by the scope's list, the coroutine's end and a cancel on its way to another executor.
///
/// Its signal is emitted on the child's own executor only, where Asio wants it. (co_spawn can carry a cancel to another
/// executor by itself, but in Boost 1.81 that cancel refers to a signal which the end of the coroutine may have freed.)
struct scope::child : list_hook {
  child(scope& spawned_in, const asio::any_io_executor& on, role has) : owner(&spawned_in), executor(on), what(has) {}

  scope* owner;  // null when the scope was destroyed with its execution context
  asio::any_io_executor executor;
  asio::cancellation_signal signal;
  role what;
  bool to_cancel = false;  // which of the scope's lists it is in
  bool running = true;     // child's executor
  std::atomic<int> holders{1};

  class held {
   public:
    explicit held(child& one) noexcept : one_(&one) { one.holders.fetch_add(1, std::memory_order_relaxed); }
    held(held&& other) noexcept : one_(std::exchange(other.one_, nullptr)) {}
    held& operator=(held&&) = delete;
    ~held() {
      if (one_ != nullptr && one_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete one_;
    }
    child* operator->() const noexcept { return one_; }
    child& operator*() const noexcept { return *one_; }
    explicit operator bool() const noexcept { return one_ != nullptr; }

   private:
    child* one_;
  };
};

/// Brings a child's end to the scope's executor.
class scope::news {
 public:
  news(child::held&& one, std::exception_ptr&& thrown) noexcept : child_(std::move(one)), thrown_(std::move(thrown)) {}
  news(news&&) = default;
  news& operator=(news&&) = delete;
  ~news() {
    // Unread: the scope's own context is being destroyed. Whoever joins us is held by us, so we must let go.
    if (child_ && child_->owner != nullptr) child_->owner->lost(*child_);
  }
  void operator()() {
    const child::held one(std::move(child_));
    if (one->owner != nullptr) one->owner->ended(*one, std::move(thrown_));
  }

 private:
  child::held child_;
  std::exception_ptr thrown_;
};

/// The completion handler of the coroutine of a child. It has no executor of its own and so runs on the child's. When it
/// is destroyed without being called, because a pool was stopped under the coroutine, that is the child's end, too.
class scope::child_end {
 public:
  using cancellation_slot_type = asio::cancellation_slot;

  explicit child_end(child& one) : child_(one), back_(one.owner->executor_) {}
  child_end(child_end&& other) = default;
  child_end& operator=(child_end&&) = delete;
  ~child_end() {
    if (!child_) return;
    auto lost = std::make_exception_ptr(boost::system::system_error(
        async_errc::closed, "the executor of a coroutine was stopped before the coroutine had ended"));
    send_back(std::move(lost));
  }

  [[nodiscard]] cancellation_slot_type get_cancellation_slot() const noexcept { return child_->signal.slot(); }

  void operator()(std::exception_ptr thrown) {
    child_->running = false;
    if (child_->what == role::child_elsewhere) {
      send_back(std::move(thrown));
    } else {
      const child::held one(std::move(child_));
      if (one->owner != nullptr) one->owner->ended(*one, std::move(thrown));
    }
  }

 private:
  void send_back(std::exception_ptr thrown) { asio::post(back_, news(std::move(child_), std::move(thrown))); }

  child::held child_;
  asio::any_io_executor back_;
};

scope::~scope() {
  // Not empty only when the whole coroutine is destroyed, with its execution context: with_scope() joins otherwise.
  for (intrusive_list<child>* list : {&children_, &to_cancel_}) {
    while (!list->empty()) {
      child& orphan = list->pop_front();
      orphan.owner = nullptr;
      const child::held last(orphan);
      orphan.holders.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void scope::start(const asio::any_io_executor& executor, asio::awaitable<void> body, role what) {
  auto* const started = new child(*this, executor, what);
  children_.push_back(*started);
  const child::held one(*started);
  asio::co_spawn(executor, start_later(std::move(body)), child_end(*started));
  if (cancelled_) cancel(*started);
}

void scope::cancel() noexcept {
  if (cancelled_) return;
  cancelled_ = true;
  // A cancelled child might, in theory, end or spawn while being told, and so change the list under an iterator.
  while (!children_.empty()) {
    child& next = children_.pop_front();
    next.to_cancel = true;
    to_cancel_.push_back(next);
  }
  while (!to_cancel_.empty()) {
    child& next = to_cancel_.pop_front();
    next.to_cancel = false;
    children_.push_back(next);
    cancel(next);
  }
}

void scope::cancel(child& one) noexcept {
  child::held kept(one);
  if (one.what == role::child_elsewhere) {
    asio::post(one.executor, [c = std::move(kept)] {
      if (c->running) c->signal.emit(asio::cancellation_type::all);
    });
  } else if (one.running) {
    one.signal.emit(asio::cancellation_type::all);
  }
}

void scope::ended(child& one, std::exception_ptr thrown) noexcept {
  (one.to_cancel ? to_cancel_ : children_).remove(one);
  one.holders.fetch_sub(1, std::memory_order_relaxed);  // the caller holds it, too
  if (thrown) {
    const bool aborted = says_cancelled(thrown);
    const bool expected = aborted && cancelled_ && !parent_cancelled_ && one.what != role::body;
    if (!expected && (!first_thrown_ || (!aborted && says_cancelled(first_thrown_)))) {
      first_thrown_ = std::move(thrown);
    }
    if (!expected) cancel();
  }
  if (size() == 0 && joined_) joined_.complete();
}

void scope::lost(child& one) noexcept {
  (one.to_cancel ? to_cancel_ : children_).remove(one);
  one.owner = nullptr;
  one.holders.fetch_sub(1, std::memory_order_relaxed);  // the caller holds it, too
  // Destroys the coroutine that awaits the scope, and the scope with it.
  if (size() == 0) const completion<void()> dropped(std::move(joined_));
}

void scope::start_join(completion<void()> done) {
  joined_ = std::move(done);
  joined_.on_cancel([this](asio::cancellation_type) {
    parent_cancelled_ = true;
    cancel();
  });
}

asio::awaitable<void> scope::join() {
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) {
    parent_cancelled_ = true;
    cancel();
  }
  if (size() != 0) {
    // Even in a cancelled coroutine: the children must be waited for.
    co_await asio::this_coro::throw_if_cancelled(false);
    auto initiate = [this](auto handler) { start_join(completion<void()>(std::move(handler))); };
    co_await asio::async_initiate<const asio::deferred_t&, void()>(std::move(initiate), asio::deferred);
    co_await asio::this_coro::throw_if_cancelled(throws);
  }
  if (first_thrown_) std::rethrow_exception(std::move(first_thrown_));
}

}  // namespace leat::async
