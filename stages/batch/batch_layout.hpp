// Where the rows of a batch lie: one contiguous block, so that a batch is one copy to a GPU. Fixed outputs first, those
// of large rows behind those of small ones, each tensor aligned; then the ragged ones, whose sizes differ from batch to batch; and
// behind what is copied, staging rows.
#pragma once

#include "stages/batch/field_model.hpp"
#include "stages/batch/transfer.hpp"

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::stages {

/// Every tensor starts on a multiple of this: what GPUs and vector units like best, and cudaMalloc gives. One that is read
/// into starts on a multiple of io::alignment_max_bytes.
inline constexpr std::size_t tensor_alignment_bytes = 256;

[[nodiscard]] constexpr std::size_t align_tensor(std::size_t bytes) noexcept {
  return (bytes + tensor_alignment_bytes - 1) / tensor_alignment_bytes * tensor_alignment_bytes;
}

/// Bytes of a tensor of so many rows, with what aligns the next one. Throws io::budget_refusal where no process can address them.
[[nodiscard]] std::size_t bytes_of_rows(std::uint32_t rows, std::size_t row_bytes, const std::string& output);

/// The part of the layout that all batches share. Immutable.
class batch_layout {
 public:
  struct output_place {
    output_spec spec;
    std::size_t row_bytes = 0;  ///< of a fixed output, as decode() writes it
    std::size_t offset = 0;  ///< of a fixed output's tensor; of the offsets of one that has_offsets() (i64, rows + 1)
    std::size_t ragged_index = 0;   ///< which of the ragged outputs it is
    std::size_t whole = 0;          ///< of a slot, the output that it is part of
    std::size_t picture_index = 0;  ///< of a picture: which of them it is
    bool hidden = false;            ///< others are made from it; the trainer does not see it
    /// Of an output that a device makes: the outputs it is made from, itself first, and where it lies in the memory that only the
    /// device has.
    absl::InlinedVector<std::size_t, 4> made_from;
    std::size_t made_offset = 0;
  };

  /// A row whose boxes are put together before a program makes something else of them.
  ///   offset   behind batch_plan::staging
  struct staging_rows {
    std::size_t offset = 0;
    std::size_t row_bytes = 0;
  };

  /// Throws error{errc::usage} when two outputs share a name. Outputs that others are made from are among them.
  ///   staging_row_bytes   of each program; 0, or left out: it has none
  batch_layout(std::vector<output_spec> outputs, std::uint32_t rows_max,
               std::span<const std::size_t> staging_row_bytes = {});

  [[nodiscard]] std::span<const output_place> outputs() const noexcept { return outputs_; }
  /// The output of that name, hidden ones too.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const noexcept;
  [[nodiscard]] std::uint32_t rows_max() const noexcept { return rows_max_; }
  [[nodiscard]] std::size_t ragged_count() const noexcept { return ragged_count_; }
  [[nodiscard]] std::size_t picture_count() const noexcept { return picture_count_; }
  /// Bytes of the fixed tensors and of the ragged ones' offsets.
  [[nodiscard]] std::size_t fixed_bytes() const noexcept { return fixed_bytes_; }
  [[nodiscard]] staging_rows staging_of(std::size_t program) const noexcept {
    return program < staging_.size() ? staging_[program] : staging_rows();
  }
  /// The row itself, of a batch whose memory from batch_plan::staging on is `staging`; empty where the program has none.
  [[nodiscard]] std::span<std::byte> staging_row(std::span<std::byte> staging, std::size_t program,
                                                 std::size_t row) const noexcept {
    const staging_rows rows = staging_of(program);
    if (rows.row_bytes == 0) return {};
    return staging.subspan(rows.offset + row * rows.row_bytes, rows.row_bytes);
  }
  [[nodiscard]] std::size_t staging_bytes() const noexcept { return staging_bytes_; }
  /// Bytes of a batch whose ragged outputs, padded or not, hold at most so many bytes each.
  [[nodiscard]] std::size_t bytes(std::span<const std::size_t> ragged_bytes) const noexcept;
  /// What a device does to a batch that has arrived.
  [[nodiscard]] std::span<const device_step> steps() const noexcept { return steps_; }
  /// Bytes of what they make: 0 where there is nothing to do.
  [[nodiscard]] std::size_t made_bytes() const noexcept { return made_bytes_; }
  /// Of one row.
  [[nodiscard]] std::size_t made_row_bytes() const noexcept { return made_row_bytes_; }
  /// The most that one of them needs beside.
  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }
  /// Names a trainer can ask for, ".offsets" behind an output that has them.
  [[nodiscard]] std::span<const std::string> names() const noexcept { return names_; }

 private:
  void place(output_place& placed);
  void add_steps();

  std::vector<output_place> outputs_;
  std::vector<std::string> names_;
  std::vector<device_step> steps_;
  std::vector<staging_rows> staging_;  // of each program
  std::size_t staging_bytes_ = 0;
  std::uint32_t rows_max_ = 0;
  std::size_t ragged_count_ = 0;
  std::size_t picture_count_ = 0;
  std::size_t fixed_bytes_ = 0;
  std::size_t made_bytes_ = 0;
  std::size_t made_row_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace leat::stages
