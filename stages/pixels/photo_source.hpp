// A photo pack as the JPEG that libjpeg reads where our stage has no door into it (entropy_door.hpp): a source of libjpeg's public API
// that codes the pack's rows again as they are asked for. The pixels are the same.
#pragma once

#include "stages/pixels/huffman_writer.hpp"
#include "stages/pixels/libjpeg.hpp"
#include "stages/pixels/photo_mcus.hpp"
#include "stages/pixels/photo_pack_layout.hpp"

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// One picture's. libjpeg sees its first member. Plain data: libjpeg's jumps may skip it.
///
/// The head is the pack's, but for the Huffman tables and the restart interval. The tables are ours and have each code there is, since a
/// file's own need not have those for blocks of zeros, which stand where nothing is wanted: 3 bits each. A restart marker behind each row
/// keeps libjpeg, which reads ahead, from the next row until it decodes it: rows below the region need not be there, and may be damaged.
struct photo_source {
  /// Coded at a time; more than the largest MCU.
  static constexpr std::size_t buffer_bytes = std::size_t{16} << 10;

  jpeg_source_mgr methods;

  /// Instead of jpeg_mem_src(), before jpeg_read_header().
  void begin(j_decompress_ptr cinfo, const photo_pack_view& pack) noexcept;
  /// After jpeg_start_decompress() and `mcus.begin()`, before the first line.
  ///   buffer   buffer_bytes, until the picture ends
  void install(photo_mcus& mcus, std::byte* buffer) noexcept;

  // The rest is its own.
  const photo_pack_view* pack_;
  photo_mcus* mcus_;
  std::byte* buffer_;
  huffman_writer writer_;
  int dc_[D_MAX_BLOCKS_IN_MCU];  // of each component, the last block's
  int step_;                     // of the head: our tables, our interval, its own
  std::size_t head_at_;
  unsigned char restart_interval_[6];
  alignas(64) std::int16_t values_[D_MAX_BLOCKS_IN_MCU][64];
};

}  // namespace leat::pixels
