// From what is drawn for a picture to the record by which a device does it.
#pragma once

#include "stages/device/picture_program.hpp"
#include "stages/pixels/recipe.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace leat::stages {

/// What the records of a chain's rows may need, whatever is drawn.
///   height, width          of the rows
///   record_bytes           of each, a multiple of 16
///   tables                 that a device makes of a picture, at most
///   looks_at_picture ...   whether a step may; at neighbours also what warps
///   erased                 elements of what is erased
///   noise_values           at most, where it is erased by noise, which is made by what looks at the picture
struct program_layout {
  int height = 0;
  int width = 0;
  std::uint32_t record_bytes = 0;
  std::uint32_t tables = 0;
  bool looks_at_picture = false;
  bool looks_at_neighbours = false;
  std::array<float, 3> erased = {};
  std::uint32_t noise_values = 0;

  friend bool operator==(const program_layout&, const program_layout&) = default;
};

[[nodiscard]] program_layout layout_of(const pixels::pipeline& steps);

/// Writes a row's record. Throws what a user's lookup throws.
///   rows     of the chain that drew
///   first    passes before it are the host's
///   flip     whether the device has to mirror the row
///   to       record_bytes, aligned to 16
void write_program(const program_layout& rows, const pixels::recipe& drawn, std::size_t first, bool flip,
                   std::span<std::byte> to);

}  // namespace leat::stages
