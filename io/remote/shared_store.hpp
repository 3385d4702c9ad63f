// A store's state, of all that ask it in a process: what one loader has found out holds for the others.
#pragma once

#include "base/mutex.hpp"
#include "io/remote/address.hpp"
#include "io/remote/store_state.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace leat::io {

/// Thread: any. Times are those of ran_ns().
class shared_store {
 public:
  struct view {
    store_state::condition now = store_state::condition::healthy;
    std::uint64_t silent_ns = 0;
    double rate = 0;
    bool has_answered = false;
  };

  explicit shared_store(std::uint64_t seed) : state_(seed) {}

  /// Calls with the state.
  template <class Call>
  auto with(const Call& call) {
    const mutex_lock lock(mutex_);
    return call(state_);
  }
  [[nodiscard]] view look(std::uint64_t now_ns) const {
    const mutex_lock lock(mutex_);
    return {state_.now(), state_.silent_ns(now_ns), state_.rate(), state_.has_answered()};
  }

 private:
  mutable mutex mutex_;
  store_state state_ ABSL_GUARDED_BY(mutex_);
};

/// That one request may be sent, until it is told what has become of it.
class admission {
 public:
  admission() = default;
  admission(const admission&) = delete;
  admission& operator=(const admission&) = delete;
  ~admission() { end(&store_state::dropped); }

  /// 0: it may be sent. Else how long to wait before asking again.
  [[nodiscard]] std::uint64_t ask(const std::shared_ptr<shared_store>& store, std::uint64_t now_ns,
                                  std::uint32_t lane) {
    const std::uint64_t wait = store->with([&](store_state& state) { return state.admit(now_ns, lane, ticket_); });
    if (wait == 0) store_ = store;
    return wait;
  }
  [[nodiscard]] bool is_probe() const noexcept { return store_ != nullptr && ticket_.is_probe; }
  /// As those of store_state: "&store_state::answered, now_ns".
  template <class Call, class... Arguments>
  void end(Call call, Arguments... arguments) {
    const std::shared_ptr<shared_store> store = std::exchange(store_, nullptr);
    if (store) store->with([&](store_state& state) { (state.*call)(ticket_, arguments...); });
  }

 private:
  std::shared_ptr<shared_store> store_;  // a store outlives what was asked of it; null: it may not be sent
  store_state::ticket ticket_;
};

/// "https://host:port".
[[nodiscard]] std::string server_name(const address& where);
/// Of a target: the folder that an object lies in, two folders deep at the most. S3 throttles by prefixes, and divides them as it likes.
[[nodiscard]] std::string_view throttled_prefix(std::string_view target);
/// That of a server, by its name, as long as anybody has it.
[[nodiscard]] std::shared_ptr<shared_store> store_at(const std::string& server);

}  // namespace leat::io
