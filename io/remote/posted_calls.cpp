#include "io/remote/posted_calls.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace leat::io {
namespace {

namespace asio = boost::asio;

int new_bell() {
  const int made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (made < 0) throw boost::system::system_error(errno, boost::system::system_category(), "eventfd");
  return made;
}

}  // namespace

posted_calls::posted_calls(asio::io_context& context) : bell_(context) {
  const int made = new_bell();
  boost::system::error_code refused;
  bell_.assign(made, refused);
  if (!refused) return;
  ::close(made);
  throw boost::system::system_error(refused, "epoll_ctl");
}

void posted_calls::post(call what) {
  {
    const mutex_lock lock(mutex_);
    calls_.push_back(std::move(what));
    if (calls_.size() > 1) return;  // it has been rung
  }
  static_cast<void>(::eventfd_write(bell_.native_handle(), 1));
}

asio::awaitable<void> posted_calls::run() {
  for (;;) {
    const auto [failure] =
        co_await bell_.async_wait(asio::posix::stream_descriptor::wait_read, asio::as_tuple(asio::use_awaitable));
    if (failure) co_return;
    eventfd_t rung = 0;
    static_cast<void>(::eventfd_read(bell_.native_handle(), &rung));
    std::vector<call> now;
    {
      const mutex_lock lock(mutex_);
      now.swap(calls_);
    }
    for (call& each : now) each();
  }
}

}  // namespace leat::io
