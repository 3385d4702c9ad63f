// A WebP's container: the chunks of the picture and of its orientation.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/byte_reading.hpp"
#include "stages/pixels/geometry.hpp"

namespace leat::pixels {

/// The checked contents of the container: the file is whole, and the picture's own header agrees with it.
///   width, height   of the canvas
///   frame       where the picture lies on it: of an animation it may be smaller
///   picture     the content of the chunk `VP8 ` or `VP8L`; of an animation, of its first frame
///   alpha       the content of the chunk `ALPH` before a lossy picture; empty: it has none
///   with_alpha  that chunk, the picture's, and what is between them
///   has_alpha   in the chunk of features, or in a lossless picture's own header
///   exif, xmp   the contents of those chunks; empty where there is none
struct webp_layout {
  int width = 0;
  int height = 0;
  rectangle frame;
  bool lossless = false;
  bool has_alpha = false;
  byte_span picture;
  byte_span alpha;
  byte_span with_alpha;
  byte_span exif;
  byte_span xmp;
};

///   returns   corrupt: cut, without a picture, or with sizes that contradict one another; unsupported: far more pixels than its bytes can be meant for
///   source    RFC 9649 (WebP), sections 2 and 3; RFC 6386 section 9.1 (VP8's frame header)
[[nodiscard]] stages::outcome<webp_layout> read_webp_headers(byte_span encoded);

}  // namespace leat::pixels
