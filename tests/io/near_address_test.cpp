// A server elsewhere that leads to this machine or its link is not followed.
#include "io/remote/near_address.hpp"

#include "base/text.hpp"
#include "io/remote/address.hpp"
#include "io/remote/list_bucket.hpp"
#include "io/remote/s3.hpp"
#include "tests/support/fault_server.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <ifaddrs.h>

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace leat::testing {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(near_addresses, are_those_that_mean_another_machine_to_everybody) {
  const auto near = [](const char* text) { return io::is_near(asio::ip::make_address(text)); };
  for (const char* const each :
       {"127.0.0.1", "127.9.8.7", "169.254.169.254", "0.0.0.0", "::1", "::", "fe80::1", "febf::1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "fd00:ec2::254", "fd00:ec2::23"}) {
    EXPECT_TRUE(near(each)) << each;
  }
  for (const char* const each : {"10.0.0.1", "192.168.1.1", "169.253.1.1", "128.0.0.1", "8.8.8.8", "2001:db8::1",
                                 "fec0::1", "fd00:ec3::1", "fd12::1", "::ffff:10.0.0.1"}) {
    EXPECT_FALSE(near(each)) << each;
  }
}

// Of this machine, and not near.
std::optional<asio::ip::address> own_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return std::nullopt;
  std::optional<asio::ip::address> found;
  for (const ifaddrs* each = all; each != nullptr && !found; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    const auto* const numbers = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    const asio::ip::address_v4 address(ntohl(numbers->sin_addr.s_addr));
    if (!io::is_near(address)) found = address;
  }
  ::freeifaddrs(all);
  return found;
}

/// Answers one request with a redirect to the same at another server.
class leading_server {
 public:
  leading_server(const asio::ip::address& at, std::string to)
      : listener_(context_, tcp::endpoint(at, 0)), thread_([this, to_server = std::move(to)] {
          tcp::socket peer(context_);
          listener_.accept(peer);
          std::string request;
          asio::read_until(peer, asio::dynamic_buffer(request), "\r\n\r\n");
          const std::string target = request.substr(4, request.find(' ', 4) - 4);  // behind "GET "
          asio::write(peer, asio::buffer(str_cat("HTTP/1.1 307 Temporary Redirect\r\nLocation: ", to_server, target,
                                                 "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")));
        }) {}
  leading_server(const leading_server&) = delete;
  leading_server& operator=(const leading_server&) = delete;
  ~leading_server() { thread_.join(); }
  [[nodiscard]] std::string address() const {
    return str_cat("http://", listener_.local_endpoint().address().to_string(), ":", listener_.local_endpoint().port(),
                   "/");
  }

 private:
  asio::io_context context_;
  tcp::acceptor listener_;
  std::thread thread_;
};

std::size_t listed_at(const std::string& address) {
  const io::s3_access store{{"KEYID", "hush"}, "eu-west-1", io::parse_address(address)};
  return io::list_bucket("bucket", "", store, {.allow_http = true}).size();
}

TEST(near_addresses, are_not_led_to_from_elsewhere) {
  const watchdog dog("redirects to near addresses");
  const std::optional<asio::ip::address> elsewhere = own_address();
  if (!elsewhere) GTEST_SKIP() << "this machine has no address beside its loopback";
  fault_server server;
  server.put("bucket/a", "x");
  std::string near = server.address("");
  near.pop_back();
  const std::string port = near.substr(near.rfind(':'));
  // By its name it is looked up first.
  for (const std::string host : {"127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]"}) {
    const leading_server leads(*elsewhere, str_cat("http://", host, port));
    try {
      listed_at(leads.address());
      ADD_FAILURE() << host;
    } catch (const error& refused) {
      EXPECT_THAT(refused.what(), AllOf(HasSubstr("a redirect leads to "), HasSubstr("not followed from elsewhere")))
          << host;
    }
  }
  EXPECT_EQ(server.requests(), 0U);
  const leading_server from_here(asio::ip::address_v4::loopback(), near);
  EXPECT_EQ(listed_at(from_here.address()), 1U);
}

}  // namespace
}  // namespace leat::testing
