// A bounded queue between coroutines on any threads: who sends into a full one waits, who receives from an empty one
// waits.
#pragma once

#include "async/error.hpp"
#include "async/intrusive_list.hpp"
#include "async/mutex.hpp"

#include <leat/completion.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>

#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace leat::async {

/// A bounded channel, many to many, first in first out; senders and receivers that wait are served in the order they
/// came. With capacity 0 a sender waits for its receiver.
///
///   threads        any thread may call anything; operations resume on their handler's associated executor, by post
///   close()        ends sending: waiting and later sends fail with async_errc::closed. What is inside is still
///                  received; then receive() gives nullopt
///   cancellation   total, and no element is lost: send() takes the caller's element by reference and moves it away
///                  exactly when it succeeds; a receive() that was given an element succeeds, whatever comes later
///   lifetime       until all its operations have completed; destroying it with somebody waiting is a bug
///   Element        its moves do not throw: they happen under the channel's lock
template <class Element>
class channel {
  static_assert(std::is_nothrow_move_constructible_v<Element> && std::is_nothrow_move_assignable_v<Element>);

 public:
  using error_code = boost::system::error_code;

  explicit channel(std::size_t capacity) : ring_(capacity) {}
  ~channel() {
    const mutex_lock lock(mutex_);
    assert(senders_.empty() && receivers_.empty() && "close() the channel and join its users before destroying it");
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;

  /// Sends `element`, void(error_code).
  ///   element   stays the caller's, alive and untouched, until completion; moved from only on success
  template <class Token>
  auto send(Element& element, Token&& token) {
    return asio::async_initiate<Token, void(error_code)>(
        [this](auto handler, Element* sending) {
          start_send(*sending, completion<void(error_code)>(std::move(handler)));
        },
        token, &element);
  }

  /// As above, without suspending where there is room. Throws boost::system::system_error.
  [[nodiscard]] asio::awaitable<void> send(Element& element) {
    const bool sent = try_send(element);
    if (!sent) co_await send(element, asio::deferred);
  }

  /// Receives the oldest element, void(error_code, std::optional<Element>); nullopt, without an error, once the channel
  /// is closed and empty.
  template <class Token>
  auto receive(Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::optional<Element>)>(
        [this](auto handler) {
          start_receive(completion<void(error_code, std::optional<Element>)>(std::move(handler)));
        },
        token);
  }

  /// As above, without suspending where an element is there. Throws boost::system::system_error.
  [[nodiscard]] asio::awaitable<std::optional<Element>> receive() {
    std::optional<Element> element = try_receive();
    if (!element) element = co_await receive(asio::deferred);
    co_return element;
  }

  /// Sends if that needs no waiting; else leaves `element` as it is and returns false.
  [[nodiscard]] bool try_send(Element& element) noexcept;
  /// Receives if that needs no waiting.
  [[nodiscard]] std::optional<Element> try_receive() noexcept;

  void close() noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept { return ring_.size(); }
  [[nodiscard]] std::size_t size() const noexcept {
    const mutex_lock lock(mutex_);
    return size_;
  }
  [[nodiscard]] bool closed() const noexcept {
    const mutex_lock lock(mutex_);
    return closed_;
  }

 private:
  // `waiting` is guarded by the mutex; linked() would not do, as close() has lists of its own.
  struct sender : list_hook {
    sender(Element& sending, completion<void(error_code)>&& handler) : element(&sending), done(std::move(handler)) {}
    Element* element;
    completion<void(error_code)> done;
    bool waiting = true;
  };
  struct receiver : list_hook {
    explicit receiver(completion<void(error_code, std::optional<Element>)>&& handler) : done(std::move(handler)) {}
    std::optional<Element> element;
    completion<void(error_code, std::optional<Element>)> done;
    bool waiting = true;
  };

  void start_send(Element& element, completion<void(error_code)> done);
  void start_receive(completion<void(error_code, std::optional<Element>)> done);

  // Both give back the one whose waiting this ended, to be completed after the lock is released.
  [[nodiscard]] bool put(Element& element, std::unique_ptr<receiver>& served) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::optional<Element> take(std::unique_ptr<sender>& served) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Takes one who waits out of its list, to be completed and freed by the caller.
  template <class Waiter>
  [[nodiscard]] static std::unique_ptr<Waiter> take_out(intrusive_list<Waiter>& list, Waiter& one) noexcept {
    list.remove(one);
    one.waiting = false;
    return std::unique_ptr<Waiter>(&one);
  }
  void cancel_send(sender& waiting) noexcept;
  void cancel_receive(receiver& waiting) noexcept;

