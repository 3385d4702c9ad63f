// The head of an answer over HTTP/1.1, which a server says whatever it likes in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  std::optional<std::int64_t> date_unix_s;  ///< the server's clock
  std::string etag;
  std::string last_modified;
  std::string location;
  std::string content_range;
  std::string bucket_region;  ///< of S3, printable
  std::string content_encoding;
  /// Of a store, of the whole object, in base64; of one that was put in parts, a sum of sums with their count behind it ("abc==-3").
  std::string crc32;
  std::string crc32c;
  std::string crc64nvme;
  std::string checksum_type;  ///< of these, where the store tells: "FULL_OBJECT", or "COMPOSITE" of parts
};

/// Bytes of the head that `bytes` begins with, its empty line included; nothing where more bytes are needed.
///   from   where to look on, as so many were seen before
[[nodiscard]] std::optional<std::size_t> http_head_end(std::string_view bytes, std::size_t from = 0) noexcept;

///   head      whole
///   refusal   of a head that is none: what is wrong with it
[[nodiscard]] std::optional<http_head> parse_http_head(std::string_view head, std::string& refusal);

/// An answer whose body is a text of bounded size, of a length that is said or in chunks.
class http_text {
 public:
  enum class state : std::uint8_t { more, whole, refused };

  explicit http_text(std::size_t bytes_max);
  http_text(const http_text&) = delete;
  http_text& operator=(const http_text&) = delete;
  ~http_text();

  /// The next bytes of the answer, from its head on.
  state feed(std::string_view bytes);
  /// Once it is whole; before, what there is of it.
  [[nodiscard]] std::string take();
  /// Bytes after its end came with it: the connection is not to be used again.
  [[nodiscard]] bool has_excess() const noexcept { return !pending_.empty(); }
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
  std::string pending_;
  std::string refusal_;
};

/// "Sun, 06 Nov 1994 08:49:37 GMT" in seconds since 1970; nothing for other texts.
[[nodiscard]] std::optional<std::int64_t> parse_http_date(std::string_view given);

/// The code of a store's error, "AccessDenied" of "<Error><Code>AccessDenied</Code>...": letters and digits; else empty.
[[nodiscard]] std::string s3_error_code(std::string_view body);

/// The text of <name> in it, printable and of 200 letters at the most: its message, or the region of a bucket.
[[nodiscard]] std::string s3_error_text(std::string_view body, std::string_view name);

/// "bytes 0-99/1000", "bytes 0-99/*", or of an answer that has none, "bytes */1000".
struct content_range {
  bool is_satisfied = false;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> total;
};
[[nodiscard]] std::optional<content_range> parse_content_range(std::string_view text) noexcept;

}  // namespace leat::io
