#include "stages/pixels/picture_format.hpp"

#include "stages/pixels/byte_reading.hpp"
#include "stages/pixels/photo_pack_layout.hpp"

#include <algorithm>
#include <array>

namespace leat::pixels {
namespace {

using namespace std::string_view_literals;

struct known_format {
  std::string_view name;
  std::string_view media_type;
};

constexpr std::array<known_format, format_count> known = {{
    {"unknown", "application/octet-stream"},
    {"JPEG", "image/jpeg"},
    {"PNG", "image/png"},
    {"WebP", "image/webp"},
    {"BMP", "image/bmp"},
    {"photo pack", "application/x-leat-photo-pack"},
    {"animated WebP", "image/webp"},
    {"GIF", "image/gif"},
    {"TIFF", "image/tiff"},
    {"PPM/PGM/PBM", "image/x-portable-anymap"},
    {"AVIF", "image/avif"},
    {"HEIC", "image/heic"},
    {"JPEG XL", "image/jxl"},
    {"JPEG 2000", "image/jp2"},
    {"SVG", "image/svg+xml"},
    {"ICO", "image/x-icon"},
    {"Photoshop", "image/vnd.adobe.photoshop"},
}};

format webp_of(byte_span encoded) noexcept {
  // VP8X, the chunk of features: the second bit of its flags is "animation".
  const bool animated = stands_at(encoded, 12, "VP8X"sv) && encoded.size() > 20 && (byte_at(encoded, 20) & 2U) != 0;
  return animated ? format::animated_webp : format::webp;
}

// ISO base media: the major brand, then the compatible ones; AVIF's often come after the general "mif1".
format iso_media_of(byte_span encoded) noexcept {
  const std::size_t end = std::min<std::size_t>({encoded.size(), big32(encoded, 0), format_bytes});
  format found = format::unknown;
  for (std::size_t at = 8; at + 4 <= end; at += 4) {
    if (at == 12) continue;  // the minor version
    if (stands_at(encoded, at, "avif"sv) || stands_at(encoded, at, "avis"sv)) return format::avif;
    for (const std::string_view brand :
         {"heic"sv, "heix"sv, "hevc"sv, "hevx"sv, "heim"sv, "heis"sv, "mif1"sv, "msf1"sv}) {
      if (stands_at(encoded, at, brand)) found = format::heic;
    }
  }
  return found;
}

// "P6", white space or a comment: the plain and the raw forms of PBM, PGM, PPM, PAM, and PFM.
bool is_netpbm(byte_span encoded) noexcept {
  if (encoded.size() < 3 || byte_at(encoded, 0) != 'P') return false;
  constexpr std::string_view kinds = "1234567Ff";
  constexpr std::string_view follow = " \t\r\n#";
  return kinds.find(static_cast<char>(byte_at(encoded, 1))) != std::string_view::npos &&
         follow.find(static_cast<char>(byte_at(encoded, 2))) != std::string_view::npos;
}

// A root element among the first bytes, behind a declaration, a comment or a document type.
bool is_svg(byte_span encoded) noexcept {
  const byte_span first = encoded.first(std::min(encoded.size(), format_bytes));
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  const std::size_t begin = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  return begin != std::string_view::npos && text[begin] == '<' && text.find("<svg") != std::string_view::npos;
}

// "BM" could begin any text: a size of the second header that is in use stands behind it.
bool is_bmp(byte_span encoded) noexcept {
  if (!stands_at(encoded, 0, "BM"sv)) return false;
  if (encoded.size() < 18) return true;
  const std::uint32_t header = little32(encoded, 14);
  return header >= 12 && header <= 1024;
}

std::string magic_of(byte_span encoded) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : encoded.first(std::min<std::size_t>(encoded.size(), 8))) {
    if (!text.empty()) text += ' ';
    const auto value = std::to_integer<unsigned>(b);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

}  // namespace

format format_of(byte_span encoded) noexcept {
  // SOI alone is enough for us as it is for libjpeg, which allows garbage before the next marker.
  if (stands_at(encoded, 0, "\xFF\xD8"sv)) return format::jpeg;
  if (stands_at(encoded, 0, "\x89PNG\r\n\x1A\n"sv)) return format::png;
  if (stands_at(encoded, 0, "RIFF"sv) && stands_at(encoded, 8, "WEBP"sv)) return webp_of(encoded);
  if (is_bmp(encoded)) return format::bmp;
  if (begins_as_photo_pack(encoded)) return format::photo_pack;
  if (stands_at(encoded, 0, "GIF87a"sv) || stands_at(encoded, 0, "GIF89a"sv)) return format::gif;
  for (const std::string_view tiff : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (stands_at(encoded, 0, tiff)) return format::tiff;
  }
  if (stands_at(encoded, 4, "ftyp"sv)) return iso_media_of(encoded);
  if (stands_at(encoded, 0, "\xFF\x0A"sv) || stands_at(encoded, 0, "\0\0\0\x0CJXL \r\n\x87\n"sv))
    return format::jpeg_xl;
  if (stands_at(encoded, 0, "\xFF\x4F\xFF\x51"sv) || stands_at(encoded, 0, "\0\0\0\x0CjP  \r\n\x87\n"sv)) {
    return format::jpeg_2000;
  }
  if (stands_at(encoded, 0, "\0\0\1\0"sv)) return format::ico;
  if (stands_at(encoded, 0, "8BPS"sv)) return format::photoshop;
  if (is_netpbm(encoded)) return format::netpbm;
  if (is_svg(encoded)) return format::svg;
  return format::unknown;
}

std::string_view name(format what) noexcept { return known[static_cast<std::size_t>(what)].name; }

std::string_view media_type(format what) noexcept { return known[static_cast<std::size_t>(what)].media_type; }

std::string why_not_read(byte_span encoded) {
  const format what = format_of(encoded);
  std::string text = "unsupported format: ";
  text +=
      what == format::unknown ? "none that is known (begins with " + magic_of(encoded) + ")" : std::string(name(what));
  if (what == format::tiff) return text + ", which this leat is built without (LEAT_TIFF): convert it";
  return text + (reads_tiff() ? "; JPEG, PNG, WebP, BMP, GIF and TIFF are read: convert it"
                              : "; JPEG, PNG, WebP, BMP and GIF are read: convert it");
}

}  // namespace leat::pixels
