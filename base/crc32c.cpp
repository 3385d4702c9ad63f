#include "base/crc32c.hpp"

#include "base/crc_tables.hpp"

#include <array>
#include <cassert>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace leat {
namespace {

std::uint32_t by_tables(std::span<const std::byte> bytes) noexcept {
  return ~crc_by_tables<std::uint32_t, 0x82F63B78>(bytes, ~std::uint32_t{0});
}

#ifdef __x86_64__
bool has_instruction() noexcept {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

/// What becomes of a state when `piece` more bytes of 0 follow, for each of its four bytes: states of pieces are added up by it.
constexpr std::size_t piece = 256;
constexpr auto after_piece = [] {
  std::array<std::uint32_t, 32> of_bit{};
  for (std::size_t bit = 0; bit < of_bit.size(); ++bit) {
    std::uint32_t crc = std::uint32_t{1} << bit;
    for (std::size_t i = 0; i < piece; ++i) crc = (crc >> 8) ^ crc_tables<std::uint32_t, 0x82F63B78>[0][crc & 0xFF];
    of_bit[bit] = crc;
  }
  std::array<std::array<std::uint32_t, 256>, 4> all{};
  for (std::size_t byte = 0; byte < all.size(); ++byte) {
    for (std::size_t value = 0; value < 256; ++value) {
      for (std::size_t bit = 0; bit < 8; ++bit) {
        if ((value >> bit & 1) != 0) all[byte][value] ^= of_bit[8 * byte + bit];
      }
    }
  }
  return all;
}();

std::uint32_t moved_on(std::uint64_t crc) noexcept {
  return after_piece[0][crc & 0xFF] ^ after_piece[1][crc >> 8 & 0xFF] ^ after_piece[2][crc >> 16 & 0xFF] ^
         after_piece[3][crc >> 24 & 0xFF];
}

// An instruction takes one cycle, and its result three: three pieces side by side.
[[gnu::target("sse4.2")]] std::uint32_t by_instruction(std::span<const std::byte> bytes) noexcept {
  std::uint64_t crc = ~std::uint32_t{0};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 3 * piece; left -= 3 * piece, at += 3 * piece) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < piece; i += 8) {
      std::uint64_t words[3];
      for (std::size_t p = 0; p < 3; ++p) std::memcpy(&words[p], at + p * piece + i, sizeof words[p]);
      crc = _mm_crc32_u64(crc, words[0]);
      second = _mm_crc32_u64(second, words[1]);
      third = _mm_crc32_u64(third, words[2]);
    }
    crc = moved_on(moved_on(crc) ^ second) ^ third;
  }
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; left != 0; --left, ++at) rest = _mm_crc32_u8(rest, std::to_integer<std::uint8_t>(*at));
  return ~rest;
}

constexpr std::size_t lanes = 4;
// Of `lanes` pieces behind one another, each of a multiple of 8 bytes.
[[gnu::target("sse4.2")]] void by_instruction(const std::byte* at, std::size_t piece_bytes,
                                              std::uint32_t* sums) noexcept {
  std::array<std::uint64_t, lanes> crc;
  crc.fill(~std::uint32_t{0});
  for (std::size_t i = 0; i < piece_bytes; i += 8) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + lane * piece_bytes + i, sizeof word);
      crc[lane] = _mm_crc32_u64(crc[lane], word);
    }
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] = ~static_cast<std::uint32_t>(crc[lane]);
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
#ifdef __x86_64__
  if (has_instruction()) return by_instruction(bytes);
#endif
  return by_tables(bytes);
}

void crc32c_of_each(std::span<const std::byte> pieces, std::size_t piece_bytes,
                    std::span<std::uint32_t> sums) noexcept {
  assert(pieces.size() == sums.size() * piece_bytes);
  std::size_t done = 0;
#ifdef __x86_64__
  if (has_instruction() && piece_bytes % 8 == 0) {
    for (; sums.size() - done >= lanes; done += lanes) {
      by_instruction(pieces.data() + done * piece_bytes, piece_bytes, sums.data() + done);
    }
  }
#endif
  for (; done < sums.size(); ++done) sums[done] = crc32c(pieces.subspan(done * piece_bytes, piece_bytes));
}

}  // namespace leat
