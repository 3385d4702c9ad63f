// An array of numbers that lies in its files in chunks: what the readers of HDF5 and Zarr find out, and all that the model knows of them.
#pragma once

#include "datasets/codecs/filters.hpp"
#include "datasets/model/value_place.hpp"

#include <leat/samples.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leat::datasets {

/// Where the bytes of one chunk are stored.
///   file      a number that the reader gives to its files, from 0; or `held`: they lie in chunked_array::held
///   skipped   bit k: filters[k] was not used on this chunk
struct chunk_place {
  static constexpr std::uint64_t absent = ~std::uint64_t{0};  ///< as offset: never written, all of it is the fill value
  static constexpr std::uint32_t held = ~std::uint32_t{0};    ///< as file

  std::uint64_t offset = absent;
  std::uint64_t bytes = 0;
  std::uint32_t file = 0;
  std::uint32_t skipped = 0;

  /// Whether it has bytes to be read from a file.
  [[nodiscard]] bool is_in_file() const noexcept { return offset != absent && file != held; }
  friend bool operator==(const chunk_place&, const chunk_place&) = default;
};

/// Elements lie in C order (the last axis fastest) in the array as in a chunk. Chunks at the end of an axis that they do not divide
/// are stored whole; what is beyond the shape is never looked at. (Without filters, the last chunk along the first axis may also be
/// stored without the rows beyond the shape.)
///   name      path in its file, without a leading slash: "train/images"
///   type      of an element when its filters are undone; the filters give little-endian
///   shape     elements of each axis; the first axis is that of samples
///   chunk     elements of a chunk along each axis, at least 1; if the array is in one piece, the shape itself
///   places    of all chunks, in C order of their grid: ceil(shape / chunk) along each axis
///   filters   how an element's bytes were changed when written, first one first; reading undoes them from the last to the first
///   fill      an element, little-endian; size_bytes(type) bytes, or empty for zeros
///   record_bytes    of an array of records, of which this is one member: bytes from one record to the next in a chunk; `fill` is a record
///                   too. 0: elements follow one another
///   record_offset   of the member in its record
///   inner_axes      how many of the last axes lie within a record: a member may be an array
///   lead_bytes      before the first element of a chunk when its filters are undone; 0 without filters
///   big_endian      elements' bytes are swapped when they are taken out of their records. (If an element is a whole record,
///                   filter_kind::swap does it)
///   held            stored bytes of chunks that are kept in memory
///   held_from       the file that they come from; also the file of chunks that were never written
///   is_single       it has no axis of samples: its axes are those of one element, of text or opaque bytes
///   stored_axes     axes in the order in which a chunk has them, slowest first; empty: the array's own order
struct chunked_array {
  std::string name;
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> chunk;
  std::vector<chunk_place> places;
  std::vector<filter> filters;
  std::vector<std::byte> fill;
  std::vector<std::byte> held;
  std::uint32_t held_from = 0;
  std::uint32_t record_bytes = 0;
  std::uint32_t record_offset = 0;
  std::uint32_t inner_axes = 0;
  bool big_endian = false;
  bool characters = false;  ///< of u8: text of a fixed length, the last axis
  bool is_single = false;
  std::uint64_t lead_bytes = 0;
  std::vector<std::uint8_t> stored_axes;
};

/// Whether they are members of one array of records, so that a chunk of it is expanded once for both.
[[nodiscard]] bool share_chunks(const chunked_array& a, const chunked_array& b);

/// Values of any length, one for each row.
///   kind   field_kind::bytes, text or picture
///   type   of the elements that bytes are
///   is_single   one value, and no axis of samples
///   file   that all of them lie in, as chunk_place::file
struct placed_values {
  std::string name;
  field_kind kind = field_kind::bytes;
  std::vector<value_place> rows;
  std::uint32_t file = 0;
  dtype type = dtype::u8;
  bool is_single = false;
};

}  // namespace leat::datasets
