// What each thread of a device does to decode photo packs, docs/internals/photo-pack.md: streams of a row of MCUs to samples, samples to pixels,
// pixels to the row of the batch. The same bits as libjpeg-turbo and our resampler give on the host.
//
// nvcc compiles it for the device (decode_photos_cuda.cu), the host's compiler for the twin (decode_photos.cpp). A row of MCUs is one warp's.
// Its code is written for a Warp that runs a function for each of 32 lanes, and what a lane keeps from one to the next is its lane_state:
//
//   run(f)           f(lane, state), which reads its state and writes to memory
//   barrier()        what was written before it is seen by all after it
//   ballot(f), sum   the bits, or the sum, of what f(lane, state) returns: the same for all lanes. f writes to its state alone, and does not
//                    look at the memory that others write to: this is no barrier
//   scan(f)          likewise; state.before becomes the sum of the lanes before
//
// Functions capture by value, and the row's memory by its address: tests that leave out a barrier run some of them later.
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include "stages/device/photo_batch.hpp"

#include <cstdint>

#ifdef __CUDACC__
#define LEAT_ON_DEVICE __device__ __forceinline__
#define LEAT_UNROLL _Pragma("unroll")
#else
#define LEAT_ON_DEVICE inline
#define LEAT_UNROLL
#endif

namespace leat::stages::photo_threads {

inline constexpr std::uint32_t lanes = 32;
inline constexpr std::uint32_t blocks_at_once =
    lanes / 8;  // in the transform: a lane for each column, then for each row

/// A warp's memory that all its lanes see: 32 blocks, unpacked.
struct row_memory {
  std::uint64_t maps[lanes];            // bit k: coefficient k of the zigzag is not 0
  std::int16_t values[lanes * 63 + 1];  // those that are not 0, block by block
  std::uint16_t first_value[lanes];     // of each block
  std::int16_t dc[lanes];
  std::int16_t work[blocks_at_once][8][8 + 2];  // two more: columns lie in different banks
  std::uint8_t has_ac[blocks_at_once][8];
};

struct lane_state {
  std::uint64_t map = 0;
  std::uint32_t before = 0;
  std::uint32_t nibbles = 0;
  std::int32_t dc = 0;
  std::int32_t size = 0;
  bool negative = false;
};

#ifdef __CUDACC__
__constant__ const std::uint8_t zigzag_of_natural[64] = {
#else
inline constexpr std::uint8_t zigzag_of_natural[64] = {
#endif
    0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
    41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
    46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63};

LEAT_ON_DEVICE std::uint32_t set_bits(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popc(bits));
#else
  return static_cast<std::uint32_t>(__builtin_popcount(bits));
#endif
}
LEAT_ON_DEVICE std::uint32_t set_bits(std::uint64_t bits) {
#ifdef __CUDA_ARCH__
  return static_cast<std::uint32_t>(__popcll(bits));
#else
  return static_cast<std::uint32_t>(__builtin_popcountll(bits));
#endif
}
LEAT_ON_DEVICE std::uint32_t less(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }
LEAT_ON_DEVICE std::uint32_t below(std::uint32_t lane) { return (std::uint32_t{1} << lane) - 1; }
LEAT_ON_DEVICE std::uint32_t nibble_at(const std::uint8_t* nibbles, std::uint32_t at) {
  return nibbles[at / 2] >> at % 2 * 4 & 15U;
}
LEAT_ON_DEVICE std::int32_t i16_at(const std::uint8_t* at) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(at[0] | at[1] << 8));
}
LEAT_ON_DEVICE std::int32_t as_i16(std::int32_t value) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(value));
}

// --- A row's streams -----------------------------------------------------------------------------------------------------------

struct row_streams {
  std::uint32_t map_nibbles, value_count, size_count, byte_count, wide_count, wide_dc_count;
  const std::uint8_t* lengths;
  const std::uint8_t* dc;
  const std::uint8_t* maps;
  const std::uint8_t* signs;
  const std::uint8_t* sizes;
  const std::uint8_t* bytes;
  const std::uint8_t* wide;
  const std::uint8_t* wide_dc;
};

/// What a number of 7 bits a byte says. False if it does not end.
LEAT_ON_DEVICE bool take_number(const std::uint8_t*& at, const std::uint8_t* end, std::uint32_t& value) {
  value = 0;
  for (std::uint32_t shift = 0; shift < 28 && at != end; shift += 7) {
    const std::uint32_t byte = *at++;
    value |= (byte & 127U) << shift;
    if (byte < 128) return true;
  }
  return false;
}

