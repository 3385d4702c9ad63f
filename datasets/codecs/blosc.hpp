// What Blosc 1 packed, by libblosc: any of its codecs that the library was built with.
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
///   source    c-blosc, README_CHUNK_FORMAT.rst
[[nodiscard]] std::optional<std::string> expand_blosc(std::span<const std::byte> stored, std::span<std::byte> decoded);

}  // namespace leat::datasets
