// An address that takes no connection and refuses none: a kernel that has no room for more of them says nothing.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <vector>

namespace leat::testing {

class silent_address {
 public:
  explicit silent_address(const boost::asio::ip::tcp::endpoint& at) : listening_(context_) {
    listening_.open(at.protocol());
    listening_.set_option(boost::asio::socket_base::reuse_address(true));
    listening_.bind(at);
    listening_.listen(0);
    for (int i = 0; i < 4; ++i) {
      filling_.emplace_back(context_);
      filling_.back().async_connect(where(),
                                    [](const boost::system::error_code&) {});  // It has begun, and nobody waits.
    }
  }
  [[nodiscard]] boost::asio::ip::tcp::endpoint where() const { return listening_.local_endpoint(); }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor listening_;
  std::vector<boost::asio::ip::tcp::socket> filling_;
};

}  // namespace leat::testing
