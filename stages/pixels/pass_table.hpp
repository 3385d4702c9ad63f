// A pass of colour that each channel's values take by themselves, as a table.
#pragma once

#include "base/random.hpp"
#include "stages/pixels/recipe.hpp"

#include <leat/transforms.hpp>

namespace leat::pixels {

/// What a pass draws by.
[[nodiscard]] random_draws draws_of(const colour_pass& pass, const draw_key& key) noexcept;

/// First `first`, then a pass whose reach is `table`. Throws what a user's lookup throws.
void append_pass(table& first, const colour_pass& pass, const draw_key& key);

}  // namespace leat::pixels
