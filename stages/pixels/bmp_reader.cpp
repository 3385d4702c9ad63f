#include "stages/pixels/bmp_reader.hpp"

#include "stages/pixels/resample_kernels.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace leat::pixels {
namespace {

// Runs between two checks of `stop`.
constexpr std::size_t steps_per_look = 4096;

// Run lengths are expanded in blocks of rows of about so many pixels. Only the beginnings of blocks are kept, which are few.
constexpr std::size_t block_pixels = 4096;

bool is_stopped(const std::atomic<bool>* stop) noexcept {
  return stop != nullptr && stop->load(std::memory_order_relaxed);
}

std::uint8_t widened(std::uint32_t value, std::uint32_t most) noexcept {
  return static_cast<std::uint8_t>(value * 255 / most);
}

/// Run lengths as one index per pixel, in stored order, as Pillow's BmpRleDecoder reads them. Only the indices of a buffer
/// of the picture are kept.
class run_expander {
 public:
  run_expander(byte_span runs, const bmp_layout& layout, const bmp_run_place& from) noexcept
      : runs_(runs),
        of_4_bits_(layout.compression == bmp_compression::rle_4),
        is_odd_(layout.data % 2),
        width_(static_cast<std::size_t>(layout.width)),
        pixels_(width_ * static_cast<std::size_t>(layout.height)),
        place_(from) {}

  void keep(std::size_t first_pixel, std::span<std::uint8_t> buffer) noexcept {
    first_kept_ = first_pixel;
    buffer_ = buffer;
  }

  /// Expands the next run or escape; false at the end.
  bool step() noexcept {
    if (is_complete() || runs_.size() - place_.at < 2) return false;
    const std::size_t count = byte_at(runs_, place_.at);
    const std::size_t value = byte_at(runs_, place_.at + 1);
    place_.at += 2;
    if (count != 0) {
      repeat(count, value);
      return true;
    }
    switch (value) {
      case 0:  // end of the line
        if (place_.pixel % width_ != 0) fill(width_ - place_.pixel % width_);
        place_.x = 0;
        return true;
      case 1:  // end of the picture
        return false;
      case 2:
        return move_on();
      default:
        return copy(value);
    }
  }

  [[nodiscard]] const bmp_run_place& place() const noexcept { return place_; }
  [[nodiscard]] bool is_complete() const noexcept { return place_.pixel == pixels_; }

 private:
  void put(std::size_t index) noexcept {
    if (is_complete()) return;
    const std::size_t kept = place_.pixel++ - first_kept_;  // wraps around before the buffer
    if (kept < buffer_.size()) buffer_[kept] = static_cast<std::uint8_t>(index);
  }

  void fill(std::size_t count) noexcept {
    const std::size_t end = place_.pixel + std::min(count, pixels_ - place_.pixel);
    const std::size_t begin = std::max(place_.pixel, first_kept_);
    const std::size_t kept_end = std::min(end, first_kept_ + buffer_.size());
    if (begin < kept_end) std::memset(buffer_.data() + (begin - first_kept_), 0, kept_end - begin);
    place_.pixel = end;
  }

  // A run ends with its row at the latest.
  void repeat(std::size_t count, std::size_t value) noexcept {
    count = std::min(count, width_ - std::min(width_, place_.x));
    for (std::size_t i = 0; i < count; ++i) put(!of_4_bits_ ? value : i % 2 == 0 ? value >> 4 : value & 15);
    place_.x += count;
  }

  bool move_on() noexcept {
    if (runs_.size() - place_.at < 2) return false;
    fill(byte_at(runs_, place_.at) + byte_at(runs_, place_.at + 1) * width_);
    place_.at += 2;
    place_.x = place_.pixel % width_;
    return true;
  }

