// Reads the lines of a region of a BMP, as 8-bit RGB.
#pragma once

#include "stages/pixels/bmp_headers.hpp"
#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/scratch.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat::pixels {

/// A place among run lengths: in the file, in the picture, and in the row as runs count it.
struct bmp_run_place {
  std::size_t at = 0;
  std::size_t pixel = 0;
  std::size_t x = 0;
};

/// One thread's BMP decoder. The pixels are those of Pillow's convert("RGB"): alpha is dropped where nothing is behind it, 5 and 6 bits become
/// value * 255 / 31 or 63 rounded down, an index without a palette entry is black. (In one case they differ: a file of 4 or 8 bits
/// with a palette of black and white, whose pixels Pillow reads as single bits.)
class bmp_reader final : public picture_reader {
 public:
  explicit bmp_reader(scratch_arena& arena) : arena_(arena) {}

  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info, const reading& how) override;
  /// One line. For run lengths, which are stored from the bottom, also the places where blocks of rows begin.
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation) override;
  stages::outcome<void> start(const rectangle& region, int decimation) override;
  stages::outcome<lines> read() override;

 private:
  void read_palette() noexcept;
  [[nodiscard]] std::size_t block_count() const noexcept;
  [[nodiscard]] stages::outcome<void> find_blocks();
  [[nodiscard]] const std::uint8_t* indices_of(std::size_t stored_row) noexcept;
  void convert(std::size_t stored_row) noexcept;

  scratch_arena& arena_;
  std::span<const std::byte> encoded_;
  bmp_layout layout_;
  std::optional<rgb_colour> background_;  // where pixels have alpha
  const std::atomic<bool>* stop_ = nullptr;
  rectangle region_;
  std::array<std::array<std::uint8_t, 3>, 256> palette_{};
  // For run lengths: where each block of rows begins, and the indices of one block.
  bmp_run_place* blocks_ = nullptr;
  std::uint8_t* indices_ = nullptr;
  std::size_t expanded_block_ = 0;  // block_count(): none
  std::size_t block_rows_ = 1;
  std::uint8_t* line_ = nullptr;
  int next_line_ = 0;
};

}  // namespace leat::pixels
