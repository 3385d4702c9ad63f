// Values of one column that lie packed in blocks, each of which is expanded as one: a column's part of a row
// group of Parquet, or of a batch of Arrow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// Thread-safe.
class block_expander {
 public:
  block_expander() = default;
  block_expander(const block_expander&) = delete;
  block_expander& operator=(const block_expander&) = delete;
  virtual ~block_expander() = default;

  /// Writes the values of a block one after another.
  ///   ends      of its rows, as value_blocks::ends
  ///   decoded   of all its values; all of it is written, or there is a reason
  ///   returns   the reason why it cannot be done, or why the values are others than they were; nothing where it was
  [[nodiscard]] virtual std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                                          std::span<const std::uint32_t> ends,
                                                          std::span<std::byte> decoded) const = 0;
};

/// Four bytes a row: where its value ends among those of its block.
class value_blocks {
 public:
  static constexpr std::uint32_t missing = std::uint32_t{1} << 31;  ///< in `ends`: the row has no value
  static constexpr std::uint64_t decoded_bytes_max = missing - 1;

  struct block {
    std::uint64_t first_row = 0;
    std::uint64_t rows = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  /// In a block that was expanded.
  struct value {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };

  std::vector<block> blocks;        ///< with their rows, in their order; none is empty
  std::vector<std::uint32_t> ends;  ///< of each row
  std::shared_ptr<const block_expander> expander;
  std::string packed_by;               ///< "snappy, dictionary"
  std::uint64_t expand_bytes_max = 0;  ///< memory that expander takes for a block, beside what is given to it

  [[nodiscard]] std::size_t block_of(std::uint64_t row) const noexcept {
    const auto after = std::upper_bound(blocks.begin(), blocks.end(), row,
                                        [](std::uint64_t of, const block& each) { return of < each.first_row; });
    return static_cast<std::size_t>(after - blocks.begin()) - 1;
  }
  [[nodiscard]] std::span<const std::uint32_t> ends_of(std::size_t block) const noexcept {
    return std::span(ends).subspan(blocks[block].first_row, blocks[block].rows);
  }
  [[nodiscard]] std::uint64_t decoded_bytes(std::size_t block) const noexcept {
    return ends_of(block).back() & ~missing;
  }
  /// Nothing where the row has none.
  ///   block   that the row is in
  [[nodiscard]] std::optional<value> value_of(std::uint64_t row, std::size_t block) const noexcept {
    if ((ends[row] & missing) != 0) return std::nullopt;
    const std::uint64_t begin = row == blocks[block].first_row ? 0 : ends[row - 1] & ~missing;
    return value{begin, ends[row] - begin};
  }
};

}  // namespace leat::datasets
