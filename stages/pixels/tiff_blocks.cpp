#include "stages/pixels/tiff_blocks.hpp"

#include "base/text.hpp"

#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace leat::pixels {
namespace {

// libtiff's structs and tables of tags, and a codec's, from the sources of 4.5: LZW has 5,119 codes of 16 bytes twice, Deflate 64 KiB with
// libdeflate's. The test `takes_no_more_than_it_said` watches it.
constexpr std::size_t tiff_library_bytes = std::size_t{384} << 10;
// libjpeg's, beside the coefficients of a block.
constexpr std::size_t tiff_jpeg_bytes = std::size_t{512} << 10;
// Windows of Zstandard up to what level 19 has; larger ones are refused.
constexpr std::size_t tiff_zstd_window_max = std::size_t{8} << 20;

struct tiff_compression {
  int number;
  std::string_view name;
  bool is_read;
};
// TIFF 6.0, section 8, and tiff.h. What is not read may take any memory, or is of one bit.
constexpr std::array<tiff_compression, 16> tiff_compressions{{{COMPRESSION_NONE, "none", true},
                                                              {COMPRESSION_LZW, "LZW", true},
                                                              {COMPRESSION_JPEG, "JPEG", true},
                                                              {COMPRESSION_ADOBE_DEFLATE, "Deflate", true},
                                                              {COMPRESSION_DEFLATE, "Deflate", true},
                                                              {COMPRESSION_PACKBITS, "PackBits", true},
                                                              {COMPRESSION_ZSTD, "Zstandard", true},
                                                              {COMPRESSION_OJPEG, "old JPEG", false},
                                                              {COMPRESSION_LZMA, "LZMA", false},
                                                              {COMPRESSION_LERC, "LERC", false},
                                                              {COMPRESSION_WEBP, "WebP", false},
                                                              {COMPRESSION_JP2000, "JPEG 2000", false},
                                                              {COMPRESSION_CCITTRLE, "CCITT", false},
                                                              {COMPRESSION_CCITTFAX3, "CCITT", false},
                                                              {COMPRESSION_CCITTFAX4, "CCITT", false},
                                                              {COMPRESSION_JXL, "JPEG XL", false}}};

// Where libtiff's calls lead: plain data, since they come through its C frames.
struct tiff_file {
  std::span<const std::byte> encoded;
  std::size_t at = 0;
  std::array<char, 192> message{};
};

tmsize_t read_tiff(thandle_t of, void* to, tmsize_t bytes) {
  auto& file = *static_cast<tiff_file*>(of);
  if (bytes <= 0 || file.at >= file.encoded.size()) return 0;
  const std::size_t some = std::min(static_cast<std::size_t>(bytes), file.encoded.size() - file.at);
  std::memcpy(to, file.encoded.data() + file.at, some);
  file.at += some;
  return static_cast<tmsize_t>(some);
}
tmsize_t write_nothing(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek_tiff(thandle_t of, toff_t offset, int from) {
  auto& file = *static_cast<tiff_file*>(of);
  const std::uint64_t base = from == SEEK_SET ? 0 : from == SEEK_CUR ? file.at : file.encoded.size();
  file.at = static_cast<std::size_t>(base + offset);
  return file.at;
}
int close_nothing(thandle_t) { return 0; }
toff_t tiff_size(thandle_t of) { return static_cast<tiff_file*>(of)->encoded.size(); }
// What is not compressed is then looked at where it lies.
int map_whole(thandle_t of, void** base, toff_t* bytes) {
  const auto& file = *static_cast<tiff_file*>(of);
  *base = const_cast<std::byte*>(file.encoded.data());  // libtiff writes into no mapping
  *bytes = file.encoded.size();
  return 1;
}
void unmap_nothing(thandle_t, void*, toff_t) {}

// The first error counts. 1: nobody else is told, so nothing is printed.
int keep_error(TIFF*, void* of, const char*, const char* format, va_list arguments) {
  auto& file = *static_cast<tiff_file*>(of);
  if (file.message[0] == '\0')
    static_cast<void>(std::vsnprintf(file.message.data(), file.message.size(), format, arguments));
  return 1;
}
int keep_no_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

std::uint64_t little_number(byte_span from, std::size_t at, std::size_t bytes) noexcept {
  std::uint64_t made = 0;
  for (std::size_t i = 0; i < bytes; ++i) made |= std::uint64_t{byte_at(from, at + i)} << 8 * i;
  return made;
}

// Of all frames of a strip, as far as they are whole. False for what is no frame as well: an old version's has other windows.
//   source   RFC 8878, sections 3.1.1 and 3.1.2
bool has_small_windows(byte_span strip) noexcept {
  constexpr std::array<std::size_t, 4> dictionary_bytes{0, 1, 2, 4};
  for (std::size_t at = 0; strip.size() - at >= 4;) {
    const std::uint64_t magic = little_number(strip, at, 4);
    at += 4;
    if ((magic & ~std::uint64_t{15}) == 0x184D2A50) {  // skipped
      if (strip.size() - at < 4) return true;
      const std::uint64_t bytes = little_number(strip, at, 4);
      at += 4;
      if (bytes > strip.size() - at) return true;
      at += static_cast<std::size_t>(bytes);
      continue;
    }
    if (magic != 0xFD2FB528) return false;
    const std::uint32_t descriptor = at < strip.size() ? byte_at(strip, at) : 0;
    const bool is_single = (descriptor & 0x20U) != 0;  // its window is its content
    const std::size_t content_bytes = descriptor >> 6 == 0 ? (is_single ? 1 : 0) : std::size_t{1} << (descriptor >> 6);
    const std::size_t content_at = at + (is_single ? 1 : 2) + dictionary_bytes[descriptor & 3U];
    if (strip.size() < content_at + content_bytes) return true;
    std::uint64_t window = little_number(strip, content_at, content_bytes);
    if (!is_single) {
      const std::uint32_t packed = byte_at(strip, at + 1);
      const std::uint64_t base = std::uint64_t{1} << (10 + (packed >> 3));
      window = base + base / 8 * (packed & 7U);
    }
    if (window > tiff_zstd_window_max) return false;
    at = content_at + content_bytes;
    for (bool is_last = false; !is_last;) {
      if (strip.size() - at < 3) return true;
      const std::uint64_t block = little_number(strip, at, 3);
      is_last = (block & 1U) != 0;
      const std::uint64_t bytes = (block >> 1 & 3U) == 1 ? 1 : block >> 3;  // 1: one byte, repeated
      if (bytes > strip.size() - at - 3) return true;
      at += 3 + static_cast<std::size_t>(bytes);
    }
    const std::size_t checksum = (descriptor & 4U) != 0 ? 4 : 0;
    if (strip.size() - at < checksum) return true;
    at += checksum;
  }
  return true;
}

}  // namespace

struct tiff_blocks::state {
  explicit state(scratch_arena& of) : arena(of) {}
  ~state() { close(); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  void close() noexcept {
    if (tiff != nullptr) TIFFClose(tiff);
    tiff = nullptr;
  }

  [[nodiscard]] stages::failure failure(std::string_view otherwise) const {
    const std::string_view said = file.message.data();
    return stages::corrupt(str_cat("TIFF: ", said.empty() ? otherwise : said));
  }
  [[nodiscard]] bool by_lines() const noexcept { return !page.tiled && !page.planar; }
  [[nodiscard]] std::size_t pixel_bytes() const noexcept {
    return static_cast<std::size_t>(page.samples) * page.sample_bytes();
  }
  // What libtiff allocates.
  [[nodiscard]] std::size_t library_bytes() const noexcept {
    std::size_t bytes = tiff_library_bytes + 2 * page.tag_bytes + 32 * page.blocks;
    // Predictors and codecs that have a line or a block of their own; what is compressed lies in the mapping.
    if (page.compression != COMPRESSION_NONE) bytes += static_cast<std::size_t>(page.block_width) * pixel_bytes();
    if (page.compression == COMPRESSION_ZSTD) bytes += tiff_zstd_window_max + (std::size_t{256} << 10);
    // A progressive one keeps its coefficients, of 16 bits.
    if (page.compression == COMPRESSION_JPEG) bytes += tiff_jpeg_bytes + 4 * page.block_bytes();
    return bytes;
  }
  // Blocks beside one another that the region touches.
  [[nodiscard]] std::size_t blocks_across(const rectangle& of) const noexcept {
    return static_cast<std::size_t>((of.x + of.width - 1) / page.block_width - of.x / page.block_width) + 1;
  }
  [[nodiscard]] std::size_t planes() const noexcept { return page.planar ? static_cast<std::size_t>(page.samples) : 1; }
  [[nodiscard]] std::size_t line_bytes() const noexcept {
    return static_cast<std::size_t>(by_lines() ? page.width : region.width) * pixel_bytes();
  }

  outcome<void> start(const rectangle& of);
  outcome<const std::byte*> read_line(int y);
  outcome<void> read_blocks(int y);
  outcome<const std::byte*> gather(int y) noexcept;
  [[nodiscard]] bool has_large_window() const;

  scratch_arena& arena;
  tiff_file file;
  tiff_layout page;
  const std::atomic<bool>* stop = nullptr;
  TIFF* tiff = nullptr;
  rectangle region;
  int next = 0;          // of the region's lines
  int libtiff_line = 0;  // by_lines(): what it gives next
  int held_from = -1;    // the line of the picture with which the row of blocks begins that is held
  std::byte* line = nullptr;
  std::byte* blocks = nullptr;  // plane after plane, each from left to right
};

// In strips, lines come one after the other from the strip's first on.
outcome<const std::byte*> tiff_blocks::state::read_line(int y) {
  const int strip_begin = y / page.block_height * page.block_height;
  if (libtiff_line > y || libtiff_line < strip_begin) libtiff_line = strip_begin;
  for (; libtiff_line <= y; ++libtiff_line) {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) return stages::cancelled();
    if (TIFFReadScanline(tiff, line, static_cast<std::uint32_t>(libtiff_line), 0) != 1) {
      return failure("a line that cannot be decoded");
    }
  }
  return static_cast<const std::byte*>(line + static_cast<std::size_t>(region.x) * pixel_bytes());
}

outcome<void> tiff_blocks::state::read_blocks(int y) {
  const std::size_t block_bytes = page.block_bytes();
  const int first_x = region.x / page.block_width * page.block_width;
  const int top = y / page.block_height * page.block_height;
  // The last strip may be shorter; tiles never are.
  const int rows = page.tiled ? page.block_height : std::min(page.block_height, page.height - top);
  const std::size_t least = block_bytes / static_cast<std::size_t>(page.block_height) * static_cast<std::size_t>(rows);
  std::byte* to = blocks;
  for (std::size_t plane = 0; plane < planes(); ++plane) {
    for (int x = first_x; x < region.x + region.width; x += page.block_width, to += block_bytes) {
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return stages::cancelled();
      const auto sample = static_cast<std::uint16_t>(plane);
      const auto row = static_cast<std::uint32_t>(top);
      const tmsize_t made =
          page.tiled
              ? TIFFReadEncodedTile(tiff, TIFFComputeTile(tiff, static_cast<std::uint32_t>(x), row, 0, sample), to,
                                    static_cast<tmsize_t>(block_bytes))
              : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, row, sample), to, static_cast<tmsize_t>(least));
      if (made < static_cast<tmsize_t>(least)) return failure("a block that cannot be decoded");
    }
  }
  held_from = top;
  return {};
}

