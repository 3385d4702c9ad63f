// Which formats a dataset's pictures are in, told by their first bytes: names lie (leat inspect).
#pragma once

#include "stages/pixels/picture_format.hpp"

#include <leat/samples.hpp>

#include <array>
#include <cstdint>

namespace leat::tools {

///   looked_at   pictures whose first bytes were read: of all samples, or of so many, evenly spread
///   samples     that were asked for pictures
///   count       of each format; unknown ones among them, but for empty files
///   deep_grey   PNGs of 16-bit grey: their upper bytes are taken
///   palettes    PNGs of indexes into a palette: their colours are taken
struct picture_survey {
  std::uint64_t looked_at = 0;
  std::uint64_t samples = 0;
  std::array<std::uint64_t, pixels::format_count> count{};
  std::uint64_t deep_grey = 0;
  std::uint64_t palettes = 0;

  [[nodiscard]] std::uint64_t of(pixels::format what) const noexcept { return count[static_cast<std::size_t>(what)]; }
  /// Those that no reader takes.
  [[nodiscard]] std::uint64_t refused() const noexcept;
};

/// Reads the beginnings of the pictures of `samples_max` samples at most. What cannot be read is left out.
[[nodiscard]] picture_survey survey_pictures(const dataset& samples, std::uint64_t samples_max = 20'000);

}  // namespace leat::tools
