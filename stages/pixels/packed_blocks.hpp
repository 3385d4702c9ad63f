// Rows of DCT blocks in little memory: nonzero coefficients only, in pages of an arena. Used for progressive pictures whose
// coefficients exceed the memory for one picture. A photograph's take an eighth to a quarter of the usual 128 bytes a block.
#pragma once

#include "stages/pixels/libjpeg.hpp"
#include "stages/pixels/scratch.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// The memory of packed rows. Plain data, since libjpeg's errors jump over stack frames that use it.
class block_pages {
 public:
  static constexpr std::size_t page_bytes = 1024;

  struct page {
    page* next;
    std::uint8_t content[page_bytes - sizeof(page*)];
  };

  /// Starts empty, and takes at most so many bytes of the arena when they are needed.
  void begin(scratch_arena& arena, std::size_t bytes_max) noexcept;

  /// Packs a row to pages.
  ///   row       the row's old pages, or null; set to its new pages, or to null if all coefficients are zero
  ///   returns   whether there was room. If not, the row is lost
  bool pack(const JBLOCK* blocks, std::size_t count, page*& row) noexcept;

  /// The blocks that were packed.
  static void unpack(const page* row, JBLOCK* blocks, std::size_t count) noexcept;

 private:
  page* take() noexcept;

  scratch_arena* arena_;
  std::size_t bytes_left_;
  page* free_;
};

}  // namespace leat::pixels
