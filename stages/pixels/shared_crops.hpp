// Rows that are parts of one resampled picture: it is resampled once, and they are cut from its lines.
#pragma once

#include "stages/pixels/geometry.hpp"
#include "stages/pixels/line_sink.hpp"
#include "stages/pixels/scratch.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace leat::pixels {

/// What both can be cut from, bit for bit as each would be made by itself: the smallest crop that holds them, not mirrored. Nothing
/// where they are resampled otherwise or some of them is padding, and where it would be more pixels than both of them.
[[nodiscard]] std::optional<geometry> crop_of_both(const geometry& a, const geometry& b) noexcept;

/// A row, and where it lies in the lines that it is cut from. `mirrored`: left and right are exchanged, after the cut.
struct line_cut {
  line_sink* to = nullptr;
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  bool mirrored = false;
};

/// Gives each row its part of the lines. The cuts outlive it.
class line_cutter final : public line_sink {
 public:
  ///   order   of its lines and of those of all rows
  line_cutter(int width, layout order, std::span<const line_cut> cuts) noexcept;

  [[nodiscard]] std::size_t scratch_bytes() const noexcept;
  /// False where the arena has not been reserved for it.
  [[nodiscard]] bool start(scratch_arena& arena) noexcept;
  void take(const std::uint8_t* line, int y) noexcept override;

 private:
  [[nodiscard]] const std::uint8_t* mirror(const std::uint8_t* line) noexcept;
  [[nodiscard]] std::size_t line_bytes() const noexcept;
  [[nodiscard]] std::size_t part_bytes() const noexcept;

  const int width_;
  const bool is_planar_;
  const std::span<const line_cut> cuts_;
  std::uint8_t* mirrored_ = nullptr;  // a whole line
  std::uint8_t* part_ = nullptr;      // of planes, which do not lie side by side in the line
};

}  // namespace leat::pixels
