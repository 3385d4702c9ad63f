// Which rows of a photo pack a row of the batch is made from: known before the pack is read, from its size and the draws.
#pragma once

#include "datasets/formats/tar/photo_places.hpp"
#include "stages/pixels/picture_decoder.hpp"
#include "stages/pixels/recipe.hpp"

#include <cstddef>
#include <optional>
#include <span>

namespace leat::stages {

/// What an index says of a pack, all but where it lies. Nothing where it is no pack, is damaged, or is not decoded by rows of MCUs.
[[nodiscard]] std::optional<datasets::photo_place> place_of_photo(std::span<const std::byte> pack);

/// The bytes of a pack, besides its head, that picture_decoder::decode() with the same arguments looks at: those of the rows that the
/// crop needs, or all. A pure function of its arguments, and of the libjpeg-turbo that is there.
[[nodiscard]] datasets::photo_range photo_bytes_wanted(const datasets::photo_place& photo,
                                                       const pixels::pipeline& steps, const pixels::draw_key& key,
                                                       const pixels::decode_options& options) noexcept;

}  // namespace leat::stages
