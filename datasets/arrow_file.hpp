// What an Arrow IPC file or stream says of itself: its columns, and where the buffers of each batch lie.
#pragma once

#include "datasets/file_bytes.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// A column, or a member of a struct.
///   path            names from the root on, joined by dots
///   what            values: bytes or text with offsets, of a fixed size, numbers, or lists of numbers
///   offset_bytes    of each offset of values of variable length: 4 or 8
///   type            of numbers, and of the elements of lists
///   size            of values of a fixed size, in bytes; of lists of a fixed size, in elements
///   buffer          of its validity, among those of a batch: the offsets (if there are) and the values follow
///   element_buffer  of a list, of its elements' values
///   validities      of the structs that it is in
///   not_read        of others, why
struct arrow_column {
  enum class kind : std::uint8_t { bytes, text, fixed, number, truth, list, fixed_list, other } what = kind::other;
  std::string path;
  std::size_t offset_bytes = 0;
  dtype type = dtype::u8;
  bool is_signed = true;
  std::uint64_t size = 0;
  std::size_t buffer = 0;
  std::size_t element_buffer = 0;
  std::vector<std::size_t> validities;
  std::string not_read;
};

struct arrow_buffer {
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t bytes = 0;
};

struct arrow_batch {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::vector<arrow_buffer> buffers;
};

struct arrow_contents {
  std::uint64_t rows = 0;
  std::vector<arrow_column> columns;
  std::vector<arrow_batch> batches;
  std::string hub_features;  ///< the value of the key "huggingface", JSON
};

/// Whether a file's first bytes are those of an Arrow file, or of a stream.
[[nodiscard]] bool is_arrow(std::span<const std::byte> start) noexcept;

/// Metadata are read, one message after another; no buffer is. Buffers lie within the file.
///   throws   error{errc::format} damage, with file and offset; error{errc::unsupported} compressed batches, big-endian files, and views, each
///            with what to do
///   source   arrow.apache.org: Columnar format; format/{Schema,Message}.fbs
[[nodiscard]] arrow_contents read_arrow(const file_bytes& file);

}  // namespace leat::datasets
