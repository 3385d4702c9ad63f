// A batch of pictures for finish_pictures(), as a field's store says what is to become of them.
#pragma once

#include "stages/finish_pictures.hpp"
#include "stages/pixels/store.hpp"

#include <cstdint>

namespace leat::testing {

/// Without its memory.
inline stages::picture_batch pictures_of(const pixels::store& how, std::uint32_t rows, std::uint32_t height,
                                         std::uint32_t width) {
  return {.from = nullptr,
          .to = nullptr,
          .flips = nullptr,
          .rows = rows,
          .height = height,
          .width = width,
          .type = how.type,
          .order = how.order,
          .scale = {how.scale[0], how.scale[1], how.scale[2]},
          .bias = {how.bias[0], how.bias[1], how.bias[2]}};
}

}  // namespace leat::testing
