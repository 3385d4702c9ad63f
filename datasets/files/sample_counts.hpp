// What a format counts while it opens, so that the start of a run need not ask every sample: which fields occur together, and the
// largest sizes of each. It is kept with an index.
#pragma once

#include "base/hash_map.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::datasets {

class section_reader;
class section_writer;

class sample_counts {
 public:
  /// Samples that have these fields and no others.
  struct field_set {
    static constexpr std::size_t first_max = 64;

    std::vector<std::uint32_t> fields;  ///< ascending
    std::uint64_t samples = 0;
    std::vector<std::uint64_t> first;  ///< the first of them, ascending: all where there are no more than first_max
  };
  static constexpr std::size_t largest_max = 1024;

  sample_counts() = default;
  /// Of some of the fields: `numbers` has a field's new number by its old one, -1 if it is left out.
  sample_counts(const sample_counts& all, std::span<const std::int32_t> numbers);
  /// As save() wrote it.
  ///   throws   error{errc::format}: it is not of so many samples and fields
  sample_counts(section_reader& from, std::uint64_t samples, std::size_t fields);
  void save(section_writer& into) const;

  /// Counts the next sample.
  ///   fields   in any order, each perhaps several times
  void add(std::span<const std::uint32_t> fields);
  /// Counts the bytes that some sample has of a field.
  void add_bytes(std::size_t field, std::uint64_t bytes);

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }
  /// In the order of their first samples.
  [[nodiscard]] std::span<const field_set> sets() const noexcept { return sets_; }
  /// An upper bound on the bytes of `samples` different samples, if each has one of these fields; exact for one field and up to
  /// largest_max samples.
  [[nodiscard]] std::uint64_t largest_bytes(std::span<const std::uint16_t> fields, std::uint64_t samples) const;

 private:
  std::uint64_t samples_ = 0;
  std::vector<field_set> sets_;
  hash_map<std::vector<std::uint32_t>, std::size_t> places_;  // in sets_; while it is counted
  std::vector<std::vector<std::uint64_t>> largest_;           // by field: a heap, the least in front
  std::vector<std::uint32_t> sorted_;                         // of the sample that is added
  std::size_t place_ = 0;                                     // of the sample before
};

}  // namespace leat::datasets
