// Separable resampling in fixed-point integers, bit for bit as Pillow 13 does it: a horizontal pass, rounded and clamped
// to u8, then a vertical one, or the other way round where goes_down_first() says so. Lines go in from top to bottom and
// come out into a sink; it holds only as many lines as the vertical filter is high.
#pragma once

#include "stages/pixels/geometry.hpp"
#include "stages/pixels/line_sink.hpp"
#include "stages/pixels/resample_kernels.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/pixels/warp.hpp"

#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace leat::pixels {

/// How one axis is resampled.
///   inputs          pixels there are; nothing outside them is looked at
///   begin, end      the part of them, in pixels and fractions of pixels, that becomes `outputs` pixels
///   first, count    the outputs that are wanted
struct axis {
  int inputs = 0;
  double begin = 0;
  double end = 0;
  std::int64_t outputs = 0;
  std::int64_t first = 0;
  int count = 0;
  filter how = filter::bilinear;
};

/// Inputs [begin, end) that the wanted outputs need, and the most that one output needs.
struct axis_needs {
  int begin = 0;
  int end = 0;
  int taps_max = 0;
};

[[nodiscard]] axis_needs needs_of(const axis& a) noexcept;

/// Which inputs make each wanted output, with which weights; they sum to about 2^weight_bits.
///   first     counted from needs_of(axis).begin
///   weights   `taps_max` per output, the first `taps` of them used
struct axis_table {
  std::int32_t* first = nullptr;
  std::int32_t* taps = nullptr;
  std::int32_t* weights = nullptr;
  int taps_max = 0;
  int count = 0;

  [[nodiscard]] static std::size_t scratch_bytes(const axis& a) noexcept;
  /// False where the arena has not been reserved for it.
  [[nodiscard]] bool build(const axis& a, scratch_arena& arena) noexcept;
  /// As build(), with count and taps_max set, in memory of the caller's; `exact` has taps_max numbers, and means nothing afterwards.
  void fill(const axis& a, double* exact) const noexcept;
  /// The same in the form that resample_line() wants; `inputs` is how many there are from the first on. Without entries
  /// where the arena has not been reserved for it (grouped_scratch_bytes).
  [[nodiscard]] line_table grouped(int inputs, scratch_arena& arena) const noexcept;
  [[nodiscard]] static std::size_t grouped_scratch_bytes(const axis& a) noexcept;
};

/// The same with the weights as they are before they become fixed-point numbers: for samples of more than 8 bits. An output whose
/// only weight is 1 is its input.
struct exact_table {
  std::int32_t* first = nullptr;
  std::int32_t* taps = nullptr;
  double* weights = nullptr;
  int taps_max = 0;

  [[nodiscard]] static std::size_t scratch_bytes(const axis& a) noexcept;
  /// False where the arena has not been reserved for it.
  [[nodiscard]] bool build(const axis& a, scratch_arena& arena) noexcept;
};

/// Whether the vertical pass comes first: where the height shrinks by more than twice as many pixels as the width,
/// before any decimation.
///   source   Pillow 13.0, src/libImaging/Resample.c, ImagingResampleInner(); up to Pillow 12 the horizontal pass
///            always came first
[[nodiscard]] constexpr bool goes_down_first(const geometry& drawn) noexcept {
  const std::int64_t shrinks_down = std::int64_t{drawn.box.height} - drawn.scaled_height;
  const std::int64_t shrinks_across = std::int64_t{drawn.box.width} - drawn.scaled_width;
  return shrinks_down > 0 && shrinks_down > 2 * shrinks_across;
}

/// A picture shrunk by the decoder: 1, 2, 4 or 8 pixels have become one, and sizes were rounded up.
///   shift_*   where the picture's left and upper edges lie, in decimated pixels: not at 0 where it was mirrored after
///             the rounding
struct decimated {
  int by = 1;
  double shift_x = 0;
  double shift_y = 0;
};

