// SHA-256 (FIPS 180-4), for builds with and without OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat {

using sha256 = std::array<std::uint8_t, 32>;

class sha256_hasher {
 public:
  void add(std::span<const std::byte> bytes) noexcept;
  void add(std::string_view text) noexcept { add(std::as_bytes(std::span(text))); }
  void add(const sha256& part) noexcept { add(std::as_bytes(std::span(part))); }
  /// Little-endian.
  void add(std::uint64_t number) noexcept { add(std::as_bytes(std::span(&number, 1))); }
  /// Once, after all of it.
  [[nodiscard]] sha256 finish() noexcept;

 private:
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t in_block_ = 0;
  std::uint64_t bytes_ = 0;
};

namespace detail {

/// What a state becomes by whole blocks of 64 bytes: with the processor's instructions where it has them, and without. The same.
void sha256_blocks(std::array<std::uint32_t, 8>& state, std::span<const std::byte> blocks) noexcept;
void sha256_blocks_portable(std::array<std::uint32_t, 8>& state, std::span<const std::byte> blocks) noexcept;

}  // namespace detail
}  // namespace leat
