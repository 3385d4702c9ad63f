// Extents of all samples, packed: what a data set costs in memory while it is trained on.
#pragma once

#include "datasets/model/model.hpp"

#include <leat/digest.hpp>
#include <leat/extent.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace leat::datasets {

/// Parts of all samples, one after the other. Layout, 16 bytes a part and 4 a sample:
///
///     word 0   offset 48 bits | field 16 bits      files to 256 TiB, 65,536 fields
///     word 1   bytes  40 bits | file  24 bits      members to 1 TiB, 16,777,216 files
///     first    32 bits per sample: its first part; its last is before the next one's first
///
/// 1.28 million samples of one field are 24.4 MiB, of two fields 44 MiB (18 bytes per sample and field).
class extent_table {
 public:
  static constexpr std::uint64_t offset_max = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint64_t bytes_max = (std::uint64_t{1} << 40) - 1;
  static constexpr std::uint32_t file_max = (std::uint32_t{1} << 24) - 1;

  /// One part as it is stored.
  class record {
   public:
    /// The caller has checked the numbers with fits().
    record(std::uint64_t offset, std::uint64_t bytes, std::uint32_t file, std::uint16_t field) noexcept
        : offset_field_(offset | std::uint64_t{field} << 48), bytes_file_(bytes | std::uint64_t{file} << 40) {}
    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_field_ & offset_max; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_file_ & extent_table::bytes_max; }
    [[nodiscard]] std::uint32_t file() const noexcept { return static_cast<std::uint32_t>(bytes_file_ >> 40); }
    [[nodiscard]] std::uint16_t field() const noexcept { return static_cast<std::uint16_t>(offset_field_ >> 48); }

   private:
    std::uint64_t offset_field_;
    std::uint64_t bytes_file_;
  };
  static_assert(sizeof(record) == 16);

  [[nodiscard]] static constexpr bool fits(std::uint64_t offset, std::uint64_t bytes, std::uint64_t file) noexcept {
    return offset <= offset_max && bytes <= bytes_max && file <= file_max;
  }

  extent_table() = default;
  /// Parts in memory of another owner, in the form of records() and firsts(): a mapped index.
  ///   owner    keeps them
  ///   throws   error{errc::format}: firsts that do not belong to so many records
  extent_table(std::shared_ptr<const void> owner, std::span<const record> records,
               std::span<const std::uint32_t> firsts);

  /// Allocates memory for so many.
  void reserve(std::uint64_t samples, std::uint64_t parts);

  /// Adds to the sample being built; end_sample() begins the next.
  void add(const record& part) { records_.push_back(part); }
  ///   throws   error{errc::limit} at 2^32 parts
  void end_sample();
  void shrink_to_fit();

  [[nodiscard]] std::uint64_t size() const noexcept { return firsts().size() - 1; }
  [[nodiscard]] std::span<const record> of(std::uint64_t sample) const noexcept {
    const std::uint64_t begin = firsts()[sample];
    return records().subspan(begin, firsts()[sample + 1] - begin);
  }
  /// Of all samples, in order.
  [[nodiscard]] std::span<const record> records() const noexcept {
    return owner_ ? mapped_records_ : std::span<const record>(records_);
  }
  /// The first part of each sample, and behind the last one the number of parts.
  [[nodiscard]] std::span<const std::uint32_t> firsts() const noexcept {
    return owner_ ? mapped_first_ : std::span<const std::uint32_t>(first_);
  }
  [[nodiscard]] std::uint64_t first_part(std::uint64_t sample) const noexcept { return firsts()[sample]; }
  /// Of all places. A few milliseconds for a million samples.
  [[nodiscard]] leat::digest digest() const noexcept;
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    if (owner_) return mapped_records_.size_bytes() + mapped_first_.size_bytes();
    return records_.capacity() * sizeof(record) + first_.capacity() * sizeof(std::uint32_t);
  }

 private:
  std::vector<record> records_;
  std::vector<std::uint32_t> first_ = {0};
  std::shared_ptr<const void> owner_;  // of the mapped parts, which then replace those above
  std::span<const record> mapped_records_;
  std::span<const std::uint32_t> mapped_first_;
};

/// Appends the records that are needed.
void append_parts(std::span<const extent_table::record> records, std::span<const need> needs, part_list& out);

}  // namespace leat::datasets
