#pragma once

// EXIF for tests.

#include <cstddef>
#include <vector>

namespace leat::testing {

/// A TIFF structure with the tag of an orientation, behind another one.
std::vector<std::byte> exif_tiff(int orientation, bool big_endian);

}  // namespace leat::testing
