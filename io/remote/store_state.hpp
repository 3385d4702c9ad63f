// What a process knows of one store: whether it keeps up, asks for less, or is away. Requests do not count tries: they wait for this to
// change, and one of them asks again.
#pragma once

#include "io/remote/request_rate.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace leat::io {

/// Without a clock and without a lock: both are its owner's. Times are nanoseconds since any beginning.
///
/// Away is a store none of whose last answers were of use, for a tenth of a second (half of one, where it said 503 or 429): then one request at
/// a time asks whether it is back. Throttled is a store that refuses some of what it is asked: requests are sent at the rate that it has served
/// (request_rate). This is one for all of it, as most stores have it, until some prefixes are refused and others never are: S3 allows each prefix
/// of a bucket so much. From then on each has its own, until none of them is refused any more.
class store_state {
 public:
  enum class condition : std::uint8_t { healthy, throttled, away };
  /// Of a request that is sent; exactly one of answered(), refused(), failed() and dropped() follows.
  struct ticket {
    std::uint64_t asked_ns = 0;
    std::uint32_t lane = 0;
    bool is_probe = false;
  };
  /// Between two requests that ask whether a store is back: twice as long each time, at random, up to `most_ns`.
  struct pauses {
    std::uint64_t first_ns = 5'000'000;
    std::uint64_t most_ns = 1'000'000'000;
  };

  static constexpr std::size_t lanes_max = 64;

  explicit store_state(std::uint64_t seed) : random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  /// A prefix's number, for admit(); 0 is that of all beyond lanes_max.
  [[nodiscard]] std::uint32_t lane_of(std::string_view name);
  /// Whether a request may be sent now: 0, and its ticket. Else how long to wait before asking again.
  [[nodiscard]] std::uint64_t admit(std::uint64_t now_ns, std::uint32_t lane, ticket& given);
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
  /// Requests a second at the most, of the prefix that is allowed least; 0: as many as there are.
  [[nodiscard]] double rate() const noexcept;
  [[nodiscard]] bool is_by_prefix() const noexcept { return is_by_prefix_; }
  [[nodiscard]] std::uint32_t in_flight() const noexcept { return in_flight_; }

 private:
  struct prefix {
    request_rate rate = {};
    std::uint32_t answered = 0;  // since the last window of all
    std::uint32_t refused = 0;
    std::uint32_t in_flight = 0;
    double evidence = 0;  // that it is not throttled, as others are
  };

  [[nodiscard]] request_rate& rate_of(std::uint32_t lane) { return is_by_prefix_ ? lanes_[lane].rate : all_; }
  void count(const ticket& of, std::uint64_t now_ns, bool was_refused);
  void compare_lanes();
  void returned(const ticket& of);
  void had_no_use(const ticket& of, std::uint64_t now_ns, std::uint64_t least_ns, const pauses& between);

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
  request_rate all_;
  bool is_by_prefix_ = false;
  std::vector<prefix> lanes_ = std::vector<prefix>(1);  // the first one is that of all other prefixes
  std::map<std::string, std::uint32_t, std::less<>> lane_by_name_;
};

}  // namespace leat::io
