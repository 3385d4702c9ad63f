#include "stages/pixels/png_data.hpp"

#include "stages/pixels/byte_reading.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <type_traits>

namespace leat::pixels {
namespace {

using bytes_view = std::span<const std::byte>;

static_assert(std::is_trivially_destructible_v<png_data>);

constexpr std::uint32_t name_of(const char (&text)[5]) noexcept {
  std::uint32_t name = 0;
  for (int i = 0; i < 4; ++i) name = name << 8 | static_cast<unsigned char>(text[i]);
  return name;
}

// A chunk's length and name come before its content, the CRC of name and content after it.
constexpr std::size_t chunk_frame_bytes = 12;
constexpr std::size_t chunk_head_bytes = 8;
constexpr std::size_t signature_bytes = 8;

// Two bits for 258 bytes: the longest match of the shortest codes.
constexpr std::uint64_t expansion_max = 1032;

// How much is inflated behind the last line. A few writers have a line too many, which libpng and Pillow accept.
constexpr std::uint64_t bytes_behind_max = std::uint64_t{64} << 10;

// The first letter is upper case: a decoder that does not know the chunk cannot decode the picture.
bool is_critical(std::uint32_t name) noexcept { return (name >> 24 & 0x20) == 0; }

bool is_name(std::uint32_t name) noexcept {
  for (int shift = 0; shift < 32; shift += 8) {
    const std::uint32_t letter = (name >> shift & 0xFF) | 0x20;
    if (letter < 'a' || letter > 'z') return false;
  }
  return true;
}

std::string text_of_name(std::uint32_t name) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(name >> shift & 0xFF);
  return text;
}

bool is_whole(bytes_view encoded, std::size_t at, std::size_t length) noexcept {
  const auto* const name = reinterpret_cast<const Bytef*>(encoded.data() + at + 4);
  return crc32_z(0, name, 4 + length) == big32(encoded, at + 8 + length);
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return b != 0 && a > most / b ? most : a * b;
}

std::uint64_t bytes_of(std::uint64_t width, std::uint64_t height, std::uint64_t bits) noexcept {
  return width == 0 || height == 0 ? 0 : times((width * bits + 7) / 8 + 1, height);
}

// PNG section 8: the first pixel of each pass, and the distance of its pixels.
struct pass {
  unsigned x, y, dx, dy;
};
constexpr std::array<pass, 7> passes{
    {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}};

// The bytes of all lines, from the header chunk; 0 for an invalid one.
std::uint64_t line_bytes_of(bytes_view encoded) noexcept {
  constexpr std::size_t at = signature_bytes + 8;
  const std::uint64_t width = big32(encoded, at);
  const std::uint64_t height = big32(encoded, at + 4);
  const auto depth = std::to_integer<unsigned>(encoded[at + 8]);
  if (depth != 1 && depth != 2 && depth != 4 && depth != 8 && depth != 16) return 0;
  constexpr std::array<unsigned, 7> samples{1, 0, 3, 1, 2, 0, 4};
  const auto colours = std::to_integer<std::size_t>(encoded[at + 9]);
  const unsigned bits = colours < samples.size() ? samples[colours] * depth : 0;
  if (bits == 0) return 0;
  if (encoded[at + 12] == std::byte{0}) return bytes_of(width, height, bits);
  std::uint64_t sum = 0;
  for (const pass& each : passes) {
    const std::uint64_t columns = width > each.x ? (width - each.x + each.dx - 1) / each.dx : 0;
    const std::uint64_t rows = height > each.y ? (height - each.y + each.dy - 1) / each.dy : 0;
    const std::uint64_t more = bytes_of(columns, rows, bits);
    sum =
        sum > std::numeric_limits<std::uint64_t>::max() - more ? std::numeric_limits<std::uint64_t>::max() : sum + more;
  }
  return sum;
}

// The arena forgets everything at the end of the sample.
voidpf allocate(voidpf arena, uInt items, uInt bytes) {
  return static_cast<scratch_arena*>(arena)->take(std::size_t{items} * bytes);
}
void release(voidpf /*arena*/, voidpf /*memory*/) {}

}  // namespace

