// How many connections a client uses at a time: more as long as a store answers, half as many where it says that it is asked too much.
#pragma once

#include <algorithm>
#include <cstdint>

namespace leat::io {

/// Additive increase, multiplicative decrease. Until the first refusal each answer allows three more, so that there are four times as many
/// after each round trip. Beyond 32 only while answers take long: a store that is near answers as many with few connections.
class connection_limit {
 public:
  ///   most   1 at least
  explicit connection_limit(std::uint32_t most)
      : most_(std::max(most, std::uint32_t{1})), now_(std::min(most_, first)) {}

  [[nodiscard]] std::uint32_t now() const noexcept { return static_cast<std::uint32_t>(now_); }
  /// Somebody has found out how many are worth while: so many at the most, and as many however near the store is. One that refused some keeps
  /// the decrease.
  ///   most   1 at least
  void set_most(std::uint32_t most) noexcept {
    near_ = most_ = std::max(most, std::uint32_t{1});
    now_ = was_refused_ ? std::min<double>(now_, most_) : most_;
  }
  ///   took_ns   from its question to its last byte
  void answered(std::uint64_t took_ns) noexcept {
    // The first answers, to the openings of objects, tell already how far the store is.
    answers_ = std::min(answers_ + 1, answers_of_mean);
    mean_ns_ += (static_cast<double>(took_ns) - mean_ns_) / answers_;
    if (now_ >= near_ && mean_ns_ < long_ns) return;
    now_ = std::min<double>(most_, now_ + (was_refused_ ? 1 / now_ : 3));
  }
  /// 503 or 429. Those that were asked before the last decrease say nothing new.
  ///   asked_ns   when that was, and what time it is
  void refused(std::uint64_t asked_ns, std::uint64_t now_ns) noexcept {
    if (was_refused_ && asked_ns < decreased_ns_) return;
    was_refused_ = true;
    decreased_ns_ = now_ns;
    now_ = std::max(1.0, now_ / 2);
  }

 private:
  static constexpr std::uint32_t first = 32;
  static constexpr double answers_of_mean = 32;
  static constexpr double long_ns = 10e6;
  std::uint32_t most_;
  std::uint32_t near_ = first;  // of a store that is near
  double now_;
  double mean_ns_ = 0;
  double answers_ = 0;  // that the mean is of
  bool was_refused_ = false;
  std::uint64_t decreased_ns_ = 0;
};

}  // namespace leat::io
