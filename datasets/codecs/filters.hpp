// What array formats do to the bytes of a chunk before they write it, and how it is undone: one list for HDF5 and Zarr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

enum class filter_kind : std::uint8_t {
  gzip,            ///< RFC 1952
  zlib,            ///< RFC 1950: HDF5's "deflate"
  zstd,            ///< one frame or several
  lz4,             ///< numcodecs: the size as u32 little-endian, then one block
  lz4_hdf5,        ///< HDF5's filter 32004: sizes big-endian, then blocks
  lzf,             ///< HDF5's filter 32000
  blosc,           ///< Blosc 1
  bitshuffle,      ///< HDF5's filter 32008 without compression
  bitshuffle_lz4,  ///< HDF5's filter 32008 with LZ4
  shuffle,         ///< bytes of elements, one place after another
  fletcher32,      ///< 4 bytes of checksum at the end, verified
  crc32c,          ///< 4 bytes of checksum at the end, verified
  swap,            ///< elements are big-endian
  deflate          ///< RFC 1951 without a wrapper, and the CRC-32 that a zip archive has of it, verified
};

/// One change.
///   element_bytes   of shuffle, bitshuffle and swap: bytes of an element
///   crc32           of deflate: of what it becomes
///   block_elements  of bitshuffle: elements of a block; 0: as it chooses them itself
struct filter {
  filter_kind kind = filter_kind::zlib;
  std::uint32_t element_bytes = 1;
  std::uint32_t crc32 = 0;
  std::uint32_t block_elements = 0;

  friend bool operator==(const filter&, const filter&) = default;
};

/// Their names, first one first: "shuffle, gzip". Nothing for none.
[[nodiscard]] std::string filters_text(std::span<const filter> filters);

/// Undoes `filters`, from the last to the first. Thread-safe.
///   skipped   bit k: filters[k] was not used
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
[[nodiscard]] std::optional<std::string> undo_filters(std::span<const filter> filters, std::uint32_t skipped,
                                                      std::span<const std::byte> stored, std::span<std::byte> decoded);

}  // namespace leat::datasets
