// What gzip and zlib packed, a whole buffer at a time, by libdeflate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// What stands around the packed bytes: nothing, or a header and a checksum, which is verified.
enum class deflate_wrapper : std::uint8_t { bare, zlib, gzip };

/// Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
///   source    RFC 1950, RFC 1951, RFC 1952 (several members follow one another)
[[nodiscard]] std::optional<std::string> inflate(deflate_wrapper wrapper, std::span<const std::byte> stored,
                                                 std::span<std::byte> decoded);

/// The first bytes that a bare stream becomes, by zlib: as many as are wanted, or as `stored` has.
[[nodiscard]] std::vector<std::byte> inflate_start(std::span<const std::byte> stored, std::size_t bytes);

/// As gzip and zip have it.
///   before   of the bytes before these
[[nodiscard]] std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace leat::datasets