/// False where the streams are not as long as the row.
LEAT_ON_DEVICE bool cut(const std::uint8_t* at, std::uint32_t bytes, std::uint32_t blocks, row_streams& to) {
  const std::uint8_t* const end = at + bytes;
  if (!take_number(at, end, to.map_nibbles) || !take_number(at, end, to.value_count) ||
      !take_number(at, end, to.size_count) || !take_number(at, end, to.byte_count) ||
      !take_number(at, end, to.wide_count) || !take_number(at, end, to.wide_dc_count)) {
    return false;
  }
  // Each is below 2^28, and blocks below 2^17.
  const std::uint32_t lengths = (blocks + 1) / 2;
  const std::uint32_t maps = (to.map_nibbles + 1) / 2;
  const std::uint32_t signs = 2 * ((to.value_count + 7) / 8);
  const std::uint32_t sizes = (to.size_count + 1) / 2;
  const std::uint64_t all = std::uint64_t{lengths} + blocks + maps + signs + sizes + to.byte_count +
                            2 * std::uint64_t{to.wide_count} + 2 * std::uint64_t{to.wide_dc_count};
  if (all != static_cast<std::uint64_t>(end - at) || to.value_count > std::uint64_t{blocks} * 63) return false;
  to.lengths = at;
  to.dc = to.lengths + lengths;
  to.maps = to.dc + blocks;
  to.signs = to.maps + maps;
  to.sizes = to.signs + signs;
  to.bytes = to.sizes + sizes;
  to.wide = to.bytes + to.byte_count;
  to.wide_dc = to.wide + 2 * std::uint64_t{to.wide_count};
  return true;
}

/// Whether the streams go with one another, so that nothing that is found by counting in one lies outside of another. Of the whole row,
/// as on the host: it says the same of each row.
template <class Warp>
LEAT_ON_DEVICE bool streams_agree(Warp& warp, const row_streams& s, std::uint32_t blocks) {
  const std::uint32_t nibbles = warp.sum([=](std::uint32_t lane, lane_state&) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = lane; i < blocks; i += lanes) {
      const std::uint32_t length = nibble_at(s.lengths, i);
      sum += length + (length == 15 ? 1 : 0);
    }
    return sum;
  });
  const std::uint32_t wide_dc = warp.sum([=](std::uint32_t lane, lane_state&) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = lane; i < blocks; i += lanes) sum += s.dc[i] == 128 ? 1 : 0;
    return sum;
  });
  const std::uint32_t mapped = warp.sum([=](std::uint32_t lane, lane_state&) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = lane; i < (s.map_nibbles + 1) / 2; i += lanes) sum += set_bits(std::uint32_t{s.maps[i]});
    return sum;
  });
  const std::uint32_t groups = (s.value_count + 7) / 8;
  const std::uint32_t large = warp.sum([=](std::uint32_t lane, lane_state&) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = lane; i < groups; i += lanes) sum += set_bits(std::uint32_t{s.signs[2 * i + 1]});
    return sum;
  });
  const std::uint32_t escaped = warp.sum([=](std::uint32_t lane, lane_state&) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = lane; i < s.size_count; i += lanes) sum += nibble_at(s.sizes, i) == 15 ? 1 : 0;
    return sum;
  });
  const std::uint32_t wide = warp.sum([=](std::uint32_t lane, lane_state&) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = lane; i < s.byte_count; i += lanes) sum += s.bytes[i] == 255 ? 1 : 0;
    return sum;
  });
  const std::uint32_t wrong = warp.sum([=](std::uint32_t lane, lane_state&) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = lane; i < s.byte_count; i += lanes) sum += s.bytes[i] > 110 && s.bytes[i] < 255 ? 1 : 0;
    return sum;
  });
  const std::uint32_t spare = 8 * groups - s.value_count;
  const bool spare_is_0 = spare == 0 || s.signs[2 * groups - 1] >> (8 - spare) == 0;
  return nibbles == s.map_nibbles && wide_dc == s.wide_dc_count && mapped == s.value_count && large == s.size_count &&
         escaped == s.byte_count && wide == s.wide_count && wrong == 0 && spare_is_0;
}

/// So many nibbles of the maps. Bit 0 is DC's.
LEAT_ON_DEVICE std::uint64_t map_at(const std::uint8_t* maps, std::uint32_t at, std::uint32_t nibbles) {
  std::uint64_t map = 0;
  const std::uint32_t end = at + nibbles;
  for (std::uint32_t i = at / 2, shift = 0; 2 * i < end; ++i, shift += 8) {
    const std::uint64_t byte = maps[i];
    map |= at % 2 == 0 ? byte << shift : shift == 0 ? byte >> 4 : byte << (shift - 4);  // of 9 bytes the last by 60
  }
  if (nibbles < 16) map &= (std::uint64_t{1} << 4 * nibbles) - 1;
  return map << 1;
}

