// Filters that change only where the bytes of elements stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// Undoes HDF5's and Blosc's shuffle: the first bytes of all elements, then the second ones. Bytes behind the last whole element stay
/// where they are.
///   from, to   of one size, apart from one another
///   returns    the reason why it cannot be done; nothing where it was
[[nodiscard]] std::optional<std::string> unshuffle(std::uint32_t element_bytes, std::span<const std::byte> from,
                                                   std::span<std::byte> to);

/// Reverses the bytes of each element.
///   from, to   as above; a multiple of element_bytes
[[nodiscard]] std::optional<std::string> swap_elements(std::uint32_t element_bytes, std::span<const std::byte> from,
                                                       std::span<std::byte> to);

}  // namespace leat::datasets
