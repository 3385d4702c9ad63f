// A server of objects over HTTP/1.1 on the loopback, with or without TLS, that does wrong what a test says.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {

/// What a client asked for.
struct served_request {
  std::string target;        ///< with the query
  std::string header;        ///< whole
  std::uint64_t number = 0;  ///< of all requests, from 0

  /// The value of a header; empty where there is none.
  [[nodiscard]] std::string value(std::string_view name) const;
};

/// What the server does to one request.
struct http_fault {
  enum class kind : std::uint8_t {
    none,
    hang_up,      ///< closes the connection without an answer
    status,       ///< `status`, with `headers`
    cut,          ///< ends after `bytes` of the body, with `headers` too
    stall,        ///< sends `bytes` of the body, and then nothing
    whole,        ///< 200 with the whole object, whatever range was asked for
    wrong_range,  ///< the bytes before those that were asked for, and says so
    too_many,     ///< one byte more than was asked for
    long_header,  ///< 65 KiB of header
    many_lines,   ///< 200 header lines
    no_http,      ///< something else
    compressed,   ///< says that it is gzip
    untagged,     ///< `headers` in the place of an ETag
    early,        ///< two answers of 1xx before the answer
    late,         ///< answers after `wait`
    dripping      ///< sends the body byte by byte, one each `wait`
  };
  kind what = kind::none;
  unsigned status = 503;
  std::string headers = {};  ///< "Location: /b\r\n"
  std::size_t bytes = 0;
  std::string body = "told";  ///< of `status`
  std::chrono::milliseconds wait{0};
};

/// How a bucket's objects are listed.
///   knows_delimiter   false: what lies in folders is listed as if none had been asked for
struct listing_manner {
  std::size_t names_a_page = 7;
  bool knows_delimiter = true;
};

class fault_server {
 public:
  enum class transport : std::uint8_t { plain, tls };
  using rule = std::function<http_fault(const served_request&)>;

  /// Listens on a port of 127.0.0.1, on a thread of its own.
  ///   port      0: any that is free; else that of a server that is gone, which so comes back
  ///   objects   put() before it listens
  explicit fault_server(transport how = transport::plain, std::uint16_t port = 0,
                        const std::map<std::string, std::string>& objects = {});
  fault_server(const fault_server&) = delete;
  fault_server& operator=(const fault_server&) = delete;
  ~fault_server();

  // Thread: any, at any time. "/bucket/" lists what lies below it as ListObjectsV2 does.
  /// Under "/name", which may have a query; another tag each time, which it returns.
  std::string put(const std::string& name, std::string content);
  void set_listing(listing_manner how);
  /// Asked for each request, on the server's thread.
  void set_rule(rule what);
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::uint64_t requests() const;
  [[nodiscard]] std::uint64_t connections() const;
  /// All that clients have ever sent.
  [[nodiscard]] std::string all_headers() const;

  /// "http://127.0.0.1:40001/name"; of TLS "https://localhost:40001/name".
  [[nodiscard]] std::string address(const std::string& name) const;
  /// The certificate that it signed itself, in PEM.
  [[nodiscard]] const std::string& certificate() const;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace leat::testing
