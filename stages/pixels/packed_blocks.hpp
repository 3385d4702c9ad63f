// Rows of DCT blocks in little memory: nonzero coefficients only, in pages of an arena. For progressive pictures whose
// coefficients take more than a picture may have: a photograph's take an eighth to a quarter of 128 bytes a block.
#pragma once

#include "stages/pixels/libjpeg.hpp"
#include "stages/pixels/scratch.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// Where packed rows lie. Plain data, as libjpeg's errors jump over the frames that use it.
class block_pages {
 public:
  static constexpr std::size_t page_bytes = 1024;

  struct page {
    page* next;
    std::uint8_t content[page_bytes - sizeof(page*)];
  };

  /// Empty, with as many bytes of the arena to take when they are needed.
  void begin(scratch_arena& arena, std::size_t bytes_max) noexcept;

  /// Packs a row to pages.
  ///   row       the pages that it had, or null; set to those that it has: null where all is zero
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
