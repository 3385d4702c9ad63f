// What LZF packed: HDF5's filter 32000, which h5py brings along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
///   source    liblzf, lzf_d.c
[[nodiscard]] std::optional<std::string> expand_lzf(std::span<const std::byte> stored, std::span<std::byte> decoded);

}  // namespace leat::datasets
