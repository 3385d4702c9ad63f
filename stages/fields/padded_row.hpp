// Rows that are filled up, beside which stands how long they are.
#pragma once

#include "stages/batch/field_program.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leat::stages {

/// Writes `name`.length, and `name`.mask: true where an element is.
///   rows     of the values, the length and, if there is one, the mask
///   length   elements of the row
inline void write_length(std::span<row_target> rows, std::size_t length, bool has_mask) {
  const auto stored = static_cast<std::int64_t>(length);
  std::memcpy(rows[1].bytes.data(), &stored, sizeof stored);
  if (!has_mask) return;
  rows[2].used = length;
  const auto end = rows[2].bytes.begin() + static_cast<std::ptrdiff_t>(length);
  std::fill(rows[2].bytes.begin(), end, std::byte{1});
  std::fill(end, rows[2].bytes.end(), std::byte{0});
}

}  // namespace leat::stages
