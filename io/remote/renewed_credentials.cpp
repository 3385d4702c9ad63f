#include "io/remote/renewed_credentials.hpp"

#include "base/mutex.hpp"
#include "base/parse_json.hpp"
#include "base/start_thread.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>
#include <openssl/crypto.h>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <thread>
#include <utility>

namespace leat::io {
namespace {

using clock = std::chrono::steady_clock;

bool is_sound(const access_keys& keys) {
  const auto is_printable = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char letter) { return letter > 0x20 && letter < 0x7F; });
  };
  return !keys.id.empty() && !keys.secret.empty() && is_printable(keys.id) && is_printable(keys.token);
}

[[noreturn]] void refuse() { throw error(errc::io, "what came has no keys in it"); }
[[noreturn]] void refuse_time() {
  throw error(errc::io, "its Expiration is no time that leat reads; it is to be as 2026-11-25T04:11:00Z");
}

// "Z", "+02:00", "+0200", "-03"; in seconds.
std::optional<std::int64_t> parse_offset(std::string_view text) {
  if (text == "Z") return 0;
  if (!text.starts_with('+') && !text.starts_with('-')) return std::nullopt;
  std::string digits;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == ':' && i == 3 && text.size() == 6) continue;
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    digits += text[i];
  }
  if (digits.size() != 2 && digits.size() != 4) return std::nullopt;
  const int hours = std::stoi(digits.substr(0, 2));
  const int minutes = digits.size() == 4 ? std::stoi(digits.substr(2)) : 0;
  if (hours > 23 || minutes > 59) return std::nullopt;
  return (text.front() == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

void wipe(std::string& text) { ::OPENSSL_cleanse(text.data(), text.size()); }

std::string between(std::string_view xml, const std::string& name) {
  const std::string opens = "<" + name + ">";
  const std::size_t begin = xml.find(opens);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = xml.find("</" + name + ">", begin);
  if (end == std::string_view::npos) return {};
  return std::string(xml.substr(begin + opens.size(), end - begin - opens.size()));
}

}  // namespace

std::optional<std::int64_t> parse_time(const std::string& text) {
  std::tm at{};
  int end = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &at.tm_year, &at.tm_mon, &at.tm_mday, &at.tm_hour,
                  &at.tm_min, &at.tm_sec, &end) != 6) {
    return std::nullopt;
  }
  std::string_view rest = std::string_view(text).substr(static_cast<std::size_t>(end));
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    while (!rest.empty() && std::isdigit(static_cast<unsigned char>(rest.front())) != 0) rest.remove_prefix(1);
  }
  const std::optional<std::int64_t> offset_s = parse_offset(rest);
  if (!offset_s) return std::nullopt;
  if (at.tm_year < 1970 || at.tm_mon < 1 || at.tm_mon > 12 || at.tm_mday < 1 || at.tm_mday > 31) return std::nullopt;
  at.tm_year -= 1900;
  at.tm_mon -= 1;
  return static_cast<std::int64_t>(::timegm(&at)) - *offset_s;
}

