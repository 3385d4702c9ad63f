// image, where its pictures are read with the bits and channels that they have: image::bits(), and image::channels() of other than 1 or 3.
#pragma once

#include "stages/batch/field_program.hpp"

#include <leat/field.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace leat::stages {

[[nodiscard]] inline bool reads_wide(const image::settings& settings) noexcept {
  return settings.bits != 8 || (settings.channels != 1 && settings.channels != 3);
}

/// Of the row: what as() says; else as image::bits() says.
[[nodiscard]] dtype wide_type(const image::settings& settings) noexcept;

///   fields   of the dataset, which hold encoded pictures
///   throws   error{errc::usage}: steps and settings that are of 8 bits only
[[nodiscard]] std::unique_ptr<field_program> make_wide_image(const image::settings& settings,
                                                             std::vector<std::uint16_t> fields);

}  // namespace leat::stages
