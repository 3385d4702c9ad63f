#include "stages/pixels/photo_rows.hpp"

#include "stages/pixels/zigzag.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace leat::pixels {
namespace {

static_assert(std::endian::native == std::endian::little, "streams are read in the machine's own order");

// What a nibble, a byte and two bytes hold: docs/internals/photo-pack.md.
constexpr int nibble_escape = 15;
constexpr int first_of_byte = 17;
constexpr int last_of_byte = 127;
constexpr int byte_escape = 255;
constexpr int dc_escape = -128;
constexpr int longest_map = 15;  // stands for 16 nibbles

constexpr std::uint32_t groups_of(std::uint32_t values) noexcept { return (values + 7) / 8; }
constexpr std::uint32_t bytes_of_nibbles(std::uint32_t nibbles) noexcept { return nibbles / 2 + nibbles % 2; }
constexpr std::uint32_t nibbles_of(std::uint32_t length) noexcept { return length + (length == longest_map ? 1 : 0); }

template <class T>
[[gnu::always_inline]] inline T load(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// --- Writing -------------------------------------------------------------------------------------------------------------------

struct nibble_stream {
  std::vector<std::uint8_t> bytes;
  std::uint32_t count = 0;
  void put(unsigned nibble) {
    if (count++ % 2 != 0) {
      bytes.back() = static_cast<std::uint8_t>(bytes.back() | nibble << 4);
    } else {
      bytes.push_back(static_cast<std::uint8_t>(nibble));
    }
  }
  void clear() {
    bytes.clear();
    count = 0;
  }
};

struct row_streams {
  nibble_stream lengths, maps, sizes;
  std::vector<std::uint8_t> dc, signs, bytes, wide, wide_dc;
  std::uint32_t values = 0;

  void clear() {
    for (nibble_stream* each : {&lengths, &maps, &sizes}) each->clear();
    for (std::vector<std::uint8_t>* each : {&dc, &signs, &bytes, &wide, &wide_dc}) each->clear();
    values = 0;
  }
};

void put16(std::vector<std::uint8_t>& to, int value) {
  to.push_back(static_cast<std::uint8_t>(value & 255));
  to.push_back(static_cast<std::uint8_t>(value >> 8 & 255));
}

void put_value(row_streams& to, int value) {
  if (to.values % 8 == 0) to.signs.insert(to.signs.end(), 2, std::uint8_t{0});
  const auto bit = static_cast<std::uint8_t>(1U << to.values % 8);
  ++to.values;
  const int size = std::abs(value);
  std::uint8_t* const group = to.signs.data() + to.signs.size() - 2;
  if (value < 0) group[0] |= bit;
  if (size == 1) return;
  group[1] |= bit;
  to.sizes.put(static_cast<unsigned>(std::min(size - 2, nibble_escape)));
  if (size < first_of_byte) return;
  if (size <= last_of_byte) {
    to.bytes.push_back(static_cast<std::uint8_t>(size - first_of_byte));
    return;
  }
  to.bytes.push_back(byte_escape);
  put16(to.wide, value);
}

void put_block(row_streams& to, const std::int16_t* block, int& dc) {
  const auto difference = static_cast<std::int16_t>(block[0] - dc);
  dc = block[0];
  const bool is_narrow = difference > dc_escape && difference <= 127;
  to.dc.push_back(static_cast<std::uint8_t>(is_narrow ? difference : dc_escape));
  if (!is_narrow) put16(to.wide_dc, difference);
  std::uint64_t map = 0;
  for (std::size_t k = 1; k < 64; ++k) {
    map |= static_cast<std::uint64_t>(block[natural_of_zigzag[k]] != 0) << (k - 1);
  }
  const auto used = static_cast<std::uint32_t>((std::bit_width(map) + 3) / 4);
  const std::uint32_t length = std::min<std::uint32_t>(used, longest_map);
  to.lengths.put(length);
  for (std::uint32_t i = 0; i < nibbles_of(length); ++i) to.maps.put(static_cast<unsigned>(map >> 4 * i & 15U));
  for (; map != 0; map &= map - 1) {
    put_value(to, block[natural_of_zigzag[static_cast<std::size_t>(std::countr_zero(map)) + 1]]);
  }
}

void put_varint(std::vector<std::byte>& to, std::uint32_t value) {
  for (; value >= 128; value >>= 7) to.push_back(static_cast<std::byte>(value | 128U));
  to.push_back(static_cast<std::byte>(value));
}

// --- Reading -------------------------------------------------------------------------------------------------------------------

struct row_counts {
  std::uint32_t map_nibbles, values, sizes, bytes, wide, wide_dc;
};

struct row_parts {
  row_counts counts;
  const std::uint8_t* lengths;
  const std::uint8_t* signs;
  const std::uint8_t* sizes;
  const std::uint8_t* bytes;
};

[[gnu::always_inline]] inline bool take_varint(const std::uint8_t*& at, const std::uint8_t* end,
                                               std::uint32_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 28 && at != end; shift += 7) {
    const std::uint8_t byte = *at++;
    value |= (byte & 127U) << shift;
    if (byte < 128) return true;
  }
  return false;
}

// Cuts a row into its streams, and checks that their lengths match the counts and one another. Inline, so that it
// is compiled for the instructions of its caller.
[[gnu::always_inline]] inline bool cut(photo_row& row, std::span<const std::uint8_t> bytes, row_parts& to) noexcept {
  const std::uint8_t* at = bytes.data();
  const std::uint8_t* const end = at + bytes.size();
  row_counts& n = to.counts;
  for (std::uint32_t* const each : {&n.map_nibbles, &n.values, &n.sizes, &n.bytes, &n.wide, &n.wide_dc}) {
    if (!take_varint(at, end, *each)) return false;
  }
  const std::uint32_t blocks = row.block_count;
  const std::uint64_t all = std::uint64_t{bytes_of_nibbles(blocks)} + blocks + bytes_of_nibbles(n.map_nibbles) +
                            2 * std::uint64_t{groups_of(n.values)} + bytes_of_nibbles(n.sizes) + n.bytes +
                            2 * std::uint64_t{n.wide} + 2 * std::uint64_t{n.wide_dc};
  if (all != static_cast<std::uint64_t>(end - at) || n.values > std::uint64_t{blocks} * 63) return false;
  const auto take = [&at](std::uint32_t count) {
    const std::uint8_t* const begin = at;
    at += count;
    return begin;
  };
  to.lengths = take(bytes_of_nibbles(blocks));
  row.dc = take(blocks);
  row.maps = take(bytes_of_nibbles(n.map_nibbles));
  to.signs = take(2 * groups_of(n.values));
  to.sizes = take(bytes_of_nibbles(n.sizes));
  to.bytes = take(n.bytes);
  row.wide = take(2 * n.wide);
  row.wide_dc = take(2 * n.wide_dc);

  // These loops are vectors where there are any.
  std::uint32_t wide_dc = 0;
  for (std::uint32_t j = 0; j < blocks; ++j) wide_dc += row.dc[j] == 128 ? 1 : 0;
  std::uint32_t wide = 0;
  std::uint32_t wrong = 0;
  for (std::uint32_t j = 0; j < n.bytes; ++j) {
    wide += to.bytes[j] == byte_escape ? 1 : 0;
    wrong += to.bytes[j] > last_of_byte - first_of_byte ? 1 : 0;
  }
  std::uint32_t escaped = 0;
  for (std::uint32_t j = 0; j < n.sizes / 2; ++j) {
    escaped += ((to.sizes[j] & 15) == 15 ? 1 : 0) + (to.sizes[j] >> 4 == 15 ? 1 : 0);
  }
  if (n.sizes % 2 != 0) escaped += (to.sizes[n.sizes / 2] & 15) == 15 ? 1 : 0;
  std::uint64_t above_1 = 0;
  std::uint32_t i = 0;
  for (; i + 4 <= groups_of(n.values); i += 4) {
    above_1 += static_cast<unsigned>(std::popcount(load<std::uint64_t>(to.signs + 2 * i) & 0xFF00FF00FF00FF00U));
  }
  for (; i < groups_of(n.values); ++i) above_1 += static_cast<unsigned>(std::popcount(to.signs[2 * i + 1]));
  const std::uint32_t spare = 8 * groups_of(n.values) - n.values;
  const bool spare_is_0 = spare == 0 || to.signs[2 * groups_of(n.values) - 1] >> (8 - spare) == 0;
  std::uint64_t set = 0;
  const std::uint32_t map_bytes = bytes_of_nibbles(n.map_nibbles);
  for (i = 0; i + 8 <= map_bytes; i += 8)
    set += static_cast<unsigned>(std::popcount(load<std::uint64_t>(row.maps + i)));
  for (; i < map_bytes; ++i) set += static_cast<unsigned>(std::popcount(row.maps[i]));

  row.value_count = n.values;
  row.map_at = row.value_at = row.block = 0;
  std::fill(std::begin(row.dc_sum), std::end(row.dc_sum), 0);
  return wide_dc == n.wide_dc && wide == n.wide && wrong == wide && escaped == n.bytes && above_1 == n.sizes &&
         spare_is_0 && set == n.values;
}

// As `begin`, but nothing is taken apart. Inline, as cut() is.
[[gnu::always_inline]] inline bool is_sound(std::span<const std::uint8_t> bytes, std::uint32_t block_count) noexcept {
  photo_row row{};
  row.block_count = block_count;
  row_parts parts;
  if (!cut(row, bytes, parts)) return false;
  const auto nibbles = [](unsigned length) { return length + (length == longest_map ? 1U : 0U); };
  std::uint32_t map_nibbles = 0;
  for (std::uint32_t i = 0; i < block_count / 2; ++i) {
    map_nibbles += nibbles(parts.lengths[i] & 15U) + nibbles(parts.lengths[i] >> 4U);
  }
  if (block_count % 2 != 0) map_nibbles += nibbles(parts.lengths[block_count / 2] & 15U);
  return map_nibbles == parts.counts.map_nibbles;
}

bool is_sound_plain(std::span<const std::uint8_t> bytes, std::uint32_t block_count) {
  return is_sound(bytes, block_count);
}

// After lengths and values have been taken apart.
bool finish_begin(photo_row& row, std::uint32_t map_nibbles, const row_parts& parts) noexcept {
  if (map_nibbles != parts.counts.map_nibbles) return false;
  row.wide_at = row.value_count;
  if (parts.counts.wide == 0) return true;
  const void* const found = std::memchr(row.values, 0, row.value_count);
  if (found != nullptr) row.wide_at = static_cast<std::uint32_t>(static_cast<const std::int8_t*>(found) - row.values);
  return true;
}

// Zigzag bits 1 to 63 of the next block; bit 0 is DC's.
[[gnu::always_inline]] inline std::uint64_t take_map(photo_row& row, unsigned length) noexcept {
  const std::uint8_t* const at = row.maps + (row.map_at >> 1);
  const unsigned shift = (row.map_at & 1U) * 4;
  std::uint64_t map = load<std::uint64_t>(at) >> shift;
  if (length == longest_map) [[unlikely]] {
    if (shift != 0) map |= std::uint64_t{at[8]} << 60;
    row.map_at += 16;
  } else {
    map &= (std::uint64_t{1} << 4 * length) - 1;
    row.map_at += length;
  }
  return map << 1;
}

[[gnu::always_inline]] inline int take_dc(photo_row& row, int component) noexcept {
  int difference = static_cast<std::int8_t>(row.dc[row.block]);
  if (difference == dc_escape) [[unlikely]] {
    difference = load<std::int16_t>(row.wide_dc);
    row.wide_dc += 2;
  }
  int& sum = row.dc_sum[component];
  sum = static_cast<std::int16_t>(sum + difference);
  return sum;
}

// The next wide value after `from`.
void find_wide(photo_row& row, std::uint32_t from) noexcept {
  const void* const found = std::memchr(row.values + from, 0, row.value_count - from);
  row.wide_at = found == nullptr ? row.value_count
                                 : static_cast<std::uint32_t>(static_cast<const std::int8_t*>(found) - row.values);
}

// Wide values among the `count` from value_at on; `to` is null if they are not wanted.
[[gnu::noinline]] void take_wide(photo_row& row, std::uint64_t map, std::uint32_t count, std::int16_t* to) noexcept {
  while (row.wide_at < row.value_at + count) {
    for (std::uint32_t before = row.wide_at - row.value_at; before != 0; --before) map &= map - 1;
    const int value = load<std::int16_t>(row.wide);
    if (to != nullptr)
      to[natural_of_zigzag[static_cast<std::size_t>(std::countr_zero(map))]] = static_cast<std::int16_t>(value);
    row.wide += 2;
    // From here on the map begins with this value.
    const std::uint32_t at = row.wide_at;
    count -= at - row.value_at;
    row.value_at = at;
    find_wide(row, at + 1);
  }
  row.value_at += count;
}

[[gnu::always_inline]] inline void end_block(photo_row& row, std::uint64_t map, std::int16_t* to) noexcept {
  const auto count = static_cast<std::uint32_t>(std::popcount(map));
  if (row.wide_at < row.value_at + count) [[unlikely]] {
    take_wide(row, map, count, to);
  } else {
    row.value_at += count;
  }
  ++row.block;
}

// --- Plainly ---------------------------------------------------------------------------------------------------------------------

bool begin_plain(photo_row& row, std::span<const std::uint8_t> bytes) {
  row_parts parts;
  if (!cut(row, bytes, parts)) return false;
  std::uint32_t map_nibbles = 0;
  for (std::uint32_t i = 0; i < row.block_count; ++i) {
    row.lengths[i] = static_cast<std::uint8_t>(parts.lengths[i / 2] >> 4 * (i % 2) & 15);
    map_nibbles += nibbles_of(row.lengths[i]);
  }
  const std::uint8_t* next = parts.bytes;
  for (std::uint32_t i = 0; i < parts.counts.sizes; ++i) {
    const int nibble = parts.sizes[i / 2] >> 4 * (i % 2) & 15;
    const int size = nibble != nibble_escape ? nibble + 1 : *next == byte_escape ? 255 : *next + first_of_byte - 1;
    if (nibble == nibble_escape) ++next;
    row.sizes[i] = static_cast<std::uint8_t>(size);
  }
  const std::uint8_t* size = row.sizes;
  for (std::uint32_t i = 0; i < row.value_count; ++i) {
    const unsigned bit = i % 8;
    int value = 1;
    if ((parts.signs[i / 8 * 2 + 1] >> bit & 1) != 0) value += *size++;
    if ((parts.signs[i / 8 * 2] >> bit & 1) != 0) value = -value;
    row.values[i] = static_cast<std::int8_t>(value);
  }
  return finish_begin(row, map_nibbles, parts);
}

void decode_plain(photo_row& row, const std::uint8_t* component_of, int mcu_blocks, std::int16_t* const* to) {
  for (int i = 0; i < mcu_blocks; ++i) {
    std::int16_t* const block = to[i];
    std::memset(block, 0, 64 * sizeof(std::int16_t));
    const std::uint64_t map = take_map(row, row.lengths[row.block]);
    const std::int8_t* value = row.values + row.value_at;
    for (std::uint64_t left = map; left != 0; left &= left - 1) {
      block[natural_of_zigzag[static_cast<std::size_t>(std::countr_zero(left))]] = *value++;
    }
    block[0] = static_cast<std::int16_t>(take_dc(row, component_of[i]));
    end_block(row, map, block);
  }
}

#ifdef __x86_64__

// --- AVX-512, with the instructions that spread bytes by a mask ------------------------------------------------------------------

#define LEAT_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")]]

// The zigzag's place of each in natural order.
constexpr std::array<std::uint8_t, 64> zigzag_of_natural = [] {
  std::array<std::uint8_t, 64> at{};
  for (std::size_t k = 0; k < 64; ++k) at[natural_of_zigzag[k]] = static_cast<std::uint8_t>(k);
  return at;
}();

LEAT_AVX512 inline __m512i spread_nibbles(const std::uint8_t* from) noexcept {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  const __m512i words = _mm512_cvtepu8_epi16(bytes);
  return _mm512_and_si512(_mm512_or_si512(words, _mm512_slli_epi16(words, 4)), _mm512_set1_epi8(15));
}

LEAT_AVX512 bool begin_avx512(photo_row& row, std::span<const std::uint8_t> bytes) {
  row_parts parts;
  if (!cut(row, bytes, parts)) return false;
  const __m512i fifteen = _mm512_set1_epi8(15);
  const __m512i one = _mm512_set1_epi8(1);
  __m512i sums = _mm512_setzero_si512();
  for (std::uint32_t i = 0; i < row.block_count; i += 64) {
    const __m512i lengths = spread_nibbles(parts.lengths + i / 2);
    _mm512_storeu_si512(row.lengths + i, lengths);
    const std::uint32_t left = row.block_count - i;
    const __mmask64 those = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    const __m512i nibbles = _mm512_mask_add_epi8(lengths, _mm512_cmpeq_epi8_mask(lengths, fifteen), lengths, one);
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_maskz_mov_epi8(those, nibbles), _mm512_setzero_si512()));
  }
  const std::uint8_t* next = parts.bytes;
  for (std::uint32_t i = 0; i < parts.counts.sizes; i += 64) {
    const __m512i nibbles = spread_nibbles(parts.sizes + i / 2);
    const std::uint32_t left = parts.counts.sizes - i;
    const __mmask64 those = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
    const __mmask64 escaped = _mm512_mask_cmpeq_epi8_mask(those, nibbles, fifteen);
    const auto count = static_cast<unsigned>(_mm_popcnt_u64(escaped));
    const __mmask64 loaded = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    const __m512i more = _mm512_maskz_expand_epi8(escaped, _mm512_maskz_loadu_epi8(loaded, next));
    _mm512_storeu_si512(row.sizes + i, _mm512_adds_epu8(_mm512_add_epi8(nibbles, one), more));
    next += count;
  }
  const std::uint8_t* size = row.sizes;
  const __m128i signs_apart = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  for (std::uint32_t i = 0; i < row.value_count; i += 64) {
    const std::uint32_t groups = std::min<std::uint32_t>(groups_of(row.value_count - i), 8);
    const __m128i pairs = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1U << 2 * groups) - 1), parts.signs + i / 4);
    const __m128i apart = _mm_shuffle_epi8(pairs, signs_apart);
    const auto negative = static_cast<std::uint64_t>(_mm_cvtsi128_si64(apart));
    const auto above_1 = static_cast<std::uint64_t>(_mm_extract_epi64(apart, 1));
    const __m512i values = _mm512_add_epi8(_mm512_maskz_expand_epi8(above_1, _mm512_loadu_si512(size)), one);
    _mm512_storeu_si512(row.values + i, _mm512_mask_sub_epi8(values, negative, _mm512_setzero_si512(), values));
    size += _mm_popcnt_u64(above_1);
  }
  return finish_begin(row, static_cast<std::uint32_t>(_mm512_reduce_add_epi64(sums)), parts);
}

