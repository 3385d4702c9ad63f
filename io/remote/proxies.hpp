// Who stands between this machine and a server: http_proxy, https_proxy, all_proxy and no_proxy, as curl takes them.
#pragma once

#include "io/remote/address.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {

struct proxy {
  std::string variable;       ///< that names it
  address at;                 ///< spoken to without TLS
  std::string authorization;  ///< "Basic ..."; empty: it wants none
  std::string refusal;        ///< not empty: it is none that leat can use, and why
};

class proxies {
 public:
  /// Names in lower case come before those in upper case.
  ///   value_of   of a variable; empty where it is not set
  explicit proxies(const std::function<std::string(const char*)>& value_of);
  [[nodiscard]] static proxies of_environment();

  /// Null: the server is asked itself. So are this machine and its link, whatever is set: what a cloud answers there is nobody else's business.
  [[nodiscard]] const proxy* on_the_way_to(const address& server) const;

 private:
  std::optional<proxy> of_http_;
  std::optional<proxy> of_https_;
  std::vector<std::string> left_out_;
};

/// Whether an entry of no_proxy is of a host: its name, a domain that it lies in, its numbers, a range of numbers (10.0.0.0/8), or "*".
[[nodiscard]] bool is_entry_of(std::string_view entry, std::string_view host);

}  // namespace leat::io
