// A trainer that only sleeps.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <thread>

namespace leat::tools {

/// Stands for a trainer's steps, and sums up as MLPerf Storage does: the steps' time over all time, the first step left out.
class stand_in {
  using clock = std::chrono::steady_clock;

 public:
  ///   step_ms   of each batch; none: it does nothing
  explicit stand_in(std::optional<std::uint32_t> step_ms) : step_ms_(step_ms) {}

  void step(const std::stop_token& stop) {
    if (!step_ms_) return;
    const clock::time_point began = clock::now();
    const clock::time_point end = began + std::chrono::milliseconds(*step_ms_);
    while (!stop.stop_requested() && clock::now() < end) {
      std::this_thread::sleep_until(std::min(end, clock::now() + std::chrono::milliseconds(50)));
    }
    ended_ = clock::now();
    if (!first_ended_) {
      first_ended_ = ended_;
    } else {
      in_steps_ += ended_ - began;
    }
  }
  [[nodiscard]] std::optional<double> au() const {
    if (!first_ended_ || ended_ == *first_ended_) return std::nullopt;
    return std::chrono::duration<double>(in_steps_) / std::chrono::duration<double>(ended_ - *first_ended_);
  }

 private:
  const std::optional<std::uint32_t> step_ms_;
  std::optional<clock::time_point> first_ended_;
  clock::time_point ended_;
  clock::duration in_steps_{0};
};

}  // namespace leat::tools
