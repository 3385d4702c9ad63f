#include "stages/pixels/tiff_headers.hpp"

#include "base/text.hpp"
#include "stages/pixels/format_headers.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace leat::pixels {
namespace {

// Of one sample, or of a whole page: a number beyond is damage.
constexpr std::uint64_t tiff_side_max = std::numeric_limits<int>::max();
constexpr std::uint64_t tiff_entries_max = 4096;  // libtiff's own
// No computer has the memory for a larger block; sums of bytes stay far from overflow.
constexpr std::uint64_t block_samples_max = std::uint64_t{1} << 40;
// All that tags hold, without the places of blocks: profiles and descriptions.
constexpr std::uint64_t tiff_tag_bytes_max = std::uint64_t{64} << 20;

enum tiff_tag : std::uint32_t {
  width_tag = 256,
  height_tag = 257,
  bits_tag = 258,
  compression_tag = 259,
  photometric_tag = 262,
  fill_order_tag = 266,
  strip_offsets_tag = 273,
  orientation_tag = 274,
  samples_tag = 277,
  strip_rows_tag = 278,
  strip_sizes_tag = 279,
  planar_tag = 284,
  predictor_tag = 317,
  tile_width_tag = 322,
  tile_height_tag = 323,
  tile_offsets_tag = 324,
  tile_sizes_tag = 325,
  extra_tag = 338,
  kind_tag = 339
};

// A value of a directory: `count` numbers of `type` that begin at `at`.
struct tiff_entry {
  std::uint32_t type = 0;
  std::uint64_t count = 0;
  std::uint64_t at = 0;
};

class tiff_directory {
 public:
  explicit tiff_directory(byte_span file) : file_(file) {}

  // What is wrong, or nothing.
  std::string open() {
    if (file_.size() < 8) return "ends in its header";
    little_ = byte_at(file_, 0) == 'I';
    big_ = number(2, 2) == 43;
    if (big_ && file_.size() < 16) return "ends in its header";
    const std::uint64_t at = big_ ? number(8, 8) : number(4, 4);
    const std::size_t count_bytes = big_ ? 8 : 2;
    if (at < 8 || at > file_.size() || file_.size() - at < count_bytes) return "its directory lies beyond its end";
    entries_ = number(static_cast<std::size_t>(at), count_bytes);
    begin_ = static_cast<std::size_t>(at) + count_bytes;
    if (entries_ > tiff_entries_max) return str_cat("a directory of ", entries_, " tags");
    if ((file_.size() - begin_) / entry_bytes() < entries_) return "ends in its directory";
    return {};
  }

  [[nodiscard]] bool is_little() const noexcept { return little_; }
  [[nodiscard]] std::size_t count() const noexcept { return static_cast<std::size_t>(entries_); }
  [[nodiscard]] std::uint32_t tag(std::size_t i) const noexcept {
    return static_cast<std::uint32_t>(number(begin_ + i * entry_bytes(), 2));
  }
  // None where the value lies beyond the file's end.
  [[nodiscard]] std::optional<tiff_entry> entry(std::size_t i) const noexcept {
    const std::size_t at = begin_ + i * entry_bytes();
    const std::size_t offset_bytes = big_ ? 8 : 4;
    tiff_entry found{static_cast<std::uint32_t>(number(at + 2, 2)), number(at + 4, offset_bytes),
                     at + 4 + offset_bytes};
    const std::uint64_t unit = bytes_of(found.type);
    if (unit == 0) return found;
    if (found.count > file_.size() / unit) return std::nullopt;
    if (found.count * unit > offset_bytes) found.at = number(static_cast<std::size_t>(found.at), offset_bytes);
    if (found.at > file_.size() || file_.size() - found.at < found.count * unit) return std::nullopt;
    return found;
  }
  // A whole number among those of a value; nothing of other types.
  [[nodiscard]] std::optional<std::uint64_t> value(const tiff_entry& of, std::uint64_t i) const noexcept {
    const bool is_whole = of.type == 1 || of.type == 3 || of.type == 4 || of.type == 16;
    if (!is_whole || i >= of.count) return std::nullopt;
    const std::size_t unit = bytes_of(of.type);
    return number(static_cast<std::size_t>(of.at + i * unit), unit);
  }
  // TIFF 6.0, section 2; 16 to 18 are BigTIFF's.
  [[nodiscard]] static std::size_t bytes_of(std::uint32_t type) noexcept {
    constexpr std::array<std::uint8_t, 19> sizes{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizes.size() ? sizes[type] : 0;
  }

 private:
  [[nodiscard]] std::size_t entry_bytes() const noexcept { return big_ ? 20 : 12; }
  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t bytes) const noexcept {
    std::uint64_t made = 0;
    for (std::size_t i = 0; i < bytes; ++i) made = made << 8 | byte_at(file_, little_ ? at + bytes - 1 - i : at + i);
    return made;
  }

