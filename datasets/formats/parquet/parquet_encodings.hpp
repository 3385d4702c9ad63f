// Encodings of the values of a Parquet page: plain, by a dictionary, by differences, by bytes of their own each.
#pragma once

#include "datasets/files/cursor.hpp"
#include "datasets/formats/parquet/parquet_footer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace leat::datasets {

/// Numbers of a few bits each: runs of one number, and runs of them packed ("RLE / bit-packing hybrid").
///   throws   as cursor, where the bytes end before the numbers do
class packed_numbers {
 public:
  packed_numbers(cursor at, unsigned bits);

  [[nodiscard]] std::uint32_t next() {
    if (count_ == 0) begin_run();
    --count_;
    if (!packed_) return value_;
    return next_packed();
  }
  /// The next number, and how many there are of it at least; some of these are taken.
  struct run {
    std::uint32_t value = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] run take_run(std::uint64_t most);

 private:
  void begin_run();
  [[nodiscard]] std::uint32_t next_packed();

  cursor at_;
  unsigned bits_;
  bool packed_ = false;
  std::uint64_t count_ = 0;
  std::uint32_t value_ = 0;
  std::span<const std::byte> run_;
  std::uint64_t held_ = 0;
  unsigned held_bits_ = 0;
  std::size_t run_at_ = 0;
};

/// Bits that a number of up to `most` takes.
[[nodiscard]] unsigned bits_of(std::uint32_t most) noexcept;

/// Bytes of each value of a type that has as many for every value; else 0.
[[nodiscard]] unsigned value_bytes(const parquet_leaf& leaf) noexcept;

/// The values of a page, without those that are null.
///   throws   as cursor, where the page ends before its values do, or contradicts itself
class parquet_value_reader {
 public:
  parquet_value_reader() = default;
  parquet_value_reader(const parquet_value_reader&) = delete;
  parquet_value_reader& operator=(const parquet_value_reader&) = delete;
  virtual ~parquet_value_reader() = default;

  /// Valid until the next call.
  [[nodiscard]] virtual std::span<const std::byte> next() = 0;
};

///   values       of the page, those that are null included
///   dictionary   of the chunk, which outlives the reader
///   at           where the values begin, behind the levels
///   throws       error{errc::format}: an encoding that is not for values of this type
///   source       github.com/apache/parquet-format: Encodings.md
[[nodiscard]] std::unique_ptr<parquet_value_reader> read_values(const parquet_leaf& leaf, parquet_encoding encoding,
                                                                std::uint32_t values,
                                                                std::span<const std::span<const std::byte>> dictionary,
                                                                cursor at);

}  // namespace leat::datasets
