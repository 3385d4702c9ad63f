// Bits of elements one place after another: HDF5's filter 32008.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// Without compression: blocks of elements, shuffled each. Thread-safe.
///   element_bytes   of an element
///   block_elements  of a block, a multiple of 8; 0: as bitshuffle chooses them itself
///   source          github.com/kiyo-masui/bitshuffle, bshuf_h5filter.c, bitshuffle_core.c
[[nodiscard]] std::optional<std::string> bitunshuffle(std::uint32_t element_bytes, std::uint32_t block_elements,
                                                      std::span<const std::byte> from, std::span<std::byte> to);

/// The size as u64 and that of a block as u32, both big-endian; each block packed by LZ4 behind its own size, a u32; what is no multiple of
/// eight elements lies at the end as it is. Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
[[nodiscard]] std::optional<std::string> expand_bitshuffle_lz4(std::uint32_t element_bytes,
                                                               std::span<const std::byte> stored,
                                                               std::span<std::byte> decoded);

}  // namespace leat::datasets
