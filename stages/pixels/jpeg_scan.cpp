#include "stages/pixels/jpeg_scan.hpp"

#include "stages/pixels/byte_reading.hpp"
#include "stages/pixels/zigzag.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace leat::pixels {
namespace {

// More than one block's codes take, and what is read ahead.
constexpr std::size_t segment_padding_bytes = 320;
// A block and a restart marker.
constexpr std::size_t block_bytes_max = huffman_writer::block_bytes_max + 8;

[[noreturn]] void refuse(const std::string& why) {
  throw error(errc::unsupported, std::string("JPEG: ") + why + ", which is not packed");
}
[[noreturn]] void damaged(const std::string& how) { throw error(errc::format, std::string("JPEG: ") + how); }

// ITU-T T.81, B.2.4.2. Codes that overflow their length are no table.
void read_tables(byte_span segment, jpeg_head& head) {
  while (!segment.empty()) {
    if (segment.size() < 17) damaged("a Huffman table that is cut off");
    const std::uint32_t which = byte_at(segment, 0);
    const std::uint32_t number = which & 15U;
    if (which >> 4 > 1 || number >= NUM_HUFF_TBLS) damaged("a Huffman table of a number that does not exist");
    JHUFF_TBL& table = which >> 4 == 0 ? head.dc[number] : head.ac[number];
    table = {};
    std::size_t symbols = 0;
    std::uint32_t code = 0;
    for (std::size_t length = 1; length <= 16; ++length, code <<= 1) {
      const std::uint32_t count = byte_at(segment, length);
      table.bits[length] = static_cast<UINT8>(count);
      symbols += count;
      code += count;
      if (code > 1U << length) damaged("a Huffman table with more codes than there are");
    }
    if (symbols > 256 || segment.size() - 17 < symbols) damaged("a Huffman table that is cut off");
    for (std::size_t i = 0; i < symbols; ++i) {
      const std::uint32_t symbol = byte_at(segment, 17 + i);
      if (which >> 4 == 0 && symbol > 15) damaged("a Huffman table for DC with a size above 15");
      table.huffval[i] = static_cast<UINT8>(symbol);
    }
    segment = segment.subspan(17 + symbols);
  }
}

bool is_there(const JHUFF_TBL& table) noexcept {
  return std::any_of(table.bits + 1, table.bits + 17, [](UINT8 count) { return count != 0; });
}

void read_frame(byte_span segment, jpeg_head& head) {
  if (head.components != 0) damaged("two frame headers");
  if (segment.size() < 6) damaged("a frame header that is cut off");
  if (byte_at(segment, 0) != 8) refuse(std::to_string(byte_at(segment, 0)) + " bits per sample");
  head.height = static_cast<int>(big16(segment, 1));
  head.width = static_cast<int>(big16(segment, 3));
  head.components = static_cast<int>(byte_at(segment, 5));
  if (head.width == 0 || head.height == 0) refuse("a header without width or height");
  if (head.components != 1 && head.components != 3) refuse(std::to_string(head.components) + " components");
  if (segment.size() < 6 + 3 * static_cast<std::size_t>(head.components)) damaged("a frame header that is cut off");
  for (int i = 0; i < head.components; ++i) {
    const std::size_t at = 6 + 3 * static_cast<std::size_t>(i);
    const std::uint32_t sampling = byte_at(segment, at + 1);
    head.component_of[i] = {.id = static_cast<std::uint8_t>(byte_at(segment, at)),
                            .h = static_cast<std::uint8_t>(sampling >> 4),
                            .v = static_cast<std::uint8_t>(sampling & 15U),
                            .dc = 0,
                            .ac = 0};
    const jpeg_head::component& each = head.component_of[i];
    if (each.h < 1 || each.h > 4 || each.v < 1 || each.v > 4) damaged("a sampling factor that is not 1 to 4");
  }
}

void read_scan(byte_span segment, jpeg_head& head) {
  if (head.components == 0) damaged("a scan before the frame header");
  const auto components = static_cast<std::size_t>(head.components);
  if (segment.size() < 4 || segment.size() < 4 + 2 * std::size_t{byte_at(segment, 0)}) {
    damaged("a scan header that is cut off");
  }
  if (byte_at(segment, 0) != components) refuse("more than one scan");
  for (std::size_t i = 0; i < components; ++i) {
    jpeg_head::component& each = head.component_of[i];
    if (byte_at(segment, 1 + 2 * i) != each.id) refuse("components in another order in the scan than in the frame");
    const std::uint32_t tables = byte_at(segment, 2 + 2 * i);
    each.dc = static_cast<std::uint8_t>(tables >> 4);
    each.ac = static_cast<std::uint8_t>(tables & 15U);
    if (each.dc >= NUM_HUFF_TBLS || each.ac >= NUM_HUFF_TBLS || !is_there(head.dc[each.dc]) ||
        !is_there(head.ac[each.ac])) {
      refuse("no Huffman table of its own");
    }
  }
  const std::size_t rest = 1 + 2 * components;
  if (byte_at(segment, rest) != 0 || byte_at(segment, rest + 1) != 63 || byte_at(segment, rest + 2) != 0) {
    refuse("a scan of some of the coefficients");
  }
}

// ITU-T T.81, A.2. One component alone is not interleaved: its MCU is a block, whatever its sampling.
void lay_out(jpeg_head& head) {
  int h = 1;
  int v = 1;
  head.blocks = 0;
  for (int i = 0; i < head.components; ++i) {
    const jpeg_head::component& each = head.component_of[i];
    const int blocks = head.components == 1 ? 1 : each.h * each.v;
    if (head.blocks + blocks > 10) refuse("a sampling of more than 10 blocks in an MCU");
    std::fill_n(head.blocks_component + head.blocks, blocks, static_cast<std::uint8_t>(i));
    head.blocks += blocks;
    if (head.components == 1) continue;
    h = std::max<int>(h, each.h);
    v = std::max<int>(v, each.v);
  }
  head.mcu_columns = static_cast<std::uint32_t>((head.width + 8 * h - 1) / (8 * h));
  head.mcu_rows = static_cast<std::uint32_t>((head.height + 8 * v - 1) / (8 * v));
}

}  // namespace

