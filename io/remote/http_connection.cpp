#include "io/remote/http_connection.hpp"

#include "base/text.hpp"
#include "io/remote/answers.hpp"
#include "io/remote/connect.hpp"
#include "io/remote/http_head.hpp"
#include "io/remote/ran_clock.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace leat::io {
namespace {

namespace asio = boost::asio;

constexpr std::size_t head_read_bytes = std::size_t{4} << 10;
// Bytes of a body that are waited for before they are read: the system's calls cost as much as the bytes do.
constexpr std::size_t low_water_max = std::size_t{256} << 10;

boost::system::error_code last_error() { return {errno, boost::system::system_category()}; }

bool is_interim(std::string_view head) { return head.starts_with("HTTP/1.1 1") && !head.starts_with("HTTP/1.1 101"); }

}  // namespace

asio::awaitable<http_connection::outcome> http_connection::read_some(asio::mutable_buffer into, bool is_answered) {
  if (tls) co_return co_await tls->read_some(into, is_answered);
  for (bool waits = !is_answered;; waits = true) {
    if (waits) {
      const auto [failure] = co_await socket.async_wait(asio::ip::tcp::socket::wait_read, answers);
      if (failure) co_return outcome(failure, 0);
    }
    const ssize_t bytes = ::recv(socket.native_handle(), into.data(), into.size(), MSG_DONTWAIT);
    if (bytes > 0) co_return outcome(error_code(), static_cast<std::size_t>(bytes));
    if (bytes == 0) co_return outcome(asio::error::eof, 0);
    if (errno != EAGAIN && errno != EINTR) co_return outcome(last_error(), 0);
  }
}

std::size_t http_connection::send_now(std::string_view all, error_code& failure) {
  if (tls) return 0;
  const ssize_t bytes = ::send(socket.native_handle(), all.data(), all.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (bytes >= 0) return static_cast<std::size_t>(bytes);
  if (errno != EAGAIN && errno != EINTR) failure = last_error();
  return 0;
}

asio::awaitable<boost::system::error_code> http_connection::write(std::string_view all) {
  if (tls) co_return co_await tls->write(all);
  const auto [failure, bytes] = co_await asio::async_write(socket, asio::buffer(all), answers);
  co_return failure;
}

asio::awaitable<http_connection::head_outcome> http_connection::ask(const std::string& request, std::uint64_t bytes) {
  asked_ns = silent_since_ns = ran_ns();
  asked_bytes = bytes;
  wake_at(1);
  error_code failure;
  const std::size_t sent = send_now(request, failure);
  if (!failure && sent < request.size()) failure = co_await write(std::string_view(request).substr(sent));
  std::optional<std::size_t> end;
  received.clear();
  while (!failure && !end) {
    const std::size_t before = received.size();
    if (before >= http_head_bytes_max) break;
    received.resize(before + std::min(std::max(before, head_read_bytes), http_head_bytes_max - before));
    const auto [broken, bytes_more] =
        co_await read_some(asio::buffer(received.data() + before, received.size() - before), before > 0);
    received.resize(before + bytes_more);
    silent_since_ns = ran_ns();
    end = http_head_end(received, before);
    failure = broken;
    // RFC 9110 15.2: any number of answers that are not the answer may come first.
    while (end && is_interim(received)) {
      received.erase(0, *end);
      end = http_head_end(received);
    }
  }
  co_return head_outcome(failure, end);
}

void http_connection::wake_at(std::size_t bytes) {
  if (tls) bytes -= std::min(bytes, tls_session::read_ahead_bytes);
  const int wanted = static_cast<int>(std::clamp(bytes, std::size_t{1}, low_water_max));
  if (wanted == low_water) return;
  low_water = wanted;
  static_cast<void>(::setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof wanted));
}

void http_connection::close() {
  error_code ignored;
  socket.close(ignored);
  if (opening != nullptr) opening->stop();
  is_closed = true;
}

std::string http_connection::words_of(const error_code& failure, std::string_view when) const {
  if (is_late) return str_cat("no answer in time ", when);
  if (failure == asio::error::eof) return str_cat("the server closed the connection ", when);
  return str_cat(failure.message(), " ", when);
}

}  // namespace leat::io
