// The Huffman stage of a baseline JPEG in our own code, put in the place of libjpeg-turbo's: the same coefficients, faster.
//
// It decodes what is regular: one scan, every code valid, every bit there. Where anything else turns up it gives up, and
// the picture is decoded again by libjpeg-turbo alone; so damaged files come out exactly as they would without it.
//
// A table is indexed by the next bits of the scan and gives in one look-up how many zeros come before a coefficient, its
// value, and how many bits both took. Where coefficients are not wanted (rows above and columns beside the crop), another
// table covers as many coefficients as fit. libjpeg looks up the code alone and then computes the value.
//
// The scan is copied beforehand without the zeros that follow 0xFF, a buffer at a time, so that taking the next bits needs no test.
#pragma once

#include "stages/pixels/entropy_door.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// How a Huffman table is looked up.
struct huffman_lookup {
  static constexpr int index_bits = 11;
  static constexpr int many_bits = 12;

  std::uint8_t lengths[17];  // of the source table, to recognise it
  std::uint8_t symbols[256];
  bool for_dc;
  bool built;
  bool built_many;

  /// Bits 0-5: bits of code and value. 8-15: how far the index moves on. 16-31: the value.
  /// Bits 0-5 are 0 where they do not fit in index_bits. The index then moves past the end of any block, and if the code alone
  /// fits, bits 8-14 are how far it does move on, 16-23 the code's bits, and 24-31 the value's.
  std::uint32_t one[1 << index_bits];
  /// As many coefficients as fit, without values; the last one's value may be longer than the index. Bits 0-5: bits taken, 0 if
  /// no code fits. 8-15: how far the index moves on.
  std::uint16_t many[1 << many_bits];
  std::int32_t code_max[17];  // of each length; -1: none
  std::int32_t symbol_at[17];

  /// Does nothing if it was built from the same. Leaves out `many`.
  void build(const JHUFF_TBL& from, bool dc) noexcept;
  /// `many`, after build().
  void build_many() noexcept;
};

/// One scan's decoder. libjpeg sees its first member, as it sees its own decoder's.
struct baseline_huffman {
  jpeg_entropy_decoder methods;

  /// Takes the place of libjpeg's decoder, after jpeg_start_decompress(), if the scan is one that it can decode. From
  /// then on the source's position is not kept up to date.
  ///   give_up   does not return; what has been decoded so far is right
  ///   plain     for tests: without vectors and BMI2, as on a processor that lacks them, in small buffers and with `many` whenever
  ///             something is skipped, so that small pictures show it all; the same coefficients
  bool install(j_decompress_ptr cinfo, void (*give_up)(j_decompress_ptr), bool plain) noexcept;

  /// MCUs of a row outside [first, last] are not wanted, nor any of the rows of MCUs before `first_row`. Call it before the first
  /// MCU; without it all are wanted.
  void want(JDIMENSION first_row, JDIMENSION first, JDIMENSION last) noexcept;

  /// For a picture that is read several times: keeps the blocks of all MCUs from row `from_row` on, so that each is decoded once. Call it
  /// between install() and want(). Rows before it are wanted by none of the reads. Does nothing where `bytes` are not enough.
  void keep(std::byte* memory, std::size_t bytes, JDIMENSION from_row) noexcept;
  /// In the place of install() when the picture is read again, its bytes and the kept blocks where they were. False where none are kept.
  bool install_again(j_decompress_ptr cinfo) noexcept;
  /// Before another picture.
  void forget() noexcept { kept_ = nullptr; }
  [[nodiscard]] static constexpr std::size_t kept_bytes(std::size_t mcus, std::size_t blocks_in_mcu) noexcept {
    return mcus * blocks_in_mcu * sizeof(JBLOCK);
  }

  // The rest is its own.
  struct bit_reader {
    const std::uint8_t* next;  // in buffer_
    std::uint64_t bits;        // the next ones, from the top; after the first `count` only right bits, or zeros
    int count;
  };
  using decoder = bool (*)(baseline_huffman&, JBLOCKROW*);
  using unstuffer = void (*)(const std::uint8_t*& from, const std::uint8_t* from_end, std::uint8_t*& to,
                             std::uint8_t* to_end);
  static constexpr std::size_t buffer_bytes = std::size_t{16} << 10;
  static constexpr std::size_t small_buffer_bytes = std::size_t{3} << 10;
  // More than the codes of one block can take: 64 of 31 bits.
  static constexpr std::size_t block_bytes_max = 256;
  // What is read ahead, and what an unstuffer writes past its end.
  static constexpr std::size_t slack_bytes = 64;

  void (*give_up_)(j_decompress_ptr);
  decoder decode_;
  bit_reader reader_;
  const std::uint8_t* limit_;  // where the next MCU may begin, at most, in buffer_
  const std::uint8_t* end_;    // of what the buffer holds
  const std::uint8_t* source_;
  const std::uint8_t* source_end_;
  std::uint8_t* buffer_end_;
  bool plain_;
  bool last_buffer_;  // before the next marker
  unstuffer unstuff_;
  int dc_[MAX_COMPS_IN_SCAN];
  int blocks_;
  struct {
    const huffman_lookup* dc;
    huffman_lookup* ac;
    int component;
  } block_[D_MAX_BLOCKS_IN_MCU];
  JDIMENSION rows_;
  JDIMENSION columns_;
  JDIMENSION column_;
  JDIMENSION first_wanted_;
  JDIMENSION last_wanted_;
  bool skips_many_;  // `many` of the tables is built
  unsigned restart_interval_;
  unsigned restart_left_;
  unsigned restart_next_;
  JBLOCK nowhere_;         // for blocks that are decoded but not wanted
  JBLOCK* kept_;           // of MCU kept_from_ and on; null: none are kept
  std::size_t kept_from_;  // MCU
  std::size_t decoded_;    // MCUs, by all passes
  std::size_t mcu_;        // the next one of this pass
  JDIMENSION first_given_;
  JDIMENSION last_given_;
  huffman_lookup tables_[2][NUM_HUFF_TBLS];
  std::uint8_t buffer_[buffer_bytes + D_MAX_BLOCKS_IN_MCU * block_bytes_max + slack_bytes];
};

}  // namespace leat::pixels