// A line out of the blocks that are held.
outcome<const std::byte*> tiff_blocks::state::gather(int y) noexcept {
  const std::size_t across = blocks_across(region);
  const std::size_t block_bytes = page.block_bytes();
  const std::size_t unit = page.planar ? page.sample_bytes() : pixel_bytes();
  const std::size_t stride = static_cast<std::size_t>(page.block_width) * unit;
  const int first_x = region.x / page.block_width * page.block_width;
  for (std::size_t plane = 0; plane < planes(); ++plane) {
    for (std::size_t block = 0; block < across; ++block) {
      const int left = first_x + static_cast<int>(block) * page.block_width;
      const int begin = std::max(left, region.x);
      const int end = std::min(left + page.block_width, region.x + region.width);
      const std::byte* from = blocks + (plane * across + block) * block_bytes +
                              static_cast<std::size_t>(y - held_from) * stride +
                              static_cast<std::size_t>(begin - left) * unit;
      std::byte* to = line + static_cast<std::size_t>(begin - region.x) * pixel_bytes() + plane * unit;
      if (!page.planar) {
        std::memcpy(to, from, static_cast<std::size_t>(end - begin) * unit);
        continue;
      }
      for (int x = begin; x < end; ++x, from += unit, to += pixel_bytes()) std::memcpy(to, from, unit);
    }
  }
  return static_cast<const std::byte*>(line);
}

