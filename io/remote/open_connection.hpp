// Connections come about here: names, proxies, TCP and TLS.
#pragma once

#include "io/remote/http_connection.hpp"
#include "io/remote/http_verdict.hpp"
#include "io/remote/name_answers.hpp"
#include "io/remote/proxies.hpp"
#include "io/remote/redirects.hpp"
#include "io/remote/tls_session.hpp"
#include "io/remote/transfer_counts.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <optional>
#include <string>
#include <vector>

namespace leat::io {

/// A client's. Thread: one.
class connection_opener {
 public:
  ///   ca_file   of authorities that are trusted too; may be empty
  ///   throws    as tls_context()
  ///   the others outlive it
  connection_opener(std::string ca_file, proxies by, name_answers& names, redirects& ways, transfer_counts& counts);

  ///   returns   over: it is open; lacks_room: for want of a descriptor; else `why` says it
  [[nodiscard]] boost::asio::awaitable<next_step> open(boost::asio::io_context& context, http_connection& opened,
                                                       std::string& why);
  /// A server was silent on this one: its other addresses are tried first from now on.
  void is_silent(const http_connection& on);
  [[nodiscard]] const proxies& all_proxies() const noexcept { return proxies_; }

 private:
  using endpoint = boost::asio::ip::tcp::endpoint;
  using error_code = boost::system::error_code;

  [[nodiscard]] boost::asio::awaitable<next_step> reach(boost::asio::io_context& context, http_connection& opened,
                                                        const proxy* by, std::string& why);
  [[nodiscard]] boost::asio::awaitable<next_step> find(boost::asio::io_context& context, http_connection& opened,
                                                       const proxy* by, std::vector<endpoint>& found, std::string& why);
  [[nodiscard]] boost::asio::awaitable<name_answer> look_up(boost::asio::io_context& context, const http_connection& of,
                                                            const std::string& name);
  [[nodiscard]] boost::asio::awaitable<error_code> connect(boost::asio::io_context& context, http_connection& opened,
                                                           const std::vector<endpoint>& endpoints);
  [[nodiscard]] boost::asio::awaitable<next_step> lead_through(http_connection& opened, const proxy& by,
                                                               std::string& why);
  [[nodiscard]] boost::asio::awaitable<next_step> begin_tls(http_connection& opened, std::string& why);
  const tls_context& tls();

  const std::string ca_file_;
  const proxies proxies_;
  name_answers& names_;
  redirects& ways_;
  transfer_counts& counts_;
  std::optional<tls_context> tls_;  // none: nobody has asked for it
};

/// Of a server that may have none.
[[nodiscard]] std::string without_tls();
[[nodiscard]] bool is_for_want_of_descriptors(const boost::system::error_code& failure);
inline constexpr const char* more_descriptors = "; the process may open no more: raise `ulimit -n`";

}  // namespace leat::io
