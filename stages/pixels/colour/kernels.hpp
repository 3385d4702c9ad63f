// The inner loops of colour: over a line of three planes, in vector instructions, compiled for several instruction sets and chosen when
// first called. All give the same bits: f32 with each operation rounded by itself, never a fused multiply-add, no approximations; or
// sums of integers, whose order does not matter.
#pragma once

#include "stages/pixels/colour/tables.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// A line of a picture: red, green and blue values of `width` pixels, each plane behind the other.
struct plane_line {
  std::uint8_t* first = nullptr;
  std::size_t width = 0;

  [[nodiscard]] std::uint8_t* plane(std::size_t channel) const noexcept { return first + channel * width; }
};

// Each in place.

/// value * factor + part: brightness and contrast where no table has to be made of them
void scale_line(const plane_line& line, float factor, float part) noexcept;
/// value * factor + floor(grey) * (1 - factor)
void saturate_line(const plane_line& line, double factor) noexcept;
/// The hue turned by `shift` turns (docs/decisions/0005-hue.md).
void turn_hue_line(const plane_line& line, double shift) noexcept;
/// All channels become floor(grey).
void grey_line(const plane_line& line) noexcept;
/// The channels in one of the six orders.
void permute_line(const plane_line& line, int order) noexcept;
/// Each value as the table says.
void map_line(const plane_line& line, const table& by) noexcept;

/// to[i] = by[from[i]], for `count` values; `by` has 256. `to` is `from`, or no part of it.
void map_values(const std::uint8_t* from, std::size_t count, const std::uint8_t* by, std::uint8_t* to) noexcept;

/// The sum of floor(grey) over the line.
[[nodiscard]] std::uint64_t sum_grey_line(const plane_line& line) noexcept;
/// Adds the line's values to `counts`, of four parts which together are the counts.
void count_line(const plane_line& line, value_counts* counts) noexcept;
/// The smallest and largest values so far, in as many parts as a vector has values.
struct value_range {
  static constexpr std::size_t parts = 64;

  alignas(64) std::array<std::array<std::uint8_t, parts>, 3> least;
  alignas(64) std::array<std::array<std::uint8_t, parts>, 3> most;

  void clear() noexcept;
  [[nodiscard]] std::uint8_t least_of(std::size_t channel) const noexcept;
  [[nodiscard]] std::uint8_t most_of(std::size_t channel) const noexcept;
};

/// Widens it to the line's.
void widen_range_line(const plane_line& line, value_range& range) noexcept;

/// Inner loops of neighbours.hpp. Values as f32:
void to_floats(const std::uint8_t* from, std::size_t count, float* to) noexcept;
/// And `count` values from `from` on, with what is read beside them:
///
///   to[i] = round(sum of weights[0] * from[i] + weights[j] * (from[i - j] + from[i + j]) over j = 1..radius, to 8 binary places)
///
/// with weights of 16 binary places that sum to 1: every product and sum is below 2^24, hence exact in f32.
void blur_across(const float* from, std::size_t count, const float* weights, int radius, std::uint16_t* to) noexcept;
/// The same of lines: lines[0] is the middle, lines[2j - 1] and lines[2j] are those `j` above and below. Weights have 15 binary
/// places; sums stay below 2^31.
void blur_down(const std::uint16_t* const* lines, std::size_t count, const std::int32_t* weights, int radius,
               std::uint8_t* to) noexcept;
/// value + (smooth - value) * (1 - factor), smooth being round((5 value + its eight neighbours) / 13).
///   above, middle, below   lines whose values 0 .. count + 1 are read; to[i] belongs to middle[i + 1]
void sharpen_inner(const std::uint8_t* above, const std::uint8_t* middle, const std::uint8_t* below, std::size_t count,
                   double factor, std::uint8_t* to) noexcept;

}  // namespace leat::pixels
