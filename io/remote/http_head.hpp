// The head of an answer over HTTP/1.1, which a server says whatever it likes in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace leat::io {

inline constexpr std::size_t http_head_bytes_max = std::size_t{64} << 10;
inline constexpr std::size_t http_head_lines_max = 100;

struct http_head {
  unsigned status = 0;
  std::string reason;                          ///< printable, of 100 characters at most
  std::optional<std::uint64_t> content_bytes;  ///< nothing where the server does not say it
  bool is_chunked = false;
  bool keeps_alive = false;
  std::uint64_t retry_after_s = 0;
  std::string etag;
  std::string last_modified;
  std::string location;
  std::string content_range;
  std::string content_encoding;
};

/// Bytes of the head that `bytes` begins with, its empty line included; nothing where more bytes are needed.
///   from   where to look on, as so many were seen before
[[nodiscard]] std::optional<std::size_t> http_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

///   head      whole
///   refusal   of a head that is none: what is wrong with it
[[nodiscard]] std::optional<http_head> parse_http_head(std::string_view head, std::string& refusal);

/// "bytes 0-99/1000", "bytes 0-99/*", or of an answer that has none, "bytes */1000".
struct content_range {
  bool is_satisfied = false;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> total;
};
[[nodiscard]] std::optional<content_range> parse_content_range(std::string_view text) noexcept;

}  // namespace leat::io