jpeg_head parse_jpeg_head(std::span<const std::byte> file) {
  if (!stands_at(file, 0, "\xFF\xD8")) refuse("no JPEG");
  jpeg_head head{};
  std::size_t at = 2;
  for (;;) {
    if (file.size() - at < 4) damaged("it ends inside its headers");
    if (byte_at(file, at) != 0xFF) refuse("bytes between two markers");
    const std::uint32_t marker = byte_at(file, at + 1);
    if (marker == 0xFF) {  // a fill byte
      ++at;
      continue;
    }
    if (marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD9)) refuse("a marker out of place in its headers");
    const std::size_t length = big16(file, at + 2);
    if (length < 2 || file.size() - at - 2 < length) damaged("it ends inside its headers");
    const byte_span segment = file.subspan(at + 4, length - 2);
    at += 2 + length;
    switch (marker) {
      case 0xC0:
      case 0xC1:
        read_frame(segment, head);
        break;
      case 0xC2:
        refuse("progressive");
      case 0xC4:
        read_tables(segment, head);
        break;
      case 0xDD:
        if (segment.size() != 2) damaged("a restart interval that is cut off");
        head.restart_interval = big16(segment, 0);
        break;
      case 0xDA:
        read_scan(segment, head);
        lay_out(head);
        head.bytes = at;
        return head;
      default:
        if (marker >= 0xC3 && marker <= 0xCF) refuse("another process (SOF" + std::to_string(marker - 0xC0) + ")");
        break;
    }
  }
}

