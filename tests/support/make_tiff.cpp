#include "tests/support/make_tiff.hpp"

#include <tiffio.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace leat::testing {
namespace {

struct written_file {
  std::vector<std::byte> bytes;
  std::size_t at = 0;
};

tmsize_t read_back(thandle_t of, void* to, tmsize_t bytes) {
  auto& file = *static_cast<written_file*>(of);
  const std::size_t some =
      std::min(static_cast<std::size_t>(bytes), file.bytes.size() - std::min(file.at, file.bytes.size()));
  std::memcpy(to, file.bytes.data() + file.at, some);
  file.at += some;
  return static_cast<tmsize_t>(some);
}
tmsize_t write_on(thandle_t of, void* from, tmsize_t bytes) {
  auto& file = *static_cast<written_file*>(of);
  const auto count = static_cast<std::size_t>(bytes);
  if (file.bytes.size() < file.at + count) file.bytes.resize(file.at + count);
  std::memcpy(file.bytes.data() + file.at, from, count);
  file.at += count;
  return bytes;
}
toff_t seek_to(thandle_t of, toff_t offset, int from) {
  auto& file = *static_cast<written_file*>(of);
  file.at = static_cast<std::size_t>(offset) + (from == SEEK_SET ? 0 : from == SEEK_CUR ? file.at : file.bytes.size());
  return file.at;
}
int close_file(thandle_t) { return 0; }
toff_t size_of(thandle_t of) { return static_cast<written_file*>(of)->bytes.size(); }

void put_number(std::byte* to, double number, const tiff_options& how) {
  const auto put = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  if (how.kind == 3) return put(static_cast<float>(number));
  const auto whole = static_cast<std::int64_t>(number);  // of both signs the same bits
  if (how.bits == 8) return put(static_cast<std::uint8_t>(whole));
  if (how.bits == 16) return put(static_cast<std::uint16_t>(whole));
  put(static_cast<std::uint32_t>(whole));
}

}  // namespace

std::vector<std::byte> make_tiff(int width, int height, int channels, std::span<const double> numbers,
                                 const tiff_options& how) {
  written_file file;
  const std::string mode = std::string("w") + (how.big_endian ? "b" : "l") + (how.big_tiff ? "8" : "4");
  TIFF* const tiff =
      TIFFClientOpen("made", mode.c_str(), &file, read_back, write_on, seek_to, close_file, size_of, nullptr, nullptr);
  if (tiff == nullptr) std::abort();
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, channels);
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, how.bits);
  TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, how.kind);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, how.compression);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, how.photometric);
  TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, how.planar ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG);
  if (how.predictor != 1) TIFFSetField(tiff, TIFFTAG_PREDICTOR, how.predictor);
  if (how.fill_order != 1) TIFFSetField(tiff, TIFFTAG_FILLORDER, how.fill_order);
  if (how.orientation != 0) TIFFSetField(tiff, TIFFTAG_ORIENTATION, how.orientation);
  const int colours = how.photometric == PHOTOMETRIC_RGB || how.photometric == PHOTOMETRIC_YCBCR ? 3 : 1;
  if (channels > colours) {
    std::vector<std::uint16_t> extra(static_cast<std::size_t>(channels - colours), EXTRASAMPLE_UNSPECIFIED);
    if (how.alpha) extra.back() = how.premultiplied ? EXTRASAMPLE_ASSOCALPHA : EXTRASAMPLE_UNASSALPHA;
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, static_cast<int>(extra.size()), extra.data());
  }
  if (how.photometric == PHOTOMETRIC_YCBCR) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    TIFFSetField(tiff, TIFFTAG_JPEGQUALITY, 95);
  }
  if (how.photometric == PHOTOMETRIC_PALETTE) {
    std::vector<std::uint16_t> red;
    std::vector<std::uint16_t> green;
    std::vector<std::uint16_t> blue;
    for (int i = 0; i < 1 << how.bits; ++i) {
      red.push_back(static_cast<std::uint16_t>(i * 257));
      green.push_back(static_cast<std::uint16_t>(65'535 - i * 257));
      blue.push_back(static_cast<std::uint16_t>(i * 3 * 256));
    }
    TIFFSetField(tiff, TIFFTAG_COLORMAP, red.data(), green.data(), blue.data());
  }
  const int block_width = how.tile != 0 ? how.tile : width;
  const int block_height = how.tile != 0 ? how.tile : how.rows;
  if (how.tile != 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, how.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, how.tile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, how.rows);
  }
  const int planes = how.planar ? channels : 1;
  const int inside = how.planar ? 1 : channels;  // channels of a block
  const auto sample_bytes = static_cast<std::size_t>(how.bits) / 8;
  std::vector<std::byte> block(static_cast<std::size_t>(block_width * block_height * inside) * sample_bytes);
  for (int plane = 0; plane < planes; ++plane) {
    for (int top = 0; top < height; top += block_height) {
      for (int left = 0; left < width; left += block_width) {
        std::fill(block.begin(), block.end(), std::byte{0});
        for (int y = top; y < std::min(top + block_height, height); ++y) {
          for (int x = left; x < std::min(left + block_width, width); ++x) {
            for (int c = 0; c < inside; ++c) {
              const int from = (y * width + x) * channels + plane + c;
              const int to = ((y - top) * block_width + (x - left)) * inside + c;
              put_number(block.data() + static_cast<std::size_t>(to) * sample_bytes,
                         numbers[static_cast<std::size_t>(from)], how);
            }
          }
        }
        const auto row = static_cast<std::uint32_t>(top);
        const auto of_plane = static_cast<std::uint16_t>(plane);
        const int rows = how.tile != 0 ? block_height : std::min(block_height, height - top);
        const auto bytes = static_cast<tmsize_t>(static_cast<std::size_t>(block_width * rows * inside) * sample_bytes);
        const tmsize_t done =
            how.tile != 0
                ? TIFFWriteEncodedTile(tiff, TIFFComputeTile(tiff, static_cast<std::uint32_t>(left), row, 0, of_plane),
                                       block.data(), bytes)
                : TIFFWriteEncodedStrip(tiff, TIFFComputeStrip(tiff, row, of_plane), block.data(), bytes);
        if (done < 0) std::abort();
      }
    }
  }
  TIFFClose(tiff);
  return file.bytes;
}

}  // namespace leat::testing