LEAT_AVX512 void decode_avx512(photo_row& row, const std::uint8_t* component_of, int mcu_blocks,
                               std::int16_t* const* to) {
  const __m512i order = _mm512_loadu_si512(zigzag_of_natural.data());
  for (int i = 0; i < mcu_blocks; ++i) {
    std::int16_t* const block = to[i];
    const std::uint64_t map = take_map(row, row.lengths[row.block]);
    const __m512i spread = _mm512_maskz_expand_epi8(map, _mm512_loadu_si512(row.values + row.value_at));
    const __m512i natural = _mm512_permutexvar_epi8(order, spread);
    _mm512_storeu_si512(block, _mm512_cvtepi8_epi16(_mm512_castsi512_si256(natural)));
    _mm512_storeu_si512(block + 32, _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(natural, 1)));
    block[0] = static_cast<std::int16_t>(take_dc(row, component_of[i]));
    end_block(row, map, block);
  }
}

// --- AVX2: the same by tables of 256 shuffles ------------------------------------------------------------------------------------

#define LEAT_AVX2 [[gnu::target("avx2,bmi,bmi2,popcnt")]]

struct shuffles {
  std::uint8_t spread[256][8];     // to each bit that is set, the next byte
  std::uint8_t negative[256][8];   // 255 for each bit that is set
  std::uint8_t natural[4][4][16];  // from 16 of the zigzag to 16 in natural order
};
constexpr shuffles make_shuffles() {
  shuffles made{};
  for (std::size_t mask = 0; mask < 256; ++mask) {
    std::uint8_t next = 0;
    for (std::size_t bit = 0; bit < 8; ++bit) {
      const bool set = (mask >> bit & 1U) != 0;
      made.spread[mask][bit] = set ? next++ : 128;
      made.negative[mask][bit] = set ? 255 : 0;
    }
  }
  for (auto& to : made.natural) {
    for (auto& from : to) std::fill(std::begin(from), std::end(from), std::uint8_t{128});
  }
  for (std::size_t at = 0; at < 64; ++at) {
    const std::size_t k = zigzag_of_natural[at];
    made.natural[at / 16][k / 16][at % 16] = static_cast<std::uint8_t>(k % 16);
  }
  return made;
}
alignas(64) constexpr shuffles tables = make_shuffles();