temporary_credentials parse_temporary_credentials(std::string_view json, std::string_view id_name) {
  nlohmann::json parsed = parse_json_or_discard(json);
  if (!parsed.is_object()) refuse();
  const auto text = [&](std::string_view name) {
    const auto found = parsed.find(name);
    return found != parsed.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  temporary_credentials renewed;
  renewed.keys = {text(id_name), text("SecretAccessKey"), text("SessionToken")};
  if (renewed.keys.token.empty()) renewed.keys.token = text("Token");
  const std::string expires = text("Expiration");
  for (nlohmann::json& each : parsed) {
    if (each.is_string()) wipe(each.get_ref<std::string&>());
  }
  if (!is_sound(renewed.keys)) refuse();
  if (!expires.empty()) {
    renewed.expires_unix_s = parse_time(expires);
    if (!renewed.expires_unix_s) refuse_time();
  }
  return renewed;
}

temporary_credentials parse_role_keys(std::string_view xml) {
  temporary_credentials renewed;
  renewed.keys = {between(xml, "AccessKeyId"), between(xml, "SecretAccessKey"), between(xml, "SessionToken")};
  if (!is_sound(renewed.keys)) refuse();
  renewed.expires_unix_s = parse_time(between(xml, "Expiration"));
  if (!renewed.expires_unix_s) refuse_time();
  return renewed;
}

std::chrono::milliseconds time_to_renewal(std::int64_t expires_in_s, const renewal_pauses& pauses) {
  // A year, at the most: the clock's arithmetic ends somewhere.
  const std::chrono::milliseconds left = std::chrono::seconds(std::clamp<std::int64_t>(expires_in_s, 0, 31'536'000));
  if (left.count() == 0) return pauses.expired_min;
  return left < 2 * pauses.ahead ? std::max(left / 2, pauses.short_lived_min) : left - pauses.ahead;
}

// Of one process.
class renewed_credentials::renewal {
 public:
  renewal(const credential_provider& provider, const renewal_pauses& pauses)
      : provider_(provider), pauses_(pauses), newest_{std::make_shared<const access_keys>()} {
    temporary_credentials first = provider_();
    expires_ = first.expires_unix_s.has_value();
    const mutex_lock lock(mutex_);
    take(std::move(first));
  }
  // In a child: the keys are those that the parent had, and the next ones are asked for at once.
  explicit renewal(const renewal& of_parent)
      : provider_(of_parent.provider_),
        pauses_(of_parent.pauses_),
        expires_(of_parent.expires_),
        newest_{of_parent.newest_[of_parent.newest_place_.load(std::memory_order_acquire)]},
        ask_at_(clock::now()) {}
  renewal& operator=(const renewal&) = delete;
  ~renewal() {
    std::thread ended;
    {
      const mutex_lock lock(mutex_);
      is_ending_ = true;
      changed_.notify_all();
      ended = std::move(thread_);
    }
    if (ended.joinable()) ended.join();
  }

  [[nodiscard]] std::shared_ptr<const access_keys> now() {
    const mutex_lock lock(mutex_);
    keep_going();
    return newest();
  }
  bool have_expired(const std::shared_ptr<const access_keys>& refused) {
    const mutex_lock lock(mutex_);
    keep_going();
    if (refused != newest()) return true;
    if (expires_ && !is_asking_) {
      ask_at_ = std::min(ask_at_, std::max(clock::now(), not_before_));
      changed_.notify_all();
    }
    return expires_;
  }

 private:
  [[nodiscard]] const std::shared_ptr<const access_keys>& newest() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return newest_[newest_place_.load(std::memory_order_relaxed)];
  }
  void take(temporary_credentials next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::size_t place = 1 - newest_place_.load(std::memory_order_relaxed);
    newest_[place] = std::make_shared<const access_keys>(std::move(next.keys));
    newest_place_.store(place, std::memory_order_release);
    ask_at_ = clock::now() + (next.expires_unix_s ? time_to_renewal(*next.expires_unix_s - std::time(nullptr), pauses_)
                                                  : std::chrono::hours(24));
  }
  // The thread is started when keys are first asked for, and again where none was to be had.
  void keep_going() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!expires_ || thread_.joinable()) return;
    thread_ = start_thread({.what = "thread that renews keys"}, [this] {
      ::pthread_setname_np(::pthread_self(), "leat-keys");
      run();
    });
  }
  void run() {
    mutex_lock lock(mutex_);
    for (;;) {
      while (!is_ending_ && clock::now() < ask_at_) changed_.wait_until(mutex_, ask_at_);
      if (is_ending_) return;
      is_asking_ = true;
      lock.unlock();
      std::optional<temporary_credentials> next;
      try {
        next = provider_();
      } catch (const std::exception&) {
        // The keys that are there may be good for minutes; where they are not, the store says so, and who reads waits for a while.
      }
      lock.lock();
      is_asking_ = false;
      not_before_ = clock::now() + pauses_.after_asking;
      ask_at_ = not_before_;
      if (next) take(std::move(*next));
    }
  }

  const credential_provider& provider_;
  const renewal_pauses& pauses_;
  bool expires_ = false;
  // In two places: that of the newest ones is not written to, so that a child reads it whatever the thread did at the fork.
  std::array<std::shared_ptr<const access_keys>, 2> newest_;
  std::atomic<std::size_t> newest_place_{0};
  mutex mutex_;
  condition_variable changed_;
  clock::time_point ask_at_ ABSL_GUARDED_BY(mutex_);
  clock::time_point not_before_ ABSL_GUARDED_BY(mutex_) = clock::time_point::min();
  bool is_asking_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

renewed_credentials::renewed_credentials(credential_provider provider, const renewal_pauses& pauses)
    : provider_(std::move(provider)), pauses_(pauses) {
  static_cast<void>(now());
}
renewed_credentials::~renewed_credentials() = default;

renewed_credentials::renewal& renewed_credentials::here() {
  return renewal_.get([this](const renewal* of_parent) {
    return of_parent == nullptr ? std::make_unique<renewal>(provider_, pauses_) : std::make_unique<renewal>(*of_parent);
  });
}
std::shared_ptr<const access_keys> renewed_credentials::now() { return here().now(); }
bool renewed_credentials::have_expired(const std::shared_ptr<const access_keys>& refused) {
  return here().have_expired(refused);
}

}  // namespace leat::io
