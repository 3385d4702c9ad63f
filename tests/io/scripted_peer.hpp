// The other end of a connection, on the test's own thread: what it says, and between which steps of the loop, is the test's.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace leat::testing {

class scripted_peer {
 public:
  using tcp = boost::asio::ip::tcp;

  explicit scripted_peer(boost::asio::io_context& context)
      : listening_(context, {boost::asio::ip::address_v4::loopback(), 0}), socket_(context) {}

  [[nodiscard]] std::uint16_t port() const { return listening_.local_endpoint().port(); }
  /// The next connection; waits for it.
  void take() {
    socket_ = listening_.accept();
    socket_.set_option(tcp::no_delay(true));
  }
  [[nodiscard]] bool has_been_asked() {
    listening_.non_blocking(true);
    boost::system::error_code none;
    listening_.accept(socket_, none);
    return !none;
  }
  /// A request's header; waits for it.
  std::string hear() {
    std::string heard;
    boost::asio::read_until(socket_, boost::asio::dynamic_buffer(heard), "\r\n\r\n");
    return heard;
  }
  /// The first byte of what is not HTTP; waits for it.
  char hear_a_byte() {
    char one = 0;
    boost::asio::read(socket_, boost::asio::buffer(&one, 1));
    return one;
  }
  /// No more than the kernel keeps for a connection.
  void say(std::string_view bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }
  void close() { socket_.close(); }
  /// So that the other side loses what it has not read.
  void reset() {
    socket_.set_option(tcp::socket::linger(true, 0));
    socket_.close();
  }

 private:
  tcp::acceptor listening_;
  tcp::socket socket_;
};

}  // namespace leat::testing
