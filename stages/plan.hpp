// The first stage: which samples make the batch, which reads fetch them and where their rows will lie. No system call,
// no randomness that depends on when it is asked.
#pragma once

#include "datasets/model.hpp"
#include "stages/work.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace leat::stages {

/// A part that a program of one row wants.
struct placed_part {
  leat::extent where;
  std::uint16_t program = 0;
};

/// Thread: the I/O thread. Refers to its arguments, which the loader keeps.
class planner {
 public:
  /// Neighbours nearer than this are one read: a tar header and its padding between a picture and its label cost less
  /// to read than another request costs to make (2 us of CPU, against 16 KiB at 3 GiB/s).
  static constexpr std::uint64_t gap_bytes_max = std::uint64_t{16} << 10;

  ///   substitutes   whether rows get room for whoever may take the place of a corrupt sample
  planner(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
          const batch_layout& layout, bool substitutes);

  /// Fills in samples, reads and the layout of the ragged outputs of `batch`, whose ids are set.
  void plan_batch(work& batch) const;

  /// Plans one row anew for another sample: its reads are added to those of the batch.
  void plan_substitute(work& batch, std::uint32_t row, std::uint64_t sample) const;

  /// For each ragged output, the most bytes that a batch of rows_max() can hold of it: the sum of so many largest samples,
  /// since no sample comes twice in an epoch. (With substitutes one may come in every row.) Looks at every sample, 0.1 us
  /// each, unless so many of the largest are little anyway.
  [[nodiscard]] std::vector<std::size_t> largest_ragged_batch() const;

  /// The dataset's fields that some program reads.
  [[nodiscard]] std::span<const std::uint16_t> wanted() const noexcept { return wanted_; }

 private:
  void add_ragged_bytes(std::uint64_t sample, std::span<std::size_t> bytes) const;
  void plan_sample(work& batch, sample_slot& slot, std::span<std::size_t> ragged_bytes) const;
  void add_reads(work& batch, sample_slot& slot, std::span<placed_part> parts) const;

  const datasets::dataset_model& dataset_;
  std::span<const std::unique_ptr<field_program>> programs_;
  const batch_layout& layout_;
  const bool substitutes_;
  std::vector<std::size_t> ragged_bytes_max_;  // of any sample, for each ragged output
  std::vector<std::uint16_t> wanted_;          // dataset fields that some program reads
  std::vector<datasets::need> needs_;          // the same, as the dataset is asked
};

}  // namespace leat::stages
