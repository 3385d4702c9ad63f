// What Zstandard packed, by libzstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace leat::datasets {

/// One frame, or several that follow one another. Thread-safe.
///   decoded   becomes exactly full, or there is a reason
///   returns   the reason why not; nothing where it was done
///   source    RFC 8878
[[nodiscard]] std::optional<std::string> expand_zstd(std::span<const std::byte> stored, std::span<std::byte> decoded);

}  // namespace leat::datasets
