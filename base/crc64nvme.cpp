#include "base/crc64nvme.hpp"

#include "base/crc_tables.hpp"

#include <array>

#ifdef __x86_64__
#include <emmintrin.h>
#include <wmmintrin.h>
#endif

namespace leat {
namespace {

constexpr std::uint64_t polynomial = 0x9A6C9329AC4BC9B5;

std::uint64_t by_tables(std::span<const std::byte> bytes, std::uint64_t crc) noexcept {
  return crc_by_tables<std::uint64_t, polynomial>(bytes, crc);
}

#ifdef __x86_64__
// x^exponent modulo the polynomial.
constexpr std::uint64_t power_of_x(unsigned exponent) {
  std::uint64_t value = std::uint64_t{1} << 63;
  for (unsigned i = 0; i < exponent; ++i) value = crc_times_x<std::uint64_t, polynomial>(value);
  return value;
}

// 16 bytes are lo x^64 + hi, of which so many bits behind are lo x^(64 + bits) + hi x^bits. A product of two reflected numbers is that of
// the numbers and of x, so that the constants are of one power less.
//   source   Gopal and others, Fast CRC Computation Using PCLMULQDQ Instruction, Intel 2009
struct fold_by {
  std::uint64_t low;
  std::uint64_t high;
};
constexpr fold_by fold_of(unsigned bits) { return {power_of_x(bits + 63), power_of_x(bits - 1)}; }

[[gnu::target("pclmul,sse4.1")]] inline __m128i folded(__m128i value, __m128i by, __m128i next) noexcept {
  const __m128i low = _mm_clmulepi64_si128(value, by, 0x00);
  const __m128i high = _mm_clmulepi64_si128(value, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

constexpr std::size_t lanes = 4;
constexpr std::size_t lane_bytes = 16;

// Of 64 bytes at least.
[[gnu::target("pclmul,sse4.1")]] std::uint64_t by_multiplication(std::span<const std::byte> bytes,
                                                                 std::uint64_t crc) noexcept {
  constexpr fold_by far = fold_of(8 * lanes * lane_bytes);
  constexpr fold_by near = fold_of(8 * lane_bytes);
  const auto load = [&](std::size_t at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes.data() + at));
  };
  const __m128i by_far = _mm_set_epi64x(static_cast<long long>(far.high), static_cast<long long>(far.low));
  const __m128i by_near = _mm_set_epi64x(static_cast<long long>(near.high), static_cast<long long>(near.low));
  __m128i a = _mm_xor_si128(load(0), _mm_set_epi64x(0, static_cast<long long>(crc)));
  __m128i b = load(lane_bytes);
  __m128i c = load(2 * lane_bytes);
  __m128i d = load(3 * lane_bytes);
  std::size_t done = lanes * lane_bytes;
  for (; bytes.size() - done >= lanes * lane_bytes; done += lanes * lane_bytes) {
    a = folded(a, by_far, load(done));
    b = folded(b, by_far, load(done + lane_bytes));
    c = folded(c, by_far, load(done + 2 * lane_bytes));
    d = folded(d, by_far, load(done + 3 * lane_bytes));
  }
  std::array<std::byte, lane_bytes> rest;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest.data()),
                   folded(folded(folded(a, by_near, b), by_near, c), by_near, d));
  return by_tables(bytes.subspan(done), by_tables(rest, 0));
}

bool has_multiplication() noexcept {
  static const bool has = __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
  return has;
}
#endif

}  // namespace

std::uint64_t crc64nvme(std::span<const std::byte> bytes) noexcept {
#ifdef __x86_64__
  if (bytes.size() >= lanes * lane_bytes && has_multiplication()) return ~by_multiplication(bytes, ~std::uint64_t{0});
#endif
  return ~by_tables(bytes, ~std::uint64_t{0});
}

}  // namespace leat
