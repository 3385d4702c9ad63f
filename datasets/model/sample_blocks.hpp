// Which neighbours share a block: by arithmetic where blocks are equal, as nearly all are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat::datasets {

/// Blocks of samples side by side, from the first sample to the last. Blocks of one length take no memory, but for the first and the last
/// one, which may have any (a slice begins within a block, and an array ends within one); others take 8 bytes each.
class sample_blocks {
 public:
  /// Samples share no blocks.
  sample_blocks() = default;
  /// So many samples, whose blocks begin_block() names.
  explicit sample_blocks(std::uint64_t samples) noexcept : samples_(samples) {}
  /// A block for each `each` samples; the last one may have fewer.
  sample_blocks(std::uint64_t samples, std::uint64_t each) noexcept;

  /// The next block begins at this sample: 0, then ever larger ones, below the number of samples.
  void begin_block(std::uint64_t first);

  [[nodiscard]] std::uint64_t size() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

  /// The first sample of block `block`, which may be size(): behind the last sample.
  [[nodiscard]] std::uint64_t first(std::uint64_t block) const noexcept;
  [[nodiscard]] std::uint64_t samples_of(std::uint64_t block) const noexcept { return first(block + 1) - first(block); }
  /// The block of a sample. There are blocks.
  [[nodiscard]] std::uint64_t block_of(std::uint64_t sample) const noexcept;

  /// The samples of each block, of which the first and the last one may have fewer; 0 where blocks differ otherwise.
  [[nodiscard]] std::uint64_t equal() const noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return firsts_.capacity() * sizeof(std::uint64_t); }

 private:
  std::uint64_t samples_ = 0;
  std::uint64_t count_ = 0;
  // Where blocks are equal: samples of the first block, and of others.
  std::uint64_t head_ = 0;
  std::uint64_t each_ = 0;
  std::vector<std::uint64_t> firsts_;  // Empty where blocks are equal.
};

class blocks_facet {
 public:
  /// The blocks that samples share. A block is expanded once if its samples are read near one another. If fields have blocks of
  /// different lengths, the longest blocks count.
  [[nodiscard]] virtual sample_blocks blocks() const = 0;

 protected:
  ~blocks_facet() = default;
};

}  // namespace leat::datasets
