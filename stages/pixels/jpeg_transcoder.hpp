// Writes a JPEG anew as baseline, with the same coefficients: the same pixels, decoded with a third of the work.
#pragma once

#include "base/outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::pixels {

enum class transcode_result : std::uint8_t {
  rewritten,  ///< the new file is there
  as_it_is    ///< it is no JPEG, or baseline in one scan already
};

/// Writes progressive, multi-scan and arithmetically coded JPEGs as one baseline scan with Huffman tables of their own.
/// EXIF, ICC and all other markers before the scans go along; what comes after the end of the picture does not.
///   file      set where rewritten
///   returns   corrupt: libjpeg-turbo gave any warning or error, whose text is the reason; unsupported: it cannot be rewritten
///             (12 bits, a picture too large, components that fit into no common scan). Then it is best left as it is
///   memory    all coefficients: 2 bytes for each sample of each component
///   source    libjpeg-turbo's transupp.c and jpegtran.c; jpeg_read_coefficients() in libjpeg.txt
stages::outcome<transcode_result> transcode_to_baseline(std::span<const std::byte> encoded,
                                                        std::vector<std::byte>& file);

}  // namespace leat::pixels
