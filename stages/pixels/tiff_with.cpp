#include "stages/pixels/tiff.hpp"
#include "stages/pixels/tiff_reader.hpp"
#include "stages/pixels/wide_tiff_reader.hpp"

namespace leat::pixels {

std::unique_ptr<picture_reader> make_tiff_reader(scratch_arena& arena) { return std::make_unique<tiff_reader>(arena); }
std::unique_ptr<wide_reader> make_wide_tiff_reader(scratch_arena& arena) {
  return std::make_unique<wide_tiff_reader>(arena);
}

}  // namespace leat::pixels
