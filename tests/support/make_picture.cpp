#include "tests/support/make_picture.hpp"

#include "tests/support/exif_tiff.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

// clang-format off: jpeglib.h uses FILE and size_t and includes neither.
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace leat::testing {
namespace {

std::uint8_t clamped(double value) { return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L)); }

// What Adobe stores: inverted inks, 255 for none.
std::array<std::uint8_t, 4> inverted_cmyk(const std::uint8_t* rgb) {
  const int white = std::max({rgb[0], rgb[1], rgb[2]});
  std::array<std::uint8_t, 4> out{255, 255, 255, static_cast<std::uint8_t>(white)};
  for (std::size_t c = 0; c < 3 && white > 0; ++c) out[c] = clamped(255.0 * rgb[c] / white);
  return out;
}

}  // namespace

std::vector<std::byte> exif_tiff(int orientation, bool big_endian) {
  std::vector<std::byte> out;
  const auto put = [&](std::uint32_t value, int size) {
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (big_endian ? size - 1 - i : i);
      out.push_back(static_cast<std::byte>(value >> shift & 0xFF));
    }
  };
  put(big_endian ? 0x4D4D : 0x4949, 2);
  put(42, 2);
  put(8, 4);
  put(2, 2);
  put(0x010F, 2), put(2, 2), put(4, 4), put(0, 4);  // another tag before it
  put(0x0112, 2), put(3, 2), put(1, 4), put(static_cast<std::uint32_t>(orientation), 2), put(0, 2);
  put(0, 4);
  return out;
}

rgb_picture make_texture(std::uint64_t seed, int width, int height) {
  std::mt19937_64 random(seed);
  // As std::uniform_real_distribution draws them in libstdc++, which takes a logarithm for each.
  const double below_one = std::nextafter(1.0, 0.0);
  const auto uniform = [&](double from, double to) {
    return std::min(static_cast<double>(random()) * 0x1p-64, below_one) * (to - from) + from;
  };
  struct wave {
    double x, y, phase, size;
  };
  std::array<std::array<wave, 5>, 3> waves{};
  for (auto& channel : waves) {
    double frequency = 0.02;
    for (wave& w : channel) {
      w = {uniform(-frequency, frequency), uniform(-frequency, frequency), uniform(0, 6.3), uniform(10, 50)};
      frequency *= 2.5;
    }
  }
  const double edge_x = uniform(0.1, 0.9) * width;
  const double edge_y = uniform(0.1, 0.9) * height;
  const double noise = uniform(0, 12);
  rgb_picture out{width, height, {}};
  out.pixels.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double step = (x > edge_x ? 35 : -35) * (y > edge_y ? 1 : -1);
      for (const auto& channel : waves) {
        double value = 127 + step + uniform(-noise, noise);
        for (const wave& w : channel) value += w.size * std::sin(w.x * x + w.y * y + w.phase);
        out.pixels.push_back(clamped(value));
      }
    }
  }
  return out;
}

rgb_picture make_noise(std::uint64_t seed, int width, int height) {
  std::mt19937_64 random(seed);
  rgb_picture noise{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height) * 3)};
  for (std::uint8_t& each : noise.pixels) each = static_cast<std::uint8_t>(random());
  return noise;
}

rgb_picture crop(const rgb_picture& from, int x, int y, int width, int height) {
  if (x < 0 || y < 0 || x + width > from.width || y + height > from.height) throw std::out_of_range("crop()");
  rgb_picture out{width, height, {}};
  for (int line = 0; line < height; ++line) {
    out.pixels.insert(out.pixels.end(), from.at(x, y + line),
                      from.at(x, y + line) + std::size_t{3} * static_cast<unsigned>(width));
  }
  return out;
}

