// How values of a field come to a program's rows, of whatever sample: what rows ask of reads, blocks and memory, before any is planned.
// With the planner, this is where the forms of parts (datasets::part_form) are asked for.
#pragma once

#include "datasets/model/model.hpp"
#include "stages/batch/field_model.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::stages {

///   in_blocks    some of its values lie in blocks, which are read and expanded for several rows
///   is_fetched   something is read for it; else a function makes all of it
///   is_awaited   coroutines fetch some of its values
///   as_stored    all of its values are read as they are
///   read_bytes_max   the largest read of one value alone; 0: there is none
struct lowered_field {
  bool in_blocks = false;
  bool is_fetched = false;
  bool is_awaited = false;
  bool as_stored = false;
  std::uint64_t read_bytes_max = 0;
};
[[nodiscard]] lowered_field lower(const datasets::dataset_model& dataset, std::uint16_t field);

/// Whether what `program` reads goes from the source straight to the rows of its output: the row is the stored bytes, and
/// all of them lie where a source may be asked for them alone. Of the dataset and the program, and nothing else.
[[nodiscard]] bool reads_into_rows(const datasets::dataset_model& dataset, const field_program& program);

/// Whether its rows are stored bytes as they are, all of them or a box: then a read, or a block, may fill them.
[[nodiscard]] bool takes_bytes_as_they_are(const field_program& program);
/// Whether a part that is expanded to so many bytes is expanded where its row lies.
[[nodiscard]] bool expands_into_row(const field_program& program, std::uint64_t decoded_bytes);

/// Of rows in boxes that are put together elsewhere than where they stay. 0: there are none.
[[nodiscard]] std::size_t staging_row_bytes_of(const datasets::dataset_model& dataset, const field_program& program);

/// The most blocks that a sample's value lies in. A crop lies in fewer of them, wherever it begins.
[[nodiscard]] std::uint64_t blocks_wanted(const field_info& field, const field_program& program);
/// What a decode thread holds of a program's blocks: the largest one expanded, but where it is the row itself, and what expanding it takes.
[[nodiscard]] std::uint64_t expanded_bytes_of(const datasets::dataset_model& dataset, const field_program& program,
                                              std::uint64_t value_bytes_max);

}  // namespace leat::stages
