// The Huffman stage of a baseline JPEG in our own code, put in the place of libjpeg-turbo's: the same coefficients, faster.
//
// It decodes what is regular: one scan, every code valid, every bit there. Where anything else turns up it gives up, and
// the picture is decoded again by libjpeg-turbo alone; so damaged files come out exactly as they would without it.
//
// A table is indexed by the next bits of the scan and tells in one look-up how many zeros come before a coefficient, its
// value, and how many bits both took. Where coefficients are not wanted (rows above and columns beside the crop), another
// tells of two at once. libjpeg looks up the code alone and then works out the value.
#pragma once

#include "stages/pixels/libjpeg.hpp"

#include <cstddef>
#include <cstdint>

#if __has_include(<jpegint.h>) && LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 && LIBJPEG_TURBO_VERSION_NUMBER < 4000000
#define LEAT_OWN_HUFFMAN 1
#define JPEG_INTERNALS
#include <jpegint.h>
#undef JPEG_INTERNALS
#else
// A libjpeg-turbo whose insides we do not know: install() refuses, and everything works as it did.
struct jpeg_entropy_decoder {
  void (*start_pass)(j_decompress_ptr cinfo);
  boolean (*decode_mcu)(j_decompress_ptr cinfo, JBLOCKROW* mcu);
};
#endif

namespace leat::pixels {

/// How a Huffman table is looked up.
struct huffman_lookup {
  static constexpr int index_bits = 11;

  std::uint8_t lengths[17];  // of what it was built from, to know it again
  std::uint8_t symbols[256];
  bool for_dc;
  bool built;

  /// Bits 0-5: bits of code and value; 0: they do not fit in index_bits. 8-15: how far the index moves on. 16-31: the value.
  std::uint32_t one[1 << index_bits];
  /// One or two coefficients, values left out. Bits 0-5: bits taken; 0: they do not fit. 8-15: how far the index moves on.
  std::uint16_t two[1 << index_bits];
  std::int32_t code_max[17];  // of each length; -1: none
  std::int32_t symbol_at[17];

  /// Does nothing where it was built from the same.
  void build(const JHUFF_TBL& from, bool dc) noexcept;
};

/// One scan's decoder. libjpeg sees its first member, as it sees its own decoder's.
struct baseline_huffman {
  jpeg_entropy_decoder methods;

  /// Takes the place of libjpeg's decoder, after jpeg_start_decompress(), if the scan is one that it can decode. From
  /// then on the source's position is not kept up to date.
  ///   give_up   does not return; what has been decoded so far is right
  bool install(j_decompress_ptr cinfo, void (*give_up)(j_decompress_ptr)) noexcept;

  /// MCUs of a row outside [first, last] are not wanted.
  void want_columns(JDIMENSION first, JDIMENSION last) noexcept;

  // The rest is its own.
  struct bit_reader {
    const std::uint8_t* next;
    const std::uint8_t* end;
    std::uint64_t bits;  // the next ones, from the top; below the `count` first only bits that are right, or zeros
    int count;
    int missing;  // of `count`, bits that were not there
  };
  using decoder = bool (*)(baseline_huffman&, JBLOCKROW*);

  void (*give_up_)(j_decompress_ptr);
  decoder decode_;
  bit_reader reader_;
  int dc_[MAX_COMPS_IN_SCAN];
  int blocks_;
  struct {
    const huffman_lookup* dc;
    const huffman_lookup* ac;
    int component;
  } block_[D_MAX_BLOCKS_IN_MCU];
  JDIMENSION columns_;
  JDIMENSION column_;
  JDIMENSION first_wanted_;
  JDIMENSION last_wanted_;
  unsigned restart_interval_;
  unsigned restart_left_;
  unsigned restart_next_;
  huffman_lookup tables_[2][NUM_HUFF_TBLS];
};

}  // namespace leat::pixels
