#pragma once

// Resampling as it is defined, in double precision, without a thought for speed: what the fast one is measured against.

#include "stages/pixels/geometry.hpp"
#include "tests/support/make_picture.hpp"

namespace leat::testing {

/// The row that `drawn` makes of `picture` (which may be shrunk by `decimation` already), as an out_width x out_height
/// picture. Values stay real numbers between the two passes, but are clamped to 0..255 there as the pixel rule says.
rgb_picture reference_resample(const rgb_picture& picture, const pixels::geometry& drawn, int decimation = 1);

}  // namespace leat::testing
