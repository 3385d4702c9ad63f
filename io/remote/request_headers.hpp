// Lines that go with each request to one server, and to no other one: what opens a gated set.
#pragma once

#include "io/remote/address.hpp"
#include "io/remote/sigv4.hpp"

#include <string>
#include <vector>

namespace leat::io {

struct request_header {
  address server;
  header_line line;
};

/// Of "https://host Name: value".
///   throws   error{errc::usage}: another text, a name that leat sets itself, or a value that no header can hold; never with the value
[[nodiscard]] std::vector<request_header> parse_request_headers(const std::vector<std::string>& given, bool allow_http);

}  // namespace leat::io