LEAT_AVX2 inline __m128i load8(const void* from) noexcept { return _mm_loadl_epi64(static_cast<const __m128i*>(from)); }

LEAT_AVX2 bool is_sound_avx2(std::span<const std::uint8_t> bytes, std::uint32_t block_count) {
  return is_sound(bytes, block_count);
}

LEAT_AVX2 bool begin_avx2(photo_row& row, std::span<const std::uint8_t> bytes) {
  row_parts parts;
  if (!cut(row, bytes, parts)) return false;
  const __m128i fifteen = _mm_set1_epi8(15);
  const __m128i one = _mm_set1_epi8(1);
  for (std::uint32_t i = 0; i < row.block_count; i += 16) {
    const __m128i pairs = load8(parts.lengths + i / 2);
    const __m128i nibbles = _mm_and_si128(_mm_unpacklo_epi8(pairs, _mm_srli_epi16(pairs, 4)), fifteen);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row.lengths + i), nibbles);
  }
  std::uint32_t map_nibbles = 0;
  for (std::uint32_t i = 0; i < row.block_count; ++i) map_nibbles += nibbles_of(row.lengths[i]);
  const std::uint8_t* next = parts.bytes;
  for (std::uint32_t i = 0; i < parts.counts.sizes; i += 8) {
    const __m128i pairs = _mm_cvtsi32_si128(load<int>(parts.sizes + i / 2));
    const __m128i nibbles = _mm_and_si128(_mm_unpacklo_epi8(pairs, _mm_srli_epi16(pairs, 4)), fifteen);
    auto escaped = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(nibbles, fifteen))) & 255U;
    const std::uint32_t left = parts.counts.sizes - i;
    if (left < 8) escaped &= (1U << left) - 1;
    const __m128i more = _mm_shuffle_epi8(load8(next), load8(tables.spread[escaped]));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(row.sizes + i), _mm_adds_epu8(_mm_add_epi8(nibbles, one), more));
    next += _mm_popcnt_u32(escaped);
  }
  const std::uint8_t* size = row.sizes;
  for (std::uint32_t i = 0; i < row.value_count; i += 8) {
    const unsigned negative = parts.signs[i / 4];
    const unsigned above_1 = parts.signs[i / 4 + 1];
    const __m128i values = _mm_add_epi8(_mm_shuffle_epi8(load8(size), load8(tables.spread[above_1])), one);
    const __m128i sign = load8(tables.negative[negative]);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(row.values + i), _mm_sub_epi8(_mm_xor_si128(values, sign), sign));
    size += _mm_popcnt_u32(above_1);
  }
  return finish_begin(row, map_nibbles, parts);
}

