// The first stage: which reads fetch the samples of a batch, and where their rows will lie. No system call, no randomness
// that depends on when it is asked.
#pragma once

#include "base/hash_map.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/batch_layout.hpp"
#include "stages/batch/batch_plan.hpp"
#include "stages/batch/field_model.hpp"

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

namespace leat::datasets {
class value_runs;
}

namespace leat::stages {

/// A part that a program of one row wants.
///   head_bytes   0: all of it is read. Otherwise only so many at its begin, and the bytes [first, end)
///   gap_bytes_max   and how far from each other these two may lie that are one read; other members beside it no farther than
///                   planner::gap_bytes_max
struct placed_part {
  leat::extent where;
  std::uint16_t program = 0;
  std::uint64_t head_bytes = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::uint64_t gap_bytes_max = 0;

  [[nodiscard]] bool in_pieces() const noexcept { return head_bytes != 0; }
};

/// Thread: the I/O thread. Refers to its arguments, which the loader keeps.
class planner {
 public:
  /// Neighbours nearer than this are one read: a tar header and its padding between a picture and its label cost less
  /// to read than another request costs to make (2 us of CPU, against 16 KiB at 3 GiB/s).
  static constexpr std::uint64_t gap_bytes_max = std::uint64_t{16} << 10;
  /// Between a value's head and the bytes that are wanted of it: on a drive it is bytes that count, since a second read is made only to spare them. Elsewhere
  /// a request takes as long as a MiB.
  static constexpr std::uint64_t piece_gap_bytes_max = std::uint64_t{4} << 10;
  static constexpr std::uint64_t piece_gap_bytes_max_elsewhere = std::uint64_t{1} << 20;
  /// One read for the samples of neighbouring rows takes a lease of no more than this, which is returned after the last of
  /// them, and straight to the rows no more than a source reads at once. Measured (benchmarks/results): 64 KiB give half as
  /// much again as one by one at least, 256 a quarter more of small ones; a MiB a tenth more, with read buffers four times as large.
  static constexpr std::uint64_t joined_bytes_max = std::uint64_t{256} << 10;
  static constexpr std::uint64_t joined_rows_bytes_max = std::uint64_t{2} << 20;

  struct settings {
    bool substitutes = false;              ///< rows get room for whoever may take the place of a corrupt sample
    bool repeats = false;                  ///< a sample may come twice in a batch
    bool in_order = false;                 ///< samples come in the dataset's order: neighbours are worth looking for
    bool mosaics = false;                  ///< boxes get room for those of the mosaics' tiles
    std::uint64_t seed = 0;                ///< for datasets whose extents are drawn
    const rank_packing* packed = nullptr;  ///< picks are pieces of packed rows
  };
  planner(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
          const batch_layout& layout, settings how);

  /// From now on a sample is corrupt that has a value, or lies in a block, of more bytes than that, as stored or
  /// expanded.
  void leave_out_above(std::uint64_t value_bytes_max);
  [[nodiscard]] std::uint64_t value_bytes_max() const noexcept { return value_bytes_max_; }
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0};

  /// Rows whose reads are planned together, and started, before those of the next rows are planned.
  static constexpr std::uint32_t rows_at_once = 1024;

  /// Fills in `made`, whose picks are set.
  void plan(batch_plan& made) const {
    begin(made);
    plan_rows(made, 0, made.rows());
  }
  /// The same in steps: begin(), and plan_rows() of all rows, in order. Where outputs are ragged it is one step, since nobody knows
  /// where their rows lie before all are planned. No read serves rows of two steps.
  void begin(batch_plan& made) const;
  void plan_rows(batch_plan& made, std::uint32_t first, std::uint32_t end) const;
  [[nodiscard]] bool in_steps() const noexcept { return layout_.ragged_count() == 0; }

  /// Plans one row anew, for another sample: its fields are replaced, its reads are added to those of the plan, and its places stay.
  void plan_substitute(batch_plan& made, std::uint32_t row, const pick& substitute) const;

  /// Plans one row anew whose bytes are to be read after all.
  void plan_again(batch_plan& made, std::uint32_t row) const;

  /// Appends where the bytes lie that the reads of a row may ask for: perhaps some more than they will.
  void places(const pick& row, std::vector<extent>& out) const;

  /// For each ragged output, the most bytes that a batch of rows_max() can hold of it: the sum of so many largest samples; where
  /// one sample may come in every row (as a substitute, or since the order repeats samples), and where rows are padded to the longest of
  /// the batch, as many times the largest. Looks
  /// at every sample, 0.1 us each, unless so many of the largest are little anyway.
  [[nodiscard]] std::vector<std::size_t> largest_ragged_batch() const;
  /// Of these, what boxes take beside those of plain rows, where rows become mosaics.
  ///   batch   as largest_ragged_batch() has said
  [[nodiscard]] std::size_t mosaic_bytes(std::span<const std::size_t> batch) const noexcept;