// --- The inverse transforms: jidctint.c and jidctred.c in the 16-bit arithmetic of libjpeg-turbo's vectors, which is that of the C code on
// all that an encoder writes ----------------------------------------------------------------------------------------------------

LEAT_ON_DEVICE std::int32_t clamped(std::int32_t value, std::int32_t least, std::int32_t most) {
  return value < least ? least : value > most ? most : value;
}
// Sums of products may pass 31 bits for coefficients that no encoder writes: they wrap.
LEAT_ON_DEVICE std::uint32_t times(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b);
}
template <int shift>
LEAT_ON_DEVICE std::int32_t descaled(std::uint32_t value) {
  const auto rounded = static_cast<std::int32_t>(value + (std::uint32_t{1} << (shift - 1)));
  return clamped(rounded >> shift, -32768, 32767);
}

/// Eight values in place.
template <int shift>
LEAT_ON_DEVICE void transform_8(std::int32_t (&v)[8]) {
  const std::uint32_t even_2 = times(v[2], 4433) + times(v[6], 4433 - 15137);
  const std::uint32_t even_3 = times(v[2], 4433 + 6270) + times(v[6], 4433);
  const std::uint32_t even_0 = times(as_i16(v[0] + v[4]), 8192);
  const std::uint32_t even_1 = times(as_i16(v[0] - v[4]), 8192);
  const std::uint32_t a0 = even_0 + even_3;
  const std::uint32_t a3 = even_0 - even_3;
  const std::uint32_t a1 = even_1 + even_2;
  const std::uint32_t a2 = even_1 - even_2;
  const std::int32_t y3 = as_i16(v[7] + v[3]);
  const std::int32_t y4 = as_i16(v[5] + v[1]);
  const std::uint32_t b3 = times(y3, 9633 - 16069) + times(y4, 9633);
  const std::uint32_t b4 = times(y3, 9633) + times(y4, 9633 - 3196);
  const std::uint32_t odd_0 = times(v[7], 2446 - 7373) + times(v[1], -7373) + b3;
  const std::uint32_t odd_1 = times(v[5], 16819 - 20995) + times(v[3], -20995) + b4;
  const std::uint32_t odd_2 = times(v[5], -20995) + times(v[3], 25172 - 20995) + b3;
  const std::uint32_t odd_3 = times(v[7], -7373) + times(v[1], 12299 - 7373) + b4;
  v[0] = descaled<shift>(a0 + odd_3);
  v[7] = descaled<shift>(a0 - odd_3);
  v[1] = descaled<shift>(a1 + odd_2);
  v[6] = descaled<shift>(a1 - odd_2);
  v[2] = descaled<shift>(a2 + odd_1);
  v[5] = descaled<shift>(a2 - odd_1);
  v[3] = descaled<shift>(a3 + odd_0);
  v[4] = descaled<shift>(a3 - odd_0);
}

/// Eight values, of which the fifth is not looked at, to four.
template <int shift>
LEAT_ON_DEVICE void transform_4(std::int32_t (&v)[8]) {
  const std::uint32_t dc = times(v[0], 1 << 14);
  const std::uint32_t even = times(v[2], 15137) + times(v[6], -6270);
  const std::uint32_t a0 = dc + even;
  const std::uint32_t a1 = dc - even;
  const std::uint32_t odd_1 = times(v[7], -1730) + times(v[5], 11893) + times(v[3], -17799) + times(v[1], 8697);
  const std::uint32_t odd_0 = times(v[7], -4176) + times(v[5], -4926) + times(v[3], 7373) + times(v[1], 20995);
  v[0] = descaled<shift>(a0 + odd_0);
  v[3] = descaled<shift>(a0 - odd_0);
  v[1] = descaled<shift>(a1 + odd_1);
  v[2] = descaled<shift>(a1 - odd_1);
}

/// Eight values, of which only the first and the odd ones are looked at, to two.
template <int shift>
LEAT_ON_DEVICE void transform_2(std::int32_t (&v)[8]) {
  const std::uint32_t dc = times(v[0], 1 << 15);
  const std::uint32_t odd = times(v[7], -5906) + times(v[5], 6967) + times(v[3], -10426) + times(v[1], 29692);
  v[0] = descaled<shift>(dc + odd);
  v[1] = descaled<shift>(dc - odd);
}

