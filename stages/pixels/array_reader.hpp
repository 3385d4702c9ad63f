// Reads the lines of a region of an array of pixels, as 8-bit RGB.
#pragma once

#include "stages/pixels/array_pixels.hpp"
#include "stages/pixels/picture_reader.hpp"
#include "stages/pixels/scratch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat::pixels {

/// One thread's reader of arrays (reading::array). Pixels of u8 are as a PNG's: grey is three channels, and alpha is dropped where nothing
/// is behind it. Other numbers are scaled to 0 to 255, and rounded. Interleaved RGB of u8 is handed on from where it lies.
class array_reader final : public picture_reader {
 public:
  explicit array_reader(scratch_arena& arena) : arena_(arena) {}

  stages::outcome<void> open(std::span<const std::byte> encoded, const picture_info& info, const reading& how) override;
  [[nodiscard]] std::size_t scratch_bytes(const rectangle& region, int decimation) override;
  stages::outcome<void> start(const rectangle& region, int decimation) override;
  stages::outcome<lines> read() override;

 private:
  [[nodiscard]] bool lies_as_lines() const noexcept;
  [[nodiscard]] lines some_in_place() noexcept;
  template <class Element>
  [[nodiscard]] bool convert(int y) noexcept;
  [[nodiscard]] bool convert_line(int y) noexcept;

  scratch_arena& arena_;
  std::span<const std::byte> encoded_;
  array_pixels pixels_;
  std::optional<rgb_colour> background_;  // where pixels have alpha
  const std::atomic<bool>* stop_ = nullptr;
  rectangle region_;
  std::uint8_t* line_ = nullptr;
  int next_line_ = 0;
  double wrong_ = 0;  // the number that convert() has found to be none of a pixel
};

}  // namespace leat::pixels
