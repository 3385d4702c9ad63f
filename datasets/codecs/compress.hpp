// Packs chunks that leat writes; what the other files here undo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::datasets {

enum class packing : std::uint8_t {
  none,
  zstd,       ///< one frame that knows its size
  gzip,       ///< RFC 1952
  blosc_lz4,  ///< Blosc 1: bytes of elements shuffled, then LZ4
};

/// Of zstd as its own program counts (gzip's is in base/gzip.hpp); of Blosc 1 to 9; of none not looked at.
inline constexpr int zstd_level = 3;
inline constexpr int blosc_level = 5;

/// The largest chunk that every packing takes: Blosc 1 counts in an int32.
inline constexpr std::uint64_t packed_bytes_max = std::uint64_t{1} << 30;

/// Replaces `packed`. Thread-safe.
///   element_bytes   of shuffle
///   raw             at most packed_bytes_max
///   throws          std::bad_alloc
///   source          RFC 8878; RFC 1952; c-blosc, README_CHUNK_FORMAT.rst
void compress(packing how, std::uint32_t element_bytes, std::span<const std::byte> raw, std::vector<std::byte>& packed);

}  // namespace leat::datasets
