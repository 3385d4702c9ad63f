// Randomness by counter: what is drawn depends on (seed, epoch, draw, operation) and on nothing else, so threads,
// timing and order cannot change it, and two fields that name the same operation share its draws.
// Philox4x32-10 of Random123: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <Random123/philox.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace leat {

/// A name as 32 bits that stay the same for ever (FNV-1a); or what stands behind one whose bits are `hash`.
[[nodiscard]] constexpr std::uint32_t operation_key(std::string_view name, std::uint32_t hash = 2166136261U) noexcept {
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

__extension__ using uint128 = unsigned __int128;

/// leat::pick::draw is smaller.
constexpr std::uint64_t draws_end = std::uint64_t{1} << 48;

/// The draws of one operation on one sample. A value: copying it copies its place in the sequence.
class random_draws {
 public:
  /// draw < draws_end, and fewer than 2^18 numbers are drawn per operation.
  random_draws(std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw, std::string_view operation) noexcept
      : random_draws(seed, epoch, draw, operation_key(operation)) {}
  /// Of the operation with this key.
  random_draws(std::uint64_t seed, std::uint32_t epoch, std::uint64_t draw, std::uint32_t operation) noexcept
      : key_{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}},
        counter_{{static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32) << 16, epoch, operation}} {}

  /// 32 uniform bits.
  [[nodiscard]] std::uint32_t bits() noexcept {
    if (used_ == 4) {
      block_ = r123::Philox4x32{}(counter_, key_);
      ++counter_[1];  // The low 16 bits number the block; the high ones are the draw's.
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double uniform() noexcept {
    const std::uint64_t high = bits() >> 5;
    const std::uint64_t low = bits() >> 6;
    return static_cast<double>((high << 26) | low) * 0x1.0p-53;
  }

  [[nodiscard]] double uniform(double from, double to) noexcept { return from + (to - from) * uniform(); }

  /// Uniform in 0..n-1, n > 0; the bias is below 2^-32 for n < 2^32 (fixed-point multiply on 64 bits).
  [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept {
    const std::uint64_t high = bits();
    const std::uint64_t word = (high << 32) | bits();
    return static_cast<std::uint64_t>((static_cast<uint128>(word) * n) >> 64);
  }

 private:
  r123::Philox4x32::key_type key_;
  r123::Philox4x32::ctr_type counter_;
  r123::Philox4x32::ctr_type block_{};
  std::size_t used_ = 4;
};

/// Fisher and Yates: every order is as likely.
template <class T, std::size_t extent>
void shuffle(std::span<T, extent> items, random_draws& draws) noexcept {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[draws.below(i)]);
}

class draws;  // <leat/draws.hpp>

/// The same place in the same sequence, for a user's function.
[[nodiscard]] draws as_draws(const random_draws& from) noexcept;

}  // namespace leat