  // Literal indices; the next run begins at an even place of the file.
  bool copy(std::size_t count) noexcept {
    const std::size_t pixels = std::min(count, pixels_ - place_.pixel);
    const std::size_t bytes = of_4_bits_ ? (pixels + 1) / 2 : pixels;
    const std::size_t there = std::min(bytes, runs_.size() - place_.at);
    for (std::size_t i = 0; i < there; ++i) {
      const std::size_t value = byte_at(runs_, place_.at + i);
      put(of_4_bits_ ? value >> 4 : value);
      if (of_4_bits_ && 2 * i + 1 < pixels) put(value & 15);
    }
    place_.at += there;
    if (there < bytes) return false;
    place_.x += count;
    if (place_.at % 2 != is_odd_ && place_.at < runs_.size()) ++place_.at;
    return true;
  }

  byte_span runs_;
  bool of_4_bits_;
  std::size_t is_odd_;  // the place in the file where the runs begin
  std::size_t width_;
  std::size_t pixels_;
  bmp_run_place place_;
  std::size_t first_kept_ = 0;
  std::span<std::uint8_t> buffer_;
};

}  // namespace

stages::outcome<void> bmp_reader::open(std::span<const std::byte> encoded, const picture_info& info,
                                       const reading& how) {
  const stages::outcome<bmp_layout> layout = read_bmp_headers(encoded);
  if (!layout) return layout.error();
  assert(layout->width == info.width && layout->height == info.height);
  static_cast<void>(info);
  encoded_ = encoded;
  layout_ = *layout;
  stop_ = how.stop;
  background_ = layout_.alpha ? how.background : std::nullopt;
  if (layout_.bits <= 8) read_palette();
  block_rows_ = std::max<std::size_t>(1, block_pixels / static_cast<std::size_t>(layout_.width));
  return {};
}

std::size_t bmp_reader::scratch_bytes(const rectangle& region, int /*decimation*/) {
  const std::size_t line = scratch_arena::rounded(rgb_line_bytes(region.width));
  if (layout_.compression == bmp_compression::none) return line;
  return line + scratch_arena::rounded(block_count() * sizeof(bmp_run_place)) +
         scratch_arena::rounded(block_rows_ * static_cast<std::size_t>(layout_.width));
}

stages::outcome<void> bmp_reader::start(const rectangle& region, int decimation) {
  assert(decimation == 1);
  static_cast<void>(decimation);
  region_ = region;
  next_line_ = 0;
  line_ = arena_.take_array<std::uint8_t>(rgb_line_bytes(region.width));
  if (line_ == nullptr) return stages::unsupported("BMP: out of scratch memory");
  return layout_.compression == bmp_compression::none ? stages::outcome<void>() : find_blocks();
}

stages::outcome<lines> bmp_reader::read() {
  assert(next_line_ < region_.height);
  if (is_stopped(stop_)) return stages::cancelled();
  const int y = region_.y + next_line_++;
  convert(static_cast<std::size_t>(layout_.top_down ? y : layout_.height - 1 - y));
  return lines{line_, rgb_line_bytes(region_.width), 1};
}

void bmp_reader::read_palette() noexcept {
  bool is_ramp = layout_.colours > 2;
  for (std::size_t i = 0; i < layout_.colours; ++i) {
    const std::size_t at = layout_.palette + i * layout_.palette_entry_bytes;
    for (std::size_t c = 0; c < 3; ++c) {
      palette_[i][c] = static_cast<std::uint8_t>(byte_at(encoded_, at + 2 - c));
      is_ramp = is_ramp && palette_[i][c] == i;
    }
  }
  // Pillow drops a palette that is a ramp of greys: an index is then its own grey, also beyond the palette.
  for (std::size_t i = layout_.colours; i < palette_.size(); ++i) {
    palette_[i].fill(is_ramp ? static_cast<std::uint8_t>(i) : std::uint8_t{0});
  }
}

std::size_t bmp_reader::block_count() const noexcept {
  return (static_cast<std::size_t>(layout_.height) + block_rows_ - 1) / block_rows_;
}

