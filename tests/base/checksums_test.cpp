// Checksums: published values, and quick ways beside slow ones.
#include "base/crc32c.hpp"
#include "base/crc64nvme.hpp"
#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "tests/support/seeded_random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

// FIPS 180-4, in the examples that NIST publishes with it.
TEST(sha256, is_that_of_the_standard) {
  const auto of = [](std::string_view text) {
    sha256_hasher hash;
    hash.add(text);
    return to_hex(hash.finish());
  };
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(sha256, is_the_same_in_any_pieces_and_without_the_instructions) {
  std::vector<std::byte> bytes(300);
  fill_seeded(5, 0, bytes);
  for (std::size_t count = 0; count <= bytes.size(); ++count) {
    const std::span<const std::byte> some = std::span(bytes).first(count);
    sha256_hasher at_once;
    at_once.add(some);
    const sha256 whole = at_once.finish();
    for (const std::size_t piece : {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{100}}) {
      sha256_hasher in_pieces;
      for (std::size_t at = 0; at < count; at += piece) in_pieces.add(some.subspan(at, std::min(piece, count - at)));
      EXPECT_EQ(to_hex(in_pieces.finish()), to_hex(whole)) << count << " bytes in pieces of " << piece;
    }
  }
  std::array<std::uint32_t, 8> quick{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::uint32_t, 8> portable = quick;
  detail::sha256_blocks(quick, std::span(bytes).first(256));
  detail::sha256_blocks_portable(portable, std::span(bytes).first(256));
  EXPECT_EQ(quick, portable);
}

TEST(hex, is_read_as_it_was_written_and_of_its_length_only) {
  std::array<std::uint8_t, 3> bytes{};
  EXPECT_TRUE(from_hex("00a9Ff", bytes));
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 3>{0, 0xA9, 0xFF}));
  EXPECT_EQ(to_hex(bytes), "00a9ff");
  EXPECT_TRUE(from_hex("", std::span<std::uint8_t>()));
  for (const char* const other : {"", "00a9f", "00a9ff0", "00a9fg", "0x00a9", " 0a9ff", "-0a9ff"}) {
    EXPECT_FALSE(from_hex(other, bytes)) << other;
  }
}

}  // namespace
}  // namespace leat::testing
