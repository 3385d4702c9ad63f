#include "io/remote/sigv4.hpp"

#include "base/hex.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "io/remote/address.hpp"

#include <leat/error.hpp>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <ctime>

namespace leat::io {
namespace {

using sha256 = std::array<unsigned char, 32>;

constexpr std::string_view of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

void wipe(std::string& text) noexcept {
  if (!text.empty()) OPENSSL_cleanse(text.data(), text.size());
}

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

// SHA-256 and its HMAC. SHA256() and HMAC() look the algorithm up and make a context in each call, which takes longer than the hash of a
// request.
class sigv4_signer::hashes {
 public:
  hashes() {
    static EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    if (found == nullptr || context_ == nullptr || EVP_DigestInit_ex(context_.get(), found, nullptr) != 1)
      throw error(errc::unsupported, "OpenSSL has no SHA-256 here, by which requests of s3:// are signed");
  }

  sha256 of(std::span<const unsigned char> first, std::span<const unsigned char> second = {}) {
    sha256 out;
    EVP_DigestInit_ex(context_.get(), nullptr, nullptr);
    EVP_DigestUpdate(context_.get(), first.data(), first.size());
    EVP_DigestUpdate(context_.get(), second.data(), second.size());
    EVP_DigestFinal_ex(context_.get(), out.data(), nullptr);
    return out;
  }
  // RFC 2104.
  sha256 keyed(std::span<const unsigned char> key, std::string_view text) {
    constexpr std::size_t block_bytes = 64;
    std::array<unsigned char, block_bytes> padded{};
    sha256 short_key;
    if (key.size() > block_bytes) {
      short_key = of(key);
      key = short_key;
    }
    std::copy(key.begin(), key.end(), padded.begin());
    for (unsigned char& each : padded) each ^= 0x36U;
    const sha256 inner = of(padded, bytes_of(text));
    for (unsigned char& each : padded) each ^= 0x36U ^ 0x5CU;
    const sha256 out = of(padded, inner);
    OPENSSL_cleanse(padded.data(), padded.size());
    OPENSSL_cleanse(short_key.data(), short_key.size());
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

access_keys::~access_keys() {
  wipe(id);
  wipe(secret);
  wipe(token);
}

std::string aws_encoded(std::string_view text, bool keep_slash) {
  return percent_encoded(text, keep_slash ? "-._~/" : "-._~");
}

sigv4_signer::sigv4_signer(access_keys keys, std::string region, std::string service)
    : keys_(std::move(keys)),
      region_(std::move(region)),
      service_(std::move(service)),
      hashes_(std::make_unique<hashes>()) {}

sigv4_signer::~sigv4_signer() { OPENSSL_cleanse(key_.data(), key_.size()); }

void sigv4_signer::derive(std::string_view day) {
  std::string first = str_cat("AWS4", keys_.secret);
  key_ = hashes_->keyed(bytes_of(first), day);
  for (const std::string_view each :
       {std::string_view(region_), std::string_view(service_), std::string_view("aws4_request")}) {
    key_ = hashes_->keyed(key_, each);
  }
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
  lines.reserve(512);
  names.reserve(128);
  for (const header_line& each : headers) {
    str_append(lines, each.name, ":", each.value, "\n");
    str_append(names, names.empty() ? "" : ";", each.name);
  }
  const std::string request = str_cat("GET\n", path, "\n", query, "\n", lines, "\n", names, "\n", of_nothing);
  const std::string scope = str_cat(day, "/", region_, "/", service_, "/aws4_request");
  const std::string to_sign = str_cat("AWS4-HMAC-SHA256\n", static_cast<const char*>(time), "\n", scope, "\n",
                                      to_hex(hashes_->of(bytes_of(request))));
  added.push_back({"authorization", str_cat("AWS4-HMAC-SHA256 Credential=", keys_.id, "/", scope, ", SignedHeaders=",
                                            names, ", Signature=", to_hex(hashes_->keyed(key_, to_sign)))});
  return added;
}

}  // namespace leat::io
