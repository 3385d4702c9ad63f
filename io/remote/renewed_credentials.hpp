// Keys of a store that expire: asked for anew while they are used, once for all who use them.
#pragma once

#include "base/per_process.hpp"
#include "io/remote/sigv4.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace leat::io {

/// Keys, and when they expire; nothing where they do not.
struct temporary_credentials {
  access_keys keys;
  std::optional<std::int64_t> expires_unix_s;
};

/// Asks for keys. Blocks. Throws error: what was asked, and what is wrong.
using credential_provider = std::function<temporary_credentials()>;

/// When keys are asked for anew; tests want to wait for less.
struct renewal_pauses {
  std::chrono::milliseconds ahead = std::chrono::minutes(5);  ///< before they expire
  std::chrono::milliseconds short_lived_min = std::chrono::seconds(10);
  std::chrono::milliseconds expired_min = std::chrono::minutes(1);
  std::chrono::milliseconds after_asking =
      std::chrono::seconds(10);  ///< where that failed, or a store refuses what came
};

/// From now: `ahead` of when they expire, or where they are valid for less than twice that, after half their time, `short_lived_min` at
/// least. Keys that have expired, by this machine's clock, are asked for every `expired_min`: the clock may be wrong.
[[nodiscard]] std::chrono::milliseconds time_to_renewal(std::int64_t expires_in_s, const renewal_pauses& pauses);

/// Thread: any. Works in a child of fork() too, by a thread of its own there.
class renewed_credentials {
 public:
  /// Asks for the first ones. Where they expire, a thread asks for the next ones.
  ///   throws   as `provider`
  explicit renewed_credentials(credential_provider provider, const renewal_pauses& pauses = {});
  renewed_credentials(const renewed_credentials&) = delete;
  renewed_credentials& operator=(const renewed_credentials&) = delete;
  /// Waits for the provider, if it is being asked.
  ~renewed_credentials();

  /// The newest ones.
  ///   throws   error{errc::limit} in a child of fork(), where no thread is to be had
  [[nodiscard]] std::shared_ptr<const access_keys> now();
  /// A store says that these have expired. If they are still the newest ones, the next ones are asked for: at once, but not within
  /// `after_asking` of a renewal, failed or not.
  ///   returns   whether others are there or may come
  ///   throws    as now()
  bool have_expired(const std::shared_ptr<const access_keys>& refused);

 private:
  class renewal;
  [[nodiscard]] renewal& here();

  const credential_provider provider_;
  const renewal_pauses pauses_;
  per_process<renewal> renewal_;
};

/// Keys in JSON, as credential_process, containers and machines give them.
///   throws   error{errc::io}: it is none, or its time is none, without a word of the keys
[[nodiscard]] temporary_credentials parse_temporary_credentials(std::string_view json, std::string_view id_name);
/// The answer of AssumeRoleWithWebIdentity.
[[nodiscard]] temporary_credentials parse_role_keys(std::string_view xml);
/// "2026-11-25T04:11:00Z" or "2026-11-25T05:11:00+01:00", a fraction of a second passed over; nothing for other texts.
[[nodiscard]] std::optional<std::int64_t> parse_time(const std::string& text);

}  // namespace leat::io
