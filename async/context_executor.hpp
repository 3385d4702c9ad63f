// The Asio executor that our execution contexts (loop, thread_pool) share.
#pragma once

#include <boost/asio/execution.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace leat::async {

namespace asio = boost::asio;

/// Runs functions on `Context`: inline on a thread of the context where blocking.possibly allows it (dispatch), posted
/// otherwise. Converts to asio::any_io_executor. It refers to the context and must not be used after it.
///
/// A Context has running_in_this_thread(), post_function(F&&), work_started() and work_finished().
template <class Context>
class context_executor {
 public:
  explicit context_executor(Context& owner) noexcept : context_executor(owner, false, false) {}
  context_executor(const context_executor& other) noexcept
      : context_executor(*other.context_, other.blocking_never_, other.tracked_) {}
  context_executor(context_executor&& other) noexcept
      : context_(other.context_),
        blocking_never_(other.blocking_never_),
        tracked_(std::exchange(other.tracked_, false)) {}
  context_executor& operator=(context_executor other) noexcept {
    std::swap(context_, other.context_);
    std::swap(blocking_never_, other.blocking_never_);
    std::swap(tracked_, other.tracked_);
    return *this;
  }
  ~context_executor() {
    if (tracked_) context_->work_finished();
  }

  [[nodiscard]] Context& context() const noexcept { return *context_; }
  [[nodiscard]] bool running_in_this_thread() const noexcept { return context_->running_in_this_thread(); }

  template <class Function>
  void execute(Function&& function) const {
    if (!blocking_never_ && context_->running_in_this_thread()) {
      std::decay_t<Function> local(std::forward<Function>(function));
      std::move(local)();
    } else {
      context_->post_function(std::decay_t<Function>(std::forward<Function>(function)));
    }
  }

  // The properties Asio asks about. Relationship and allocator have one answer only: whatever is asked for.
  [[nodiscard]] context_executor require(asio::execution::blocking_t::possibly_t) const noexcept {
    return {*context_, false, tracked_};
  }
  [[nodiscard]] context_executor require(asio::execution::blocking_t::never_t) const noexcept {
    return {*context_, true, tracked_};
  }
  [[nodiscard]] context_executor require(asio::execution::relationship_t::fork_t) const noexcept { return *this; }
  [[nodiscard]] context_executor require(asio::execution::relationship_t::continuation_t) const noexcept {
    return *this;
  }
  [[nodiscard]] context_executor require(asio::execution::outstanding_work_t::tracked_t) const noexcept {
    return {*context_, blocking_never_, true};
  }
  [[nodiscard]] context_executor require(asio::execution::outstanding_work_t::untracked_t) const noexcept {
    return {*context_, blocking_never_, false};
  }

  [[nodiscard]] static constexpr asio::execution::mapping_t query(asio::execution::mapping_t) noexcept {
    return asio::execution::mapping.thread;
  }
  [[nodiscard]] Context& query(asio::execution::context_t) const noexcept { return *context_; }
  [[nodiscard]] asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept {
    return blocking_never_ ? asio::execution::blocking_t(asio::execution::blocking.never)
                           : asio::execution::blocking_t(asio::execution::blocking.possibly);
  }
  [[nodiscard]] asio::execution::relationship_t query(asio::execution::relationship_t) const noexcept {
    return asio::execution::relationship.fork;
  }
  [[nodiscard]] asio::execution::outstanding_work_t query(asio::execution::outstanding_work_t) const noexcept {
    return tracked_ ? asio::execution::outstanding_work_t(asio::execution::outstanding_work.tracked)
                    : asio::execution::outstanding_work_t(asio::execution::outstanding_work.untracked);
  }
  [[nodiscard]] std::allocator<void> query(asio::execution::allocator_t<void>) const noexcept { return {}; }

  friend bool operator==(const context_executor& a, const context_executor& b) noexcept {
    return a.context_ == b.context_ && a.blocking_never_ == b.blocking_never_ && a.tracked_ == b.tracked_;
  }
  friend bool operator!=(const context_executor& a, const context_executor& b) noexcept { return !(a == b); }

 private:
  context_executor(Context& owner, bool blocking_never, bool tracked) noexcept
      : context_(&owner), blocking_never_(blocking_never), tracked_(tracked) {
    if (tracked_) context_->work_started();
  }

  Context* context_;
  bool blocking_never_;
  bool tracked_;
};

}  // namespace leat::async
