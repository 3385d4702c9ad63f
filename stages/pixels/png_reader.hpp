// A PNG's lines by libpng: 8-bit RGB whatever is stored, only the rows of a region.
#pragma once

#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/scratch.hpp"

#include <memory>

namespace leat::pixels {

/// What the header of a PNG says of its samples, alpha left aside.
///   bits    of each: 1, 2, 4, 8 or 16
///   alpha   there is a channel of it
struct png_samples {
  int channels = 0;
  int bits = 0;
  bool is_palette = false;
  bool alpha = false;

  /// Of a pixel as reading::as_stored gives it.
  [[nodiscard]] std::size_t bytes() const noexcept { return static_cast<std::size_t>(channels * (bits == 16 ? 2 : 1)); }
};
/// `encoded` has the signature of a PNG.
[[nodiscard]] png_samples samples_of(std::span<const std::byte> encoded) noexcept;

/// One thread's PNG decoder. Grey and palettes become RGB, of 16 bits the upper 8 are taken (as Pillow does), alpha
/// is laid over the background or dropped, colour profiles are dropped. All memory comes from the arena. The last line is given after the whole file has been
/// checked: each line depends on all lines before it, and the checksum comes after the last one.
class png_reader final : public picture_reader {
 public:
  explicit png_reader(scratch_arena& arena);
  ~png_reader() override;

  /// Checks all chunks; takes no memory.
  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info, const reading& how) override;
  /// For an interlaced picture it holds all lines of the region.
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation) override;
  [[nodiscard]] std::string_view remedy() const noexcept override;
  stages::outcome<void> start(const rectangle& region, int decimation) override;
  stages::outcome<lines> read() override;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace leat::pixels
