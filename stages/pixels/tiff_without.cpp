#include "stages/pixels/tiff.hpp"

namespace leat::pixels {

std::unique_ptr<picture_reader> make_tiff_reader(scratch_arena& /*arena*/) { return nullptr; }
std::unique_ptr<wide_reader> make_wide_tiff_reader(scratch_arena& /*arena*/) { return nullptr; }

}  // namespace leat::pixels
