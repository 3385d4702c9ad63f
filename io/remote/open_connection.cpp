#include "io/remote/open_connection.hpp"

#include "base/clock.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "io/remote/answers.hpp"
#include "io/remote/connect.hpp"
#include "io/remote/http_head.hpp"
#include "io/remote/near_address.hpp"
#include "io/remote/ran_clock.hpp"
#include "io/remote/request_writer.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace leat::io {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::milliseconds look_up_interval_max(16);

std::string whose_proxy(const proxy* by) { return by == nullptr ? "" : str_cat(", the proxy of ", by->variable); }

}  // namespace

std::string without_tls() {
  return str_cat("; a server without TLS has an address of http://, which takes ", spelled(option_id::allow_http));
}

bool is_for_want_of_descriptors(const boost::system::error_code& failure) {
  return failure == std::errc::too_many_files_open || failure == std::errc::too_many_files_open_in_system;
}

connection_opener::connection_opener(std::string ca_file, proxies by, name_answers& names, redirects& ways,
                                     transfer_counts& counts)
    : ca_file_(std::move(ca_file)), proxies_(std::move(by)), names_(names), ways_(ways), counts_(counts) {
  // What is wrong with that is said at once.
  if (!ca_file_.empty()) static_cast<void>(tls());
}

// With the first connection that needs it.
const tls_context& connection_opener::tls() { return tls_ ? *tls_ : tls_.emplace(ca_file_); }

void connection_opener::is_silent(const http_connection& on) {
  error_code unknown;
  const tcp::endpoint silent = on.socket.remote_endpoint(unknown);
  if (!unknown) names_.is_dead(silent.address(), now_ns());
}

asio::awaitable<next_step> connection_opener::open(asio::io_context& context, http_connection& opened,
                                                   std::string& why) {
  const address& to = opened.to;
  const proxy* const by = proxies_.on_the_way_to(to);
  if (by != nullptr && !by->refusal.empty()) {
    why = by->refusal;
    co_return next_step::give_up;
  }
  if (const next_step reached = co_await reach(context, opened, by, why); reached != next_step::over) co_return reached;
  transfer_counts::add(counts_.connections, 1);
  error_code failure;
  opened.socket.set_option(tcp::no_delay(true), failure);
  if (!to.tls) co_return next_step::over;
  if (by != nullptr) {
    if (const next_step led = co_await lead_through(opened, *by, why); led != next_step::over) co_return led;
  }
  co_return co_await begin_tls(opened, why);
}

// A connection to the server, or to who leads there.
asio::awaitable<next_step> connection_opener::reach(asio::io_context& context, http_connection& opened, const proxy* by,
                                                    std::string& why) {
  const address& to = by == nullptr ? opened.to : by->at;
  std::vector<endpoint> endpoints;
  if (const next_step found = co_await find(context, opened, by, endpoints, why); found != next_step::over)
    co_return found;
  if (!opened.may_be_near && by == nullptr)
    std::erase_if(endpoints, [](const auto& each) { return is_near(each.address()); });
  if (endpoints.empty()) {
    why = redirects::leads_near(to);
    co_return next_step::give_up;
  }
  const error_code refused = co_await connect(context, opened, endpoints);
  opened.silent_since_ns = ran_ns();
  if (refused) {
    error_code is_name;
    static_cast<void>(asio::ip::make_address(to.host, is_name));
    if (is_name) names_.forget(to.host, now_ns());
    why = opened.words_of(refused, str_cat("while connecting to ", to.host_header(), whose_proxy(by)));
    if (!is_for_want_of_descriptors(refused)) co_return next_step::again_later;
    why += more_descriptors;
    co_return next_step::lacks_room;
  }
  error_code unknown;
  if (by == nullptr && is_near(opened.socket.remote_endpoint(unknown).address())) ways_.is_near_server(to);
  co_return next_step::over;
}