jpeg_scan_decoder::jpeg_scan_decoder(const jpeg_head& head, std::span<const std::byte> after_head)
    : head_(head), from_(after_head), tables_(new huffman_lookup[2 * NUM_HUFF_TBLS]()), left_(head.restart_interval) {
  for (int i = 0; i < head.components; ++i) {
    const jpeg_head::component& each = head.component_of[i];
    tables_[each.dc].build(head.dc[each.dc], true);
    tables_[static_cast<std::size_t>(NUM_HUFF_TBLS) + each.ac].build(head.ac[each.ac], false);
  }
  begin_segment();
}

void jpeg_scan_decoder::begin_segment() {
  segment_.clear();
  while (at_ < from_.size()) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(from_.data()) + at_;
    const auto* const found = static_cast<const std::uint8_t*>(std::memchr(begin, 0xFF, from_.size() - at_));
    if (found == nullptr) {
      segment_.insert(segment_.end(), begin, begin + (from_.size() - at_));
      at_ = from_.size();
      break;
    }
    segment_.insert(segment_.end(), begin, found);
    at_ += static_cast<std::size_t>(found - begin);
    if (from_.size() - at_ < 2 || byte_at(from_, at_ + 1) != 0) break;
    segment_.push_back(0xFF);
    at_ += 2;
  }
  const std::size_t bytes = segment_.size();
  segment_.resize(bytes + segment_padding_bytes);
  next_ = segment_.data();
  end_ = next_ + bytes;
  bits_ = 0;
  count_ = 0;
  std::fill(std::begin(dc_), std::end(dc_), 0);
}

void jpeg_scan_decoder::refill() noexcept {
  std::uint64_t next = 0;
  std::memcpy(&next, next_, sizeof next);
  if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
  bits_ |= next >> count_;
  next_ += (63 - count_) >> 3;
  count_ |= 56;
}

void jpeg_scan_decoder::drop(unsigned bits) noexcept {
  bits_ <<= bits;
  count_ -= static_cast<int>(bits);
}

int jpeg_scan_decoder::search(const huffman_lookup& table) {
  for (int length = 1; length <= 16; ++length) {
    const auto code = static_cast<std::int32_t>(bits_ >> (64 - length));
    if (code > table.code_max[length]) continue;
    drop(static_cast<unsigned>(length));
    return table.symbols[static_cast<std::size_t>(table.symbol_at[length] + code)];
  }
  damaged("a code that does not exist");
}

void jpeg_scan_decoder::decode_block(int component, std::int16_t* block) {
  const jpeg_head::component& of = head_.component_of[component];
  const auto value_of = [&](unsigned size) {
    if (size == 0) return 0;
    const auto raw = static_cast<int>(bits_ >> (64 - size));
    drop(size);
    return raw < 1 << (size - 1) ? raw - (1 << size) + 1 : raw;
  };
  // An entry has a symbol with its value if both fit; else the symbol is searched.
  refill();
  const huffman_lookup& dc = tables_[of.dc];
  if (const std::uint32_t entry = dc.one[bits_ >> (64 - huffman_lookup::index_bits)]; (entry & 63U) != 0) {
    drop(entry & 63U);
    dc_[component] += static_cast<std::int16_t>(entry >> 16);
  } else {
    dc_[component] += value_of(static_cast<unsigned>(search(dc)));
  }
  if (dc_[component] != static_cast<std::int16_t>(dc_[component])) refuse("values of more than 16 bits");
  block[0] = static_cast<std::int16_t>(dc_[component]);
  const huffman_lookup& ac = tables_[static_cast<std::size_t>(NUM_HUFF_TBLS) + of.ac];
  for (unsigned k = 1; k < 64;) {
    refill();
    const std::uint32_t entry = ac.one[bits_ >> (64 - huffman_lookup::index_bits)];
    int value = 0;
    if ((entry & 63U) != 0) {
      drop(entry & 63U);
      k += entry >> 8 & 255U;
      value = static_cast<std::int16_t>(entry >> 16);
    } else {
      const int symbol = search(ac);
      const auto size = static_cast<unsigned>(symbol & 15);
      value = value_of(size);
      k += size != 0 ? static_cast<unsigned>(symbol >> 4) + 1U : symbol >> 4 == 15 ? 16U : 64U;
    }
    if (value == 0) continue;  // sixteen zeros, or the end
    if (k > 64) damaged("coefficients past the end of a block");
    block[natural_of_zigzag[k - 1]] = static_cast<std::int16_t>(value);
  }
  if (next_ - (count_ >> 3) > end_) damaged("its data ends too early");
}