rgb_picture turn_upright(const rgb_picture& stored, int exif) {
  // The tag names what the stored picture's first row and first column are in the upright one.
  const bool swapped = exif >= 5;
  rgb_picture out{swapped ? stored.height : stored.width, swapped ? stored.width : stored.height, {}};
  out.pixels.resize(stored.pixels.size());
  const int right = out.width - 1;
  const int bottom = out.height - 1;
  for (int row = 0; row < stored.height; ++row) {
    for (int column = 0; column < stored.width; ++column) {
      int x = 0;
      int y = 0;
      switch (exif) {
        case 1:
          x = column, y = row;
          break;  // row 0: top, column 0: left
        case 2:
          x = right - column, y = row;
          break;  // top, right
        case 3:
          x = right - column, y = bottom - row;
          break;  // bottom, right
        case 4:
          x = column, y = bottom - row;
          break;  // bottom, left
        case 5:
          x = row, y = column;
          break;  // row 0: left, column 0: top
        case 6:
          x = right - row, y = column;
          break;  // right, top
        case 7:
          x = right - row, y = bottom - column;
          break;  // right, bottom
        case 8:
          x = row, y = bottom - column;
          break;  // left, bottom
        default:
          throw std::invalid_argument("orientation " + std::to_string(exif));
      }
      std::copy_n(stored.at(column, row), 3, out.at(x, y));
    }
  }
  return out;
}

std::vector<std::byte> make_jpeg(const rgb_picture& picture, const jpeg_options& options) {
  jpeg_compress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);  // An error ends the test program with libjpeg's message.
  jpeg_create_compress(&c);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&c, &memory, &size);
  c.image_width = static_cast<JDIMENSION>(picture.width);
  c.image_height = static_cast<JDIMENSION>(picture.height);
  const bool inks = options.colours == jpeg_colours::cmyk || options.colours == jpeg_colours::ycck;
  c.input_components = inks ? 4 : 3;
  c.in_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&c);
  switch (options.colours) {
    case jpeg_colours::ycbcr:
      break;
    case jpeg_colours::rgb:
      jpeg_set_colorspace(&c, JCS_RGB);
      break;
    case jpeg_colours::grey:
      jpeg_set_colorspace(&c, JCS_GRAYSCALE);
      break;
    case jpeg_colours::cmyk:
      jpeg_set_colorspace(&c, JCS_CMYK);
      break;
    case jpeg_colours::ycck:
      jpeg_set_colorspace(&c, JCS_YCCK);
      break;
  }
  jpeg_set_quality(&c, options.quality, TRUE);
  c.comp_info[0].h_samp_factor = options.h;
  c.comp_info[0].v_samp_factor = options.v;
  if (options.colours == jpeg_colours::ycck) {
    c.comp_info[3].h_samp_factor = options.h;
    c.comp_info[3].v_samp_factor = options.v;
  }
  c.restart_interval = options.restart_interval;
  c.optimize_coding = options.optimise ? TRUE : FALSE;
  c.arith_code = options.arithmetic ? TRUE : FALSE;
  if (options.progressive) jpeg_simple_progression(&c);
  std::array<jpeg_scan_info, 4> scans{};
  if (options.separate_scans) {
    for (std::size_t i = 0; i < scans.size(); ++i) {
      scans[i].comps_in_scan = 1;
      scans[i].component_index[0] = static_cast<int>(i);
      scans[i].Se = 63;
    }
    c.scan_info = scans.data();
    c.num_scans = c.num_components;
  }
  std::vector<jpeg_scan_info> bands;
  if (options.band_scans > 0) {
    jpeg_scan_info first{};
    first.comps_in_scan = c.num_components;
    for (int i = 0; i < c.num_components; ++i) first.component_index[i] = i;
    bands.push_back(first);
    for (int from = 1; from < DCTSIZE2; from += options.band_scans) {
      for (int i = 0; i < c.num_components; ++i) {
        jpeg_scan_info band{};
        band.comps_in_scan = 1;
        band.component_index[0] = i;
        band.Ss = from;
        band.Se = std::min(from + options.band_scans, DCTSIZE2) - 1;
        bands.push_back(band);
      }
    }
    c.scan_info = bands.data();
    c.num_scans = static_cast<int>(bands.size());
  }
  jpeg_start_compress(&c, TRUE);
  if (options.orientation != 0) {
    std::vector<std::byte> segment;
    for (const char letter : {'E', 'x', 'i', 'f', '\0', '\0'}) segment.push_back(static_cast<std::byte>(letter));
    const std::vector<std::byte> tiff = exif_tiff(options.orientation, options.orientation_big_endian);
    segment.insert(segment.end(), tiff.begin(), tiff.end());
    jpeg_write_marker(&c, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(segment.data()),
                      static_cast<unsigned>(segment.size()));
  }
  std::vector<std::uint8_t> line;
  while (c.next_scanline < c.image_height) {
    const std::uint8_t* in = picture.at(0, static_cast<int>(c.next_scanline));
    line.clear();
    for (int x = 0; x < picture.width; ++x, in += 3) {
      if (inks) {
        const auto ink = inverted_cmyk(in);
        line.insert(line.end(), ink.begin(), ink.end());
      } else {
        line.insert(line.end(), in, in + 3);
      }
    }
    JSAMPROW row = line.data();
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  const auto* const begin = reinterpret_cast<const std::byte*>(memory);
  std::vector<std::byte> out(begin, begin + size);
  std::free(memory);
  return out;
}

