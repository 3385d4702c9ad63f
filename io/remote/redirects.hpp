// Where objects are asked for: at their address, and from there on where servers redirect to.
#pragma once

#include "base/hash_map.hpp"
#include "io/remote/address.hpp"

#include <string>

namespace leat::io {

/// One fetch's way to its object.
struct route {
  const address* from = nullptr;  ///< outlives it
  address at;                     ///< where it is asked for now
  bool is_remembered = false;     ///< `at` is what a redirect said before
  bool came_from_near = false;    ///< by a redirect
  unsigned redirects = 0;
  bool was_begun_anew = false;  ///< after a refusal where redirects had led, since the last wait

  [[nodiscard]] bool is_direct() const noexcept { return redirects == 0 && !is_remembered; }
};

/// A client's. A redirect is followed five times, and never from a server elsewhere to this machine or its link, which answers there what only
/// the machine itself may ask. Thread: one.
class redirects {
 public:
  explicit redirects(bool allow_http) : allow_http_(allow_http) {}

  /// Before a try: where a redirect has led before.
  void set_out(route& way) const;
  ///   said      the answer's status
  ///   returns   why it is not followed; empty where it is
  [[nodiscard]] std::string follow(route& way, const std::string& location, const std::string& said) const;
  /// An answer of use has come by it.
  void remember(const route& way);
  /// Where redirects have led may be an address that lasts for an hour, or a server that is gone.
  void from_the_start(route& way);
  /// Likewise, once, so that it ends. False: it was, or there is nothing to begin anew.
  [[nodiscard]] bool begins_anew(route& way);

  /// A connection to it has come about: to this machine or its link.
  void is_near_server(const address& server) { near_.insert(server.host_header()); }
  /// Whether a connection for it may lead there.
  [[nodiscard]] bool may_be_near(const route& way) const;
  /// Why one that may not does not come about.
  [[nodiscard]] static std::string leads_near(const address& to);

 private:
  const bool allow_http_;
  hash_map<const address*, address> moved_;  // where redirects have led
  hash_set<std::string> near_;               // servers that is_near(), by host_header()
};

}  // namespace leat::io
