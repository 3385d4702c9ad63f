// How many requests a second, and at a time, a store allows, found out by what it refuses.
#pragma once

#include <cstdint>

namespace leat::io {

/// Without a clock: times are nanoseconds since any beginning. While nothing is refused there is no rate. Then requests are sent at the rate that was
/// served, less with each interval that has refusals (multiplicative decrease) and more with each that has none: slowly near the rate that was
/// refused last, by up to twice as much below and beyond it. Where fewer requests do not make fewer refusals, they are not about the rate, and it
/// is left alone for a while. With a rate, as many requests are under way as it makes of answers that take so long.
class request_rate {
 public:
  /// Of some time, what became of requests.
  struct interval {
    std::uint64_t began_ns = 0;
    std::uint32_t answered = 0;
    std::uint32_t refused = 0;
    bool was_limiting = false;
  };

  enum class counted : std::uint8_t { not_at_all, in_an_interval, at_its_end };

  /// 0: a request may be sent now. Else how long to wait before asking again.
  ///   in_flight   that were sent and have not ended
  [[nodiscard]] std::uint64_t wait(std::uint64_t now_ns, std::uint32_t in_flight);
  /// One that was sent has ended.
  counted count(std::uint64_t asked_ns, std::uint64_t now_ns, bool was_refused);
  /// The interval that ended last.
  [[nodiscard]] const interval& last() const noexcept { return last_; }
  /// A store that was away is back: what came before says nothing.
  void begin_anew() { interval_ = {}; }
  /// Requests a second at the most; 0: as many as there are.
  [[nodiscard]] double rate() const noexcept { return rate_; }
  /// At a time, where there is a rate: Little's law.
  [[nodiscard]] std::uint32_t in_flight_most() const noexcept;

 private:
  void evaluate(const interval& seen, std::uint64_t now_ns);
  [[nodiscard]] bool are_not_about_the_rate(double sent, double share);
  void grow(const interval& seen, std::uint64_t now_ns);

  double rate_ = 0;
  double answer_s_ = 0;        // that answers take, the mean of the last ones
  std::uint32_t answers_ = 0;  // that this is of
  double refused_at_ = 0;      // requests a second, when some were refused last
  bool refused_all_ = false;   // in the interval before
  double tokens_ = 0;
  std::uint64_t tokens_at_ns_ = 0;
  std::uint64_t decreased_ns_ = 0;
  interval interval_;
  interval last_;
  double rate_at_first_ = 0;  // that requests were sent by when refusals began; 0: they have ended
  double share_at_first_ = 0;
  unsigned alike_ = 0;
  std::uint64_t ignored_until_ns_ = 0;
  std::uint64_t ignored_for_ns_ = 0;
};

}  // namespace leat::io
