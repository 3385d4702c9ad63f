// Where the bytes of one field of one sample lie.
#pragma once

#include <leat/compiler.hpp>

#include <cstdint>

#pragma GCC visibility push(default)
namespace leat {

/// A range of bytes in one file of one source of a dataset.
///   offset, stored_bytes   in bytes, of any alignment
///   decoded_bytes          bytes after decompression; equal to stored_bytes if nothing is compressed. Both are known
///                          before the read, and the memory budget is charged for both
struct extent {
  std::uint32_t source = 0;
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t decoded_bytes = 0;

  friend bool operator==(const extent&, const extent&) = default;
};

}  // namespace leat
#pragma GCC visibility pop
