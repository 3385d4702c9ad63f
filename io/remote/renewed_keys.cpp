#include "io/remote/renewed_keys.hpp"

#include "base/start_thread.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <pthread.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <utility>

namespace leat::io {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::int64_t ahead_s = 300;
constexpr auto between_failures = std::chrono::seconds(10);

std::int64_t unix_now() { return static_cast<std::int64_t>(std::time(nullptr)); }

clock::time_point time_to_ask(std::int64_t expires_unix_s) {
  const std::int64_t left = std::max<std::int64_t>(expires_unix_s - unix_now(), 0);
  // A year, at the most: the clock's arithmetic ends somewhere.
  return clock::now() +
         std::chrono::seconds(std::clamp<std::int64_t>(left < 2 * ahead_s ? left / 2 : left - ahead_s, 1, 31'536'000));
}

bool is_sound(const access_keys& keys) {
  const auto is_printable = [](const std::string& text) {
    return std::all_of(text.begin(), text.end(), [](char letter) { return letter > 0x20 && letter < 0x7F; });
  };
  return !keys.id.empty() && !keys.secret.empty() && is_printable(keys.id) && is_printable(keys.token);
}

[[noreturn]] void refuse() { throw error(errc::io, "what came has no keys in it"); }

std::string between(std::string_view xml, const std::string& name) {
  const std::string opens = "<" + name + ">";
  const std::size_t begin = xml.find(opens);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = xml.find("</" + name + ">", begin);
  if (end == std::string_view::npos) return {};
  return std::string(xml.substr(begin + opens.size(), end - begin - opens.size()));
}

}  // namespace

std::optional<std::int64_t> parse_utc_time(const std::string& text) {
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
  if (rest != "Z" && rest != "+00:00") return std::nullopt;
  if (at.tm_year < 1970 || at.tm_mon < 1 || at.tm_mon > 12 || at.tm_mday < 1 || at.tm_mday > 31) return std::nullopt;
  at.tm_year -= 1900;
  at.tm_mon -= 1;
  return static_cast<std::int64_t>(::timegm(&at));
}

lent_keys parse_lent_keys(std::string_view json, std::string_view id_name) {
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) refuse();
  const auto text = [&](std::string_view name) {
    const auto found = parsed.find(name);
    return found != parsed.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  lent_keys lent;
  lent.keys = {text(id_name), text("SecretAccessKey"), text("SessionToken")};
  if (lent.keys.token.empty()) lent.keys.token = text("Token");
  if (!is_sound(lent.keys)) refuse();
  if (const std::string expires = text("Expiration"); !expires.empty()) {
    lent.expires_unix_s = parse_utc_time(expires);
    if (!lent.expires_unix_s) refuse();
  }
  return lent;
}

lent_keys parse_role_keys(std::string_view xml) {
  lent_keys lent;
  lent.keys = {between(xml, "AccessKeyId"), between(xml, "SecretAccessKey"), between(xml, "SessionToken")};
  lent.expires_unix_s = parse_utc_time(between(xml, "Expiration"));
  if (!is_sound(lent.keys) || !lent.expires_unix_s) refuse();
  return lent;
}

renewed_keys::renewed_keys(key_lender lender) : lender_(std::move(lender)) {
  lent_keys first = lender_();
  const mutex_lock lock(mutex_);
  keys_ = std::make_shared<const access_keys>(std::move(first.keys));
  expires_unix_s_ = first.expires_unix_s;
  if (!expires_unix_s_) return;
  ask_at_ = time_to_ask(*expires_unix_s_);
  thread_ = start_thread({.what = "thread that renews keys"}, [this] {
    ::pthread_setname_np(::pthread_self(), "leat-keys");
    run();
  });
}

renewed_keys::~renewed_keys() {
  {
    const mutex_lock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const access_keys> renewed_keys::now() const {
  const mutex_lock lock(mutex_);
  return keys_;
}

bool renewed_keys::have_expired(const std::shared_ptr<const access_keys>& refused) {
  const mutex_lock lock(mutex_);
  if (refused != keys_ || is_wanted_ || is_asking_) return true;
  if (!thread_.joinable() || refused == refused_) return false;
  refused_ = refused;
  is_wanted_ = true;
  changed_.notify_all();
  return true;
}

void renewed_keys::run() {
  mutex_lock lock(mutex_);
  for (;;) {
    while (!is_ending_ && !is_wanted_ && clock::now() < ask_at_) changed_.wait_until(mutex_, ask_at_);
    if (is_ending_) return;
    is_wanted_ = false;
    is_asking_ = true;
    lock.unlock();
    std::optional<lent_keys> next;
    try {
      next = lender_();
    } catch (const std::exception&) {
      // The keys that are there may be good for minutes; where they are not, the store says so, and the run ends with that.
    }
    lock.lock();
    is_asking_ = false;
    if (!next) {
      ask_at_ = clock::now() + between_failures;
      continue;
    }
    keys_ = std::make_shared<const access_keys>(std::move(next->keys));
    expires_unix_s_ = next->expires_unix_s;
    ask_at_ = next->expires_unix_s ? time_to_ask(*next->expires_unix_s) : clock::now() + std::chrono::hours(24);
  }
}

}  // namespace leat::io
