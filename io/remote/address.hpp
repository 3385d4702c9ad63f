// Addresses of objects: https://host:port/path?query. What is shown of one has no query, which may be a signature.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat::io {

struct address {
  bool tls = true;
  std::string host;  ///< without the brackets of an IPv6 address
  std::uint16_t port = 443;
  std::string target;  ///< path and query, as the server gets them
  std::string shown;   ///< for errors and names: without the query

  [[nodiscard]] bool is_same_server(const address& other) const noexcept {
    return tls == other.tls && port == other.port && host == other.host;
  }
  /// The value of the header Host.
  [[nodiscard]] std::string host_header() const;
};

/// Whether leat reads from such an address: http://, https://, s3://, or of a store that the program has registered.
[[nodiscard]] bool is_address(std::string_view text) noexcept;
[[nodiscard]] bool is_s3(std::string_view text) noexcept;
/// Whether what follows the scheme is a key as it is, without a query, and objects may be listed: s3:// and registered stores.
[[nodiscard]] bool has_keys(std::string_view text) noexcept;
/// Where the query of an address begins; its size where it has none.
[[nodiscard]] std::size_t query_of(std::string_view text) noexcept;
/// Whether there is a user or a password before the host; also one with an unencoded '/', '?' or '#' in it.
[[nodiscard]] bool has_user(std::string_view text) noexcept;
/// `text` without query, fragment, user and password: what may be shown. (s3://bucket/key has none of them.)
[[nodiscard]] std::string redacted(std::string_view text);

///   throws   error{errc::usage}: not an address of an object, with what is shown of it; a user or password in it
[[nodiscard]] address parse_address(std::string_view text);

/// Of a target the path, and of its query what does not sign the request: two addresses of one server that agree in it are of one object.
[[nodiscard]] std::string unsigned_target(std::string_view target);

/// Where a redirect leads: an address, or a path of the same server.
///   returns   nothing where it is no address, or leads from https to http
[[nodiscard]] std::optional<address> follow(const address& from, std::string_view location);

}  // namespace leat::io
