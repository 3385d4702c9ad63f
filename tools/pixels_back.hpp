// A row of a picture tensor as pixels again: normalising, casting and layout undone.
#pragma once

#include "tools/sheet.hpp"

#include <leat/field.hpp>

#include <cstddef>
#include <span>

namespace leat::tools {

/// The pixels that became `row`. Exact for u8 and f32; f16 and bf16 have lost up to a level of some.
///   shape   of the row: [3, height, width] or [height, width, 3], as `how` says
[[nodiscard]] rgb_picture pixels_back(const image::settings& how, const dimensions& shape,
                                      std::span<const std::byte> row);

}  // namespace leat::tools
