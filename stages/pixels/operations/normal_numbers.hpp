// Numbers of the normal law by the thousand: 16 random bits are one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// The middle of each of 65,536 parts of equal probability, to 4.17 deviations on either side: finer than values of 8 bits need.
class normal_numbers {
 public:
  /// Made at the first call, the same on every machine.
  [[nodiscard]] static const normal_numbers& get() noexcept;
  ///   bits   0..65535
  [[nodiscard]] float of(std::uint32_t bits) const noexcept {
    const float above = half_[bits & 0x7FFF];
    return (bits & 0x8000) != 0 ? above : -above;
  }

 private:
  normal_numbers() noexcept;
  std::array<float, 32768> half_;
};

}  // namespace leat::pixels
