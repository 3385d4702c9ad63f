// What a batch reads and where its rows will lie, as a value: asked for with no loader around, and the same for whoever asks.
#pragma once

#include "base/corrupt_kind.hpp"
#include "datasets/model/model.hpp"
#include "stages/batch/packed_piece.hpp"

#include <leat/sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leat::stages {

/// What is done for one program's row, once its reads have ended.
enum class row_step : std::uint8_t {
  none,        ///< nothing was read for it alone; where it has a field, the row is made when its block is expanded
  take,        ///< its bytes are as they were read
  await,       ///< a coroutine has fetched them
  take_boxes,  ///< blocks have filled its row, or its staging row
  expand,      ///< what was read is expanded
  produce      ///< a call makes them
};

/// No lease, no operation, no thread. The planner fills it, all rows at once or some rows at a time.
struct batch_plan {
  /// In `fields`: the program reads none of the dataset's fields for this row.
  static constexpr std::uint16_t no_field = 0xFFFF;

  /// Encoded bytes that one program gets of one row.
  ///   read     that fetches them, a place in `reads`; of a value perhaps its head only, and another read inside that one fetches the
  ///            rest that is wanted
  ///   offset   in the read's file
  struct part {
    std::uint32_t row = 0;
    std::uint32_t read = 0;
    std::uint16_t program = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const part&, const part&) = default;
  };
  /// One read: it serves one row, or rows that follow one another.
  ///   holder        the read, perhaps itself, whose lease it shares: all reads of a row share one lease. (If they took several, two
  ///                 rows could each hold one and wait for the other's.)
  ///   direct_to_row   the offset in the batch's memory where its bytes become rows of an output; without it they go to a lease
  ///   lease_bytes   room in that lease, also where the rows are read one by one
  ///   inside        a read before it, of a value's head: this one reads the rest that is wanted, to that one's room. It has none of its own
  struct read {
    std::uint32_t source = 0;
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint32_t first_row = 0;
    std::uint32_t rows = 1;
    std::uint32_t holder = 0;
    std::optional<std::size_t> direct_to_row = {};
    std::uint64_t lease_bytes = 0;
    std::optional<std::uint32_t> inside = {};

    friend bool operator==(const read&, const read&) = default;
  };
  /// A block: one read and one expansion for all rows that have a value or a box of it, wherever they stand. It is asked for with the
  /// first of them.
  ///   form            what is taken out of it: values, or boxes
  ///   codec, number   datasets::part::codec and ::block
  ///   whole_row        the block is a row as it is: it is expanded where the row lies
  struct block {
    std::uint32_t source = 0;
    std::uint32_t file = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t decoded_bytes = 0;
    std::uint64_t number = 0;
    std::uint32_t codec = 0;
    std::uint16_t field = 0;
    datasets::part_form form = datasets::part_form::box;
    bool whole_row = false;
    std::uint32_t first_row = 0;

    [[nodiscard]] bool has_values() const noexcept { return form == datasets::part_form::value; }
    friend bool operator==(const block&, const block&) = default;
  };
  /// What one program's row gets out of a block.
  ///   block    a place in `blocks`
  ///   staged   it goes to a staging row, of which decode() makes the program's (batch_layout::staging_of())
  struct block_use {
    std::uint32_t block = 0;
    std::uint32_t row = 0;
    std::uint16_t program = 0;
    bool staged = false;

    friend bool operator==(const block_use&, const block_use&) = default;
  };
  /// A row that is corrupt before a byte of it was read.
  ///   field   of the dataset that is at fault, or no_field
  struct corrupt_row {
    std::uint32_t row = 0;
    std::uint16_t field = no_field;
    std::string reason;
    corrupt_kind kind = corrupt_kinds::damaged;
    std::uint64_t bytes_needed = 0;  ///< of memory, where that is more than the budget has

    friend bool operator==(const corrupt_row&, const corrupt_row&) = default;
  };
  /// The place of one row in the buffer of a ragged output.
  struct ragged_row {
    std::size_t offset = 0;
    std::size_t capacity = 0;

    friend bool operator==(const ragged_row&, const ragged_row&) = default;
  };
  /// The buffer of a ragged output in the batch's memory.
  ///   row_bytes   of a padded output: of each row
  struct ragged_buffer {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    std::size_t row_bytes = 0;

    friend bool operator==(const ragged_buffer&, const ragged_buffer&) = default;
  };

  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  std::uint32_t padded = 0;            ///< rows at the end that only fill the batch
  std::uint32_t packed_rows = 0;       ///< where an order packs: how many packed rows there are
  std::size_t programs = 0;            ///< fields of the loader
  bool in_blocks = false;              ///< rows may have blocks
  std::vector<pick> picks;             ///< of the rows
  std::vector<packed_piece> pieces;    ///< where an order packs: likewise, until they have their places in `ragged`
  std::vector<std::uint16_t> fields;   ///< [row * programs + program]: the dataset's field that serves the program
  std::vector<row_step> steps;         ///< likewise: what decode does for it
  std::vector<bool> held;              ///< rows that a device has: nothing is planned for them. Empty: none
  std::vector<ragged_row> ragged;      ///< [row * ragged outputs + output]
  std::vector<ragged_buffer> buffers;  ///< of the ragged outputs
  std::size_t staging = 0;             ///< where its staging rows begin (batch_layout)
  std::size_t memory_bytes = 0;        ///< that the batch's memory has to have
  // Of the rows planned so far. Whoever plans some rows at a time may clear these in between.
  std::vector<part> parts;  ///< row by row
  std::vector<read> reads;
  std::vector<block> blocks;          ///< by their first rows
  std::vector<block_use> block_uses;  ///< row by row
  std::vector<corrupt_row> corrupt;

  [[nodiscard]] std::uint32_t rows() const noexcept { return static_cast<std::uint32_t>(picks.size()); }
  [[nodiscard]] std::uint16_t field_of(std::uint32_t row, std::size_t program) const noexcept {
    return fields[row * programs + program];
  }
  [[nodiscard]] row_step step_of(std::uint32_t row, std::size_t program) const noexcept {
    return steps[row * programs + program];
  }

  friend bool operator==(const batch_plan&, const batch_plan&) = default;
};

}  // namespace leat::stages