  byte_span file_;
  bool little_ = true;
  bool big_ = false;
  std::uint64_t entries_ = 0;
  std::size_t begin_ = 0;
};

stages::failure tiff_damaged(std::string why) { return stages::corrupt("TIFF: " + std::move(why)); }

bool fits_a_side(std::uint64_t side) noexcept { return side >= 1 && side <= tiff_side_max; }

}  // namespace

outcome<tiff_layout> read_tiff_headers(byte_span encoded) {
  tiff_directory directory(encoded);
  if (std::string wrong = directory.open(); !wrong.empty()) return tiff_damaged(std::move(wrong));
  tiff_layout page;
  page.big_endian = !directory.is_little();
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  std::uint64_t strip_rows = tiff_side_max;
  std::uint64_t tile_width = 0;
  std::uint64_t tile_height = 0;
  std::uint64_t samples = 1;
  std::uint64_t bits = 1;
  std::uint64_t kind = 1;
  std::uint64_t extra = 0;
  std::uint64_t last_extra = 0;
  std::uint64_t tag_bytes = 0;
  std::uint64_t strips = 0;
  std::uint64_t tiles = 0;
  for (std::size_t i = 0; i < directory.count(); ++i) {
    const std::uint32_t tag = directory.tag(i);
    const std::optional<tiff_entry> entry = directory.entry(i);
    if (!entry) return tiff_damaged(str_cat("the value of tag ", tag, " lies beyond its end"));
    tag_bytes += entry->count * tiff_directory::bytes_of(entry->type);
    const auto to = [&](std::uint64_t& number) { number = directory.value(*entry, 0).value_or(0); };
    // Of each sample; they have to be the same.
    const auto of_samples = [&](std::uint64_t& number) {
      to(number);
      for (std::uint64_t s = 1; s < entry->count; ++s) {
        if (directory.value(*entry, s) != number) return false;
      }
      return true;
    };
    std::uint64_t small = 0;
    switch (tag) {
      case width_tag:
        to(width);
        break;
      case height_tag:
        to(height);
        break;
      case bits_tag:
        if (!of_samples(bits)) return stages::unsupported("a TIFF whose channels have different numbers of bits");
        break;
      case kind_tag:
        if (!of_samples(kind)) return stages::unsupported("a TIFF whose channels are of different kinds");
        break;
      case samples_tag:
        to(samples);
        break;
      case strip_rows_tag:
        to(strip_rows);
        break;
      case tile_width_tag:
        to(tile_width);
        break;
      case tile_height_tag:
        to(tile_height);
        break;
      case strip_offsets_tag:
        strips = entry->count;
        break;
      case tile_offsets_tag:
        tiles = entry->count;
        break;
      case extra_tag:
        extra = entry->count;
        last_extra = extra == 0 ? 0 : directory.value(*entry, extra - 1).value_or(0);
        break;
      case compression_tag:
        to(small);
        page.compression = static_cast<int>(std::min<std::uint64_t>(small, 65'535));
        break;
      case photometric_tag:
        to(small);
        page.photometric = static_cast<int>(std::min<std::uint64_t>(small, 65'535));
        break;
      case fill_order_tag:
        to(small);
        if (small == 2) return stages::unsupported("a TIFF with the bits of each byte turned round (FillOrder 2)");
        break;
      case planar_tag:
        to(small);
        page.planar = small == 2;
        break;
      case predictor_tag:
        to(small);
        page.predictor = static_cast<int>(std::min<std::uint64_t>(small, 65'535));
        break;
      case orientation_tag:
        to(small);
        page.orientation = small >= 1 && small <= 8 ? static_cast<int>(small) : 1;
        break;
      default:
        break;
    }
  }
  if (!fits_a_side(width) || !fits_a_side(height)) return tiff_damaged(str_cat(width, " x ", height, " pixels"));
  if (samples < 1 || samples > 65'535) return tiff_damaged(str_cat(samples, " channels"));
  if (kind < 1 || kind > 3) return stages::unsupported(str_cat("a TIFF with samples of format ", kind));
  page.width = static_cast<int>(width);
  page.height = static_cast<int>(height);
  page.samples = static_cast<int>(samples);
  page.bits = static_cast<int>(std::min<std::uint64_t>(bits, 65'535));
  page.kind = kind == 1 ? sample_kind::whole : kind == 2 ? sample_kind::signed_whole : sample_kind::real;
  // 1: its colours are multiplied by it, 2: they are not.
  page.alpha = extra != 0 && extra < samples && (last_extra == 1 || last_extra == 2);
  page.premultiplied = page.alpha && last_extra == 1;
  page.planar = page.planar && samples > 1;
  page.tiled = tile_width != 0 || tile_height != 0;
  if (page.tiled &&
      (!fits_a_side(tile_width) || !fits_a_side(tile_height) || tile_width % 16 != 0 || tile_height % 16 != 0)) {
    return tiff_damaged(str_cat("tiles of ", tile_width, " x ", tile_height, " pixels"));
  }
  if (strip_rows == 0) return tiff_damaged("strips of 0 lines");
  page.block_width = page.tiled ? static_cast<int>(tile_width) : page.width;
  page.block_height = page.tiled ? static_cast<int>(tile_height) : static_cast<int>(std::min(strip_rows, height));
  const auto blocks_of = [](std::uint64_t side, int block) {
    return (side + static_cast<std::uint64_t>(block) - 1) / static_cast<std::uint64_t>(block);
  };
  const std::uint64_t listed = page.tiled ? tiles : strips;
  const std::uint64_t of_plane = blocks_of(width, page.block_width) * blocks_of(height, page.block_height);
  const std::uint64_t planes = page.planar ? samples : 1;
  if (of_plane > listed || of_plane * planes > listed) {
    return tiff_damaged(str_cat("lists ", listed, page.tiled ? " tiles" : " strips", " where its size needs ", of_plane,
                                planes == 1 ? "" : " for each channel"));
  }
  const std::uint64_t block_pixels =
      static_cast<std::uint64_t>(page.block_width) * static_cast<std::uint64_t>(page.block_height);
  if (block_pixels > block_samples_max / samples) {
    return tiff_damaged(str_cat("blocks of ", page.block_width, " x ", page.block_height, " pixels"));
  }
  page.blocks = static_cast<std::size_t>(listed);
  if (tag_bytes > tiff_tag_bytes_max + 16 * listed) return tiff_damaged(str_cat("tags of ", tag_bytes, " bytes"));
  page.tag_bytes = static_cast<std::size_t>(tag_bytes);
  return page;
}

outcome<picture_info> peek_tiff(byte_span encoded, look_for what) {
  const outcome<tiff_layout> page = read_tiff_headers(encoded);
  if (!page) return page.error();
  return picture_info{.what = format::tiff,
                      .width = page->width,
                      .height = page->height,
                      .orientation = what == look_for::orientation ? page->orientation : 1,
                      .channels = page->photometric == tiff_palette ? 3 : page->channels()};
}

}  // namespace leat::pixels