// Walks over all runs: a picture that they do not fill is corrupt, for every region.
stages::outcome<void> bmp_reader::find_blocks() {
  const std::size_t pixels_per_block = block_rows_ * static_cast<std::size_t>(layout_.width);
  blocks_ = arena_.take_array<bmp_run_place>(block_count());
  indices_ = arena_.take_array<std::uint8_t>(pixels_per_block);
  if (blocks_ == nullptr || indices_ == nullptr) return stages::unsupported("BMP: out of scratch memory");
  expanded_block_ = block_count();
  run_expander runs(encoded_.subspan(layout_.data), layout_, {});
  std::size_t block = 0;
  for (std::size_t steps = 0;; ++steps) {
    if (steps % steps_per_look == 0 && is_stopped(stop_)) return stages::cancelled();
    const bmp_run_place before = runs.place();
    const bool more = runs.step();
    for (; block < block_count() && block * pixels_per_block < runs.place().pixel; ++block) blocks_[block] = before;
    if (!more) break;
  }
  if (!runs.is_complete()) return stages::corrupt("BMP: its runs end before its last pixel");
  return {};
}

const std::uint8_t* bmp_reader::indices_of(std::size_t stored_row) noexcept {
  const auto width = static_cast<std::size_t>(layout_.width);
  const std::size_t block = stored_row / block_rows_;
  if (block != expanded_block_) {
    const std::size_t first = block * block_rows_ * width;
    const std::size_t rows = std::min(block_rows_, static_cast<std::size_t>(layout_.height) - block * block_rows_);
    run_expander runs(encoded_.subspan(layout_.data), layout_, blocks_[block]);
    runs.keep(first, {indices_, rows * width});
    while (runs.place().pixel < first + rows * width && runs.step()) {
    }
    expanded_block_ = block;
  }
  return indices_ + stored_row % block_rows_ * width;
}

void bmp_reader::convert(std::size_t stored_row) noexcept {
  const auto x0 = static_cast<std::size_t>(region_.x);
  const auto width = static_cast<std::size_t>(region_.width);
  std::uint8_t* to = line_;
  const auto put_index = [&](std::uint32_t index) {
    std::memcpy(to, palette_[index & 255].data(), 3);
    to += 3;
  };
  if (layout_.compression != bmp_compression::none) {
    const std::uint8_t* const row = indices_of(stored_row) + x0;
    for (std::size_t i = 0; i < width; ++i) put_index(row[i]);
    return;
  }
  const std::size_t row = layout_.data + stored_row * layout_.stride;
  switch (layout_.pixels) {
    case bmp_pixels::palette_1:
      for (std::size_t x = x0; x < x0 + width; ++x) put_index(byte_at(encoded_, row + x / 8) >> (7 - x % 8) & 1);
      return;
    case bmp_pixels::palette_4:
      for (std::size_t x = x0; x < x0 + width; ++x)
        put_index(byte_at(encoded_, row + x / 2) >> (x % 2 == 0 ? 4 : 0) & 15);
      return;
    case bmp_pixels::palette_8:
      for (std::size_t x = x0; x < x0 + width; ++x) put_index(byte_at(encoded_, row + x));
      return;
    case bmp_pixels::rgb_555:
    case bmp_pixels::rgb_565: {
      const bool wide_green = layout_.pixels == bmp_pixels::rgb_565;
      for (std::size_t x = x0; x < x0 + width; ++x, to += 3) {
        const std::uint32_t pixel = little16(encoded_, row + 2 * x);
        to[0] = widened(pixel >> (wide_green ? 11 : 10) & 31, 31);
        to[1] = wide_green ? widened(pixel >> 5 & 63, 63) : widened(pixel >> 5 & 31, 31);
        to[2] = widened(pixel & 31, 31);
      }
      return;
    }
    case bmp_pixels::bytes: {
      const auto pixel_bytes = static_cast<std::size_t>(layout_.bits / 8);
      const auto* from = reinterpret_cast<const std::uint8_t*>(encoded_.data()) + row + x0 * pixel_bytes;
      for (std::size_t i = 0; i < width; ++i, from += pixel_bytes, to += 3) {
        to[0] = from[layout_.red];
        to[1] = from[layout_.green];
        to[2] = from[layout_.blue];
        if (!background_) continue;
        for (std::size_t c = 0; c < 3; ++c) to[c] = blended(to[c], from[*layout_.alpha], (*background_)[c]);
      }
      return;
    }
  }
}

}  // namespace leat::pixels