stages::outcome<void> png_data::open(bytes_view encoded, bool alpha, const std::atomic<bool>* stop) {
  encoded_ = encoded;
  palette_ = {};
  transparency_ = {};
  data_ = 0;
  cut_ = false;
  std::uint64_t data_bytes = 0;
  bool data_over = false;
  for (std::size_t at = signature_bytes;;) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return stages::cancelled();
    const std::size_t left = encoded.size() - at;
    if (left < chunk_head_bytes) {
      cut_ = true;
      break;
    }
    const std::size_t length = big32(encoded, at);
    const std::uint32_t name = big32(encoded, at + 4);
    const bool first = at == signature_bytes;
    if (first != (name == name_of("IHDR")) || (first && length != 13))
      return stages::corrupt("PNG: header chunks out of place");
    if (!is_name(name)) return stages::corrupt("PNG: a chunk with an impossible name");
    if (left < chunk_frame_bytes || length > left - chunk_frame_bytes) {
      if (name == name_of("IDAT") && !data_over) {
        // Of data only the chunk's CRC may be missing: the data has a checksum of its own.
        if (length > left - chunk_head_bytes) return stages::corrupt("PNG: premature end of file");
        if (data_ == 0) data_ = at;
        data_bytes += length;
      }
      cut_ = true;
      break;
    }
    const bool is_transparency = alpha && name == name_of("tRNS");
    if ((is_critical(name) || is_transparency) && !is_whole(encoded, at, length))
      return stages::corrupt("PNG: " + text_of_name(name) + ": CRC error");
    if (name == name_of("IEND")) break;
    if (name == name_of("IDAT")) {
      if (data_ == 0) data_ = at;
      if (!data_over) data_bytes += length;  // As in libpng, IDAT behind another chunk does not count.
    } else {
      data_over = data_ != 0;
      if (is_transparency && !data_over) transparency_ = encoded.subspan(at, chunk_frame_bytes + length);
      if (name == name_of("PLTE") && !data_over) {
        if (!palette_.empty()) return stages::corrupt("PNG: two palettes");
        palette_ = encoded.subspan(at, chunk_frame_bytes + length);
      } else if (is_critical(name) && !first && !data_over) {
        return stages::corrupt("PNG: " + text_of_name(name) + ": unhandled critical chunk");
      }
    }
    at += chunk_frame_bytes + length;
  }
  if (data_ == 0) return stages::corrupt(cut_ ? "PNG: premature end of file" : "PNG: no image data");
  constexpr std::byte indexed{3};
  if (encoded[signature_bytes + 8 + 9] != indexed)
    palette_ = {};  // A palette of another colour type is only a suggestion.
  bytes_ = line_bytes_of(encoded);
  if (bytes_ == 0) return stages::corrupt("PNG: invalid IHDR data");
  if (bytes_ > times(data_bytes, expansion_max)) {
    return stages::corrupt("PNG: " + std::string(cut_ ? "premature end of file, " : "") +
                           "too short for its picture: " + std::to_string(data_bytes) + " bytes of data cannot hold " +
                           std::to_string(bytes_) + " bytes of lines");
  }
  return {};
}

bool png_data::has_alpha_samples() const noexcept {
  constexpr std::byte alpha_bit{4};
  return (encoded_[signature_bytes + 8 + 9] & alpha_bit) != std::byte{0};
}

const char* png_data::start(scratch_arena& arena) noexcept {
  stream_ = {};
  stream_.zalloc = allocate;
  stream_.zfree = release;
  stream_.opaque = &arena;
  bytes_left_ = bytes_;
  ended_ = false;
  return inflateInit2(&stream_, MAX_WBITS) == Z_OK ? nullptr : "out of scratch memory";
}

// Chunks have been checked to lie inside of the file, but for the CRC of the last one of a file that ends early.
bool png_data::next_chunk() noexcept {
  while (stream_.avail_in == 0) {
    if (data_ > encoded_.size() || encoded_.size() - data_ < chunk_head_bytes) return false;
    if (big32(encoded_, data_ + 4) != name_of("IDAT")) return false;
    const std::size_t length = big32(encoded_, data_);
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(encoded_.data() + data_ + 8));
    stream_.avail_in = static_cast<uInt>(length);
    data_ += chunk_frame_bytes + length;
  }
  return true;
}

// Until the room is full or the data ends.
const char* png_data::inflate_some() noexcept {
  while (stream_.avail_out > 0 && !ended_) {
    if (!next_chunk()) return cut_ ? "premature end of file" : "IDAT: not enough image data";
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      ended_ = true;
    } else if (result != Z_OK && !(result == Z_BUF_ERROR && stream_.avail_in == 0)) {
      return stream_.msg != nullptr ? stream_.msg : "IDAT: damaged compressed data";
    }
  }
  return nullptr;
}

const char* png_data::read(std::byte* to, std::size_t bytes) noexcept {
  while (bytes > 0) {
    const std::size_t some = std::min<std::size_t>(bytes, std::size_t{1} << 30);
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(some);
    if (const char* const why = inflate_some()) return why;
    if (stream_.avail_out > 0) return "IDAT: not enough image data";
    to += some;
    bytes -= some;
    bytes_left_ -= some;
  }
  return nullptr;
}

const char* png_data::finish(std::span<std::byte> room) noexcept {
  for (std::uint64_t behind = 0; !ended_;) {
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(room.size());
    if (const char* const why = inflate_some()) return why;
    behind += room.size() - stream_.avail_out;
    if (behind > bytes_behind_max) return "IDAT: more than 64 KiB of data behind the last line";
  }
  return nullptr;
}

}  // namespace leat::pixels
