// The text of requests: their range, the lines of the user, and a signature by keys that may be temporary and a clock that may be wrong.
#pragma once

#include "io/remote/fetch.hpp"
#include "io/remote/http_head.hpp"
#include "io/remote/proxies.hpp"
#include "io/remote/redirects.hpp"
#include "io/remote/request_headers.hpp"
#include "io/remote/s3.hpp"
#include "io/remote/sigv4.hpp"

#include <leat/remote.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leat::io {

class renewed_credentials;

/// How a fetch's last request was signed.
struct request_signature {
  std::shared_ptr<const access_keys> keys;  ///< of temporary ones
  std::optional<std::int64_t> skew_s;       ///< nothing where it was not signed
  bool is_clock_corrected = false;
};

/// A client's. Thread: one.
class request_writer {
 public:
  ///   store      whose requests are signed, where it has keys; null: none
  ///   unix_now   this machine's clock
  ///   throws     error{errc::usage}: a line of `headers` that is none
  request_writer(const remote_options& options, const s3_access* store, std::function<std::int64_t()> unix_now);

  /// For what is missing of it. A redirect is followed without a signature.
  [[nodiscard]] std::string write(const fetch& wanted, const route& way, const proxies& all_proxies,
                                  const object_facts* expected, request_signature& signature);
  /// Whether another request is to be sent at once: a store refuses signatures of another time than its own, by a quarter of an hour. Its clock
  /// is taken, once by each fetch: others were on their way with the old one.
  [[nodiscard]] bool correct_clock(request_signature& refused, const std::optional<std::int64_t>& store_unix_s);
  /// Null: the signer's keys are for good.
  [[nodiscard]] const std::shared_ptr<renewed_credentials>& renewed() const noexcept { return renewed_; }

 private:
  void take_newest_keys();

  const bool requester_pays_;
  const std::function<std::int64_t()> unix_now_;
  std::shared_ptr<renewed_credentials> renewed_;
  std::string region_;
  std::vector<request_header> headers_;
  std::shared_ptr<const access_keys> signed_with_;  // of temporary ones
  std::optional<sigv4_signer> signer_;
  std::int64_t skew_s_ = 0;
};

/// "Proxy-Authorization: ...", or nothing.
[[nodiscard]] std::string lines_for(const proxy* by);

}  // namespace leat::io
