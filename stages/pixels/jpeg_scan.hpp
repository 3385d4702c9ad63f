// The scan of a baseline JPEG as rows of coefficients, and back into the same bytes: for packing, which needs a file's exact bits and not
// only their meaning. libjpeg-turbo gives only the meaning.
#pragma once

#include "stages/pixels/baseline_huffman.hpp"
#include "stages/pixels/huffman_writer.hpp"
#include "stages/pixels/libjpeg.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace leat::pixels {

/// What the markers before the scan say.
struct jpeg_head {
  struct component {
    std::uint8_t id;
    std::uint8_t h;
    std::uint8_t v;
    std::uint8_t dc;
    std::uint8_t ac;
  };

  std::size_t bytes;  // to the scan's first
  int width;
  int height;
  int components;
  component component_of[3];
  unsigned restart_interval;  // in MCUs; 0: none
  std::uint32_t mcu_columns;
  std::uint32_t mcu_rows;
  int blocks;                         // of an MCU
  std::uint8_t blocks_component[10];  // of each, its component
  JHUFF_TBL dc[NUM_HUFF_TBLS];
  JHUFF_TBL ac[NUM_HUFF_TBLS];

  [[nodiscard]] std::uint32_t row_blocks() const noexcept { return mcu_columns * static_cast<std::uint32_t>(blocks); }
};

/// Throws error{errc::unsupported} where the file is not baseline of one scan in one or three components; error{errc::format} where it
/// is damaged.
[[nodiscard]] jpeg_head parse_jpeg_head(std::span<const std::byte> file);

/// Decodes the rows of MCUs one after the other.
class jpeg_scan_decoder {
 public:
  jpeg_scan_decoder(const jpeg_head& head, std::span<const std::byte> after_head);

  /// `blocks` has 64 values for each of row_blocks(), in the order of MCUs; a block in natural order.
  /// Throws error{errc::format} where bits are missing or wrong, error{errc::unsupported} where padding is neither all 1 nor all 0.
  void decode_row(std::int16_t* blocks);

  /// After the last row: the scan's bytes, up to what follows it.
  [[nodiscard]] std::size_t finish();
  /// Whether bytes are filled up with 1, as usual.
  [[nodiscard]] bool padded_by_ones() const noexcept { return padding_ != 0; }

 private:
  void begin_segment();
  void end_segment();
  void decode_block(int component, std::int16_t* block);
  [[nodiscard]] int search(const huffman_lookup& table);
  void refill() noexcept;
  void drop(unsigned bits) noexcept;

  const jpeg_head& head_;
  std::span<const std::byte> from_;
  std::size_t at_ = 0;
  std::unique_ptr<huffman_lookup[]> tables_;  // of DC, then of AC
  std::vector<std::uint8_t> segment_;         // without stuffing, and with zeros behind it
  const std::uint8_t* end_ = nullptr;
  const std::uint8_t* next_ = nullptr;
  std::uint64_t bits_ = 0;
  int count_ = 0;
  int dc_[3] = {};
  unsigned left_ = 0;  // MCUs to the next restart
  unsigned restart_ = 0;
  int padding_ = -1;  // 0 or 1 once it is known
};

/// Codes rows of MCUs with a file's own tables.
class jpeg_scan_encoder {
 public:
  jpeg_scan_encoder(const jpeg_head& head, bool pad_by_ones, std::vector<std::byte>& to);

  /// False if the tables have no code for a value in it.
  [[nodiscard]] bool encode_row(const std::int16_t* blocks);
  void finish();

 private:
  const jpeg_head& head_;
  bool pad_by_ones_;
  std::vector<std::byte>& to_;
  huffman_writer writer_{};
  int dc_[3] = {};
  unsigned left_;
  unsigned restart_ = 0;
  std::unique_ptr<huffman_codes[]> codes_;  // of DC, then of AC
  std::unique_ptr<std::byte[]> row_;
};

}  // namespace leat::pixels