/// jpeg_idct_1x1, whose table of limits repeats every 1024.
LEAT_ON_DEVICE std::uint8_t transformed_1(std::int32_t dc) {
  const std::int32_t value = ((dc + 4) >> 3 & 1023);
  return static_cast<std::uint8_t>(clamped((value < 512 ? value : value - 1024) + 128, 0, 255));
}

/// One of four blocks: which, and where it goes.
struct block_place {
  const photo_plane* plane = nullptr;  // null: nobody wants it
  std::uint8_t* to = nullptr;
};

LEAT_ON_DEVICE block_place place_of(std::uint8_t* scratch, const photo_on_device& photo, std::uint32_t row,
                                    std::uint32_t block) {
  const std::uint32_t column = block / photo.mcu_blocks;
  const std::uint32_t in_mcu = block - column * photo.mcu_blocks;
  const photo_plane& plane = photo.plane[photo.block_plane[in_mcu]];
  const std::uint32_t x = ((column - photo.first_column) * plane.across + photo.block_x[in_mcu]) * plane.side;
  const std::uint32_t y = (row * plane.down + photo.block_y[in_mcu]) * plane.side;
  return {&plane, scratch + photo.planes + plane.at + std::uint64_t{y} * plane.stride + x};
}

/// A line of eight coefficients of an unpacked block, dequantised.
LEAT_ON_DEVICE void load_coefficients(row_memory& memory, std::uint32_t slot, std::uint32_t block, std::uint32_t y,
                                      const std::uint16_t* quantisation) {
  const std::uint64_t map = memory.maps[block];
  const std::int16_t* const values = memory.values + memory.first_value[block];
  bool has_ac = false;
  LEAT_UNROLL
  for (std::uint32_t x = 0; x < 8; ++x) {
    const std::uint32_t k = zigzag_of_natural[y * 8 + x];
    std::int32_t value = 0;
    if ((map >> k & 1U) != 0) value = values[set_bits(map & ((std::uint64_t{1} << k) - 1))];
    if (k == 0) value = memory.dc[block];
    has_ac = has_ac || value != 0;
    memory.work[slot][y][x] = static_cast<std::int16_t>(as_i16(value * std::int32_t{quantisation[y * 8 + x]}));
  }
  memory.has_ac[slot][y] = has_ac && y != 0 ? 1 : 0;
}

LEAT_ON_DEVICE void transform_column(row_memory& memory, std::uint32_t slot, std::uint32_t x, std::uint32_t side) {
  std::int32_t v[8];
  std::uint32_t ac = 0;
  LEAT_UNROLL
  for (std::uint32_t y = 0; y < 8; ++y) {
    v[y] = memory.work[slot][y][x];
    // Of four lines the fifth is nobody's, and is not asked for.
    if (side == 8 || y != 4) ac |= memory.has_ac[slot][y];
  }
  if (side == 2) {
    transform_2<13>(v);
  } else if (ac == 0) {
    LEAT_UNROLL
    for (std::uint32_t y = 0; y < 8; ++y) v[y] = as_i16(memory.work[slot][0][x] * 4);
  } else if (side == 8) {
    transform_8<11>(v);
  } else {
    transform_4<12>(v);
  }
  LEAT_UNROLL
  for (std::uint32_t y = 0; y < 8; ++y) {
    if (y < side) memory.work[slot][y][x] = static_cast<std::int16_t>(v[y]);
  }
}

LEAT_ON_DEVICE void transform_line(const row_memory& memory, std::uint32_t slot, std::uint32_t y, std::uint32_t side,
                                   std::uint8_t* to) {
  std::int32_t v[8];
  LEAT_UNROLL
  for (std::uint32_t x = 0; x < 8; ++x) v[x] = memory.work[slot][y][x];
  if (side == 8) {
    transform_8<18>(v);
  } else if (side == 4) {
    transform_4<19>(v);
  } else {
    transform_2<20>(v);
  }
  LEAT_UNROLL
  for (std::uint32_t x = 0; x < 8; ++x) {
    if (x < side) to[x] = static_cast<std::uint8_t>(clamped(v[x], -128, 127) + 128);
  }
}

/// Where the streams are read next.
struct row_position {
  std::uint32_t map = 0;
  std::uint32_t value = 0;
  std::uint32_t size = 0;
  std::uint32_t byte = 0;
  std::uint32_t wide = 0;
  std::uint32_t wide_dc = 0;
  std::uint32_t dc[3] = {};  // what the components' blocks before sum up to
};

