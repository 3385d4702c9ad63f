// The Asio executor that our execution contexts (loop, thread_pool) share.
#pragma once

#include <boost/asio/execution.hpp>

#include <cstdint>
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
  explicit context_executor(Context& owner) noexcept : context_executor(owner, 0) {}
  context_executor(const context_executor& other) noexcept : bits_(other.bits_) {
    if (tracked()) context().work_started();
  }
  context_executor(context_executor&& other) noexcept : bits_(other.bits_) { other.bits_ &= ~tracked_bit; }
  context_executor& operator=(context_executor other) noexcept {
    std::swap(bits_, other.bits_);
    return *this;
  }
  ~context_executor() {
    if (tracked()) context().work_finished();
  }

  [[nodiscard]] Context& context() const noexcept {
    return *reinterpret_cast<Context*>(bits_ & ~(blocking_never_bit | tracked_bit));
  }
  [[nodiscard]] bool running_in_this_thread() const noexcept { return context().running_in_this_thread(); }

  template <class Function>
  void execute(Function&& function) const {
    if (!blocking_never() && context().running_in_this_thread()) {
      std::decay_t<Function> local(std::forward<Function>(function));
      std::move(local)();
    } else {
      context().post_function(std::decay_t<Function>(std::forward<Function>(function)));
    }
  }

  // The properties Asio asks about. Relationship and allocator have one answer only: whatever is asked for.
  [[nodiscard]] context_executor require(asio::execution::blocking_t::possibly_t) const noexcept {
    return {context(), bits_ & tracked_bit};
  }
  [[nodiscard]] context_executor require(asio::execution::blocking_t::never_t) const noexcept {
    return {context(), (bits_ & tracked_bit) | blocking_never_bit};
  }
  [[nodiscard]] context_executor require(asio::execution::relationship_t::fork_t) const noexcept { return *this; }
  [[nodiscard]] context_executor require(asio::execution::relationship_t::continuation_t) const noexcept {
    return *this;
  }
  [[nodiscard]] context_executor require(asio::execution::outstanding_work_t::tracked_t) const noexcept {
    return {context(), (bits_ & blocking_never_bit) | tracked_bit};
  }
  [[nodiscard]] context_executor require(asio::execution::outstanding_work_t::untracked_t) const noexcept {
    return {context(), bits_ & blocking_never_bit};
  }

  [[nodiscard]] static constexpr asio::execution::mapping_t query(asio::execution::mapping_t) noexcept {
    return asio::execution::mapping.thread;
  }
  [[nodiscard]] Context& query(asio::execution::context_t) const noexcept { return context(); }
  [[nodiscard]] asio::execution::blocking_t query(asio::execution::blocking_t) const noexcept {
    return blocking_never() ? asio::execution::blocking_t(asio::execution::blocking.never)
                            : asio::execution::blocking_t(asio::execution::blocking.possibly);
  }
  [[nodiscard]] asio::execution::relationship_t query(asio::execution::relationship_t) const noexcept {
    return asio::execution::relationship.fork;
  }
  [[nodiscard]] asio::execution::outstanding_work_t query(asio::execution::outstanding_work_t) const noexcept {
    return tracked() ? asio::execution::outstanding_work_t(asio::execution::outstanding_work.tracked)
                     : asio::execution::outstanding_work_t(asio::execution::outstanding_work.untracked);
  }
  [[nodiscard]] std::allocator<void> query(asio::execution::allocator_t<void>) const noexcept { return {}; }

  friend bool operator==(const context_executor& a, const context_executor& b) noexcept { return a.bits_ == b.bits_; }
  friend bool operator!=(const context_executor& a, const context_executor& b) noexcept { return a.bits_ != b.bits_; }

 private:
  // One word, so that a strand of it still fits into any_io_executor's small buffer: no allocation, no shared count.
  // (Asio ends that count with a fence, which ThreadSanitizer does not see.)
  static constexpr std::uintptr_t blocking_never_bit = 1;
  static constexpr std::uintptr_t tracked_bit = 2;

  context_executor(Context& owner, std::uintptr_t properties) noexcept
      : bits_(reinterpret_cast<std::uintptr_t>(&owner) | properties) {
    static_assert(alignof(Context) >= 4, "the two lowest bits of its address are used");
    if (tracked()) owner.work_started();
  }

  [[nodiscard]] bool blocking_never() const noexcept { return (bits_ & blocking_never_bit) != 0; }
  [[nodiscard]] bool tracked() const noexcept { return (bits_ & tracked_bit) != 0; }

  std::uintptr_t bits_;
};

}  // namespace leat::async
