// Random numbers for transforms of your own. They depend on (seed, epoch, draw, operation) and on nothing else.
#pragma once

#include <leat/compiler.hpp>

#include <array>
#include <cstdint>

#pragma GCC visibility push(default)
namespace leat {

class random_draws;  // base/random.hpp

/// The draws of one operation on one sample. A value: copying it copies its place in the sequence. Fewer than 2^18
/// numbers are drawn.
///   source   Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011
class draws {
 public:
  /// Those of the operation "", seed 0.
  draws() noexcept;

  /// 32 uniform bits.
  [[nodiscard]] std::uint32_t bits() noexcept;
  /// Uniform in [0, 1), 53 bits. Takes two numbers.
  [[nodiscard]] double uniform() noexcept;
  [[nodiscard]] double uniform(double from, double to) noexcept { return from + (to - from) * uniform(); }
  /// Uniform in 0..n-1, n > 0. Takes two numbers.
  [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept;

 private:
  friend draws as_draws(const random_draws& from) noexcept;

  alignas(8) std::array<unsigned char, 64> state_{};  // a random_draws: its header is no public one
};

}  // namespace leat
#pragma GCC visibility pop
