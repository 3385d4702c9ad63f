#include "stages/pixels/baseline_huffman.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if defined(__x86_64__)
#define LEAT_HUFFMAN_BMI2 1
#endif

namespace leat::pixels {
namespace {

using bit_reader = baseline_huffman::bit_reader;

constexpr int index_bits = huffman_lookup::index_bits;
constexpr int many_bits = huffman_lookup::many_bits;
// After a refill there are at least 56 bits: enough for three look-ups of `many`.
constexpr unsigned many_taken_max = 18;
// Building `many` for new tables pays off from this number of skipped blocks on.
constexpr std::uint64_t skipped_blocks_min = 1000;
// How far an entry of `one` that does not fit moves the index: past a block.
constexpr std::uint32_t past_the_end = 128U << 8;
// Sums of DC differences are left to libjpeg long before they overflow; its versions differ in what they do then.
constexpr int dc_max = 1 << 24;

// Where coefficient k - 1 lies in a block. Damaged data moves the index past the end: by up to 15 with a value, which
// goes to 63 as in libjpeg, by up to 64 without one, and by up to 192 for an entry that does not fit in a table.
struct natural_order {
  std::uint8_t at[64 + 128 + 64];
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

// Copies 16 bytes, and tells how many of them come before the first 0xFF.
[[gnu::always_inline]] inline int copy_before_ff(const std::uint8_t* from, std::uint8_t* to) noexcept {
#ifdef __SSE2__
  const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), some);
  const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(some, _mm_set1_epi8(-1))));
  return std::countr_zero(found | 1U << 16);
#else
  std::uint64_t words[2];
  std::memcpy(words, from, sizeof(words));
  std::memcpy(to, words, sizeof(words));
  const auto has_ff = [](std::uint64_t word) {
    return ((~word - 0x0101010101010101U) & word & 0x8080808080808080U) != 0;
  };
  if (!has_ff(words[0]) && !has_ff(words[1])) [[likely]]
    return 16;
  int before = 0;
  while (from[before] != 0xFF) ++before;
  return before;
#endif
}

// Copies bytes up to a marker or the end of either, without the zero after 0xFF.
void unstuff_plainly(const std::uint8_t*& from, const std::uint8_t* from_end, std::uint8_t*& to,
                     std::uint8_t* to_end) noexcept {
  while (from != from_end && to != to_end) {
    if (*from == 0xFF) {
      if (from_end - from < 2 || from[1] != 0) return;
      *to++ = 0xFF;
      from += 2;
    } else {
      *to++ = *from++;
    }
  }
}

// The same, 16 bytes at a time, as far as all processors of a kind can; writes up to 16 bytes past the end that it reports.
void unstuff(const std::uint8_t*& from, const std::uint8_t* from_end, std::uint8_t*& to,
             std::uint8_t* to_end) noexcept {
  const std::uint8_t* in = from;
  std::uint8_t* out = to;
  while (from_end - in > 16 && to_end - out >= 16) {
    const int clear = copy_before_ff(in, out);
    in += clear;
    out += clear;
    if (clear == 16) [[likely]]
      continue;
    if (in[1] != 0) break;
    in += 2;  // the 0xFF has been written
    ++out;
  }
  from = in;
  to = out;
  unstuff_plainly(from, from_end, to, to_end);
}

// At least 56 bits. Reads past the end of the data too: that bits from there were taken is noticed when the MCU is done.
[[gnu::always_inline]] inline void refill(bit_reader& r) noexcept {
  std::uint64_t next = 0;
  std::memcpy(&next, r.next, sizeof(next));
  if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
  r.bits |= next >> r.count;
  r.next += (63 - r.count) >> 3;
  r.count |= 56;
}

template <int Bits>
[[gnu::always_inline]] inline std::size_t index(const bit_reader& r) noexcept {
  return static_cast<std::size_t>(r.bits >> (64 - Bits));
}
[[gnu::always_inline]] inline void drop(bit_reader& r, unsigned bits) noexcept {
  r.bits <<= bits & 63U;
  r.count -= static_cast<int>(bits & 63U);
}
// The first byte of which not all bits have been taken.
[[gnu::always_inline]] inline const std::uint8_t* position(const bit_reader& r) noexcept {
  return r.next - (r.count >> 3);
}