// Of any block that is there: a window is allocated whole, however little is in it.
bool tiff_blocks::state::has_large_window() const {
  const std::uint32_t count = page.tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t at = TIFFGetStrileOffset(tiff, i);
    const std::uint64_t bytes = TIFFGetStrileByteCount(tiff, i);
    if (at >= file.encoded.size()) continue;
    const std::uint64_t there = std::min<std::uint64_t>(bytes, file.encoded.size() - at);
    if (!has_small_windows(file.encoded.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(there))))
      return true;
  }
  return false;
}

tiff_blocks::tiff_blocks(scratch_arena& arena) : state_(std::make_unique<state>(arena)) {}
tiff_blocks::~tiff_blocks() = default;

outcome<tiff_layout> tiff_blocks::open(std::span<const std::byte> encoded, const std::atomic<bool>* stop) {
  state& s = *state_;
  s.close();
  s.file = {.encoded = encoded};
  s.stop = stop;
  outcome<tiff_layout> page = read_tiff_headers(encoded);
  if (!page) return page;
  const auto* const how = std::find_if(tiff_compressions.begin(), tiff_compressions.end(),
                                       [&](const tiff_compression& each) { return each.number == page->compression; });
  if (how == tiff_compressions.end() || !how->is_read) {
    return stages::unsupported(
        str_cat("a TIFF compressed by ",
                how == tiff_compressions.end() ? str_cat("method ", page->compression) : std::string(how->name),
                "; LZW, Deflate, Zstandard, PackBits and JPEG are read"));
  }
  if (page->bits != 8 && page->bits != 16 && page->bits != 32) {
    return stages::unsupported(
        str_cat("a TIFF with samples of ", page->bits, page->bits == 1 ? " bit" : " bits", "; 8, 16 and 32 are read"));
  }
  if (page->kind == sample_kind::real && page->bits != 32) {
    return stages::unsupported(str_cat("a TIFF with float samples of ", page->bits, " bits; 32 are read"));
  }
  // What libtiff 4.5 writes there it reads with the bytes of each number turned round, and other writers' files are otherwise.
  if (page->predictor == 3 && page->big_endian) {
    return stages::unsupported("a big-endian TIFF of floats with predictor 3, whose order of bytes is not certain");
  }
  if (page->compression == COMPRESSION_JPEG && page->bits != 8) {
    return stages::unsupported(str_cat("a TIFF of JPEG with ", page->bits, " bits"));
  }
  // What JPEG has as YCbCr libtiff gives as RGB.
  if (page->photometric == tiff_ycbcr && page->compression != COMPRESSION_JPEG) {
    return stages::unsupported("a TIFF of YCbCr without JPEG");
  }
  // It does not so where they lie apart.
  if (page->photometric == tiff_ycbcr && page->planar) {
    return stages::unsupported("a TIFF of YCbCr whose channels lie apart");
  }
  if (TIFFIsCODECConfigured(static_cast<std::uint16_t>(page->compression)) == 0) {
    return stages::unsupported(str_cat("a TIFF compressed by ", how->name, ", which this libtiff is built without"));
  }
  s.page = *page;
  return page;
}

