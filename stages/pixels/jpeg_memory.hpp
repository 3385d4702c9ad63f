// libjpeg's memory manager over a scratch arena: it allocates nothing itself, every byte is counted, and all is freed when
// the arena ends the sample. Used by jpeg_reader alone, which explains when.
#pragma once

#include "stages/pixels/libjpeg.hpp"
#include "stages/pixels/packed_blocks.hpp"
#include "stages/pixels/scratch.hpp"

#include <cstddef>

namespace leat::pixels {

/// Holds C state only: libjpeg's errors jump over the frames that use it.
struct jpeg_memory {
  jpeg_memory_mgr methods;  // first: libjpeg knows us by its address
  scratch_arena* arena;
  jvirt_sarray_control* sample_arrays;
  jvirt_barray_control* block_arrays;
  bool packs;     // coefficients are packed, except for the rows that libjpeg has asked for last
  bool has_room;  // with packing: all coefficients had room so far
  block_pages pages;

  /// Ready for one picture.
  void begin(scratch_arena& from) noexcept;

  /// Holds coefficients packed, in at most `bytes_max`. Call it before libjpeg asks for coefficients. If they do not suffice,
  /// libjpeg gets an error, and has_room is false.
  void pack(std::size_t bytes_max) noexcept;
};

/// What an array of `rows` rows costs, row pointers included.
[[nodiscard]] std::size_t jpeg_samples_bytes(std::size_t samples_per_row, std::size_t rows) noexcept;
[[nodiscard]] std::size_t jpeg_blocks_bytes(std::size_t blocks_per_row, std::size_t rows) noexcept;

/// The same for a packed array, without the packed data, if libjpeg asks for so many rows at a time.
[[nodiscard]] std::size_t jpeg_packed_bytes(std::size_t blocks_per_row, std::size_t rows,
                                            std::size_t rows_at_a_time) noexcept;

}  // namespace leat::pixels
