#include "stages/pixels/baseline_huffman.hpp"

#include <dlfcn.h>

#include <bit>
#include <cstring>

#if defined(__x86_64__)
#define LEAT_HUFFMAN_BMI2 1
#endif

namespace leat::pixels {
namespace {

using bit_reader = baseline_huffman::bit_reader;

constexpr int index_bits = huffman_lookup::index_bits;
constexpr int index_size = 1 << index_bits;
// After a refill there are 56 bits at least: four look-ups of two coefficients need no other.
constexpr int two_bits_max = 14;
// Sums of DC differences are left to libjpeg long before they overflow; its versions differ in what they do then.
constexpr int dc_max = 1 << 24;

// Where coefficient k - 1 lies in a block. Damaged data moves the index past the end: by up to 15 with a value, which
// libjpeg puts at 63 as we do, and up to 64 without one.
struct natural_order {
  std::uint8_t at[64 + 64 + 1];
  constexpr natural_order() : at() {
    int k = 1;
    for (int diagonal = 0; diagonal < 15; ++diagonal) {
      for (int step = 0; step <= diagonal; ++step) {
        const int x = diagonal % 2 == 0 ? step : diagonal - step;
        const int y = diagonal - x;
        if (x < 8 && y < 8) at[k++] = static_cast<std::uint8_t>(8 * y + x);
      }
    }
    for (; k < static_cast<int>(sizeof(at)); ++k) at[k] = 63;
  }
};
constexpr natural_order order_after;

int extend(std::uint32_t bits, int size) noexcept {
  const auto value = static_cast<int>(bits);
  return size == 0 ? 0 : value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

// How far a symbol moves the index on, and the size of its value.
int advance_of(int symbol, bool dc) noexcept {
  if (dc) return 1;
  if ((symbol & 15) != 0) return (symbol >> 4) + 1;
  return symbol >> 4 == 15 ? 16 : 64;  // sixteen zeros; the end of the block
}
int size_of(int symbol, bool dc) noexcept { return dc ? symbol : symbol & 15; }

// Byte by byte, where a marker or a stuffed byte is near, or the end.
[[gnu::noinline]] void refill_slowly(bit_reader& r) noexcept {
  r.bits = r.count == 0 ? 0 : r.bits & (~std::uint64_t{0} << (64 - r.count));
  while (r.count < 56) {
    std::uint64_t byte = 0;
    if (r.next != r.end && *r.next != 0xFF) {
      byte = *r.next++;
    } else if (r.end - r.next >= 2 && r.next[1] == 0) {
      byte = 0xFF;
      r.next += 2;
    } else {
      r.missing += 8;
    }
    r.bits |= byte << (56 - r.count);
    r.count += 8;
  }
}

// At least 56 bits.
[[gnu::always_inline]] inline void refill(bit_reader& r) noexcept {
  if (r.end - r.next >= 8) [[likely]] {
    std::uint64_t next = 0;
    std::memcpy(&next, r.next, sizeof(next));
    if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
    const bool has_ff = ((~next - 0x0101010101010101U) & next & 0x8080808080808080U) != 0;
    if (!has_ff) [[likely]] {
      r.bits |= next >> r.count;
      r.next += (63 - r.count) >> 3;
      r.count |= 56;
      return;
    }
  }
  refill_slowly(r);
}

[[gnu::always_inline]] inline std::size_t index(const bit_reader& r) noexcept {
  return static_cast<std::size_t>(r.bits >> (64 - index_bits));
}
[[gnu::always_inline]] inline void drop(bit_reader& r, int bits) noexcept {
  r.bits <<= bits;
  r.count -= bits;
}

// A code of any length: its symbol, or -1.
[[gnu::always_inline]] inline int symbol_of(bit_reader& r, const huffman_lookup& table) noexcept {
  for (int length = 1; length <= 16; ++length) {
    const auto code = static_cast<std::int32_t>(r.bits >> (64 - length));
    if (code <= table.code_max[length]) {
      drop(r, length);
      return table.symbols[static_cast<std::size_t>(table.symbol_at[length] + code)];
    }
  }
  return -1;
}

// A symbol and its value that no table could tell. False where there is no such code.
[[gnu::noinline]] bool decode_slowly(bit_reader& r, const huffman_lookup& table, int& advance, int& value) noexcept {
  refill(r);
  const int symbol = symbol_of(r, table);
  if (symbol < 0) return false;
  const int size = size_of(symbol, table.for_dc);
  advance = advance_of(symbol, table.for_dc);
  value = size == 0 ? 0 : extend(static_cast<std::uint32_t>(r.bits >> (64 - size)), size);
  drop(r, size);
  return true;
}

[[gnu::always_inline]] inline bool decode_dc(bit_reader& r, const huffman_lookup& table, int& difference) noexcept {
  refill(r);
  const std::uint32_t entry = table.one[index(r)];
  if ((entry & 63U) == 0) [[unlikely]] {
    int advance = 0;
    return decode_slowly(r, table, advance, difference);
  }
  drop(r, static_cast<int>(entry & 63U));
  difference = static_cast<std::int16_t>(entry >> 16);
  return true;
}

[[gnu::always_inline]] inline bool decode_ac(bit_reader& r, const huffman_lookup& table, JCOEF* block) noexcept {
  int k = 1;
  for (;;) {
    refill(r);
    for (int i = 0; i < 5; ++i) {  // of index_bits at most
      const std::uint32_t entry = table.one[index(r)];
      if ((entry & 63U) == 0) [[unlikely]] {
        int advance = 0;
        int value = 0;
        if (!decode_slowly(r, table, advance, value)) return false;
        k += advance;
        block[order_after.at[k]] = static_cast<JCOEF>(value);
        if (k >= 64) return true;
        break;
      }
      drop(r, static_cast<int>(entry & 63U));
      k += static_cast<int>(entry >> 8 & 255U);
      // The end of a block and sixteen zeros write a 0 where none has been written yet.
      block[order_after.at[k]] = static_cast<JCOEF>(static_cast<std::int16_t>(entry >> 16));
      if (k >= 64) return true;
    }
  }
}

[[gnu::always_inline]] inline bool skip_ac(bit_reader& r, const huffman_lookup& table) noexcept {
  int k = 1;
  for (;;) {
    refill(r);
    // Two at once, as long as the first of them cannot be the last of its block.
    if (k < 48) {
      int i = 0;
      for (; i < 4 && k < 48; ++i) {
        const unsigned entry = table.two[index(r)];
        if ((entry & 63U) == 0) [[unlikely]]
          break;
        drop(r, static_cast<int>(entry & 63U));
        k += static_cast<int>(entry >> 8);
      }
      if (k >= 64) return true;
      if (i != 0) continue;
    } else {
      const std::uint32_t entry = table.one[index(r)];
      if ((entry & 63U) != 0) [[likely]] {
        drop(r, static_cast<int>(entry & 63U));
        k += static_cast<int>(entry >> 8 & 255U);
        if (k >= 64) return true;
        continue;
      }
    }
    int advance = 0;
    int value = 0;
    if (!decode_slowly(r, table, advance, value)) return false;
    k += advance;
    if (k >= 64) return true;
  }
}

template <bool Wanted>
[[gnu::always_inline]] inline bool decode_blocks(baseline_huffman& h, JBLOCKROW* mcu) noexcept {
  bit_reader r = h.reader_;
  for (int i = 0; i < h.blocks_; ++i) {
    const auto& block = h.block_[i];
    int difference = 0;
    if (!decode_dc(r, *block.dc, difference)) return false;
    int& dc = h.dc_[block.component];
    dc += difference;
    if (dc > dc_max || dc < -dc_max) return false;
    if constexpr (Wanted) {
      JCOEF* const to = *mcu[i];
      to[0] = static_cast<JCOEF>(dc);
      if (!decode_ac(r, *block.ac, to)) return false;
    } else {
      if (!skip_ac(r, *block.ac)) return false;
    }
  }
  h.reader_ = r;
  return r.count >= r.missing;
}

[[gnu::always_inline]] inline bool decode_inline(baseline_huffman& h, JBLOCKROW* mcu) noexcept {
  const bool wanted = mcu != nullptr && h.column_ >= h.first_wanted_ && h.column_ <= h.last_wanted_;
  return wanted ? decode_blocks<true>(h, mcu) : decode_blocks<false>(h, mcu);
}

bool decode_plain(baseline_huffman& h, JBLOCKROW* mcu) { return decode_inline(h, mcu); }
#ifdef LEAT_HUFFMAN_BMI2
// Shifts by a variable number of bits are what this code is made of, and BMI2 has them for a third of the work.
[[gnu::target("bmi2")]] bool decode_bmi2(baseline_huffman& h, JBLOCKROW* mcu) { return decode_inline(h, mcu); }
#endif

baseline_huffman::decoder choose_decoder() noexcept {
#ifdef LEAT_HUFFMAN_BMI2
  if (__builtin_cpu_supports("bmi2")) return decode_bmi2;
#endif
  return decode_plain;
}

// Nothing may stand between the last bits and the marker but the padding of a byte.
bool take_restart(baseline_huffman& h) noexcept {
  bit_reader& r = h.reader_;
  refill_slowly(r);
  if (r.missing == 0 || r.count - r.missing >= 8) return false;
  if (r.end - r.next < 2 || r.next[0] != 0xFF || r.next[1] != 0xD0 + h.restart_next_) return false;
  r = {.next = r.next + 2, .end = r.end, .bits = 0, .count = 0, .missing = 0};
  std::memset(h.dc_, 0, sizeof(h.dc_));
  h.restart_next_ = (h.restart_next_ + 1) & 7U;
  h.restart_left_ = h.restart_interval_;
  return true;
}

boolean decode_mcu(j_decompress_ptr cinfo, JBLOCKROW* mcu) {
  auto& h = *reinterpret_cast<baseline_huffman*>(cinfo->entropy);
  if (h.restart_interval_ != 0) {
    if (h.restart_left_ == 0 && !take_restart(h)) h.give_up_(cinfo);
    --h.restart_left_;
  }
  if (!h.decode_(h, mcu)) h.give_up_(cinfo);
  if (++h.column_ == h.columns_) h.column_ = 0;
  return TRUE;
}

// The decoder's struct is libjpeg's own affair. Were another libjpeg loaded than the header describes, what we take for its
// functions would hardly be functions of the library that jpeg_start_decompress() is in.
bool is_the_known_libjpeg(const jpeg_entropy_decoder& methods) noexcept {
  const auto library_of = [](auto* function) -> const void* {
    Dl_info found{};
    return ::dladdr(reinterpret_cast<const void*>(function), &found) != 0 ? found.dli_fbase : nullptr;
  };
  const void* const libjpeg = library_of(&jpeg_start_decompress);
  return libjpeg != nullptr && library_of(methods.start_pass) == libjpeg && library_of(methods.decode_mcu) == libjpeg;
}

}  // namespace

void huffman_lookup::build(const JHUFF_TBL& from, bool dc) noexcept {
  if (built && for_dc == dc && std::memcmp(lengths, from.bits, sizeof(lengths)) == 0 &&
      std::memcmp(symbols, from.huffval, sizeof(symbols)) == 0) {
    return;
  }
  std::memcpy(lengths, from.bits, sizeof(lengths));
  std::memcpy(symbols, from.huffval, sizeof(symbols));
  for_dc = dc;
  built = true;
  std::memset(one, 0, sizeof(one));
  std::memset(two, 0, sizeof(two));

  // Of each index, the first symbol alone, without its value: bits taken, of those the code's, how far on.
  struct step {
    std::uint8_t bits, code_bits, advance;
  };
  step first[index_size] = {};
  int code = 0;
  int at = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    symbol_at[length] = at - code;
    for (int i = 0; i < lengths[length]; ++i, ++at, ++code) {
      if (length > index_bits) continue;
      const int symbol = symbols[at];
      const int size = size_of(symbol, dc);
      const int advance = advance_of(symbol, dc);
      const int rest = index_bits - length;
      for (int tail = 0; tail < 1 << rest; ++tail) {
        const int entry = code << rest | tail;
        first[entry] = {static_cast<std::uint8_t>(length + size), static_cast<std::uint8_t>(length),
                        static_cast<std::uint8_t>(advance)};
        if (size > rest) continue;
        const int value = extend(static_cast<std::uint32_t>(tail >> (rest - size)), size);
        one[entry] = static_cast<std::uint32_t>(length + size) | static_cast<std::uint32_t>(advance) << 8 |
                     static_cast<std::uint32_t>(value) << 16;
      }
    }
    code_max[length] = lengths[length] != 0 ? code - 1 : -1;
  }
  if (dc) return;
  for (int entry = 0; entry < index_size; ++entry) {
    step both = first[entry];
    if (both.bits == 0 || both.bits > two_bits_max) continue;
    if (both.advance <= 16 && both.bits < index_bits) {
      // What follows, if all bits of its code are in the index.
      const step second = first[(entry << both.bits) & (index_size - 1)];
      if (second.bits != 0 && both.bits + second.code_bits <= index_bits && both.bits + second.bits <= two_bits_max) {
        both.bits = static_cast<std::uint8_t>(both.bits + second.bits);
        both.advance = static_cast<std::uint8_t>(both.advance + second.advance);
      }
    }
    two[entry] = static_cast<std::uint16_t>(both.bits | both.advance << 8);
  }
}

bool baseline_huffman::install(j_decompress_ptr cinfo, void (*give_up)(j_decompress_ptr)) noexcept {
#ifndef LEAT_OWN_HUFFMAN
  return false;
#endif
  const jpeg_decompress_struct& c = *cinfo;
  if (c.progressive_mode || c.arith_code || c.data_precision != 8 || c.comps_in_scan != c.num_components || c.Ss != 0 ||
      c.Se != DCTSIZE2 - 1 || c.Ah != 0 || c.Al != 0 || c.unread_marker != 0 || c.blocks_in_MCU > D_MAX_BLOCKS_IN_MCU) {
    return false;
  }
  static const bool known = is_the_known_libjpeg(*c.entropy);
  if (!known) return false;
  for (int i = 0; i < c.blocks_in_MCU; ++i) {
    const int component = c.MCU_membership[i];
    const jpeg_component_info& info = *c.cur_comp_info[component];
    const int dc = info.dc_tbl_no;
    const int ac = info.ac_tbl_no;
    if (dc < 0 || dc >= NUM_HUFF_TBLS || ac < 0 || ac >= NUM_HUFF_TBLS || c.dc_huff_tbl_ptrs[dc] == nullptr ||
        c.ac_huff_tbl_ptrs[ac] == nullptr) {
      return false;
    }
    tables_[0][dc].build(*c.dc_huff_tbl_ptrs[dc], true);
    tables_[1][ac].build(*c.ac_huff_tbl_ptrs[ac], false);
    block_[i] = {&tables_[0][dc], &tables_[1][ac], component};
  }
  blocks_ = c.blocks_in_MCU;
  give_up_ = give_up;
  static const decoder chosen = choose_decoder();
  decode_ = chosen;
  reader_ = {c.src->next_input_byte, c.src->next_input_byte + c.src->bytes_in_buffer, 0, 0, 0};
  std::memset(dc_, 0, sizeof(dc_));
  columns_ = c.MCUs_per_row;
  column_ = 0;
  want_columns(0, columns_);
  restart_interval_ = restart_left_ = c.restart_interval;
  restart_next_ = 0;
  methods = *c.entropy;
  methods.decode_mcu = decode_mcu;
  cinfo->entropy = &methods;
  return true;
}

void baseline_huffman::want_columns(JDIMENSION first, JDIMENSION last) noexcept {
  first_wanted_ = first;
  last_wanted_ = last;
}

}  // namespace leat::pixels