rgb_picture decode_whole_jpeg(const std::vector<std::byte>& encoded, int decimation) {
  jpeg_decompress_struct c{};
  jpeg_error_mgr errors{};
  c.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&c);
  jpeg_mem_src(&c, reinterpret_cast<const unsigned char*>(encoded.data()), static_cast<unsigned long>(encoded.size()));
  jpeg_read_header(&c, TRUE);
  c.scale_num = 1;
  c.scale_denom = static_cast<unsigned>(decimation);
  c.do_block_smoothing = FALSE;
  c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&c);
  rgb_picture out{static_cast<int>(c.output_width), static_cast<int>(c.output_height), {}};
  std::vector<std::uint8_t> line(c.output_width * static_cast<std::size_t>(c.output_components));
  while (c.output_scanline < c.output_height) {
    JSAMPROW row = line.data();
    jpeg_read_scanlines(&c, &row, 1);
    if (c.output_components == 3) {
      out.pixels.insert(out.pixels.end(), line.begin(), line.end());
      continue;
    }
    for (std::size_t x = 0; x < c.output_width; ++x) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        // Inverted inks: what is left of white after both have taken their share, the share rounded to nearest.
        const int white = line[4 * x + 3];
        const double share = (255 - line[4 * x + channel]) * white / 255.0;
        out.pixels.push_back(clamped(white - std::floor(share + 0.5)));
      }
    }
  }
  jpeg_finish_decompress(&c);
  jpeg_destroy_decompress(&c);
  return out;
}

namespace {

void write_to(std::vector<std::byte>& out, png_structp png) {
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, png_size_t size) {
        auto* const to = static_cast<std::vector<std::byte>*>(png_get_io_ptr(p));
        const auto* const begin = reinterpret_cast<const std::byte*>(data);
        to->insert(to->end(), begin, begin + size);
      },
      [](png_structp) {});
}

}  // namespace

