// What an Arrow IPC file or stream says of itself: its columns, and where the buffers of each batch lie.
#pragma once

#include "datasets/files/file_bytes.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::datasets {

/// A column, or a member of a struct.
///   path            names from the root on, joined by dots
///   what            values: bytes or text with offsets, of a fixed size, numbers, decimals, or lists of numbers
///   offset_bytes    of each offset of values of variable length: 4 or 8
///   type            of numbers, and of the elements of lists
///   size            of values of a fixed size and of decimals, in bytes; of lists of a fixed size, in elements
///   unit            of numbers that are dates or times, in words: "days since 1970-01-01"
///   scale           of decimals: digits behind the point
///   buffer          of its validity, among those of a batch: the offsets (if there are) and the values follow
///   element_buffer  of a list, of its elements' values; of texts and bytes their validity, behind which offsets and values stand
///   elements        of a list, what they are: number, text or bytes
///   element_offset_bytes   of lists of texts and bytes: of each offset of the elements
///   inner           of lists in lists, those within the column's own, from the outside on
///   view            of values with views instead of offsets: its number among such columns, from 1 on; arrow_batch::views has its data
///   dictionary      its values are numbers of this dictionary's, which has what is said of values above; else -1
///   index_type      of these numbers, behind the validity
///   validities      of the structs that it is in
///   not_read        of others, why
struct arrow_column {
  /// Lists in a list.
  ///   buffer         of their validity; the offsets follow
  ///   offset_bytes   0: all have `size` elements
  struct level {
    std::size_t buffer = 0;
    std::size_t offset_bytes = 0;
    std::uint64_t size = 0;
  };
  enum class kind : std::uint8_t {
    bytes,
    text,
    fixed,
    number,
    decimal,
    truth,
    list,
    fixed_list,
    other
  } what = kind::other;
  std::string path;
  std::size_t offset_bytes = 0;
  dtype type = dtype::u8;
  bool is_signed = true;
  std::uint64_t size = 0;
  std::string unit;
  std::int32_t scale = 0;
  std::size_t buffer = 0;
  std::size_t element_buffer = 0;
  kind elements = kind::number;
  std::size_t element_offset_bytes = 0;
  std::vector<level> inner;
  std::size_t view = 0;
  std::int64_t dictionary = -1;
  dtype index_type = dtype::i32;
  std::vector<std::size_t> validities;
  std::string not_read;
};

struct arrow_buffer {
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t bytes = 0;
};

/// How the buffers of a batch are packed, each by itself.
enum class arrow_codec : std::uint8_t { none, lz4, zstd };

///   views          buffers of values of each column of views
///   dictionaries   those that its columns mean, by their numbers: places in arrow_contents::dictionaries
struct arrow_batch {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  arrow_codec codec = arrow_codec::none;
  std::vector<arrow_buffer> buffers;
  std::vector<std::vector<arrow_buffer>> views;
  std::vector<std::pair<std::int64_t, std::size_t>> dictionaries;
};

/// Values that columns count: those of its pieces, one after another. A piece has the buffers of one column of values.
struct arrow_dictionary {
  std::vector<arrow_batch> pieces;
};

///   rows_always   whatever the bytes of a batch, it may have as many rows
struct arrow_contents {
  static constexpr std::uint64_t rows_always = std::uint64_t{1} << 20;
  std::uint64_t rows = 0;
  std::vector<arrow_column> columns;
  std::vector<arrow_batch> batches;
  std::vector<arrow_dictionary> dictionaries;
  std::string hub_features;  ///< the value of the key "huggingface", JSON
};

/// Whether a file's first bytes are those of an Arrow file, or of a stream.
[[nodiscard]] bool is_arrow(std::span<const std::byte> start) noexcept;

/// Metadata are read, of a file those that its footer names, of a stream one message after another; no buffer is. Buffers lie within the
/// file.
///   throws   error{errc::format} damage, with file and offset; error{errc::unsupported} big-endian files, and other codecs,
///            each with what to do
///   source   arrow.apache.org: Columnar format; format/{Schema,Message,File}.fbs
[[nodiscard]] arrow_contents read_arrow(const file_bytes& file);

/// What a buffer becomes: a packed one begins with its size, or with -1 where it is as it was. Nothing where it does not, or says more than
/// its bytes can become.
[[nodiscard]] std::optional<std::uint64_t> expanded_bytes(arrow_codec codec, std::span<const std::byte> start,
                                                          std::uint64_t stored_bytes);
/// Expands a packed buffer. Thread-safe.
///   decoded   becomes exactly full, or there is a reason
[[nodiscard]] std::optional<std::string> expand_arrow_buffer(arrow_codec codec, std::span<const std::byte> stored,
                                                             std::span<std::byte> decoded);
/// Some of its bytes, without the memory of the others, which are not looked at. Thread-safe.
[[nodiscard]] std::optional<std::string> expand_part_of_arrow_buffer(arrow_codec codec,
                                                                     std::span<const std::byte> stored,
                                                                     std::uint64_t begin, std::span<std::byte> part);

}  // namespace leat::datasets
