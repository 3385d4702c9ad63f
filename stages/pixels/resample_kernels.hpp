// The two inner loops of resampling in vector instructions: compiled for several instruction sets, chosen when first
// called by what the processor has. All give the same bits, those of the plain sum:
//
//     clamp((2^(weight_bits - 1) + sum of input * weight) >> weight_bits, 0, 255)
#pragma once

#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// Bits behind the binary point of a weight: 32 less 8 of the pixel and 2 for a bicubic's overshoot, as in Pillow.
inline constexpr int weight_bits = 32 - 8 - 2;

/// Bytes behind the last pixel of a line that resample_line() may read, and does not use.
inline constexpr std::size_t line_slack_bytes = 16;
/// The memory of a line of `width` pixels of interleaved RGB.
[[nodiscard]] constexpr std::size_t rgb_line_bytes(int width) noexcept {
  return static_cast<std::size_t>(width) * 3 + line_slack_bytes;
}

/// How the outputs of a line are made, four at a time.
///   count     outputs; the tables have entries for the next multiple of four
///   taps      weights per output: the same number for all, with zeros where an output has fewer
///   first     the first input of each
///   weights   of outputs 4g .. 4g + 3 and their tap t: weights[(g * taps + t) * 4 ...]
struct line_table {
  static constexpr int group = 4;

  int count = 0;
  int taps = 0;
  const std::int32_t* first = nullptr;
  const std::int32_t* weights = nullptr;
};

/// Where the outputs of a line go: output x to `begin` + x * `pixel_step`, and its other channels `plane_step` further.
/// Interleaved (plane_step 1, pixel_step 3 or -3) or planar (pixel_step 1 or -1).
struct line_target {
  std::uint8_t* begin = nullptr;
  std::ptrdiff_t pixel_step = 0;
  std::ptrdiff_t plane_step = 0;
};

/// One line, horizontally. `line` is interleaved RGB and readable to line_slack_bytes after its last pixel.
void resample_line(const std::uint8_t* line, const line_table& table, const line_target& to) noexcept;

/// One line of `bytes` values out of `taps` lines of the same length, vertically. `to` is none of them.
void resample_lines(const std::uint8_t* const* lines, const std::int32_t* weights, int taps, std::size_t bytes,
                    std::uint8_t* to) noexcept;

/// `count` interleaved pixels as three planes, one behind the other.
void split_line(const std::uint8_t* line, std::size_t count, std::uint8_t* to) noexcept;

}  // namespace leat::pixels