LEAT_AVX2 inline __m128i spread8(const std::int8_t* values, std::uint64_t map, unsigned eighth) noexcept {
  const std::int8_t* const from = values + _mm_popcnt_u64(_bzhi_u64(map, 8 * eighth));
  return _mm_shuffle_epi8(load8(from), load8(tables.spread[map >> 8 * eighth & 255U]));
}

// Sixteen places of the zigzag, from 16 * part on.
LEAT_AVX2 inline __m128i spread16(const std::int8_t* values, std::uint64_t map, unsigned part) noexcept {
  return _mm_unpacklo_epi64(spread8(values, map, 2 * part), spread8(values, map, 2 * part + 1));
}

LEAT_AVX2 inline void store16(std::int16_t* to, __m128i natural) noexcept {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepi8_epi16(natural));
}

LEAT_AVX2 inline __m128i put16(__m128i from, std::size_t to, std::size_t part) noexcept {
  return _mm_shuffle_epi8(from, _mm_load_si128(reinterpret_cast<const __m128i*>(tables.natural[to][part])));
}

LEAT_AVX2 void decode_avx2(photo_row& row, const std::uint8_t* component_of, int mcu_blocks, std::int16_t* const* to) {
  for (int i = 0; i < mcu_blocks; ++i) {
    std::int16_t* const block = to[i];
    const unsigned length = row.lengths[row.block];
    const std::uint64_t map = take_map(row, length);
    const std::int8_t* const values = row.values + row.value_at;
    const __m128i a = spread16(values, map, 0);
    const __m128i b = spread16(values, map, 1);
    if (length <= 7) {  // nothing past the 28th of the zigzag
      for (std::size_t part = 0; part < 4; ++part)
        store16(block + 16 * part, _mm_or_si128(put16(a, part, 0), put16(b, part, 1)));
    } else {
      const __m128i c = spread16(values, map, 2);
      const __m128i d = spread16(values, map, 3);
      for (std::size_t part = 0; part < 4; ++part) {
        store16(block + 16 * part, _mm_or_si128(_mm_or_si128(put16(a, part, 0), put16(b, part, 1)),
                                                _mm_or_si128(put16(c, part, 2), put16(d, part, 3))));
      }
    }
    block[0] = static_cast<std::int16_t>(take_dc(row, component_of[i]));
    end_block(row, map, block);
  }
}