/// The next blocks' bitmaps and DC: a lane has a block.
///   returns   how many values they have
template <class Warp>
LEAT_ON_DEVICE std::uint32_t unpack_maps(Warp& warp, row_memory* memory, const photo_on_device* photo,
                                         const row_streams& s, std::uint32_t first, std::uint32_t count,
                                         row_position& at) {
  const row_position from = at;
  const std::uint32_t used = warp.scan([=](std::uint32_t lane, lane_state& my) {
    const bool is_there = lane < count;
    const std::uint32_t length = is_there ? nibble_at(s.lengths, first + lane) : 0;
    my.nibbles = length + (length == 15 ? 1 : 0);
    my.dc = is_there ? static_cast<std::int8_t>(s.dc[first + lane]) : 0;
    return my.nibbles | (my.dc == -128 ? std::uint32_t{1} << 16 : 0);  // two sums in one
  });
  const std::uint32_t values = warp.scan([=](std::uint32_t, lane_state& my) {
    if (my.dc == -128) my.dc = i16_at(s.wide_dc + 2 * std::uint64_t{from.wide_dc + (my.before >> 16)});
    my.map = map_at(s.maps, from.map + (my.before & 0xFFFFU), my.nibbles);
    return set_bits(my.map);
  });
  at.map += used & 0xFFFFU;
  at.wide_dc += used >> 16;
  warp.run([=](std::uint32_t lane, const lane_state& my) {
    memory->maps[lane] = my.map;
    memory->first_value[lane] = static_cast<std::uint16_t>(my.before);
  });
  LEAT_UNROLL
  for (std::uint32_t plane = 0; plane < 3; ++plane) {
    if (plane >= photo->plane_count) continue;
    const std::uint32_t sum = warp.scan([=](std::uint32_t lane, lane_state& my) {
      const bool is_mine = photo->block_plane[(first + lane) % photo->mcu_blocks] == plane;
      return is_mine ? static_cast<std::uint32_t>(my.dc) : 0;
    });
    const std::uint32_t before = at.dc[plane];
    warp.run([=](std::uint32_t lane, const lane_state& my) {
      if (photo->block_plane[(first + lane) % photo->mcu_blocks] != plane) return;
      const std::uint32_t dc = before + my.before + static_cast<std::uint32_t>(my.dc);
      memory->dc[lane] = static_cast<std::int16_t>(static_cast<std::uint16_t>(dc));
    });
    at.dc[plane] += sum;
  }
  return values;
}

/// Their values: a lane has one of 32. Where a value's nibble and bytes lie is how many lanes before have one.
template <class Warp>
LEAT_ON_DEVICE void unpack_values(Warp& warp, row_memory* memory, const row_streams& s, std::uint32_t count,
                                  row_position& at) {
  const std::uint32_t begin = at.value;
  const std::uint32_t end = begin + count;
  for (std::uint32_t first = begin; first < end; first += lanes) {
    const row_position from = at;
    const std::uint32_t large = warp.ballot([=](std::uint32_t lane, lane_state& my) {
      const std::uint32_t value = first + lane;
      if (value >= end) return false;
      my.negative = (s.signs[value / 8 * 2] >> value % 8 & 1) != 0;
      return (s.signs[value / 8 * 2 + 1] >> value % 8 & 1) != 0;
    });
    const std::uint32_t escaped = warp.ballot([=](std::uint32_t lane, lane_state& my) {
      my.size = 1;
      if ((large >> lane & 1U) == 0) return false;
      const std::uint32_t nibble = nibble_at(s.sizes, from.size + set_bits(large & below(lane)));
      my.size = static_cast<std::int32_t>(nibble) + 2;
      return nibble == 15;
    });
    const std::uint32_t wide = warp.ballot([=](std::uint32_t lane, lane_state& my) {
      if ((escaped >> lane & 1U) == 0) return false;
      const std::uint8_t byte = s.bytes[from.byte + set_bits(escaped & below(lane))];
      my.size = std::int32_t{byte} + 17;
      return byte == 255;
    });
    warp.run([=](std::uint32_t lane, const lane_state& my) {
      if (first + lane >= end) return;
      std::int32_t value = my.negative ? -my.size : my.size;
      if ((wide >> lane & 1U) != 0)
        value = i16_at(s.wide + 2 * std::uint64_t{from.wide + set_bits(wide & below(lane))});
      memory->values[first + lane - begin] = static_cast<std::int16_t>(value);
    });
    at.size += set_bits(large);
    at.byte += set_bits(escaped);
    at.wide += set_bits(wide);
  }
  at.value = end;
}

