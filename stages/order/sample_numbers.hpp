// Numbers of samples, as narrow as the dataset allows.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace leat::stages {

class sample_numbers {
 public:
  sample_numbers() = default;
  /// `count` zeros, to be set.
  ///   samples   of the dataset: all numbers are smaller
  sample_numbers(std::uint64_t count, std::uint64_t samples) {
    if (samples <= std::uint64_t{std::numeric_limits<std::uint32_t>::max()} + 1) {
      narrow_.resize(count);
    } else {
      wide_.resize(count);
    }
  }

  [[nodiscard]] std::uint64_t operator[](std::uint64_t i) const noexcept {
    return wide_.empty() ? narrow_[i] : wide_[i];
  }
  void prefetch(std::uint64_t i) const noexcept {
    __builtin_prefetch(wide_.empty() ? static_cast<const void*>(&narrow_[i]) : static_cast<const void*>(&wide_[i]));
  }
  void set(std::uint64_t i, std::uint64_t sample) noexcept {
    if (wide_.empty()) {
      narrow_[i] = static_cast<std::uint32_t>(sample);
    } else {
      wide_[i] = sample;
    }
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return wide_.empty() ? narrow_.size() : wide_.size(); }

 private:
  std::vector<std::uint32_t> narrow_;
  std::vector<std::uint64_t> wide_;
};

}  // namespace leat::stages
