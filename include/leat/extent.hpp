// Where the bytes of one field of one sample lie.
#pragma once

#include <cstdint>

namespace leat {

/// A range of bytes in one file of one source of a dataset.
///   offset, stored_bytes   in bytes, any alignment
///   decoded_bytes          after decompression (gzip, zstd, chunk filters). leat does not decompress yet: equal to stored_bytes,
///                          and from_extents() refuses others. Both are known before the read, and the memory budget is
///                          charged for the decoded bytes
struct extent {
  std::uint32_t source = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t decoded_bytes = 0;

  friend bool operator==(const extent&, const extent&) = default;
};

}  // namespace leat
