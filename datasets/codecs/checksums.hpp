// The checksums that array formats put behind a chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::datasets {

/// Whether `stored` is what HDF5 wrote behind these bytes. Versions up to 1.6.2 wrote the two halves with their bytes swapped.
///   source   HDF5, H5checksum.c and H5Zfletcher32.c
[[nodiscard]] bool is_fletcher32(std::span<const std::byte> bytes, std::uint32_t stored) noexcept;

/// Bob Jenkins's lookup3 ("hashlittle") from 0, which HDF5 puts behind its headers and indexes.
///   source   lookup3.c of May 2006; HDF5, H5checksum.c
[[nodiscard]] std::uint32_t lookup3(std::span<const std::byte> bytes) noexcept;

}  // namespace leat::datasets