std::vector<std::byte> make_png(const rgb_picture& picture, const png_options& options, rgb_picture& seen) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::vector<std::byte> out;
  if (setjmp(png_jmpbuf(png)) != 0) std::abort();
  write_to(out, png);

  int type = PNG_COLOR_TYPE_RGB;
  std::size_t channels = 3;
  switch (options.colours) {
    case png_colours::rgb:
      break;
    case png_colours::rgba:
      type = PNG_COLOR_TYPE_RGB_ALPHA, channels = 4;
      break;
    case png_colours::grey:
      type = PNG_COLOR_TYPE_GRAY, channels = 1;
      break;
    case png_colours::grey_alpha:
      type = PNG_COLOR_TYPE_GRAY_ALPHA, channels = 2;
      break;
    case png_colours::palette:
      type = PNG_COLOR_TYPE_PALETTE, channels = 1;
      break;
  }
  png_set_IHDR(png, info, static_cast<png_uint_32>(picture.width), static_cast<png_uint_32>(picture.height),
               options.depth, type, options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);

  if (options.filter >= 0) png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE << options.filter);

  const int levels = 1 << std::min(options.depth, 8);
  std::array<png_color, 256> palette{};
  for (std::size_t i = 0; i < palette.size(); ++i) {
    palette[i] = {static_cast<png_byte>(i * 7), static_cast<png_byte>(255 - i), static_cast<png_byte>(i * i)};
  }
  if (options.colours == png_colours::palette) png_set_PLTE(png, info, palette.data(), levels);
  if (options.transparency) {
    std::array<png_byte, 2> alpha{0, 128};
    png_color_16 key{};
    if (options.colours == png_colours::palette) {
      png_set_tRNS(png, info, alpha.data(), 2, nullptr);
    } else {
      png_set_tRNS(png, info, nullptr, 0, &key);
    }
  }
  if (options.orientation != 0) {
    std::vector<std::byte> tiff = exif_tiff(options.orientation, true);
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(tiff.size()), reinterpret_cast<png_bytep>(tiff.data()));
  }

  // Samples as they are stored, one byte or two each, and what they mean as 8 bits.
  const auto width = static_cast<std::size_t>(picture.width);
  const std::size_t sample_bytes = options.depth == 16 ? 2 : 1;
  std::vector<std::vector<png_byte>> lines;
  seen = {picture.width, picture.height, {}};
  for (int y = 0; y < picture.height; ++y) {
    std::vector<png_byte> line;
    for (int x = 0; x < picture.width; ++x) {
      const std::uint8_t* const rgb = picture.at(x, y);
      const auto put = [&](std::uint8_t value) {
        line.push_back(value);
        // The lower byte must not matter.
        if (sample_bytes == 2) line.push_back(static_cast<png_byte>(x * 37 + y * 11));
      };
      const int level = rgb[1] * levels / 256;
      switch (options.colours) {
        case png_colours::rgb:
        case png_colours::rgba:
          for (int c = 0; c < 3; ++c) put(rgb[c]);
          seen.pixels.insert(seen.pixels.end(), rgb, rgb + 3);
          break;
        case png_colours::grey:
        case png_colours::grey_alpha: {
          put(static_cast<png_byte>(level));
          const auto grey = static_cast<std::uint8_t>(level * 255 / (levels - 1));
          seen.pixels.insert(seen.pixels.end(), 3, grey);
          break;
        }
        case png_colours::palette: {
          put(static_cast<png_byte>(level));
          const png_color& colour = palette[static_cast<std::size_t>(level)];
          seen.pixels.insert(seen.pixels.end(), {colour.red, colour.green, colour.blue});
          break;
        }
      }
      if (channels == 2 || channels == 4) put(static_cast<std::uint8_t>(x + y));
    }
    line.resize(width * channels * sample_bytes);
    lines.push_back(std::move(line));
  }
  png_write_info(png, info);
  if (options.depth < 8) png_set_packing(png);
  std::vector<png_bytep> rows;
  for (auto& line : lines) rows.push_back(line.data());
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::vector<std::byte> make_mask_png(int width, int height, const std::vector<std::uint16_t>& numbers, int depth,
                                     bool palette, bool interlaced) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::vector<std::byte> out;
  if (setjmp(png_jmpbuf(png)) != 0) std::abort();
  write_to(out, png);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), depth,
               palette ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_GRAY,
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  std::array<png_color, 256> colours{};
  for (std::size_t i = 0; i < colours.size(); ++i) {
    colours[i] = {static_cast<png_byte>(255 - i), static_cast<png_byte>(i * 7), static_cast<png_byte>(i * i + 100)};
  }
  if (palette) png_set_PLTE(png, info, colours.data(), 1 << depth);
  png_write_info(png, info);
  if (depth < 8) png_set_packing(png);
  std::vector<std::vector<png_byte>> lines(static_cast<std::size_t>(height));
  std::size_t at = 0;
  for (std::vector<png_byte>& line : lines) {
    for (int x = 0; x < width; ++x, ++at) {
      if (depth == 16) line.push_back(static_cast<png_byte>(numbers[at] >> 8));
      line.push_back(static_cast<png_byte>(numbers[at] & 0xFF));
    }
  }
  std::vector<png_bytep> rows;
  for (std::vector<png_byte>& line : lines) rows.push_back(line.data());
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::vector<std::byte> make_png16(int width, int height, int channels, const std::vector<std::uint16_t>& numbers,
                                  bool interlaced) {
  constexpr int colours[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::vector<std::byte> out;
  if (setjmp(png_jmpbuf(png)) != 0) std::abort();
  write_to(out, png);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 16, colours[channels - 1],
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  std::vector<png_byte> bytes;
  for (const std::uint16_t number : numbers) {
    bytes.push_back(static_cast<png_byte>(number >> 8));
    bytes.push_back(static_cast<png_byte>(number & 0xFF));
  }
  std::vector<png_bytep> rows;
  const std::size_t line_bytes = static_cast<std::size_t>(width * channels) * 2;
  for (int y = 0; y < height; ++y) rows.push_back(bytes.data() + static_cast<std::size_t>(y) * line_bytes);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

}  // namespace leat::testing