std::size_t tiff_blocks::scratch_bytes(const rectangle& region) {
  state& s = *state_;
  s.region = region;
  std::size_t bytes = scratch_arena::rounded(s.library_bytes()) + scratch_arena::rounded(s.line_bytes());
  if (!s.by_lines()) bytes += scratch_arena::rounded(s.blocks_across(region) * s.planes() * s.page.block_bytes());
  return bytes;
}

outcome<void> tiff_blocks::start(const rectangle& region) {
  outcome<void> started = state_->start(region);
  if (!started) state_->close();
  return started;
}

outcome<void> tiff_blocks::state::start(const rectangle& of) {
  region = of;
  next = 0;
  libtiff_line = 0;
  held_from = -1;
  line = arena.take_array<std::byte>(line_bytes());
  blocks = by_lines() ? nullptr : arena.take_array<std::byte>(blocks_across(of) * planes() * page.block_bytes());
  if (line == nullptr || (blocks == nullptr && !by_lines()) || !arena.lend(library_bytes())) {
    return stages::unsupported("TIFF: out of scratch memory");
  }
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return stages::no_memory("TIFF: libtiff got no memory");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(library_bytes()));
  TIFFOpenOptionsSetErrorHandlerExtR(options, keep_error, &file);
  TIFFOpenOptionsSetWarningHandlerExtR(options, keep_no_warning, &file);
  // M: mapped. c: strips stay as they are. O: the places of blocks are read as they are asked for.
  tiff = TIFFClientOpenExt("", "rMcO", &file, read_tiff, write_nothing, seek_tiff, close_nothing, tiff_size, map_whole,
                           unmap_nothing, options);
  TIFFOpenOptionsFree(options);
  if (tiff == nullptr) return failure("a directory that cannot be read");
  if (page.compression == COMPRESSION_JPEG && page.photometric == tiff_ycbcr) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  }
  // It has read the directory by itself: what memory was taken for has to be what it says.
  const std::size_t given = by_lines()   ? static_cast<std::size_t>(TIFFScanlineSize(tiff))
                            : page.tiled ? static_cast<std::size_t>(TIFFTileSize(tiff))
                                         : static_cast<std::size_t>(TIFFStripSize(tiff));
  const std::size_t taken = by_lines() ? static_cast<std::size_t>(page.width) * pixel_bytes() : page.block_bytes();
  if (given != taken) return failure("a directory that contradicts itself");
  if (page.compression == COMPRESSION_ZSTD && has_large_window()) {
    return stages::unsupported("a TIFF of Zstandard with a window above 8 MiB, or with other frames than RFC 8878 has");
  }
  return {};
}

outcome<const std::byte*> tiff_blocks::read() {
  state& s = *state_;
  assert(s.next < s.region.height);
  const int y = s.region.y + s.next++;
  outcome<const std::byte*> made = [&]() -> outcome<const std::byte*> {
    if (s.by_lines()) return s.read_line(y);
    if (s.held_from < 0 || y >= s.held_from + s.page.block_height) {
      if (outcome<void> read = s.read_blocks(y); !read) return read.error();
    }
    return s.gather(y);
  }();
  // libtiff gives its memory back before the arena does.
  if (!made || s.next == s.region.height) s.close();
  return made;
}

void tiff_blocks::stop_reading() noexcept { state_->close(); }

tiff_blocks::colours tiff_blocks::palette() const noexcept {
  std::uint16_t* all[3] = {};
  const bool has_one =
      state_->tiff != nullptr && TIFFGetField(state_->tiff, TIFFTAG_COLORMAP, &all[0], &all[1], &all[2]) == 1;
  return has_one ? colours{all[0], all[1], all[2]} : colours{};
}

}  // namespace leat::pixels
