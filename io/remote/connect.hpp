// A connection to the first address of a server that answers (RFC 8305): the next one is tried where one fails, or is silent for a moment.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace leat::io {

/// One race to connect. Thread: one.
class connecting {
 public:
  using endpoint = boost::asio::ip::tcp::endpoint;
  using socket_type = boost::asio::ip::tcp::socket;

  /// RFC 8305 8: between two tries.
  static constexpr std::chrono::milliseconds stagger{250};

  explicit connecting(boost::asio::io_context& context);
  connecting(const connecting&) = delete;
  connecting& operator=(const connecting&) = delete;

  /// What is connected goes to `into`.
  ///   was_silent   called with each endpoint that had not answered when a later one did
  ///   returns      of the last that failed, or operation_aborted after stop()
  [[nodiscard]] boost::asio::awaitable<boost::system::error_code> run(
      std::vector<endpoint> to, socket_type& into, const std::function<void(const endpoint&)>& was_silent);
  /// run() ends.
  void stop();

 private:
  struct race;
  boost::asio::io_context& context_;
  std::shared_ptr<race> race_;
};

}  // namespace leat::io
