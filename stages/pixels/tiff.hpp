// TIFF, where leat is built with libtiff (LEAT_TIFF): tiff_with.cpp; else tiff_without.cpp.
#pragma once

#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/wide_reader.hpp"

#include <memory>

namespace leat::pixels {

/// Null where TIFF is not read (reads_tiff(), picture_format.hpp). The arena outlives what is returned.
[[nodiscard]] std::unique_ptr<picture_reader> make_tiff_reader(scratch_arena& arena);
[[nodiscard]] std::unique_ptr<wide_reader> make_wide_tiff_reader(scratch_arena& arena);

}  // namespace leat::pixels
