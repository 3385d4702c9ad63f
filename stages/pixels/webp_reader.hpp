// A WebP's lines by libwebp: lossy, lossless, with alpha.
#pragma once

#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/resample_kernels.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/webp_headers.hpp"

#include <cstdint>
#include <optional>

namespace leat::pixels {

/// One thread's WebP decoder. The pixels are those of Pillow's convert("RGB"), which drops alpha and does not blend; or alpha is laid
/// over a colour. Beside the first frame of an animation all is transparent, and black where nothing is behind it.
///
/// libwebp decodes a part of a picture into memory of the arena. It allocates its other memory itself, which cannot be changed;
/// the most that this can be is reserved and lent to it (scratch_arena::lend).
class webp_reader final : public picture_reader {
 public:
  explicit webp_reader(scratch_arena& arena) : arena_(arena) {}

  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info, const reading& how) override;
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation) override;
  stages::outcome<void> start(const rectangle& region, int decimation) override;
  stages::outcome<lines> read() override;

 private:
  [[nodiscard]] stages::outcome<void> count_codes(byte_span coded, std::size_t first_bit);
  [[nodiscard]] std::size_t pixel_bytes() const noexcept { return background_ ? 4 : 3; }
  [[nodiscard]] std::size_t lossless_bytes() const noexcept;
  void plan(const rectangle& region) noexcept;
  [[nodiscard]] std::size_t line_bytes() const noexcept { return rgb_line_bytes(region_.width); }
  [[nodiscard]] stages::outcome<lines> read_band();
  [[nodiscard]] std::size_t library_bytes() const noexcept;
  [[nodiscard]] bool is_from_top() const noexcept;
  /// The first row that is decoded for a band which begins at `row` of the region.
  [[nodiscard]] int top_of(int row) const noexcept;
  [[nodiscard]] stages::outcome<void> decode(const rectangle& crop, std::uint8_t* into, std::size_t stride) const;

  scratch_arena& arena_;
  webp_layout layout_;
  std::optional<rgb_colour> background_;  // where the picture has alpha
  std::size_t code_bytes_ = 0;            // of a lossless picture's tables, or of a lossy one's alpha
  const std::atomic<bool>* stop_ = nullptr;
  rectangle region_;
  rectangle part_;         // of the frame: what is decoded
  bool has_part_ = true;   // something of the region lies in the frame
  bool is_inside_ = true;  // all of it does
  rgb_colour beside_{};    // what is seen where the frame is not
  lines band_left_;
  std::uint8_t* line_ = nullptr;
  int next_line_ = 0;
  int left_ = 0;  // first decoded column; the region's columns, and those that its upsampling looks at, are decoded
  int right_ = 0;
  int band_rows_ = 0;        // rows of the region that are decoded at a time
  bool takes_rest_ = false;  // the last band has room for all rows to the picture's end
  std::size_t stride_ = 0;
  std::size_t band_bytes_ = 0;
  std::uint8_t* band_ = nullptr;
  int next_row_ = 0;
};

}  // namespace leat::pixels
