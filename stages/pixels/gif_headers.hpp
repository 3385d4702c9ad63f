// A GIF's blocks up to the data of its first frame, which is the picture.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/byte_reading.hpp"
#include "stages/pixels/geometry.hpp"

namespace leat::pixels {

/// What stands before the data.
///   width, height   of the screen, and of the frame where that reaches beyond it
///   frame           where the first frame lies
///   palette         three bytes a colour: the frame's own or the file's; empty where there is none
///   transparent     the colour that is not seen; -1 where there is none
///   code_bits       of a pixel in the codes of the data
///   data            sub-blocks and what follows them
struct gif_layout {
  int width = 0;
  int height = 0;
  rectangle frame;
  bool interlaced = false;
  byte_span palette;
  int transparent = -1;
  int code_bits = 0;
  byte_span data;
};

///   returns   corrupt: cut before the data, without a frame, or of no pixels
///   source    CompuServe, "Graphics Interchange Format", version 89a, sections 17 to 25
[[nodiscard]] stages::outcome<gif_layout> read_gif_headers(byte_span encoded);

}  // namespace leat::pixels