/// Transforms the unpacked blocks, but for those that nobody wants: eight lanes have a block. What is unpacked after it takes the place of
/// what all lanes have read before the last barrier.
template <class Warp>
LEAT_ON_DEVICE void transform_blocks(Warp& warp, row_memory* memory, std::uint8_t* scratch,
                                     const photo_on_device* photo, std::uint32_t row, std::uint32_t first,
                                     std::uint32_t count) {
  const std::uint32_t first_wanted = photo->first_column * photo->mcu_blocks;
  const auto place = [=](std::uint32_t block) {
    if (block >= count || first + block < first_wanted) return block_place{};
    return place_of(scratch, *photo, row, first + block);
  };
  warp.barrier();
  for (std::uint32_t four = 0; four < count; four += blocks_at_once) {
    if (first + four + blocks_at_once <= first_wanted) continue;
    warp.run([=](std::uint32_t lane, const lane_state&) {
      const block_place to = place(four + lane / 8);
      if (to.plane == nullptr) return;
      if (to.plane->side != 1) {
        load_coefficients(*memory, lane / 8, four + lane / 8, lane % 8, to.plane->quantisation);
      } else if (lane % 8 == 0) {
        *to.to = transformed_1(memory->dc[four + lane / 8] * std::int32_t{to.plane->quantisation[0]});
      }
    });
    warp.barrier();
    warp.run([=](std::uint32_t lane, const lane_state&) {
      const block_place to = place(four + lane / 8);
      if (to.plane != nullptr && to.plane->side != 1) transform_column(*memory, lane / 8, lane % 8, to.plane->side);
    });
    warp.barrier();
    // No barrier behind this: a lane's next coefficients take the place of the line that it reads here.
    warp.run([=](std::uint32_t lane, const lane_state&) {
      const block_place to = place(four + lane / 8);
      if (to.plane == nullptr || to.plane->side == 1 || lane % 8 >= to.plane->side) return;
      transform_line(*memory, lane / 8, lane % 8, to.plane->side, to.to + std::uint64_t{lane % 8} * to.plane->stride);
    });
  }
}

LEAT_ON_DEVICE const photo_slot& slot_of(const photo_batch& batch, std::uint32_t number) {
  return *reinterpret_cast<const photo_slot*>(batch.slots + number * batch.slot_bytes);
}
LEAT_ON_DEVICE std::uint8_t* scratch_of(const photo_batch& batch, std::uint32_t number) {
  return batch.scratch + number * batch.scratch_bytes;
}

/// One of the rows of MCUs that a photo has, to samples.
template <class Warp>
LEAT_ON_DEVICE void decode_row(Warp& warp, row_memory* memory, const photo_batch& batch, std::uint32_t number,
                               std::uint32_t row) {
  const photo_slot& slot = slot_of(batch, number);
  const photo_on_device* const photo = &slot.photo;
  const std::uint8_t* const bytes = reinterpret_cast<const std::uint8_t*>(&slot);
  const auto* const ends = reinterpret_cast<const std::uint32_t*>(bytes + slot.row_ends);
  const std::uint32_t begin = row == 0 ? 0 : ends[row - 1];
  row_streams streams;
  if (!cut(bytes + slot.rows + begin, ends[row] - begin, photo->row_blocks, streams) ||
      !streams_agree(warp, streams, photo->row_blocks)) {
    std::uint32_t* const damaged = batch.damaged;
    warp.run([=](std::uint32_t lane, const lane_state&) {
      if (lane == 0 && damaged != nullptr) damaged[number] = 1;
    });
    return;
  }
  const std::uint32_t first_wanted = photo->first_column * photo->mcu_blocks;
  const std::uint32_t end = photo->end_column * photo->mcu_blocks;
  std::uint8_t* const scratch = scratch_of(batch, number);
  row_position at;
  for (std::uint32_t first = 0; first < end; first += lanes) {
    const std::uint32_t count = less(end - first, lanes);
    const std::uint32_t values = unpack_maps(warp, memory, photo, streams, first, count, at);
    unpack_values(warp, memory, streams, values, at);
    if (first + count > first_wanted) transform_blocks(warp, memory, scratch, photo, row, first, count);
  }
}

// --- Samples to pixels: jdsample.c, jdcolor.c ----------------------------------------------------------------------------------

