// Compares what a JPEG's headers claim with the number of its bytes, before memory is taken or a block decoded.
#pragma once

#include "base/outcome.hpp"
#include "stages/pixels/libjpeg.hpp"

#include <cstddef>
#include <span>

namespace leat::pixels {

/// Call it after jpeg_read_header(), for a source that has all bytes at once.
///   may_be_cut   it may have lost its end, so that its bits are as many as they are
///   scans     set to the number of scans, 1 for a picture in one scan. A decoder that comes to more must stop
///   returns   corrupt: fewer bits than blocks can be coded in; unsupported: more scans than a picture of this size and a
///             file of these bytes are likely to have, which would take time out of proportion
///   cost      with several scans a search for markers in all bytes; else none
///   source    ITU-T T.81, F.1.2 and G.1.2: a code has at least a bit
stages::outcome<void> check_jpeg_claims(const jpeg_decompress_struct& cinfo, bool may_be_cut, int& scans);

}  // namespace leat::pixels
