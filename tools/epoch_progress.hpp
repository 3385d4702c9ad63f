// The bar of a run: how far it is, how fast, and whom it waits for.
#pragma once

#include "tools/terminal.hpp"

#include <leat/loading.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace leat::tools {

/// Samples and bytes per second over the last few seconds: what a person wants to know of a run whose start was slow.
class recent_rate {
 public:
  void add(double at_s, std::uint64_t samples, std::uint64_t bytes) {
    seen_.push_back({at_s, samples, bytes});
    while (seen_.size() > 2 && seen_.front().at_s < at_s - window_s) seen_.pop_front();
  }
  [[nodiscard]] double samples_per_s() const { return over(seen_.back().samples - seen_.front().samples); }
  [[nodiscard]] double bytes_per_s() const { return over(seen_.back().bytes - seen_.front().bytes); }

 private:
  static constexpr double window_s = 3;
  struct point {
    double at_s = 0;
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] double over(std::uint64_t amount) const {
    const double seconds = seen_.back().at_s - seen_.front().at_s;
    return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
  }
  std::deque<point> seen_ = {{}};
};

/// The bar of a running loader.
class epoch_progress {
 public:
  ///   train   outlives it
  epoch_progress(const loader& train, std::uint64_t samples_in_all, std::uint32_t epochs)
      : train_(train), samples_in_all_(samples_in_all), epochs_(epochs), began_(std::chrono::steady_clock::now()) {}

  [[nodiscard]] std::string draw(const terminal& screen, std::size_t columns);

 private:
  const loader& train_;
  const std::uint64_t samples_in_all_;
  const std::uint32_t epochs_;
  const std::chrono::steady_clock::time_point began_;
  recent_rate rate_;
};

}  // namespace leat::tools