/// Where the pixels of a row come from along one axis, if some of it is padding other than zeros.
///   first, count    of the row, in scaled pixels
///   size            of the scaled box
struct padded_axis {
  std::int64_t first = 0;
  int count = 0;
  std::int64_t size = 0;
  padding_mode how = padding_mode::constant;

  /// The scaled pixel, or -1 for the fill.
  [[nodiscard]] std::int64_t source(int i) const noexcept;
  /// The scaled pixels that some i has, from the first to behind the last.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> reached() const noexcept;
};

/// One sample's resampling, from lines of the decoded region to those of its row.
class resampler {
 public:
  /// Works out what is needed; takes no memory.
  ///   drawn         in the picture's own pixels
  ///   by   how the decoder has shrunk the picture
  resampler(const geometry& drawn, const decimated& by) noexcept;

  /// What the decoder has to deliver, in its (decimated) pixels; empty where the crop lies outside the box.
  [[nodiscard]] const rectangle& region() const noexcept { return region_; }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;
  /// For resamplers elsewhere: how the region becomes the part of the row that is not padding, and where in the row that begins, before it
  /// is mirrored. Without meaning for an empty region.
  [[nodiscard]] const axis& horizontal() const noexcept { return horizontal_; }
  [[nodiscard]] const axis& vertical() const noexcept { return vertical_; }
  [[nodiscard]] int at_x() const noexcept { return at_x_; }
  [[nodiscard]] int at_y() const noexcept { return at_y_; }

  /// Whether lines come as three planes whatever is asked for, all of them in finish().
  [[nodiscard]] bool is_warp() const noexcept { return warp_.has_value(); }

  /// Builds tables and lines, and gives what lies above the box. False where the arena has not been reserved for it.
  ///   order   how the lines that go to the sink lie: three planes one after the other (nchw), or interleaved
  ///   to      outlives this
  [[nodiscard]] bool start(scratch_arena& arena, layout order, line_sink& to) noexcept;
  /// The region's next line, interleaved RGB, readable to line_slack_bytes after its last pixel.
  void push(const std::uint8_t* line) noexcept;
  /// Gives what lies below the box. Every line of the region has been pushed.
  void finish() noexcept;

 private:
  void plan(const decimated& by) noexcept;
  void plan_warp(const decimated& by) noexcept;
  void look_up() noexcept;
  void emit(const std::uint8_t* line) noexcept;
  void emit_padded(const std::uint8_t* line) noexcept;
  void fill_lines() noexcept;
  void resample_across(const std::uint8_t* line, std::uint8_t* to) const noexcept;

  geometry drawn_;                  // without padding other than zeros, which is put around it
  std::optional<geometry> padded_;  // what was asked for, if that has some
  std::optional<fused_warp> warp_;  // of what the lines are put into first
  bool is_copied_ = false;          // as they are: nothing is shrunk before
  warp_matrix warp_from_ = identity_matrix;
  picture warped_;
  std::uint8_t* warped_line_ = nullptr;
  padded_axis pad_across_;
  padded_axis pad_down_;
  std::int32_t* columns_of_ = nullptr;  // of each pixel of the row: of the line that is made, or -1
  std::int64_t* rows_of_ = nullptr;     // of each line of the row: the scaled box's, or -1
  std::uint8_t* padded_line_ = nullptr;
  axis horizontal_;
  axis vertical_;
  rectangle region_;
  int at_x_ = 0;  // where in the row the box begins, and how much of it is outside
  int at_y_ = 0;
  bool down_first_ = false;
  std::size_t line_bytes_ = 0;
  std::size_t ring_line_bytes_ = 0;
  line_table columns_;
  axis_table rows_;
  layout order_ = layout::nchw;
  line_sink* to_ = nullptr;
  std::uint8_t* ring_ = nullptr;  // rows_.taps_max lines, input i in line i % taps_max
  std::uint8_t* line_ = nullptr;
  std::uint8_t* resampled_down_ = nullptr;  // a line of the region's width
  const std::uint8_t** taps_ = nullptr;
  int pushed_ = 0;
  int made_ = 0;     // of rows_
  int emitted_ = 0;  // of the row's lines
};

}  // namespace leat::pixels
