// libjpeg's memory manager over a scratch arena: nothing it takes is allocated, every byte is counted, and all of it is
// given back by forgetting it. Used by jpeg_reader alone, which explains when.
#pragma once

#include "stages/pixels/scratch.hpp"

#include <cstddef>

// clang-format off: jpeglib.h uses FILE and size_t and includes neither.
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace leat::pixels {

/// Holds C state only: libjpeg's errors jump over the frames that use it.
struct jpeg_memory {
  jpeg_memory_mgr methods;  // first: libjpeg knows us by its address
  scratch_arena* arena;
  jvirt_sarray_control* sample_arrays;
  jvirt_barray_control* block_arrays;

  /// Ready for one picture.
  void begin(scratch_arena& from) noexcept;
};

/// What an array of `rows` rows costs, row pointers included.
[[nodiscard]] std::size_t jpeg_samples_bytes(std::size_t samples_per_row, std::size_t rows) noexcept;
[[nodiscard]] std::size_t jpeg_blocks_bytes(std::size_t blocks_per_row, std::size_t rows) noexcept;

}  // namespace leat::pixels
