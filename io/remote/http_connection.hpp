// One connection to a server: what is sent and received on it, and since when it is silent.
#pragma once

#include "io/remote/address.hpp"
#include "io/remote/request_patience.hpp"
#include "io/remote/tls_session.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leat::io {

class connecting;
struct fetch;
struct known_server;

/// Idle, or used for one request at a time. Thread: one.
struct http_connection {
  using error_code = boost::system::error_code;
  using outcome = std::pair<error_code, std::size_t>;
  using head_outcome = std::pair<error_code, std::optional<std::size_t>>;

  http_connection(boost::asio::io_context& context, const address& server) : socket(context), to(server) {}

  /// Some of what comes. Without TLS by calls of our own: Asio tries to read before there is anything, and wakes for each segment.
  ///   is_answered   there may be bytes already
  [[nodiscard]] boost::asio::awaitable<outcome> read_some(boost::asio::mutable_buffer into, bool is_answered);
  /// Sends a request, and receives the header of its answer: where that ends in what was received, or nothing.
  ///   bytes   of an object, that are asked for
  [[nodiscard]] boost::asio::awaitable<head_outcome> ask(const std::string& request, std::uint64_t bytes);
  /// Wakes who reads when so many bytes are there, or the connection has ended. One where the server is slow. Of what is still to come by TLS,
  /// some may have been received, and the rest is more than its bytes are.
  void wake_at(std::size_t bytes);
  /// Silent for too long, or so slow that what it sends is late.
  [[nodiscard]] bool is_too_late(std::uint64_t now) const noexcept {
    const bool has_begun = asked_ns != 0 && silent_since_ns > asked_ns;
    return now - silent_since_ns >= silence_max_ns || (has_begun && now >= give_up_ns);
  }
  /// What it is waiting for ends.
  void close();
  /// Likewise: the server is to blame.
  void close_late() {
    is_late = true;
    close();
  }
  /// Of one that broke.
  [[nodiscard]] std::string words_of(const error_code& failure, std::string_view when) const;

  boost::asio::ip::tcp::socket socket;
  std::optional<tls_session> tls;
  const address to;
  bool may_be_near = true;  // an address that is_near()
  std::string received;     // of an answer: its head, and what came with it
  int low_water = 1;
  std::uint64_t silent_since_ns = 0;
  std::uint64_t give_up_ns = 0;
  std::uint64_t silence_max_ns = 0;
  place_in_line place;
  std::uint64_t idle_since_ns = 0;  // of now_ns(): a server counts what this process was stopped for
  std::uint64_t asked_ns = 0;       // when its request was sent
  std::uint64_t asked_bytes = 0;    // of an object
  fetch* serves = nullptr;          // null: nobody, or it is a second one
  bool is_late = false;
  const known_server* server = nullptr;
  bool is_closed = false;
  bool has_no_such_name = false;
  connecting* opening = nullptr;

 private:
  /// Of `all`, as much as can be sent without waiting. With TLS nothing.
  std::size_t send_now(std::string_view all, error_code& failure);
  [[nodiscard]] boost::asio::awaitable<error_code> write(std::string_view all);
};

}  // namespace leat::io
