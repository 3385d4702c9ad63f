#include "base/sha256.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace leat {
namespace {

constexpr std::size_t block_bytes = 64;

alignas(16) constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(std::uint32_t value) noexcept { return __builtin_bswap32(value); }

#ifdef __x86_64__
bool has_instructions() noexcept {
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    constexpr unsigned sha = 1U << 29U;  // EBX of leaf 7
    return __builtin_cpu_supports("sse4.1") != 0 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & sha) != 0;
  }();
  return has;
}

// Intel SHA Extensions: two registers hold the state as ABEF and CDGH; each instruction does two rounds.
[[gnu::target("sha,sse4.1")]] void by_instructions(std::array<std::uint32_t, 8>& state,
                                                   std::span<const std::byte> blocks) noexcept {
  const __m128i swapped = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto load = [](const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); };
  const __m128i cdab = _mm_shuffle_epi32(load(state.data()), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(load(state.data() + 4), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (std::size_t at = 0; at < blocks.size(); at += block_bytes) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i words[4];
    for (std::size_t i = 0; i < 4; ++i) words[i] = _mm_shuffle_epi8(load(blocks.data() + at + 16 * i), swapped);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      const __m128i now = words[i % 4];
      __m128i sum = _mm_add_epi32(now, load(round_constants.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      __m128i& next = words[(i + 1) % 4];
      __m128i& before = words[(i + 3) % 4];
      if (i >= 3 && i < 15) next = _mm_sha256msg2_epu32(_mm_add_epi32(next, _mm_alignr_epi8(now, before, 4)), now);
      sum = _mm_shuffle_epi32(sum, 0x0E);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, sum);
      if (i >= 1 && i < 13) before = _mm_sha256msg1_epu32(before, now);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

}  // namespace

void detail::sha256_blocks_portable(std::array<std::uint32_t, 8>& state, std::span<const std::byte> blocks) noexcept {
  for (std::size_t at = 0; at < blocks.size(); at += block_bytes) {
    std::array<std::uint32_t, 64> words;
    std::memcpy(words.data(), blocks.data() + at, block_bytes);
    for (std::size_t i = 0; i < 16; ++i) words[i] = big_endian(words[i]);
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t near = words[i - 2];
      const std::uint32_t far = words[i - 15];
      words[i] = words[i - 16] + (std::rotr(far, 7) ^ std::rotr(far, 18) ^ (far >> 3U)) + words[i - 7] +
                 (std::rotr(near, 17) ^ std::rotr(near, 19) ^ (near >> 10U));
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                                  round_constants[i] + words[i];
      const std::uint32_t second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + first;
      d = c;
      c = b;
      b = a;
      a = first + second;
    }
    const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < added.size(); ++i) state[i] += added[i];
  }
}

void detail::sha256_blocks(std::array<std::uint32_t, 8>& state, std::span<const std::byte> blocks) noexcept {
  assert(blocks.size() % block_bytes == 0);
#ifdef __x86_64__
  if (has_instructions()) return by_instructions(state, blocks);
#endif
  sha256_blocks_portable(state, blocks);
}

void sha256_hasher::add(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;  // It may begin nowhere.
  bytes_ += bytes.size();
  if (in_block_ != 0) {
    const std::size_t taken = std::min(bytes.size(), block_bytes - in_block_);
    std::memcpy(block_.data() + in_block_, bytes.data(), taken);
    in_block_ += taken;
    bytes = bytes.subspan(taken);
    if (in_block_ < block_bytes) return;
    detail::sha256_blocks(state_, block_);
    in_block_ = 0;
  }
  const std::size_t whole = bytes.size() / block_bytes * block_bytes;
  if (whole != 0) detail::sha256_blocks(state_, bytes.first(whole));
  in_block_ = bytes.size() - whole;
  if (in_block_ != 0) std::memcpy(block_.data(), bytes.data() + whole, in_block_);
}

sha256 sha256_hasher::finish() noexcept {
  constexpr std::size_t length_at = block_bytes - sizeof(std::uint64_t);
  block_[in_block_++] = std::byte{0x80};
  if (in_block_ > length_at) {
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(in_block_), block_.end(), std::byte{0});
    detail::sha256_blocks(state_, block_);
    in_block_ = 0;
  }
  std::fill(block_.begin() + static_cast<std::ptrdiff_t>(in_block_), block_.end(), std::byte{0});
  const std::uint64_t bits = __builtin_bswap64(8 * bytes_);
  std::memcpy(block_.data() + length_at, &bits, sizeof bits);
  detail::sha256_blocks(state_, block_);
  sha256 result;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    const std::uint32_t word = big_endian(state_[i]);
    std::memcpy(result.data() + 4 * i, &word, sizeof word);
  }
  return result;
}

}  // namespace leat
