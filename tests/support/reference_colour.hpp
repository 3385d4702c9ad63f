#pragma once

// Colour as torchvision.transforms.v2's formulas read, in plain loops: what the fast one is measured against.

#include "stages/pixels/recipe.hpp"
#include "tests/support/make_picture.hpp"

namespace leat::testing {

/// The picture that one pass makes. Tables are torchvision's f32; all else is double precision. Not lookup and edit.
rgb_picture reference_colour(const rgb_picture& picture, const pixels::colour_pass& pass);

}  // namespace leat::testing
