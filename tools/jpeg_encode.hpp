// RGB to a JPEG file in memory, by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

namespace leat::tools {

/// How the colours are stored: as large as the brightness, half as wide, half as wide and high, or not at all.
enum class jpeg_chroma : std::uint8_t { yuv444, yuv422, yuv420, grey };

struct jpeg_encode_options {
  int quality = 96;  ///< 1..100, as libjpeg counts
  jpeg_chroma chroma = jpeg_chroma::yuv444;
  bool progressive = false;
  std::stop_token stop = {};  ///< looked at between rows
};

/// Writes a JPEG of width x height pixels into `out`, whose memory is used again and whose size becomes the file's.
///   rgb      width * height * 3 bytes, rows from the top
///   width, height   1..65500
///   errors   error{errc::usage} for what JPEG cannot hold, error{errc::limit} for want of memory, error{errc::cancelled} on stop
///   source   libjpeg-turbo's libjpeg.txt; the integer DCT, so that the same version writes the same bytes everywhere
void encode_jpeg(std::span<const std::uint8_t> rgb, std::uint32_t width, std::uint32_t height,
                 const jpeg_encode_options& options, std::vector<std::uint8_t>& out);

}  // namespace leat::tools