/// A component's sample at a pixel of the picture.
LEAT_ON_DEVICE std::int32_t sample_at(const std::uint8_t* planes, const photo_plane& plane, std::int32_t x,
                                      std::int32_t y) {
  const std::uint8_t* const samples = planes + plane.at;
  const auto at = [&](std::int32_t i, std::int32_t j) -> std::int32_t {
    return samples[static_cast<std::uint64_t>(j - plane.top) * plane.stride +
                   static_cast<std::uint32_t>(i - plane.left)];
  };
  const auto farther = [](std::int32_t pixel, std::int32_t sample, std::int32_t count) {
    return clamped(pixel % 2 != 0 ? sample + 1 : sample - 1, 0, count - 1);
  };
  switch (plane.how) {
    case upsampling::h2v1: {
      const std::int32_t i = x / 2;
      const std::int32_t k = farther(x, i, plane.width);
      // At the edges the sample itself: (3 v + v + 1) / 4 is v.
      return (3 * at(i, y) + at(k, y) + 1 + x % 2) >> 2;
    }
    case upsampling::h2v2: {
      const std::int32_t i = x / 2;
      const std::int32_t j = y / 2;
      const std::int32_t k = farther(x, i, plane.width);
      const std::int32_t l = farther(y, j, plane.height);
      const std::int32_t near = 3 * at(i, j) + at(i, l);
      const std::int32_t far = 3 * at(k, j) + at(k, l);
      return (3 * near + far + 8 - x % 2) >> 4;
    }
    case upsampling::h1v2: {
      const std::int32_t j = y / 2;
      return (3 * at(x, j) + at(x, farther(y, j, plane.height)) + 1 + y % 2) >> 2;
    }
    default:
      return at(x / plane.expand_x, y / plane.expand_y);
  }
}

/// Pixels thread, thread + threads ... of a photo's region, upright.
LEAT_ON_DEVICE void colour_pixels(const photo_batch& batch, std::uint32_t number, std::uint32_t thread,
                                  std::uint32_t threads) {
  const photo_slot& slot = slot_of(batch, number);
  if (slot.is_pack == 0) return;
  const photo_on_device& photo = slot.photo;
  std::uint8_t* const scratch = scratch_of(batch, number);
  const std::uint8_t* const planes = scratch + photo.planes;
  const auto width = static_cast<std::uint32_t>(photo.width);
  const std::uint32_t count = width * static_cast<std::uint32_t>(photo.height);
  for (std::uint32_t i = thread; i < count; i += threads) {
    const auto upright_y = static_cast<std::int32_t>(i / width);
    const auto upright_x = static_cast<std::int32_t>(i % width);
    std::int32_t x = photo.transposed ? upright_y : upright_x;
    std::int32_t y = photo.transposed ? upright_x : upright_y;
    if (photo.mirrored) x = photo.stored_width - 1 - x;
    if (photo.upended) y = photo.stored_height - 1 - y;
    x += photo.left;
    y += photo.top;
    std::uint8_t* const to = scratch + photo.pixels + std::uint64_t{i} * 3;
    const std::int32_t luma = sample_at(planes, photo.plane[0], x, y);
    if (photo.plane_count == 1) {
      to[0] = to[1] = to[2] = static_cast<std::uint8_t>(luma);
      continue;
    }
    const std::int32_t second = sample_at(planes, photo.plane[1], x, y);
    const std::int32_t third = sample_at(planes, photo.plane[2], x, y);
    if (!photo.is_ycbcr) {
      to[0] = static_cast<std::uint8_t>(luma);
      to[1] = static_cast<std::uint8_t>(second);
      to[2] = static_cast<std::uint8_t>(third);
      continue;
    }
    const std::int32_t cb = second - 128;
    const std::int32_t cr = third - 128;
    to[0] = static_cast<std::uint8_t>(clamped(luma + ((91881 * cr + 32768) >> 16), 0, 255));
    to[1] = static_cast<std::uint8_t>(clamped(luma + ((-22554 * cb - 46802 * cr + 32768) >> 16), 0, 255));
    to[2] = static_cast<std::uint8_t>(clamped(luma + ((116130 * cb + 32768) >> 16), 0, 255));
  }
}

// --- Pixels to the batch: pixels/resample.hpp ----------------------------------------------------------------------------------

/// One output: its inputs lie `step` bytes apart.
LEAT_ON_DEVICE std::uint8_t weighed(const std::uint8_t* inputs, std::uint64_t step, const std::int32_t* weights,
                                    std::int32_t taps) {
  constexpr int weight_bits = 32 - 8 - 2;  // pixels/resample_kernels.hpp
  std::uint32_t sum = std::uint32_t{1} << (weight_bits - 1);
  for (std::int32_t t = 0; t < taps; ++t, inputs += step) sum += times(*inputs, weights[t]);
  return static_cast<std::uint8_t>(clamped(static_cast<std::int32_t>(sum) >> weight_bits, 0, 255));
}

/// Which inputs make an output.
struct output_taps {
  std::uint32_t first;
  std::int32_t count;
  const std::int32_t* weights;
};

