// A keyed permutation of 0..n-1 in constant memory: the exact, global shuffle. Nothing is stored per sample, and the
// sample at any place of any epoch is known without walking there.
#pragma once

#include "base/random.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::stages {

/// The order of n things under (seed, epoch). Equal arguments give the same order on every machine, for ever.
///
///   n        1..2^48
///   memory   under 600 bytes, whatever n is; setting one up takes about 0.3 us, up to 256 things 2.5 us
///   cost     about 50 ns for one place alone, 30 ns in a row (benchmarks/permutation_benchmark.cpp)
///   bias     up to 256 things: a Fisher-Yates shuffle itself. Above: the image of one place is uniform within n / 2^64,
///            and of a pair of places within about n^(-5/2) of uniform; permutation_test shows both, and triples
///   source   Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002: a Feistel network on Z_a x Z_b
///            with a b just above n (their third method), and what falls outside 0..n-1 goes round again (their second).
///            The round function is multiply-add-shift (Dietzfelbinger, STACS 1996: pairwise independent over its
///            keys), then mixed once more; it is no cipher, and need not be: nobody attacks a shuffle
///
/// Thread: const calls from any number of threads.
class permutation {
 public:
  permutation(std::uint64_t n, std::uint64_t seed, std::uint32_t epoch) noexcept
      : permutation(n, random_draws(seed, epoch, 0, "shuffle")) {}
  /// The order that these draws key: for those who need several of one epoch.
  permutation(std::uint64_t n, random_draws draws) noexcept;

  /// What stands at place i; i < n.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t i) const noexcept;

  /// What stands at places first, first + 1, ...: one for each element of `out`; first + out.size() <= n.
  void operator()(std::uint64_t first, std::span<std::uint64_t> out) const noexcept;

  /// The same as calls: use(k, what stands at place first + k) for k < count.
  template <class Use>
  void for_each(std::uint64_t first, std::size_t count, const Use& use) const noexcept {
    // Some at a time: the numbers stay in the core's cache.
    std::array<std::uint64_t, 256> numbers;
    for (std::size_t begin = 0; begin < count; begin += numbers.size()) {
      const std::size_t some = std::min(numbers.size(), count - begin);
      (*this)(first + begin, std::span(numbers).first(some));
      for (std::size_t i = 0; i < some; ++i) use(begin + i, numbers[i]);
    }
  }

  /// The place where `thing` stands; thing < n. Costs as much as what stands at a place.
  [[nodiscard]] std::uint64_t place_of(std::uint64_t thing) const noexcept;

  [[nodiscard]] std::uint64_t size() const noexcept { return n_; }

 private:
  // Ten rounds: what is left of a pair's bias shrinks by sqrt(n) with every second one.
  static constexpr std::size_t round_count = 10;
  // Where a Feistel network would be too narrow to be fair, the shuffle is done and kept: its places fit in a byte.
  static constexpr std::uint64_t table_size_max = 256;

  struct round {
    std::uint64_t factor = 0;
    std::uint64_t addend = 0;

    [[nodiscard]] std::uint64_t below(std::uint64_t bound, std::uint64_t x) const noexcept;
  };

  [[nodiscard]] std::uint64_t encrypt(std::uint64_t x) const noexcept;
  [[nodiscard]] std::uint64_t decrypt(std::uint64_t x) const noexcept;

  std::uint64_t n_;
  std::uint64_t high_size_ = 0;  // a
  std::uint64_t low_size_ = 0;   // b; a b - n < a
  std::array<round, round_count> rounds_{};
  std::array<std::uint8_t, table_size_max> table_{};
};

}  // namespace leat::stages
