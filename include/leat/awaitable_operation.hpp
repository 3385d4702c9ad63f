// Lets Boost 1.81 (Debian 12) await our operations directly, as in `co_await train.next()`.
#pragma once

#include <leat/compiler.hpp>

#include <boost/asio/detail/config.hpp>
#include <boost/asio/version.hpp>

#include <exception>
#include <utility>

namespace leat::detail {

/// What an operation of ours completes with, beside the std::exception_ptr.
template <class T>
inline constexpr bool is_delivered = false;

}  // namespace leat::detail

// Boost 1.81's own class for the signature void(std::exception_ptr, T) does not compile once it is used: resume() says
// `*result` where it means `*result.ex_`. This is that class for our T, with the word mended; other versions are left alone.
#if BOOST_ASIO_VERSION == 102600 && defined(BOOST_ASIO_HAS_CO_AWAIT)
namespace boost::asio::detail {

// Of <boost/asio/awaitable.hpp>, which whoever writes a coroutine includes.
template <typename Executor>
class awaitable_thread;
template <typename Signature, typename Executor>
class awaitable_async_op_handler;

template <class T, class Executor>
  requires leat::detail::is_delivered<T>
class awaitable_async_op_handler<void(std::exception_ptr, T), Executor> : public awaitable_thread<Executor> {
 public:
  struct result_type {
    std::exception_ptr* failure;
    T* value;
  };

  awaitable_async_op_handler(awaitable_thread<Executor>* from, result_type& result)
      : awaitable_thread<Executor>(std::move(*from)), result_(result) {}

  void operator()(std::exception_ptr failure, T value) {
    result_.failure = &failure;
    result_.value = &value;
    this->entry_point()->top_of_stack_->attach_thread(this);
    this->entry_point()->top_of_stack_->clear_cancellation_slot();
    this->pump();
  }

  static T resume(result_type& result) {
    if (*result.failure != nullptr) std::rethrow_exception(std::exchange(*result.failure, nullptr));
    return std::move(*result.value);
  }

 private:
  result_type& result_;
};

}  // namespace boost::asio::detail
#endif
