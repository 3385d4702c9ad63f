// Signatures of AWS, version 4: of a GET without a body, in its headers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::io {

/// Who asks. Zeroed when it ends.
struct access_keys {
  access_keys() = default;
  access_keys(std::string id_given, std::string secret_given, std::string token_given = {})
      : id(std::move(id_given)), secret(std::move(secret_given)), token(std::move(token_given)) {}
  access_keys(const access_keys&) = default;
  access_keys(access_keys&&) = default;
  access_keys& operator=(const access_keys&) = default;
  access_keys& operator=(access_keys&&) = default;
  ~access_keys();

  std::string id;
  std::string secret;
  std::string token;  ///< of keys that expire; else empty

  [[nodiscard]] bool empty() const noexcept { return id.empty(); }
};

struct header_line {
  std::string name;  ///< in lower case
  std::string value;
};

/// A name or value as AWS encodes it: letters, digits and "-._~" stay.
///   keep_slash   so do slashes
[[nodiscard]] std::string aws_encoded(std::string_view text, bool keep_slash);

/// Signs requests with one set of keys; the key of the day is kept. Thread: one at a time.
class sigv4_signer {
 public:
  ///   throws   error{errc::unsupported} where OpenSSL has no SHA-256
  sigv4_signer(access_keys keys, std::string region, std::string service = "s3");
  sigv4_signer(const sigv4_signer&) = delete;
  sigv4_signer& operator=(const sigv4_signer&) = delete;
  ~sigv4_signer();

  /// The lines to be added: x-amz-date, x-amz-content-sha256 (of S3), x-amz-security-token, authorization.
  ///   path      encoded
  ///   query     encoded, in the order of its names, "a=1&b="
  ///   headers   to be signed beside these: host, range; values without blanks around them
  ///   unix_s    now, by the server's clock
  ///   source    docs.aws.amazon.com: Signature Version 4 signing process
  [[nodiscard]] std::vector<header_line> sign(std::string_view path, std::string_view query,
                                              std::vector<header_line> headers, std::int64_t unix_s);

 private:
  using sha256 = std::array<unsigned char, 32>;
  class hashes;
  void derive(std::string_view day);

  const access_keys keys_;
  const std::string region_;
  const std::string service_;
  std::string day_;
  sha256 key_{};
  const std::unique_ptr<hashes> hashes_;
};

}  // namespace leat::io
