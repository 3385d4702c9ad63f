// What the footer of a Parquet file says: its schema, and where the chunks of each column lie.
#pragma once

#include "datasets/files/file_bytes.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {

// Numbers of parquet.thrift.
enum class parquet_type : std::uint8_t { boolean, int32, int64, int96, real, real64, byte_array, fixed_byte_array };
enum class parquet_codec : std::uint8_t { none, snappy, gzip, lzo, brotli, lz4, zstd, lz4_raw };
enum class parquet_encoding : std::uint8_t {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  rle_dictionary = 8,
  byte_stream_split = 9
};

/// As people write it: "snappy".
[[nodiscard]] std::string_view name(parquet_codec codec) noexcept;

/// A column of values, a leaf of the schema.
///   path         names from the root on, joined by dots
///   shown        as people call it: of a list without the names within it, "ids" for "ids.list.element"
///   type_bytes   of fixed_byte_array
///   levels       definition levels below the one that says "there is a value": the optional and repeated nodes on the way
///   repeated     levels of those that are repeated: more than none are lists
///   list_level   of the last of these: as many definition levels say that there is an element, one fewer that its list is empty
///   outer_level  likewise of the first of them
///   bits         of integers that are narrower than their type: 8 or 16, or 32 of an int64; else 0
///   unnamed      an element of the schema on the way has no name
///   is_text, is_unsigned, is_decimal, is_number   what a logical type says; decimals are no plain numbers
///   unit         of numbers that are dates or times, in words: "days since 1970-01-01"
///   scale        of decimals: digits behind the point
///   array        of lists in lists that the Hub calls an array: its extents, where they are known. Set by who reads its metadata
struct parquet_leaf {
  std::string path;
  std::string shown;
  parquet_type type = parquet_type::byte_array;
  std::uint32_t type_bytes = 0;
  std::uint32_t levels = 0;
  std::uint32_t repeated = 0;
  std::uint32_t list_level = 0;
  std::uint32_t outer_level = 0;
  std::uint32_t bits = 0;
  bool unnamed = false;
  bool is_text = false;
  bool is_unsigned = false;
  bool is_half = false;
  bool is_decimal = false;
  bool is_number = true;
  std::string unit = {};
  std::int32_t scale = 0;
  std::vector<std::int64_t> array = {};
};

/// A column's values of a row group.
///   offset, bytes    of all of its pages
///   encodings        a bit for each encoding of its pages
///   always_packed    its pages of version 2 are compressed even where their headers deny it
struct parquet_chunk {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t values = 0;
  std::uint32_t encodings = 0;
  parquet_codec codec = parquet_codec::none;
  bool has_dictionary = false;
  bool always_packed = false;

  [[nodiscard]] bool uses(parquet_encoding each) const noexcept {
    return (encodings >> static_cast<unsigned>(each) & 1U) != 0;
  }
};

struct parquet_group {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::vector<parquet_chunk> chunks;  ///< one for each leaf
};

struct parquet_footer {
  std::uint64_t rows = 0;
  std::vector<parquet_leaf> leaves;
  std::vector<parquet_group> groups;
  std::string hub_features;  ///< the value of the key "huggingface", JSON
};

/// Places of chunks lie within the file, rows add up, and each group has a chunk for each leaf.
///   throws   error{errc::format} with file and offset; error{errc::unsupported} an encrypted file, and one whose columns lie in other files
///   source   github.com/apache/parquet-format: README.md, parquet.thrift
[[nodiscard]] parquet_footer read_parquet_footer(const file_bytes& file);

}  // namespace leat::datasets