// A code of any length: its symbol, or -1.
[[gnu::noinline]] int search(bit_reader& r, const huffman_lookup& table) noexcept {
  for (int length = 1; length <= 16; ++length) {
    const auto code = static_cast<std::int32_t>(r.bits >> (64 - length));
    if (code <= table.code_max[length]) {
      drop(r, static_cast<unsigned>(length));
      return table.symbols[static_cast<std::size_t>(table.symbol_at[length] + code)];
    }
  }
  return -1;
}

// A symbol and its value that do not fit in an entry of `one`. False where there is no such code. Afterwards there are 25 bits.
[[gnu::always_inline]] inline bool decode_slowly(bit_reader& r, const huffman_lookup& table, int& advance,
                                                 int& value) noexcept {
  refill(r);
  const std::uint32_t entry = table.one[index<index_bits>(r)];
  unsigned size = entry >> 24;
  if (size != 0) [[likely]] {
    drop(r, entry >> 16);
    advance = static_cast<int>(entry >> 8 & 127U);
  } else {
    const int symbol = search(r, table);
    if (symbol < 0) return false;
    advance = advance_of(symbol, table.for_dc);
    size = static_cast<unsigned>(size_of(symbol, table.for_dc));
    if (size == 0) {
      value = 0;
      return true;
    }
  }
  // The first bit of a negative value is 0.
  const auto sign = static_cast<std::int64_t>(~r.bits) >> 63;
  value = static_cast<int>((r.bits >> (64 - size)) + (static_cast<std::uint64_t>(sign) << size) -
                           static_cast<std::uint64_t>(sign));
  drop(r, size);
  return true;
}

[[gnu::always_inline]] inline bool decode_dc(bit_reader& r, const huffman_lookup& table, int& difference) noexcept {
  refill(r);
  const std::uint32_t entry = table.one[index<index_bits>(r)];
  if ((entry & 63U) == 0) [[unlikely]] {
    int advance = 0;
    return decode_slowly(r, table, advance, difference);
  }
  drop(r, entry);
  difference = static_cast<std::int16_t>(entry >> 16);
  return true;
}

[[gnu::always_inline]] inline bool decode_ac(bit_reader& r, const huffman_lookup& table, JCOEF* block) noexcept {
  unsigned k = 1;
  for (;;) {
    refill(r);
#ifdef __clang__
#pragma clang loop unroll(full)
#endif
    for (int i = 0; i < 5; ++i) {  // of index_bits at most
      const std::uint32_t entry = table.one[index<index_bits>(r)];
      drop(r, entry);
      const unsigned on = k + (entry >> 8 & 255U);
      // The end of a block and sixteen zeros write a 0 where none has been written yet.
      block[order_after.at[on]] = static_cast<JCOEF>(static_cast<std::int16_t>(entry >> 16));
      if (on >= 64) {
        if ((entry & 63U) != 0) [[likely]]
          return true;
        block[63] = 0;  // what was no value
        int advance = 0;
        int value = 0;
        if (!decode_slowly(r, table, advance, value)) return false;
        k += static_cast<unsigned>(advance);
        block[order_after.at[k]] = static_cast<JCOEF>(value);
        if (k >= 64) return true;
        break;
      }
      k = on;
    }
  }
}

