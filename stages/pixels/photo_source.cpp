#include "stages/pixels/photo_source.hpp"

#include "stages/pixels/byte_reading.hpp"

#include <jerror.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

namespace leat::pixels {
namespace {

constexpr unsigned char end_of_image[] = {0xFF, 0xD9};

// Short codes for what stands where nothing is wanted; all sizes up to 15 have one.
constexpr JHUFF_TBL table_of_dc = [] {
  JHUFF_TBL table{};
  table.bits[1] = 1;
  table.bits[5] = 15;
  for (std::size_t size = 0; size < 16; ++size) table.huffval[size] = static_cast<UINT8>(size);
  return table;
}();

constexpr JHUFF_TBL table_of_ac = [] {
  JHUFF_TBL table{};
  std::size_t at = 0;
  const auto add = [&](std::size_t bits, unsigned symbol) {
    ++table.bits[bits];
    table.huffval[at++] = static_cast<UINT8>(symbol);
  };
  add(2, 0x00);
  add(8, 0xF0);
  for (unsigned size = 1; size <= 15; ++size) {
    // Files of 8 bits have sizes up to 10: libjpeg looks up codes of 8 bits at once.
    for (unsigned run = 0; run < 16; ++run) add(size <= 10 ? 8 : 10, run << 4 | size);
  }
  return table;
}();

constexpr std::size_t symbols_of(const JHUFF_TBL& table) {
  std::size_t symbols = 0;
  for (std::size_t bits = 1; bits <= 16; ++bits) symbols += table.bits[bits];
  return symbols;
}

// SOI and DHT: a frame's components choose among four tables of each kind, which are all the same.
constexpr auto head_begin = [] {
  constexpr std::size_t length = 2 + NUM_HUFF_TBLS * (17 + symbols_of(table_of_dc) + 17 + symbols_of(table_of_ac));
  std::array<unsigned char, 4 + length> bytes{0xFF, 0xD8, 0xFF, 0xC4, length >> 8, length & 255U};
  std::size_t at = 6;
  const auto add = [&](const JHUFF_TBL& table, unsigned which) {
    bytes[at++] = static_cast<unsigned char>(which);
    for (std::size_t bits = 1; bits <= 16; ++bits) bytes[at++] = table.bits[bits];
    for (std::size_t i = 0; i < symbols_of(table); ++i) bytes[at++] = table.huffval[i];
  };
  for (unsigned i = 0; i < NUM_HUFF_TBLS; ++i) {
    add(table_of_dc, i);
    add(table_of_ac, 0x10U | i);
  }
  return bytes;
}();

struct both_codes {
  huffman_codes dc;
  huffman_codes ac;
  both_codes() noexcept {
    dc.build(table_of_dc);
    ac.build(table_of_ac);
  }
};

constexpr std::size_t mcu_bytes_max = D_MAX_BLOCKS_IN_MCU * huffman_writer::block_bytes_max + 4;
static_assert(mcu_bytes_max <= photo_source::buffer_bytes);

// What follows in the pack's JPEG head, up to the next segment that ours take the place of; empty behind the head. Where markers are not
// as in a head that was packed, libjpeg gets the rest, and says what is wrong.
byte_span next_of_head(photo_source& s) noexcept {
  const byte_span head = s.pack_->jpeg_head;
  std::size_t begin = s.head_at_;
  std::size_t at = begin;
  while (head.size() - at >= 4 && byte_at(head, at) == 0xFF) {
    const std::uint32_t marker = byte_at(head, at + 1);
    const std::size_t bytes = marker == 0xFF ? 1 : 2 + std::size_t{big16(head, at + 2)};
    if (bytes > head.size() - at) break;
    if (marker != 0xC4 && marker != 0xDD) {
      at += bytes;
    } else if (begin < at) {
      s.head_at_ = at;
      return head.subspan(begin, at - begin);
    } else {
      begin = at += bytes;
    }
  }
  s.head_at_ = head.size();
  return head.subspan(begin);
}

// Codes MCUs until the buffer is full or the row ends.
byte_span code(j_decompress_ptr cinfo, photo_source& s) {
  static const both_codes codes;
  photo_mcus& mcus = *s.mcus_;
  huffman_writer& to = s.writer_;
  std::int16_t* places[D_MAX_BLOCKS_IN_MCU];
  for (std::size_t i = 0; i < std::size(places); ++i) places[i] = s.values_[i];
  to.at = s.buffer_;
  const std::byte* const full = s.buffer_ + photo_source::buffer_bytes - mcu_bytes_max;
  while (to.at <= full) {
    if (mcus.next(cinfo, places)) {
      for (int i = 0; i < mcus.blocks(); ++i) {
        if (!to.put_block(codes.dc, codes.ac, s.dc_[mcus.component_of(i)], places[i])) {
          cinfo->err->msg_code = JERR_BAD_DCT_COEF;
          cinfo->err->error_exit(reinterpret_cast<j_common_ptr>(cinfo));
        }
      }
    } else {
      to.put(0, 3U * static_cast<unsigned>(mcus.blocks()));  // no difference, and no other values
    }
    if (mcus.column() != 0) continue;
    to.pad(true);
    to.put_marker(mcus.row() < s.pack_->head.mcu_rows ? 0xD0U + ((mcus.row() - 1) & 7U) : 0xD9U);
    std::fill(std::begin(s.dc_), std::end(s.dc_), 0);
    break;
  }
  return {s.buffer_, to.at};
}

boolean fill(j_decompress_ptr cinfo) {
  auto& s = *reinterpret_cast<photo_source*>(cinfo->src);
  byte_span bytes;
  if (s.step_ == 0) {
    bytes = std::as_bytes(std::span(head_begin));
    ++s.step_;
  } else if (s.step_ == 1) {
    bytes = std::as_bytes(std::span(s.restart_interval_));
    ++s.step_;
  } else {
    bytes = next_of_head(s);
    if (bytes.empty() && s.mcus_ != nullptr && s.mcus_->row() < s.pack_->head.mcu_rows) bytes = code(cinfo, s);
    if (bytes.empty()) bytes = std::as_bytes(std::span(end_of_image));  // of a head without a scan
  }
  s.methods.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  s.methods.bytes_in_buffer = bytes.size();
  return TRUE;
}

void skip(j_decompress_ptr cinfo, long bytes) {
  jpeg_source_mgr& source = *cinfo->src;
  auto left = static_cast<std::size_t>(std::max(bytes, 0L));
  while (left > source.bytes_in_buffer) {
    left -= source.bytes_in_buffer;
    fill(cinfo);
  }
  source.next_input_byte += left;
  source.bytes_in_buffer -= left;
}

void do_nothing(j_decompress_ptr /*cinfo*/) {}

}  // namespace

void photo_source::begin(j_decompress_ptr cinfo, const photo_pack_view& pack) noexcept {
  methods = {.next_input_byte = nullptr,
             .bytes_in_buffer = 0,
             .init_source = do_nothing,
             .fill_input_buffer = fill,
             .skip_input_data = skip,
             .resync_to_restart = jpeg_resync_to_restart,
             .term_source = do_nothing};
  pack_ = &pack;
  mcus_ = nullptr;
  step_ = 0;
  head_at_ = std::min(pack.jpeg_head.size(), std::size_t{2});  // behind SOI
  const std::uint32_t interval = pack.head.mcu_columns;
  const unsigned char segment[] = {
      0xFF, 0xDD, 0, 4, static_cast<unsigned char>(interval >> 8), static_cast<unsigned char>(interval)};
  std::copy(std::begin(segment), std::end(segment), restart_interval_);
  cinfo->src = &methods;
}

void photo_source::install(photo_mcus& mcus, std::byte* buffer) noexcept {
  mcus_ = &mcus;
  buffer_ = buffer;
  writer_.begin(buffer);
  std::fill(std::begin(dc_), std::end(dc_), 0);
}

}  // namespace leat::pixels
