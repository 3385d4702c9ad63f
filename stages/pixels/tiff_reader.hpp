// A TIFF of 8 bits as RGB, as a picture of any other format.
#pragma once

#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/tiff_blocks.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace leat::pixels {

/// One thread's reader of TIFF pictures: grey (0 may be white), RGB, YCbCr by JPEG, and palettes, of which the upper 8 bits of each colour are
/// taken, as by Pillow. Alpha is laid over the background or dropped;
/// colours that were multiplied by it are divided then.
class tiff_reader final : public picture_reader {
 public:
  explicit tiff_reader(scratch_arena& arena) : arena_(arena), tiff_(arena) {}

  /// unsupported: other bits and channels, with the call that reads them.
  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info, const reading& how) override;
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation) override;
  stages::outcome<void> start(const rectangle& region, int decimation) override;
  stages::outcome<lines> read() override;

 private:
  void convert(const std::uint8_t* from) noexcept;
  void unmultiply(std::uint8_t* colour, std::uint32_t alpha) const noexcept;

  scratch_arena& arena_;
  tiff_blocks tiff_;
  tiff_layout page_;
  std::optional<rgb_colour> background_;  // where pixels have alpha
  rectangle region_;
  std::array<std::array<std::uint8_t, 3>, 256> colour_of_{};  // of one channel
  std::uint8_t* line_ = nullptr;
};

}  // namespace leat::pixels