[[gnu::always_inline]] inline bool skip_ac(bit_reader& r, const huffman_lookup& table) noexcept {
  unsigned k = 1;
  for (;;) {
    refill(r);
    // Many at once, while only the last of them can be the last of its block.
    for (int i = 0; i < 3 && k < 48; ++i) {
      const unsigned entry = table.many[index<many_bits>(r)];
      if ((entry & 63U) == 0) [[unlikely]]
        goto slowly;
      drop(r, entry);
      k += entry >> 8;
    }
    if (k >= 64) return true;
    while (k >= 48) {
      refill(r);
      const std::uint32_t entry = table.one[index<index_bits>(r)];
      if ((entry & 63U) == 0) [[unlikely]]
        goto slowly;
      drop(r, entry);
      k += entry >> 8 & 255U;
      if (k >= 64) return true;
    }
    continue;
  slowly:
    int advance = 0;
    int value = 0;
    if (!decode_slowly(r, table, advance, value)) return false;
    k += static_cast<unsigned>(advance);
    if (k >= 64) return true;
  }
}

// Room for the blocks of an MCU behind `next`, so that no refill has to look where the data ends. False at its end.
[[gnu::noinline]] bool fill_buffer(baseline_huffman& h) noexcept {
  bit_reader& r = h.reader_;
  if (h.last_buffer_) return position(r) <= h.end_;
  const auto kept = static_cast<std::size_t>(h.end_ - r.next);
  std::memmove(h.buffer_, r.next, kept);
  r.next = h.buffer_;
  std::uint8_t* to = h.buffer_ + kept;
  h.unstuff_(h.source_, h.source_end_, to, h.buffer_end_);
  h.end_ = to;
  h.last_buffer_ = to != h.buffer_end_;
  h.limit_ = h.last_buffer_ ? to
                            : to - static_cast<std::size_t>(h.blocks_) * baseline_huffman::block_bytes_max -
                                  baseline_huffman::slack_bytes;
  return true;
}

// After the beginning of the data or a marker.
void start_buffer(baseline_huffman& h) noexcept {
  h.reader_ = {.next = h.buffer_, .bits = 0, .count = 0};
  h.end_ = h.buffer_;
  h.last_buffer_ = false;
  fill_buffer(h);
}

enum class wish : std::uint8_t { coefficients, nothing, nothing_by_many };

template <wish Wish>
[[gnu::always_inline]] inline bool decode_blocks(baseline_huffman& h, JBLOCKROW* mcu) noexcept {
  bit_reader r = h.reader_;
  // What the next buffer will be made of, at the pace at which this one is used.
  __builtin_prefetch(h.source_ + (r.next - h.buffer_));
  for (int i = 0; i < h.blocks_; ++i) {
    const auto& block = h.block_[i];
    int difference = 0;
    if (!decode_dc(r, *block.dc, difference)) return false;
    int& dc = h.dc_[block.component];
    dc += difference;
    if (dc > dc_max || dc < -dc_max) return false;
    if constexpr (Wish == wish::nothing_by_many) {
      if (!skip_ac(r, *block.ac)) return false;
    } else {
      JCOEF* const to = Wish == wish::coefficients ? *mcu[i] : h.nowhere_;
      to[0] = static_cast<JCOEF>(dc);
      if (!decode_ac(r, *block.ac, to)) return false;
    }
  }
  h.reader_ = r;
  if (position(r) > h.limit_) [[unlikely]]
    return fill_buffer(h);
  return true;
}

[[gnu::always_inline]] inline bool decode_inline(baseline_huffman& h, JBLOCKROW* mcu) noexcept {
  const bool wanted = mcu != nullptr && h.column_ >= h.first_wanted_ && h.column_ <= h.last_wanted_;
  if (wanted) return decode_blocks<wish::coefficients>(h, mcu);
  return h.skips_many_ ? decode_blocks<wish::nothing_by_many>(h, mcu) : decode_blocks<wish::nothing>(h, mcu);
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
  if (!h.last_buffer_ || position(h.reader_) != h.end_) return false;
  if (h.source_end_ - h.source_ < 2 || h.source_[0] != 0xFF || h.source_[1] != 0xD0 + h.restart_next_) return false;
  h.source_ += 2;
  start_buffer(h);
  std::memset(h.dc_, 0, sizeof(h.dc_));
  h.restart_next_ = (h.restart_next_ + 1) & 7U;
  h.restart_left_ = h.restart_interval_;
  return true;
}

