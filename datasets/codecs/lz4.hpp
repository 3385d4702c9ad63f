// What LZ4 packed, by liblz4: in its own frames, and in the two that array formats put around its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// numcodecs: the size as u32, little-endian, then one block. Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
[[nodiscard]] std::optional<std::string> expand_lz4(std::span<const std::byte> stored, std::span<std::byte> decoded);

/// HDF5's filter 32004: the size as u64 and that of a block as u32, both big-endian; each block behind its own size, a u32, and as it is
/// where that is a block's. Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
[[nodiscard]] std::optional<std::string> expand_lz4_hdf5(std::span<const std::byte> stored,
                                                         std::span<std::byte> decoded);

/// One frame of LZ4, or several that follow one another. Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
///   source    lz4: doc/lz4_Frame_format.md
[[nodiscard]] std::optional<std::string> expand_lz4_frame(std::span<const std::byte> stored,
                                                          std::span<std::byte> decoded);

/// Some of the bytes that they become, without the memory of the others. What lies behind is not looked at. Thread-safe.
///   begin   of them
[[nodiscard]] std::optional<std::string> expand_lz4_frame_part(std::span<const std::byte> stored, std::uint64_t begin,
                                                               std::span<std::byte> part);

/// One bare block.
[[nodiscard]] std::optional<std::string> expand_lz4_block(std::span<const std::byte> stored,
                                                          std::span<std::byte> decoded);

}  // namespace leat::datasets
