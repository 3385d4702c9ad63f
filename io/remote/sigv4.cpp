#include "io/remote/sigv4.hpp"

#include "base/text.hpp"
#include "io/remote/address.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <ctime>

namespace leat::io {
namespace {

using sha256 = std::array<unsigned char, 32>;

constexpr std::string_view of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

sha256 hash_of(std::string_view text) {
  sha256 out;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data());
  return out;
}

sha256 keyed_hash_of(std::span<const unsigned char> key, std::string_view text) {
  sha256 out;
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), out.data(), &length);
  return out;
}

std::string hex_of(const sha256& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char each : bytes) {
    text += digits[each >> 4U];
    text += digits[each & 15U];
  }
  return text;
}

void wipe(std::string& text) noexcept {
  if (!text.empty()) OPENSSL_cleanse(text.data(), text.size());
}

}  // namespace

access_keys::~access_keys() {
  wipe(id);
  wipe(secret);
  wipe(token);
}

std::string aws_encoded(std::string_view text, bool keep_slash) {
  return percent_encoded(text, keep_slash ? "-._~/" : "-._~");
}

sigv4_signer::sigv4_signer(access_keys keys, std::string region, std::string service)
    : keys_(std::move(keys)), region_(std::move(region)), service_(std::move(service)) {}

sigv4_signer::~sigv4_signer() { OPENSSL_cleanse(key_.data(), key_.size()); }

void sigv4_signer::derive(std::string_view day) {
  std::string first = str_cat("AWS4", keys_.secret);
  const std::span<const unsigned char> bytes(reinterpret_cast<const unsigned char*>(first.data()), first.size());
  key_ = keyed_hash_of(keyed_hash_of(keyed_hash_of(keyed_hash_of(bytes, day), region_), service_), "aws4_request");
  wipe(first);
  day_ = day;
}

std::vector<header_line> sigv4_signer::sign(std::string_view path, std::string_view query,
                                            std::vector<header_line> headers, std::int64_t unix_s) {
  const auto seconds = static_cast<std::time_t>(unix_s);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char time[17];
  std::strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &parts);
  const std::string_view day(time, 8);
  if (day != day_) derive(day);
  std::vector<header_line> added;
  added.push_back({"x-amz-date", time});
  if (service_ == "s3") added.push_back({"x-amz-content-sha256", std::string(of_nothing)});
  if (!keys_.token.empty()) added.push_back({"x-amz-security-token", keys_.token});
  headers.insert(headers.end(), added.begin(), added.end());
  std::sort(headers.begin(), headers.end(), [](const header_line& a, const header_line& b) { return a.name < b.name; });
  std::string lines;
  std::string names;
  for (const header_line& each : headers) {
    lines += str_cat(each.name, ":", each.value, "\n");
    names += str_cat(names.empty() ? "" : ";", each.name);
  }
  const std::string request = str_cat("GET\n", path, "\n", query, "\n", lines, "\n", names, "\n", of_nothing);
  const std::string scope = str_cat(day, "/", region_, "/", service_, "/aws4_request");
  const std::string to_sign =
      str_cat("AWS4-HMAC-SHA256\n", static_cast<const char*>(time), "\n", scope, "\n", hex_of(hash_of(request)));
  added.push_back({"authorization", str_cat("AWS4-HMAC-SHA256 Credential=", keys_.id, "/", scope, ", SignedHeaders=",
                                            names, ", Signature=", hex_of(keyed_hash_of(key_, to_sign)))});
  return added;
}

}  // namespace leat::io
