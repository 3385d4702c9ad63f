// Values of a Parquet column: where they lie, or what they are.
#pragma once

#include "datasets/files/file_bytes.hpp"
#include "datasets/formats/parquet/parquet_footer.hpp"
#include "datasets/model/value_blocks.hpp"
#include "datasets/model/value_place.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// Why the values of a chunk do not lie in the file as they are: "snappy, dictionary". Empty where they do.
[[nodiscard]] std::string why_not_bare(const parquet_leaf& leaf, const parquet_chunk& chunk);

/// A column that is no list has a value for each row.
///   throws   error{errc::format}
void check_rows(const std::string& path, const parquet_leaf& leaf, const parquet_group& group,
                const parquet_chunk& chunk);

/// Finds the values of a chunk that are stored as they are. Of each page it reads the header, the levels and the values' lengths.
///   places    one for each row of the group
///   returns   what its pages turned out to be: where one is encoded, though the footer does not say so, places are of no use
///   throws    error{errc::format} with file and offset
struct bare_pages {
  bool all_bare = true;
  std::uint64_t with_checksum = 0;  ///< a read of a value does not look at it
};
[[nodiscard]] bare_pages find_bare_values(const file_bytes& file, const parquet_leaf& leaf, const parquet_chunk& chunk,
                                          std::span<value_place> places);

/// Values that do not lie in the file as they are. A list is a value: its numbers, one after another, or its texts or bytes as a list of
/// JSON.
///   ends           as value_blocks::ends
///   start          the first bytes of its first value that has some
///   expand_bytes   memory that was taken to expand them, beside the values
///   with_nulls     lists of numbers that have a null in them; these rows have no value
///   first_with_null   the first of them, by its row in the file
///   misshapen, first_misshapen   likewise of arrays that are not of parquet_leaf::array
///   throws         error{errc::format}; error{errc::limit} values of more than value_blocks::decoded_bytes_max in a row group
struct packed_group {
  std::vector<std::uint32_t> ends;
  std::vector<std::byte> start;
  std::uint64_t expand_bytes = 0;
  std::uint64_t with_nulls = 0;
  std::uint64_t first_with_null = 0;
  std::uint64_t misshapen = 0;
  std::uint64_t first_misshapen = 0;
};
[[nodiscard]] packed_group find_packed_values(const file_bytes& file, const parquet_leaf& leaf,
                                              const parquet_group& group, const parquet_chunk& chunk);
/// Expands the values of a column.
///   chunks   of the groups that have rows
[[nodiscard]] std::shared_ptr<const block_expander> expand_parquet(std::string path, parquet_leaf leaf,
                                                                   std::vector<parquet_chunk> chunks);

/// The dtype in which numbers of a column are kept: i64 of whole ones, f16, f32, f64; none where they are no numbers. Dates and times
/// are whole, in their column's unit; those of 96 bits become nanoseconds since 1970. Decimals are f64, and i64 without a place
/// behind the point.
[[nodiscard]] std::optional<dtype> number_type(const parquet_leaf& leaf) noexcept;

/// The dtype of the elements of a column of lists, or of the innermost lists; none where they are no numbers. Those of arrays are as
/// narrow as their logical type.
[[nodiscard]] std::optional<dtype> element_type(const parquet_leaf& leaf) noexcept;

/// Lists of texts or of bytes, not lists in lists.
[[nodiscard]] bool has_lists_of_values(const parquet_leaf& leaf) noexcept;

/// Numbers of a chunk, which is read whole.
///   into      has room for the rows of the file
///   returns   rows of the file that have none
[[nodiscard]] std::vector<std::uint64_t> read_numbers(const file_bytes& file, const parquet_leaf& leaf,
                                                      const parquet_group& group, const parquet_chunk& chunk,
                                                      record_numbers& into);

/// The text of each row of the group, where few of them differ: classes.
///   throws   error{errc::limit} more than few_texts::texts_max
[[nodiscard]] few_texts read_few_texts(const file_bytes& file, const parquet_leaf& leaf, const parquet_group& group,
                                       const parquet_chunk& chunk);

}  // namespace leat::datasets