LEAT_ON_DEVICE output_taps taps_of(const photo_slot& slot, const photo_axis& axis, std::uint32_t output) {
  const std::uint8_t* const bytes = reinterpret_cast<const std::uint8_t*>(&slot);
  const std::int32_t* const tables = reinterpret_cast<const std::int32_t*>(bytes + slot.tables) + axis.table;
  const auto count = static_cast<std::uint32_t>(axis.count);
  return {static_cast<std::uint32_t>(tables[output]), tables[count + output],
          tables + 2 * std::uint64_t{count} + std::uint64_t{output} * static_cast<std::uint32_t>(axis.taps_max)};
}

/// The region's lines after the first pass, which is across or down.
LEAT_ON_DEVICE void resample_once(const photo_batch& batch, std::uint32_t number, std::uint32_t thread,
                                  std::uint32_t threads) {
  const photo_slot& slot = slot_of(batch, number);
  if (slot.is_pack == 0) return;
  const photo_on_device& photo = slot.photo;
  std::uint8_t* const scratch = scratch_of(batch, number);
  const auto width = static_cast<std::uint32_t>(photo.width);
  const bool down = photo.down_first;
  const std::uint32_t columns = down ? width : static_cast<std::uint32_t>(photo.across.count);
  const std::uint32_t rows = static_cast<std::uint32_t>(down ? photo.down.count : photo.height);
  const std::uint32_t count = columns * rows;
  for (std::uint32_t i = thread; i < count; i += threads) {
    const std::uint32_t y = i / columns;
    const std::uint32_t x = i % columns;
    const output_taps taps = taps_of(slot, down ? photo.down : photo.across, down ? y : x);
    const std::uint64_t first = down ? std::uint64_t{taps.first} * width + x : std::uint64_t{y} * width + taps.first;
    const std::uint8_t* const from = scratch + photo.pixels + first * 3;
    std::uint8_t* const to = scratch + photo.lines + std::uint64_t{i} * 3;
    const std::uint64_t step = down ? std::uint64_t{width} * 3 : 3;
    for (std::uint32_t c = 0; c < 3; ++c) to[c] = weighed(from + c, step, taps.weights, taps.count);
  }
}

/// The row of the batch: a photo's lines after the other pass, and 0 outside of them; or the pixels that the host has
/// made.
LEAT_ON_DEVICE void make_row(const photo_batch& batch, std::uint32_t number, std::uint32_t thread,
                             std::uint32_t threads) {
  const photo_slot& slot = slot_of(batch, number);
  const photo_on_device& photo = slot.photo;
  const std::uint8_t* const pixels = reinterpret_cast<const std::uint8_t*>(&slot) + photo_slot_bytes;
  const std::uint8_t* const lines = scratch_of(batch, number) + photo.lines;
  const std::uint32_t count = batch.out_height * batch.out_width;
  const auto columns = static_cast<std::uint32_t>(photo.across.count);
  const std::uint64_t pixel_step = batch.is_planar ? 1 : 3;
  const std::uint64_t plane_step = batch.is_planar ? count : 1;
  for (std::uint32_t i = thread; i < count; i += threads) {
    std::uint8_t* const to = batch.to + std::uint64_t{number} * count * 3 + i * pixel_step;
    if (slot.is_pack == 0) {
      for (std::uint32_t c = 0; c < 3; ++c) to[c * plane_step] = pixels[std::uint64_t{i} * 3 + c];
      continue;
    }
    const std::uint32_t out_y = i / batch.out_width;
    const std::uint32_t out_x = i % batch.out_width;
    // Numbers before the crop wrap to large ones.
    const std::uint32_t y = out_y - static_cast<std::uint32_t>(photo.down.at);
    const std::uint32_t x =
        (photo.flip ? batch.out_width - 1 - out_x : out_x) - static_cast<std::uint32_t>(photo.across.at);
    if (y >= static_cast<std::uint32_t>(photo.down.count) || x >= columns) {
      for (std::uint32_t c = 0; c < 3; ++c) to[c * plane_step] = 0;
      continue;
    }
    const bool down = !photo.down_first;
    const std::uint32_t line_pixels = down ? columns : static_cast<std::uint32_t>(photo.width);
    const output_taps taps = taps_of(slot, down ? photo.down : photo.across, down ? y : x);
    const std::uint64_t first =
        down ? std::uint64_t{taps.first} * line_pixels + x : std::uint64_t{y} * line_pixels + taps.first;
    const std::uint64_t step = down ? std::uint64_t{line_pixels} * 3 : 3;
    for (std::uint32_t c = 0; c < 3; ++c) {
      to[c * plane_step] = weighed(lines + first * 3 + c, step, taps.weights, taps.count);
    }
  }
}

}  // namespace leat::stages::photo_threads
