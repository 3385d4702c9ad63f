// What a JPEG's headers claim, held against the bytes that are there, before memory is taken or a block decoded.
#pragma once

#include "stages/outcome.hpp"
#include "stages/pixels/libjpeg.hpp"

#include <cstddef>
#include <span>

namespace leat::pixels {

/// To be called when jpeg_read_header() has returned, for a source of all bytes at once.
///   scans     set to the number of them; a decoder that comes to more has been misled. 1 where one scan has it all
///   returns   corrupt: fewer bits than blocks can be coded in; unsupported: more scans than a picture of this size and a
///             file of these bytes are likely to have, which would take time out of proportion
///   cost      of several scans a search for markers in all bytes; else nothing
///   source    ITU-T T.81, F.1.2 and G.1.2: a code has at least a bit
stages::outcome<void> check_jpeg_claims(const jpeg_decompress_struct& cinfo, int& scans);

}  // namespace leat::pixels
