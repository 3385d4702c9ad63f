// Randomness for fakes: small, seeded, the same on every machine and standard library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leat::testing {

/// Mixes 64 bits well. Source: the finaliser of SplitMix64, Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014, with the constants of David Stafford's Mix13.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31);
}

/// One number from a seed and what it is for.
template <class... Numbers>
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t seed, std::uint64_t first, Numbers... rest) noexcept {
  return mix_bits(mix_bits(seed + 0x9E3779B97F4A7C15U) ^ first, static_cast<std::uint64_t>(rest)...);
}

/// Whether what has probability `chance` happens, where `bits` were drawn.
[[nodiscard]] constexpr bool happens(std::uint64_t bits, double chance) noexcept {
  return static_cast<double>(bits >> 11) * 0x1.0p-53 < chance;
}

/// SplitMix64. Not std::mt19937: that one is as exact, but std::uniform_int_distribution differs between libraries.
class seeded_random {
 public:
  explicit constexpr seeded_random(std::uint64_t seed) noexcept : state_(mix_bits(seed)) {}

  constexpr std::uint64_t next() noexcept { return mix_bits(state_ += 0x9E3779B97F4A7C15U); }
  /// 0 .. bound - 1; `bound` > 0. The bias of bound / 2^64 is below what any test sees.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }
  constexpr bool chance(double probability) noexcept { return happens(next(), probability); }

 private:
  std::uint64_t state_;
};

/// Fills `out` with bytes offset, offset + 1 ... of the endless stream that `key` names: what a seeded file holds, so
/// that any part of it can be told without the rest.
inline void fill_seeded(std::uint64_t key, std::uint64_t offset, std::span<std::byte> out) noexcept {
  constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
  std::uint64_t word = offset / word_bytes;
  std::size_t skip = offset % word_bytes;
  for (std::size_t done = 0; done < out.size(); ++word, skip = 0) {
    std::uint64_t bits = mix_bits(key, word);
    std::byte bytes[word_bytes];
    for (std::byte& each : bytes) {  // least significant first, whatever the machine does
      each = static_cast<std::byte>(bits & 0xFFU);
      bits >>= 8;
    }
    const std::size_t count = word_bytes - skip < out.size() - done ? word_bytes - skip : out.size() - done;
    std::memcpy(out.data() + done, bytes + skip, count);
    done += count;
  }
}

}  // namespace leat::testing
