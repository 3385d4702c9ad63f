// What a process knows of one store: whether it keeps up, asks for less, or is away. Requests do not count tries: they wait for this to
// change, and one of them asks again.
#pragma once

#include <cstdint>
#include <random>

namespace leat::io {

/// Without a clock and without a lock: both are its owner's. Times are nanoseconds since any beginning.
///
/// Away is a store none of whose last answers were of use, for a tenth of a second (half of one, where it said 503 or 429): then one request at
/// a time asks whether it is back. Throttled is a store that refuses some of what it is asked: requests are sent at the rate that it has served,
/// less with each window that has refusals (multiplicative decrease) and more with each that has none: slowly near the rate that was refused
/// last, by up to twice as much below and beyond it. Where fewer requests do not make fewer refusals, they are not about the rate, and it is
/// left alone for a while.
class store_state {
 public:
  enum class condition : std::uint8_t { healthy, throttled, away };
  /// Of a request that is sent; exactly one of answered(), refused(), failed() and dropped() follows.
  struct ticket {
    std::uint64_t asked_ns = 0;
    bool is_probe = false;
  };
  /// Between two requests that ask whether a store is back: twice as long each time, at random, up to `most_ns`.
  struct pauses {
    std::uint64_t first_ns = 5'000'000;
    std::uint64_t most_ns = 1'000'000'000;
  };

  explicit store_state(std::uint64_t seed) : random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  /// Whether a request may be sent now: 0, and its ticket. Else how long to wait before asking again.
  [[nodiscard]] std::uint64_t admit(std::uint64_t now_ns, ticket& given);
  /// With bytes, or with a refusal that is about what was asked for.
  void answered(const ticket& of, std::uint64_t now_ns);
  /// 503 or 429.
  ///   retry_after_ns   as the store says; 0: it does not
  void refused(const ticket& of, std::uint64_t now_ns, std::uint64_t retry_after_ns, const pauses& between);
  /// No connection, one that broke, silence, or another 5xx.
  void failed(const ticket& of, std::uint64_t now_ns, const pauses& between);
  /// Nobody wants the answer any more.
  void dropped(const ticket& of);

  [[nodiscard]] condition now() const noexcept;
  /// Since when nothing of use has come, though it was asked for; 0: the last answer was of use.
  [[nodiscard]] std::uint64_t silent_ns(std::uint64_t now_ns) const noexcept {
    return failures_ == 0 || now_ns < failing_since_ns_ ? 0 : now_ns - failing_since_ns_;
  }
  /// Also by refusals: somebody is there.
  [[nodiscard]] bool has_answered() const noexcept { return has_answered_; }
  /// Requests a second at the most; 0: as many as there are.
  [[nodiscard]] double rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }

 private:
  struct window {
    std::uint64_t began_ns = 0;
    std::uint32_t answered = 0;
    std::uint32_t refused = 0;
    bool was_limiting = false;
  };

  void count(const ticket& of, std::uint64_t now_ns, bool was_refused);
  void evaluate(const window& seen, std::uint64_t now_ns);
  [[nodiscard]] bool are_not_about_the_rate(double sent, double share);
  void grow(const window& seen, std::uint64_t now_ns);
  void returned(const ticket& of);
  void had_no_use(const ticket& of, std::uint64_t now_ns, std::uint64_t least_ns, const pauses& between);
  [[nodiscard]] std::uint64_t wait_for_rate(std::uint64_t now_ns);

  std::minstd_rand random_;
  bool has_answered_ = false;
  std::uint32_t in_flight_ = 0;

  // Away.
  std::uint32_t failures_ = 0;  // since the last answer of use
  std::uint64_t failing_since_ns_ = 0;
  bool were_all_refusals_ = false;
  bool is_away_ = false;
  bool is_probed_ = false;
  std::uint64_t probe_at_ns_ = 0;
  std::uint64_t pause_ns_ = 0;
  double ramp_ = 0;  // requests in flight at the most, after a return; 0: any number

  // Throttled.
  double rate_ = 0;
  double refused_at_ = 0;     // requests a second, when some were refused last
  bool refused_all_ = false;  // in the window before
  double tokens_ = 0;
  std::uint64_t tokens_at_ns_ = 0;
  std::uint64_t decreased_ns_ = 0;
  window window_;
  double rate_at_first_ = 0;  // that requests were sent by when refusals began; 0: they have ended
  double share_at_first_ = 0;
  unsigned alike_ = 0;
  std::uint64_t ignored_until_ns_ = 0;
  std::uint64_t ignored_for_ns_ = 0;
};

}  // namespace leat::io
