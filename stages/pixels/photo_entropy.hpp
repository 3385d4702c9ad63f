// The entropy stage of a photo pack, in the place of libjpeg-turbo's: coefficients as they would come from the JPEG that was packed.
#pragma once

#include "stages/pixels/entropy_door.hpp"
#include "stages/pixels/photo_mcus.hpp"

namespace leat::pixels {

/// One picture's. libjpeg sees its first member, as it sees its own decoder's.
struct photo_entropy {
  jpeg_entropy_decoder methods;
  photo_mcus* mcus;

  /// Takes the place of libjpeg's decoder after jpeg_start_decompress(), where not photo_packs_are_recoded(). MCUs that are not wanted are
  /// left zero.
  void install(j_decompress_ptr cinfo, photo_mcus& from) noexcept;
};

}  // namespace leat::pixels
