// A row of an array as a person sees it: a picture, a heat map or a line.
#pragma once

#include "tools/sheet.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <optional>

namespace leat::tools {

/// Of at most 128 pixels a side, larger rows with some of their elements. u8 in the shape of a picture ([height, width],
/// with 1 or 3 channels first or last) are its levels, other numbers from the least of the row to the greatest: one axis is a
/// line, more are a heat map with the last axis across. Nothing of a row of fewer than 8 elements.
[[nodiscard]] std::optional<rgb_picture> draw_row(const tensor& rows, std::size_t row);

}  // namespace leat::tools
