// Checksums: published values, and quick ways beside slow ones.
#include "base/crc32c.hpp"
#include "base/crc64nvme.hpp"
#include "tests/support/seeded_random.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace leat::testing {
namespace {

TEST(crc32c, is_that_of_the_rfc) {
  std::vector<std::byte> bytes(32);
  EXPECT_EQ(crc32c(bytes), 0x8A9136AAU);
  for (std::byte& each : bytes) each = std::byte{0xFF};
  EXPECT_EQ(crc32c(bytes), 0x62A8AB43U);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46DD794EU);
}

// Bytes of which three pieces are taken side by side, and those that are left.
TEST(crc32c, is_that_of_its_bits_at_any_length) {
  std::vector<std::byte> bytes(2400);
  fill_seeded(9, 0, bytes);
  std::uint32_t crc = ~std::uint32_t{0};
  for (std::size_t count = 0; count <= bytes.size(); ++count) {
    EXPECT_EQ(crc32c(std::span(bytes).first(count)), ~crc) << count << " bytes";
    if (count == bytes.size()) break;
    crc ^= std::to_integer<std::uint32_t>(bytes[count]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
}

TEST(crc32c, of_many_pieces_are_those_of_each) {
  std::vector<std::byte> bytes(std::size_t{4096} * 11);
  fill_seeded(7, 0, bytes);
  for (const std::size_t piece_bytes : {std::size_t{4096}, std::size_t{8}, std::size_t{13}}) {
    for (std::size_t pieces = 0; pieces <= 11; ++pieces) {
      const std::span<const std::byte> all = std::span(bytes).first(pieces * piece_bytes);
      std::vector<std::uint32_t> sums(pieces);
      crc32c_of_each(all, piece_bytes, sums);
      for (std::size_t i = 0; i < pieces; ++i) {
        EXPECT_EQ(sums[i], crc32c(all.subspan(i * piece_bytes, piece_bytes))) << piece_bytes << ", piece " << i;
      }
    }
  }
}

std::uint64_t bit_by_bit(std::span<const std::byte> bytes) {
  std::uint64_t crc = ~std::uint64_t{0};
  for (const std::byte each : bytes) {
    crc ^= std::to_integer<std::uint64_t>(each);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x9A6C9329AC4BC9B5 : 0);
  }
  return ~crc;
}

TEST(crc64nvme, is_that_of_the_specification_at_any_length) {
  constexpr std::string_view digits = "123456789";
  EXPECT_EQ(crc64nvme(std::as_bytes(std::span(digits))), 0xAE8B14860A799888U);
  std::vector<std::byte> bytes(700);
  fill_seeded(8, 0, bytes);
  for (std::size_t count = 0; count <= bytes.size(); ++count) {
    const std::span<const std::byte> some = std::span(bytes).last(count);
    EXPECT_EQ(crc64nvme(some), bit_by_bit(some)) << count << " bytes";
  }
}

}  // namespace
}  // namespace leat::testing