#endif

struct all_readings {
  std::array<photo_row_reading, 3> all;
  std::size_t count = 0;
  all_readings() noexcept : all() {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
        __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2")) {
      all[count++] = {begin_avx512, decode_avx512, "AVX-512 VBMI2"};
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
      all[count++] = {begin_avx2, decode_avx2, "AVX2"};
    }
#endif
    all[count++] = {begin_plain, decode_plain, "plain"};
  }
};

}  // namespace

void write_photo_row(const std::int16_t* blocks, std::uint32_t block_count, const std::uint8_t* component_of,
                     int mcu_blocks, std::vector<std::byte>& to) {
  static thread_local row_streams streams;
  streams.clear();
  int dc[3] = {};
  for (std::uint32_t i = 0; i < block_count; ++i, blocks += 64) {
    put_block(streams, blocks, dc[component_of[i % static_cast<unsigned>(mcu_blocks)]]);
  }
  put_varint(to, streams.maps.count);
  put_varint(to, streams.values);
  put_varint(to, streams.sizes.count);
  for (const std::size_t count : {streams.bytes.size(), streams.wide.size() / 2, streams.wide_dc.size() / 2}) {
    put_varint(to, static_cast<std::uint32_t>(count));
  }
  for (const std::vector<std::uint8_t>* each :
       {&streams.lengths.bytes, &streams.dc, &streams.maps.bytes, &streams.signs, &streams.sizes.bytes, &streams.bytes,
        &streams.wide, &streams.wide_dc}) {
    const auto bytes = std::as_bytes(std::span(*each));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
}

std::size_t photo_row::scratch_bytes(std::uint32_t block_count) noexcept {
  return 66 * std::size_t{block_count} + 63 * std::size_t{block_count} + 3 * 128;
}

void photo_row::set_scratch(std::uint8_t* memory, std::uint32_t blocks) noexcept {
  block_count = blocks;
  values = reinterpret_cast<std::int8_t*>(memory);
  sizes = memory + 64 * std::size_t{blocks} + 128;
  lengths = sizes + 63 * std::size_t{blocks} + 128;
}

void photo_row::skip(const std::uint8_t* component_of, int mcu_blocks, std::uint32_t mcus) noexcept {
  for (; mcus != 0; --mcus) {
    for (int i = 0; i < mcu_blocks; ++i) {
      const std::uint64_t map = take_map(*this, lengths[block]);
      static_cast<void>(take_dc(*this, component_of[i]));
      end_block(*this, map, nullptr);
    }
  }
}

bool photo_row_is_sound(std::span<const std::uint8_t> bytes, std::uint32_t block_count) noexcept {
#ifdef __x86_64__
  static const bool vectors = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  if (vectors) return is_sound_avx2(bytes, block_count);
#endif
  return is_sound_plain(bytes, block_count);
}

std::span<const photo_row_reading> photo_row_readings() noexcept {
  static const all_readings found;
  return std::span(found.all).first(found.count);
}

}  // namespace leat::pixels