// The next MCU of the scan.
[[gnu::always_inline]] inline void decode_next(j_decompress_ptr cinfo, baseline_huffman& h, JBLOCKROW* mcu) {
  if (h.restart_interval_ != 0) {
    if (h.restart_left_ == 0 && !take_restart(h)) h.give_up_(cinfo);
    --h.restart_left_;
  }
  if (!h.decode_(h, mcu)) h.give_up_(cinfo);
}

boolean decode_mcu(j_decompress_ptr cinfo, JBLOCKROW* mcu) {
  auto& h = *reinterpret_cast<baseline_huffman*>(cinfo->entropy);
  decode_next(cinfo, h, mcu);
  if (++h.column_ == h.columns_) h.column_ = 0;
  return TRUE;
}

// The next MCU of this pass, which may be the next of the scan as well.
boolean give_kept_mcu(j_decompress_ptr cinfo, JBLOCKROW* mcu) {
  auto& h = *reinterpret_cast<baseline_huffman*>(cinfo->entropy);
  const std::size_t number = h.mcu_++;
  const auto blocks = static_cast<std::size_t>(h.blocks_);
  const bool is_kept = number >= h.kept_from_;
  JBLOCK* const kept = is_kept ? h.kept_ + (number - h.kept_from_) * blocks : nullptr;
  if (number == h.decoded_) {
    JBLOCKROW to[D_MAX_BLOCKS_IN_MCU];
    if (is_kept) {
      std::memset(kept, 0, blocks * sizeof(JBLOCK));
      for (std::size_t i = 0; i < blocks; ++i) to[i] = kept + i;
    }
    decode_next(cinfo, h, is_kept ? to : mcu);
    ++h.decoded_;
  }
  const bool wanted = mcu != nullptr && h.column_ >= h.first_given_ && h.column_ <= h.last_given_;
  for (std::size_t i = 0; is_kept && wanted && i < blocks; ++i) std::memcpy(*mcu[i], kept[i], sizeof(JBLOCK));
  if (++h.column_ == h.columns_) h.column_ = 0;
  return TRUE;
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
  built_many = false;

  std::uint32_t* to = one;
  int code = 0;
  int at = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    symbol_at[length] = at - code;
    for (int i = 0; i < lengths[length]; ++i, ++at, ++code) {
      if (length > index_bits) continue;
      const int size = size_of(symbols[at], dc);
      const int rest = index_bits - length;
      const auto advance = static_cast<std::uint32_t>(advance_of(symbols[at], dc)) << 8;
      if (size > rest) {
        const std::uint32_t entry =
            past_the_end | advance | static_cast<std::uint32_t>(length) << 16 | static_cast<std::uint32_t>(size) << 24;
        to = std::fill_n(to, std::size_t{1} << rest, entry);
        continue;
      }
      for (std::uint32_t bits = 0; bits < 1U << size; ++bits) {
        const auto value = static_cast<std::uint32_t>(extend(bits, size)) << 16;
        to = std::fill_n(to, std::size_t{1} << (rest - size),
                         static_cast<std::uint32_t>(length + size) | advance | value);
      }
    }
    code_max[length] = lengths[length] != 0 ? code - 1 : -1;
  }
  std::fill(to, one + (1 << index_bits), past_the_end);
}