  mutable mutex mutex_;
  std::vector<std::optional<Element>> ring_;  // the vector itself never changes
  std::size_t oldest_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  intrusive_list<sender> senders_ ABSL_GUARDED_BY(mutex_);
  intrusive_list<receiver> receivers_ ABSL_GUARDED_BY(mutex_);
};

template <class Element>
bool channel<Element>::put(Element& element, std::unique_ptr<receiver>& served) noexcept {
  if (closed_) return false;
  if (!receivers_.empty()) {
    served = take_out(receivers_, receivers_.front());
    served->element.emplace(std::move(element));
    return true;
  }
  if (size_ == ring_.size()) return false;
  ring_[(oldest_ + size_) % ring_.size()].emplace(std::move(element));
  ++size_;
  return true;
}

template <class Element>
std::optional<Element> channel<Element>::take(std::unique_ptr<sender>& served) noexcept {
  std::optional<Element> element;
  if (size_ != 0) {
    element = std::exchange(ring_[oldest_], std::nullopt);
    oldest_ = (oldest_ + 1) % ring_.size();
    --size_;
    if (!senders_.empty()) {  // there is room for the first who waits
      served = take_out(senders_, senders_.front());
      ring_[(oldest_ + size_) % ring_.size()].emplace(std::move(*served->element));
      ++size_;
    }
  } else if (!senders_.empty()) {  // capacity 0
    served = take_out(senders_, senders_.front());
    element.emplace(std::move(*served->element));
  }
  return element;
}

template <class Element>
bool channel<Element>::try_send(Element& element) noexcept {
  std::unique_ptr<receiver> served;
  bool sent = false;
  {
    const mutex_lock lock(mutex_);
    sent = put(element, served);
  }
  if (served) served->done.complete({}, std::move(served->element));
  return sent;
}

template <class Element>
std::optional<Element> channel<Element>::try_receive() noexcept {
  std::unique_ptr<sender> served;
  std::optional<Element> element;
  {
    const mutex_lock lock(mutex_);
    element = take(served);
  }
  if (served) served->done.complete({});
  return element;
}

template <class Element>
void channel<Element>::start_send(Element& element, completion<void(error_code)> done) {
  std::unique_ptr<receiver> served;
  error_code result;
  {
    const mutex_lock lock(mutex_);
    if (closed_) {
      result = async_errc::closed;
    } else if (!put(element, served)) {
      auto waiting = std::make_unique<sender>(element, std::move(done));
      waiting->done.on_cancel([this, w = waiting.get()](asio::cancellation_type) { cancel_send(*w); });
      senders_.push_back(*waiting.release());
      return;
    }
  }
  if (served) served->done.complete({}, std::move(served->element));
  done.complete(result);
}

template <class Element>
void channel<Element>::start_receive(completion<void(error_code, std::optional<Element>)> done) {
  std::unique_ptr<sender> served;
  std::optional<Element> element;
  {
    const mutex_lock lock(mutex_);
    element = take(served);
    if (!element && !closed_) {
      auto waiting = std::make_unique<receiver>(std::move(done));
      waiting->done.on_cancel([this, w = waiting.get()](asio::cancellation_type) { cancel_receive(*w); });
      receivers_.push_back(*waiting.release());
      return;
    }
  }
  if (served) served->done.complete({});
  done.complete({}, std::move(element));
}

template <class Element>
void channel<Element>::cancel_send(sender& waiting) noexcept {
  std::unique_ptr<sender> cancelled;
  {
    const mutex_lock lock(mutex_);
    // If it was served on another thread, that thread waits in complete() for us to return.
    if (waiting.waiting) cancelled = take_out(senders_, waiting);
  }
  if (cancelled) cancelled->done.complete(asio::error::operation_aborted);
}

template <class Element>
void channel<Element>::cancel_receive(receiver& waiting) noexcept {
  std::unique_ptr<receiver> cancelled;
  {
    const mutex_lock lock(mutex_);
    if (waiting.waiting) cancelled = take_out(receivers_, waiting);
  }
  if (cancelled) cancelled->done.complete(asio::error::operation_aborted, std::nullopt);
}

template <class Element>
void channel<Element>::close() noexcept {
  intrusive_list<sender> failed;
  intrusive_list<receiver> ended;
  {
    const mutex_lock lock(mutex_);
    closed_ = true;
    while (!senders_.empty()) failed.push_back(*take_out(senders_, senders_.front()).release());
    while (!receivers_.empty()) ended.push_back(*take_out(receivers_, receivers_.front()).release());
  }
  while (!failed.empty()) {
    const std::unique_ptr<sender> next(&failed.pop_front());
    next->done.complete(async_errc::closed);
  }
  while (!ended.empty()) {
    const std::unique_ptr<receiver> next(&ended.pop_front());
    next->done.complete({}, std::nullopt);
  }
}

}  // namespace leat::async
