// Keys of a store that expire: asked for anew while they are used, once for all who use them.
#pragma once

#include "base/mutex.hpp"
#include "io/remote/sigv4.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace leat::io {

/// Keys, and when they expire; nothing where they do not.
struct lent_keys {
  access_keys keys;
  std::optional<std::int64_t> expires_unix_s;
};

/// Asks for keys. Blocks. Throws error: what was asked, and what is wrong.
using key_lender = std::function<lent_keys()>;

/// Thread: any.
class renewed_keys {
 public:
  /// Asks for the first ones. Where they expire, a thread asks for the next ones five minutes before (of keys that are lent for less than
  /// ten, at half their time), and where that fails again every ten seconds.
  ///   throws   as `lender`
  explicit renewed_keys(key_lender lender);
  renewed_keys(const renewed_keys&) = delete;
  renewed_keys& operator=(const renewed_keys&) = delete;
  /// Waits for the lender, if it is being asked.
  ~renewed_keys();

  /// The newest ones.
  [[nodiscard]] std::shared_ptr<const access_keys> now() const;
  /// A store says that these have expired. If they are still the newest ones, the next ones are asked for at once.
  ///   returns   whether others are there or on their way
  bool have_expired(const std::shared_ptr<const access_keys>& refused);

 private:
  void run();

  const key_lender lender_;
  mutable mutex mutex_;
  condition_variable changed_;
  std::shared_ptr<const access_keys> keys_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const access_keys> refused_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::int64_t> expires_unix_s_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point ask_at_ ABSL_GUARDED_BY(mutex_);
  bool is_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_asking_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// Keys in JSON, as credential_process, containers and machines give them.
///   throws   error{errc::io}: it is none, without a word of it
[[nodiscard]] lent_keys parse_lent_keys(std::string_view json, std::string_view id_name);
/// The answer of AssumeRoleWithWebIdentity.
[[nodiscard]] lent_keys parse_role_keys(std::string_view xml);
/// "2026-11-25T04:11:00Z", a fraction of a second passed over; nothing for other texts.
[[nodiscard]] std::optional<std::int64_t> parse_utc_time(const std::string& text);

}  // namespace leat::io
