#include "io/remote/proxies.hpp"

#include "base/base64.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "io/remote/near_address.hpp"

#include <leat/error.hpp>

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace leat::io {
namespace {

using boost::asio::ip::make_address;
using numbers_type = boost::asio::ip::address;

// As curl has it, where the proxy's address says none.
constexpr std::string_view port_of_proxies = ":1080";

std::optional<numbers_type> numbers_of(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  boost::system::error_code failure;
  const numbers_type found = make_address(std::string(text), failure);
  return failure ? std::nullopt : std::optional(found);
}

std::vector<unsigned char> bytes_of(const numbers_type& numbers) {
  const auto as_vector = [](const auto& bytes) { return std::vector<unsigned char>(bytes.begin(), bytes.end()); };
  return numbers.is_v4() ? as_vector(numbers.to_v4().to_bytes()) : as_vector(numbers.to_v6().to_bytes());
}

bool begin_alike(const numbers_type& one, const numbers_type& other, std::size_t bits) {
  if (one.is_v4() != other.is_v4()) return false;
  const std::vector<unsigned char> first = bytes_of(one);
  const std::vector<unsigned char> second = bytes_of(other);
  if (bits > 8 * first.size()) return false;
  for (std::size_t i = 0; 8 * i < bits; ++i) {
    const std::size_t left = std::min<std::size_t>(8, bits - 8 * i);
    if ((first[i] ^ second[i]) >> (8 - left) != 0) return false;
  }
  return true;
}

bool has_port(std::string_view authority) {
  return authority.find(':', authority.starts_with('[') ? authority.find(']') : 0) != std::string_view::npos;
}

// Never with the value, which may have a password.
proxy parse_proxy(const char* variable, std::string_view text) {
  proxy made{.variable = variable, .at = {}, .authorization = {}, .refusal = {}};
  constexpr std::string_view scheme = "http://";
  const std::size_t mark = text.find("://");
  if (is_same_in_any_case(text.substr(0, scheme.size()), scheme)) {
    text.remove_prefix(scheme.size());
  } else if (mark != std::string_view::npos && text.substr(0, mark).find_first_of(":@") == std::string_view::npos) {
    made.refusal = str_cat(variable, " names a proxy of ", text.substr(0, mark),
                           "://, and leat uses those of http:// only; name such a one, or the server in no_proxy");
    return made;
  }
  const std::size_t at = text.rfind('@');
  if (at != std::string_view::npos) {
    made.authorization = str_cat("Basic ", to_base64(percent_decoded(text.substr(0, at))));
    text.remove_prefix(at + 1);
  }
  text = text.substr(0, text.find('/'));
  try {
    made.at = parse_address(str_cat(scheme, text, has_port(text) ? "" : port_of_proxies));
  } catch (const error&) {
    made.refusal = str_cat(variable, " is no address of a proxy; write http://host:port");
  }
  return made;
}

}  // namespace

proxies::proxies(const std::function<std::string(const char*)>& value_of) {
  const auto first_of = [&](std::initializer_list<const char*> variables) -> std::optional<proxy> {
    for (const char* const each : variables) {
      const std::string value(trimmed(value_of(each)));
      if (!value.empty()) return parse_proxy(each, value);
    }
    return std::nullopt;
  };
  of_http_ = first_of({"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"});
  of_https_ = first_of({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  std::string left_out = value_of("no_proxy");
  if (left_out.empty()) left_out = value_of("NO_PROXY");
  for (const std::string_view each : words_of(left_out, ", \t")) left_out_.emplace_back(each);
}

proxies proxies::of_environment() {
  return proxies([](const char* variable) {
    const char* const value = std::getenv(variable);
    return std::string(value == nullptr ? "" : value);
  });
}

const proxy* proxies::on_the_way_to(const address& server) const {
  const std::optional<proxy>& any = server.tls ? of_https_ : of_http_;
  if (!any) return nullptr;
  const std::optional<numbers_type> numbers = numbers_of(server.host);
  std::string_view name = server.host;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name == "localhost" || name.ends_with(".localhost") || (numbers && is_near(*numbers))) return nullptr;
  const bool is_left_out = std::any_of(left_out_.begin(), left_out_.end(),
                                       [&](const std::string& each) { return is_entry_of(each, server.host); });
  return is_left_out ? nullptr : &*any;
}

bool is_entry_of(std::string_view entry, std::string_view host) {
  if (entry == "*") return true;
  if (const std::optional<numbers_type> numbers = numbers_of(host)) {
    const std::size_t slash = entry.find('/');
    const std::optional<numbers_type> begin = numbers_of(entry.substr(0, slash));
    if (!begin) return false;
    std::size_t bits = numbers->is_v4() ? 32 : 128;
    if (slash != std::string_view::npos) {
      const std::string_view text = entry.substr(slash + 1);
      const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), bits);
      if (failure != std::errc() || end != text.data() + text.size()) return false;
    }
    return begin_alike(*numbers, *begin, bits);
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  if (entry.ends_with('.')) entry.remove_suffix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.empty() || entry.size() > host.size()) return false;
  if (!is_same_in_any_case(host.substr(host.size() - entry.size()), entry)) return false;
  return host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.';
}

}  // namespace leat::io
