#include "stages/pixels/picture_format.hpp"

namespace leat::pixels {

bool reads_tiff() noexcept { return false; }

}  // namespace leat::pixels
