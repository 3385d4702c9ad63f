// Values of neighbouring samples, read together: many reads in flight for a drive, one for what lies side by side.
#pragma once

#include "datasets/files/blocking_source.hpp"
#include "datasets/model/model.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace leat::datasets {

/// Bytes that threads hold together. Thread: any.
class byte_gate {
 public:
  explicit byte_gate(std::uint64_t bytes_max) : left_(bytes_max), bytes_max_(bytes_max) {}

  /// Waits until there is room. Whoever asks holds none.
  ///   returns   what give() is to be told: never more than there may be at all
  [[nodiscard]] std::uint64_t take(std::uint64_t bytes);
  void give(std::uint64_t taken);

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::uint64_t left_;
  const std::uint64_t bytes_max_;
};

/// What is read, and how much of it.
///   fields           these only; empty: all
///   first_field      of the fields that a sample has, only the first of `fields`
///   together_bytes   that are held of several samples
///   value_bytes_max  of a value; one with more is not read. Of `limited` fields only, by number; empty: of all
///   blocks_bytes     of expanded blocks that are kept for neighbours
///   gate             of values that are larger than together_bytes; null: each thread has as many as it reads. Outlives the reads
struct joint_limits {
  std::vector<std::uint16_t> fields = {};
  bool first_field = false;
  std::uint64_t together_bytes = std::uint64_t{16} << 20;
  std::uint64_t value_bytes_max = ~std::uint64_t{0};
  std::vector<bool> limited = {};
  std::uint64_t blocks_bytes = decoded_blocks::bytes_max_usual;
  byte_gate* gate = nullptr;
};

/// What each of so many threads may hold where all together may hold `bytes_max`, of the first of `fields` that a sample has.
///   gate   of half of them
[[nodiscard]] joint_limits limits_within(std::uint64_t bytes_max, std::uint32_t threads,
                                         std::span<const std::uint16_t> fields, byte_gate& gate);

/// Thread: one at a time.
class joint_reads {
 public:
  ///   model   outlives this
  joint_reads(const dataset_model& model, joint_limits limits);
  joint_reads(const joint_reads&) = delete;
  joint_reads& operator=(const joint_reads&) = delete;
  ~joint_reads() { release(); }

  ///   parts   those of a field side by side, in their order. None of a sample that has a defect: an excluded one is there
  struct one {
    std::uint64_t sample = 0;
    part_list parts;

   private:
    friend class joint_reads;
    std::vector<std::size_t> at;  // in what was read, of each part; read_alone: it is read when it is asked for
  };

  /// The samples from `first` on and before `end`, as far as they fit; at least one. What could not be read says so when it is asked
  /// for.
  [[nodiscard]] std::span<const one> read_from(std::uint64_t first, std::uint64_t end);

  /// A field of a sample that was read, by its first part; valid until the next call.
  ///   throws   read_failure; error{errc::corrupt}, as append_field()
  [[nodiscard]] std::span<const std::byte> field_of(const one& of, std::size_t first_part);
  /// Of the field's largest part, if it is too large to be read.
  [[nodiscard]] std::optional<std::uint64_t> bytes_over(const one& of, std::size_t first_part) const;

  /// Returns what it holds of a value that is larger than together_bytes: its bytes are not looked at again.
  void release();
  [[nodiscard]] const joint_limits& limits() const noexcept { return limits_; }

 private:
  static constexpr std::size_t read_alone = ~std::size_t{0};
  // Of a part, or of parts that lie side by side: [begin, end) of a file.
  struct range {
    std::uint32_t source = 0;
    std::uint32_t file = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t sample = 0;  // in ones_
    std::size_t part = 0;
    std::size_t at = 0;  // in bytes_
  };

  static std::uint64_t bytes_of(const part& each) noexcept;
  [[nodiscard]] bool is_over(const part& each) const;
  [[nodiscard]] bool is_joined(const part& each) const;
  void find_parts(one& of) const;
  void read(std::span<one> all);
  void read_ranges(std::span<one> all, std::span<const range> joined, std::span<const range> parts);

  const dataset_model& model_;
  const joint_limits limits_;
  std::vector<need> needs_;
  blocking_sources sources_;
  std::vector<one> ones_;
  std::vector<range> parts_;
  std::vector<range> joined_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> alone_;
  std::uint64_t taken_ = 0;  // of the gate
};

}  // namespace leat::datasets
