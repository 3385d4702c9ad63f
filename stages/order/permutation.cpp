#include "stages/order/permutation.hpp"

#include <cassert>
#include <cmath>
#include <utility>

namespace leat::stages {
namespace {

// The smallest a with a * a >= n. The square root is only a guess: what it is rounded to must not change an order.
std::uint64_t root_ceiling(std::uint64_t n) noexcept {
  auto a = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  while (a * a < n) ++a;
  while (a > 1 && (a - 1) * (a - 1) >= n) --a;
  return a;
}

}  // namespace

permutation::permutation(std::uint64_t n, random_draws draws) noexcept : n_(n) {
  assert(n <= draws_end);
  if (n <= table_size_max) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto j = static_cast<std::size_t>(draws.below(i + 1));
      table_[i] = table_[j];
      table_[j] = static_cast<std::uint8_t>(i);
    }
    return;
  }
  high_size_ = root_ceiling(n);
  low_size_ = (n + high_size_ - 1) / high_size_;
  const auto word = [&draws] {
    const std::uint64_t high = draws.bits();
    return (high << 32) | draws.bits();
  };
  for (round& r : rounds_) {
    r.factor = word();
    r.addend = word();
  }
}

// Uniform in 0..bound-1 over the keys. The first line alone is pairwise independent over its two keys in its upper 32
// bits, but nearly a straight line in x; folding and multiplying again breaks the line (2^64 / golden ratio, made odd).
inline std::uint64_t permutation::round::below(std::uint64_t bound, std::uint64_t x) const noexcept {
  std::uint64_t hash = x * factor + addend;
  hash ^= hash >> 32;
  hash *= 0x9e3779b97f4a7c15U;
  return static_cast<std::uint64_t>((static_cast<uint128>(hash) * bound) >> 64);
}

inline std::uint64_t permutation::encrypt(std::uint64_t x) const noexcept {
  std::uint64_t high = x / low_size_;
  std::uint64_t low = x - high * low_size_;
  for (std::size_t i = 0; i < round_count; i += 2) {
    high += rounds_[i].below(high_size_, low);
    high -= high >= high_size_ ? high_size_ : 0;
    low += rounds_[i + 1].below(low_size_, high);
    low -= low >= low_size_ ? low_size_ : 0;
  }
  return high * low_size_ + low;
}

// The rounds of encrypt() from the last to the first, each taken back.
inline std::uint64_t permutation::decrypt(std::uint64_t x) const noexcept {
  std::uint64_t high = x / low_size_;
  std::uint64_t low = x - high * low_size_;
  for (std::size_t i = round_count; i != 0; i -= 2) {
    const std::uint64_t to_low = rounds_[i - 1].below(low_size_, high);
    low = (low < to_low ? low + low_size_ : low) - to_low;
    const std::uint64_t to_high = rounds_[i - 2].below(high_size_, low);
    high = (high < to_high ? high + high_size_ : high) - to_high;
  }
  return high * low_size_ + low;
}

std::uint64_t permutation::operator()(std::uint64_t i) const noexcept {
  assert(i < n_);
  if (n_ <= table_size_max) return table_[i];
  // Ends, because encrypt() walks a cycle that comes back to i < n_ at the latest; above 256 things at least 94 in a
  // hundred end at the first step.
  std::uint64_t x = encrypt(i);
  while (x >= n_) x = encrypt(x);
  return x;
}

std::uint64_t permutation::place_of(std::uint64_t thing) const noexcept {
  assert(thing < n_);
  if (n_ <= table_size_max) {
    return static_cast<std::uint64_t>(std::find(table_.begin(), table_.end(), thing) - table_.begin());
  }
  std::uint64_t x = decrypt(thing);
  while (x >= n_) x = decrypt(x);
  return x;
}

void permutation::operator()(std::uint64_t first, std::span<std::uint64_t> out) const noexcept {
  assert(out.size() <= n_ && first <= n_ - out.size());
  // Independent of one another, so that the processor works on two or three at a time.
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = (*this)(first + k);
}

}  // namespace leat::stages