// The addresses of a name, or the number that is one.
asio::awaitable<next_step> connection_opener::find(asio::io_context& context, http_connection& opened, const proxy* by,
                                                   std::vector<endpoint>& found, std::string& why) {
  const address& to = by == nullptr ? opened.to : by->at;
  error_code is_name;
  const asio::ip::address numbers = asio::ip::make_address(to.host, is_name);
  if (!is_name) {
    found.emplace_back(numbers, to.port);
    co_return next_step::over;
  }
  const name_answer named = co_await look_up(context, opened, to.host);
  if (opened.is_closed) {
    why = opened.words_of(asio::error::operation_aborted, "while the server's name was looked up");
    co_return next_step::again_later;
  }
  if (named.what == name_answer::kind::failed) {
    why = str_cat("the name of the server, ", to.host, whose_proxy(by), ", is not found: ", named.why);
    opened.has_no_such_name = named.is_unknown;
    co_return next_step::again_later;
  }
  for (const asio::ip::address& each : in_turns(named.addresses)) found.emplace_back(each, to.port);
  opened.silent_since_ns = ran_ns();
  co_return next_step::over;
}

// Others may have asked for it already.
asio::awaitable<name_answer> connection_opener::look_up(asio::io_context& context, const http_connection& of,
                                                        const std::string& name) {
  asio::steady_timer timer(context);
  for (auto wait = std::chrono::milliseconds(1);; wait = std::min(2 * wait, look_up_interval_max)) {
    name_answer found = names_.ask(name, now_ns());
    if (found.what != name_answer::kind::pending || of.is_closed) co_return found;
    timer.expires_after(wait);
    co_await timer.async_wait(answers);
  }
}

asio::awaitable<boost::system::error_code> connection_opener::connect(asio::io_context& context,
                                                                      http_connection& opened,
                                                                      const std::vector<endpoint>& endpoints) {
  connecting race(context);
  opened.opening = &race;
  const error_code refused = co_await race.run(
      endpoints, opened.socket, [this](const endpoint& silent) { names_.is_dead(silent.address(), now_ns()); });
  opened.opening = nullptr;
  co_return refused;
}

// RFC 9110 9.3.6.
asio::awaitable<next_step> connection_opener::lead_through(http_connection& opened, const proxy& by, std::string& why) {
  const std::string to =
      str_cat(opened.to.host.find(':') == std::string::npos ? opened.to.host : str_cat("[", opened.to.host, "]"), ":",
              opened.to.port);
  const std::string request = str_cat("CONNECT ", to, " HTTP/1.1\r\nHost: ", to, "\r\n", lines_for(&by), "\r\n");
  transfer_counts::add(counts_.requests, 1);
  const auto [failure, end] = co_await opened.ask(request, 0);
  opened.asked_ns = 0;
  const std::string whose = str_cat("the proxy of ", by.variable, ", ", by.at.host_header());
  if (!end) {
    why = opened.words_of(failure, str_cat("before ", whose, ", had led to ", to));
    co_return next_step::again_later;
  }
  const std::optional<http_head> head = parse_http_head(std::string_view(opened.received).substr(0, *end), why);
  const bool has_led = head && head->status >= 200 && head->status < 300 && opened.received.size() == *end;
  opened.received.clear();
  if (has_led) co_return next_step::over;
  if (head) {
    why = str_cat(whose, ", does not lead to ", to, ": ", head->status, " ", head->reason,
                  head->status == 407 ? words_of_user : "");
  }
  co_return head && head->status >= 500 ? next_step::again_later : next_step::give_up;
}

asio::awaitable<next_step> connection_opener::begin_tls(http_connection& opened, std::string& why) {
  const address& to = opened.to;
  error_code is_name;
  static_cast<void>(asio::ip::make_address(to.host, is_name));
  opened.tls.emplace(tls(), opened.socket);
  if (!opened.tls->expect(to.host, static_cast<bool>(is_name))) {
    why = str_cat("TLS does not take the name ", to.host);
    co_return next_step::give_up;
  }
  const error_code unsafe = co_await opened.tls->shake_hands();
  opened.silent_since_ns = ran_ns();
  if (!unsafe) co_return next_step::over;
  if (const char* const mistrust = opened.tls->mistrust(); mistrust != nullptr && !opened.is_late) {
    why = str_cat("the certificate of ", to.host, " is not trusted: ", mistrust,
                  "; if it is signed by an authority of your own, name that with ", spelled(option_id::ca_file));
    co_return next_step::give_up;
  }
  if (tls_session::is_without_tls(unsafe)) {
    why = str_cat(to.host_header(), " answers without TLS", without_tls());
    co_return next_step::give_up;
  }
  why = opened.words_of(unsafe, "while TLS began");
  // An alert of the server's comes again; a connection that broke may not.
  co_return tls_session::is_of_tls(unsafe) ? next_step::give_up : next_step::again_later;
}

}  // namespace leat::io