void huffman_lookup::build_many() noexcept {
  if (std::exchange(built_many, true)) return;
  // parts[2^n + bits] is the entry for the first n bits of an index, as `many` has them for all its bits. It combines the first
  // symbol with the entry for the bits that are left, if any.
  std::uint16_t parts[1 << many_bits];
  parts[1] = 0;
  for (int n = 1; n <= many_bits; ++n) {
    std::uint16_t* const begin = n == many_bits ? many : parts + (1 << n);
    std::uint16_t* to = begin;
    int at = 0;
    for (int length = 1; length <= n; ++length) {
      for (int i = 0; i < lengths[length]; ++i, ++at) {
        const int size = size_of(symbols[at], false);
        const int rest = n - length - size;
        const int advance = advance_of(symbols[at], false);
        const auto taken = static_cast<unsigned>(length + size);
        const auto alone =
            static_cast<std::uint16_t>(taken > many_taken_max ? 0U : taken | static_cast<unsigned>(advance) << 8);
        if (rest <= 0 || advance == 64) {
          to = std::fill_n(to, std::size_t{1} << (n - length), alone);
          continue;
        }
        const std::uint16_t* const after = parts + (1 << rest);
        for (int value = 0; value < 1 << size; ++value) {
          for (int tail = 0; tail < 1 << rest; ++tail) {
            const auto both = static_cast<std::uint16_t>(alone + after[tail]);
            // Only the last can be the end of the block; the others move by 16 in all, less than a block has left.
            const bool fits = (both & 63U) <= many_taken_max && (both >> 8 & 63U) <= 16;
            to[tail] = fits ? both : alone;
          }
          to += 1 << rest;
        }
      }
    }
    std::fill(to, begin + (1 << n), std::uint16_t{0});
  }
}

bool baseline_huffman::install(j_decompress_ptr cinfo, void (*give_up)(j_decompress_ptr), bool plain) noexcept {
  const jpeg_decompress_struct& c = *cinfo;
  if (!is_one_plain_scan(c) || c.arith_code || !entropy_door_is_open(*c.entropy)) return false;
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
  plain_ = plain;
  decode_ = plain ? decode_plain : chosen;
  buffer_end_ = buffer_ + (plain ? small_buffer_bytes : buffer_bytes);
  unstuff_ = plain ? unstuff_plainly : unstuff;
  source_ = c.src->next_input_byte;
  source_end_ = source_ + c.src->bytes_in_buffer;
  start_buffer(*this);
  std::memset(dc_, 0, sizeof(dc_));
  columns_ = c.MCUs_per_row;
  column_ = 0;
  rows_ = c.MCU_rows_in_scan;
  kept_ = nullptr;
  want(0, 0, columns_);
  restart_interval_ = restart_left_ = c.restart_interval;
  restart_next_ = 0;
  methods = *c.entropy;
  methods.decode_mcu = decode_mcu;
  cinfo->entropy = &methods;
  return true;
}

void baseline_huffman::keep(std::byte* memory, std::size_t bytes, JDIMENSION from_row) noexcept {
  const std::size_t mcus = std::size_t{rows_ - std::min(rows_, from_row)} * columns_;
  if (mcus == 0 || kept_bytes(mcus, static_cast<std::size_t>(blocks_)) > bytes) return;
  want(from_row, 0, columns_ - 1);
  kept_ = reinterpret_cast<JBLOCK*>(memory);
  kept_from_ = std::size_t{from_row} * columns_;
  decoded_ = mcu_ = 0;
  methods.decode_mcu = give_kept_mcu;
}

bool baseline_huffman::install_again(j_decompress_ptr cinfo) noexcept {
  if (kept_ == nullptr) return false;
  mcu_ = 0;
  column_ = 0;
  methods = *cinfo->entropy;
  methods.decode_mcu = give_kept_mcu;
  cinfo->entropy = &methods;
  return true;
}

void baseline_huffman::want(JDIMENSION first_row, JDIMENSION first, JDIMENSION last) noexcept {
  if (kept_ != nullptr) {
    first_given_ = first;
    last_given_ = last;
    return;
  }
  first_wanted_ = first;
  last_wanted_ = last;
  const std::uint64_t beside = columns_ - std::min(columns_, last - first + 1);
  const std::uint64_t skipped =
      std::uint64_t{first_row} * columns_ + std::uint64_t{rows_ - std::min(rows_, first_row)} * beside;
  skips_many_ = skipped * static_cast<unsigned>(blocks_) >= (plain_ ? 1 : skipped_blocks_min);
  for (int i = 0; skips_many_ && i < blocks_; ++i) block_[i].ac->build_many();
}

}  // namespace leat::pixels
