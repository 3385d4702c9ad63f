// What Snappy packed: one block, as Parquet has them.
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
///   source    github.com/google/snappy: format_description.txt
[[nodiscard]] std::optional<std::string> expand_snappy(std::span<const std::byte> stored, std::span<std::byte> decoded);

}  // namespace leat::datasets
