#include "tests/support/make_webp.hpp"

#include "tests/support/exif_tiff.hpp"

#include <webp/decode.h>
#include <webp/encode.h>

#include <stdexcept>
#include <string_view>

namespace leat::testing {
namespace {

using bytes = std::vector<std::byte>;

void put(bytes& out, std::uint32_t value, int size) {
  for (int i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFF));
}

void put(bytes& out, std::string_view text) {
  for (const char letter : text) out.push_back(static_cast<std::byte>(letter));
}

void put_chunk(bytes& out, std::string_view name, const bytes& content) {
  put(out, name);
  put(out, static_cast<std::uint32_t>(content.size()), 4);
  out.insert(out.end(), content.begin(), content.end());
  if (content.size() % 2 != 0) out.push_back(std::byte{0});
}

bytes with_riff_header(const bytes& chunks) {
  bytes out;
  put(out, "RIFF");
  put(out, static_cast<std::uint32_t>(chunks.size() + 4), 4);
  put(out, "WEBP");
  out.insert(out.end(), chunks.begin(), chunks.end());
  return out;
}

bytes encode(const rgb_picture& picture, const webp_options& options) {
  WebPConfig config;
  WebPPicture in;
  if (WebPConfigInit(&config) == 0 || WebPPictureInit(&in) == 0) throw std::runtime_error("libwebp: another version");
  config.lossless = options.lossless ? 1 : 0;
  config.quality = static_cast<float>(options.quality);
  config.method = options.method;
  config.exact = 1;
  in.width = picture.width;
  in.height = picture.height;
  in.use_argb = 1;
  std::vector<std::uint8_t> rgba;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const std::uint8_t* const rgb = picture.at(x, y);
      rgba.insert(rgba.end(), rgb, rgb + 3);
      rgba.push_back(options.alpha ? static_cast<std::uint8_t>(x * 7 + y * 3) : std::uint8_t{255});
    }
  }
  WebPMemoryWriter written;
  WebPMemoryWriterInit(&written);
  in.writer = WebPMemoryWrite;
  in.custom_ptr = &written;
  const bool done = WebPPictureImportRGBA(&in, rgba.data(), picture.width * 4) != 0 && WebPEncode(&config, &in) != 0;
  const auto* const begin = reinterpret_cast<const std::byte*>(written.mem);
  bytes out(begin, begin + written.size);
  WebPMemoryWriterClear(&written);
  WebPPictureFree(&in);
  if (!done) throw std::runtime_error("libwebp does not encode it");
  return out;
}

// Its features, the chunks that it has, and what is said of it behind them.
bytes extended(const bytes& simple, const rgb_picture& picture, const webp_options& options) {
  constexpr std::size_t header = 12;
  constexpr std::size_t features = 18;
  const std::string_view first(reinterpret_cast<const char*>(simple.data()) + header, 4);
  const std::size_t picture_at = first == "VP8X" ? header + features : header;
  bytes content;
  put(content, (options.alpha ? 0x10U : 0U) | (options.orientation != 0 ? 8U : 0U) | (options.xmp.empty() ? 0U : 4U),
      4);
  put(content, static_cast<std::uint32_t>(picture.width - 1), 3);
  put(content, static_cast<std::uint32_t>(picture.height - 1), 3);
  bytes chunks;
  put_chunk(chunks, "VP8X", content);
  chunks.insert(chunks.end(), simple.begin() + static_cast<std::ptrdiff_t>(picture_at), simple.end());
  if (options.orientation != 0) put_chunk(chunks, "EXIF", exif_tiff(options.orientation, false));
  if (!options.xmp.empty()) {
    bytes packet;
    put(packet, options.xmp);
    put_chunk(chunks, "XMP ", packet);
  }
  return with_riff_header(chunks);
}

}  // namespace

std::vector<std::byte> make_webp(const rgb_picture& picture, const webp_options& options, rgb_picture& seen) {
  bytes out = encode(picture, options);
  if (options.extended || options.orientation != 0 || !options.xmp.empty()) out = extended(out, picture, options);
  seen = decode_whole_webp(out);
  if (seen.pixels.empty()) throw std::runtime_error("libwebp does not decode what it has encoded");
  return out;
}

rgb_picture decode_whole_webp(const std::vector<std::byte>& encoded) {
  rgb_picture out;
  std::uint8_t* const pixels =
      WebPDecodeRGB(reinterpret_cast<const std::uint8_t*>(encoded.data()), encoded.size(), &out.width, &out.height);
  if (pixels == nullptr) return {};
  out.pixels.assign(pixels,
                    pixels + std::size_t{3} * static_cast<unsigned>(out.width) * static_cast<unsigned>(out.height));
  WebPFree(pixels);
  return out;
}

}  // namespace leat::testing