  /// The dataset's fields that some program reads.
  [[nodiscard]] std::span<const std::uint16_t> wanted() const noexcept { return wanted_; }
  /// Whether values of some of these may lie in blocks.
  [[nodiscard]] bool in_blocks() const noexcept { return in_blocks_; }

 private:
  void measure_ragged_outputs();
  [[nodiscard]] std::vector<std::size_t> largest_ragged_rows() const;
  [[nodiscard]] bool is_too_large(std::uint16_t field, std::span<const datasets::part> parts) const noexcept;
  void add_ragged_bytes(std::uint64_t sample, std::span<std::size_t> bytes) const;
  /// Whether what a ragged output takes does not depend on which samples are in a batch together.
  [[nodiscard]] bool is_of_longest(std::size_t ragged) const noexcept {
    return ragged_outputs_[ragged]->is_padded() || ragged_outputs_[ragged]->of_batch_bytes != 0 ||
           ragged_outputs_[ragged]->row_bytes_max != 0;
  }
  void place_padded_rows(batch_plan& plan, std::size_t ragged) const;
  void place_pieces(batch_plan& plan, std::size_t ragged) const;
  using needs_of_row = absl::InlinedVector<datasets::need, 4>;

  /// Codec, source, file, offset and number of a block.
  using block_key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>;

  /// The reads of the row before that the next one may join: none yet.
  struct joinable {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    explicit joinable(std::size_t programs) : straight(programs, none) {}
    std::uint32_t leased = none;
    absl::InlinedVector<std::uint32_t, 2> straight;  // of each program
  };

  /// What the rows before leave for the next one: reads to join, and blocks that are planned already, by their places.
  struct planned_before {
    explicit planned_before(std::size_t programs) : reads(programs) {}
    joinable reads;
    hash_map<block_key, std::uint32_t> blocks;
  };

  ///   needs   as the dataset is asked; gets what keys the row's draws
  static void draw(needs_of_row& needs, const pick& row) noexcept;
  void plan_alone(batch_plan& plan, std::uint32_t row, const pick& of) const;
  void plan_row(batch_plan& plan, std::uint32_t number, const pick& row, needs_of_row& needs,
                std::span<std::size_t> ragged_bytes, planned_before& before) const;
  void parts_of_crop(const pick& row, const field_program& program, std::uint16_t field,
                     datasets::part_list& out) const;
  void add_block_uses(batch_plan& plan, std::uint32_t row, std::span<const datasets::part> parts, std::uint16_t field,
                      std::uint16_t program, planned_before& before) const;
  [[nodiscard]] placed_part place(const datasets::part& part, const field_program& program, std::uint16_t number,
                                  const pick& row) const;
  static void settle_pieces(std::span<placed_part> parts);
  void add_reads(batch_plan& plan, std::uint32_t row, std::span<placed_part> parts, joinable& before) const;
  void add_straight_read(batch_plan& plan, std::uint32_t row, const placed_part& part, joinable& before) const;
  /// The (first) output of a program.
  [[nodiscard]] const batch_layout::output_place& place_of(std::uint16_t program) const noexcept {
    return layout_.outputs()[first_output_[program]];
  }
  static std::uint32_t add_leased_reads(batch_plan& plan, std::uint32_t row, std::span<const placed_part> parts);
  [[nodiscard]] bool join(batch_plan& plan, std::uint32_t row, std::span<const placed_part> parts,
                          std::uint32_t number) const;

  const datasets::dataset_model& dataset_;
  const datasets::value_runs* const runs_;  // null: it is not one
  std::span<const std::unique_ptr<field_program>> programs_;
  const batch_layout& layout_;
  const settings how_;
  std::uint64_t value_bytes_max_ = no_limit;
  bool in_blocks_ = false;
  bool picks_ = false;                         // some program picks of its fields
  std::vector<bool> straight_;                 // of each program: reads_into_rows()
  std::vector<std::uint16_t> first_output_;    // of each program
  std::vector<std::size_t> ragged_bytes_max_;  // of any sample, for each ragged output; of a padded one with padding
  std::vector<std::size_t> ragged_times_;      // how many times what its rows take, for each ragged output
  std::vector<const output_spec*> ragged_outputs_;
  std::vector<std::uint16_t> wanted_;  // dataset fields that some program reads
  std::vector<datasets::need> needs_;  // the same, as the dataset is asked, but for draw and epoch
};

}  // namespace leat::stages
