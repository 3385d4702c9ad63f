#include "datasets/views/shuffle.hpp"

#include <Random123/philox.h>

#include <cstddef>
#include <numeric>
#include <utility>

namespace leat::datasets {
namespace {

// FNV-1a: no number of one purpose is drawn for another.
constexpr std::uint32_t purpose_key(std::string_view purpose) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : purpose) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

class draws {
 public:
  draws(std::uint64_t seed, std::string_view purpose) noexcept
      : key_{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}},
        purpose_(purpose_key(purpose)) {}

  // Uniform in 0..n-1: the product's high half, without the few low halves that would favour some values.
  [[nodiscard]] std::uint64_t below(std::uint64_t n) noexcept {
    __extension__ using uint128 = unsigned __int128;
    const std::uint64_t uneven = (0 - n) % n;
    for (;;) {
      const uint128 product = static_cast<uint128>(word()) * n;
      if (static_cast<std::uint64_t>(product) >= uneven) return static_cast<std::uint64_t>(product >> 64);
    }
  }

 private:
  [[nodiscard]] std::uint64_t word() noexcept {
    if (used_ == 2) {
      const r123::Philox4x32::ctr_type counter{
          {static_cast<std::uint32_t>(blocks_), static_cast<std::uint32_t>(blocks_ >> 32), 0, purpose_}};
      block_ = r123::Philox4x32{}(counter, key_);
      ++blocks_;
      used_ = 0;
    }
    const std::size_t at = 2 * used_++;
    return std::uint64_t{block_[at]} << 32 | block_[at + 1];
  }

  r123::Philox4x32::key_type key_;
  r123::Philox4x32::ctr_type block_{};
  std::uint32_t purpose_;
  std::uint64_t blocks_ = 0;
  std::size_t used_ = 2;
};

}  // namespace

std::vector<std::uint64_t> shuffled(std::uint64_t n, std::uint64_t seed, std::string_view purpose) {
  std::vector<std::uint64_t> order(n);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  draws from(seed, purpose);
  for (std::uint64_t left = n; left > 1; --left) std::swap(order[left - 1], order[from.below(left)]);
  return order;
}

}  // namespace leat::datasets