void jpeg_scan_decoder::end_segment() {
  if (next_ - (count_ >> 3) != end_) refuse("bytes behind its last block");
  const auto bits = static_cast<unsigned>(count_ & 7);
  if (bits == 0) return;
  const auto rest = static_cast<unsigned>(bits_ >> (64 - bits));
  if (rest != 0 && rest != (1U << bits) - 1) refuse("padding of ones and zeros");
  const int found = rest != 0 ? 1 : 0;
  if (padding_ >= 0 && padding_ != found) refuse("padding of ones here and of zeros there");
  padding_ = found;
}

void jpeg_scan_decoder::decode_row(std::int16_t* blocks) {
  std::memset(blocks, 0, std::size_t{head_.row_blocks()} * 64 * sizeof(std::int16_t));
  for (std::uint32_t column = 0; column < head_.mcu_columns; ++column) {
    if (head_.restart_interval != 0 && left_-- == 0) {
      end_segment();
      if (from_.size() - at_ < 2 || byte_at(from_, at_) != 0xFF || byte_at(from_, at_ + 1) != 0xD0 + restart_) {
        damaged("a restart marker is missing");
      }
      at_ += 2;
      restart_ = (restart_ + 1) & 7U;
      left_ = head_.restart_interval - 1;
      begin_segment();
    }
    for (int i = 0; i < head_.blocks; ++i, blocks += 64) decode_block(head_.blocks_component[i], blocks);
  }
}

std::size_t jpeg_scan_decoder::finish() {
  end_segment();
  return at_;
}

jpeg_scan_encoder::jpeg_scan_encoder(const jpeg_head& head, bool pad_by_ones, std::vector<std::byte>& to)
    : head_(head),
      pad_by_ones_(pad_by_ones),
      to_(to),
      left_(head.restart_interval),
      codes_(new huffman_codes[2 * NUM_HUFF_TBLS]()),
      row_(new std::byte[head.row_blocks() * block_bytes_max]) {
  for (std::size_t i = 0; i < NUM_HUFF_TBLS; ++i) {
    codes_[i].build(head.dc[i]);
    codes_[NUM_HUFF_TBLS + i].build(head.ac[i]);
  }
}

bool jpeg_scan_encoder::encode_row(const std::int16_t* blocks) {
  writer_.at = row_.get();
  bool good = true;
  for (std::uint32_t column = 0; column < head_.mcu_columns && good; ++column) {
    if (head_.restart_interval != 0 && left_-- == 0) {
      writer_.pad(pad_by_ones_);
      writer_.put_marker(0xD0 + restart_);
      restart_ = (restart_ + 1) & 7U;
      left_ = head_.restart_interval - 1;
      std::fill(std::begin(dc_), std::end(dc_), 0);
    }
    for (int i = 0; i < head_.blocks && good; ++i, blocks += 64) {
      const int component = head_.blocks_component[i];
      const jpeg_head::component& of = head_.component_of[component];
      good = writer_.put_block(codes_[of.dc], codes_[NUM_HUFF_TBLS + of.ac], dc_[component], blocks);
    }
  }
  to_.insert(to_.end(), row_.get(), writer_.at);
  return good;
}

void jpeg_scan_encoder::finish() {
  writer_.at = row_.get();
  writer_.pad(pad_by_ones_);
  to_.insert(to_.end(), row_.get(), writer_.at);
}

}  // namespace leat::pixels
