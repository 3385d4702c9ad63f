// Resampling of samples of more than 8 bits: any number of channels, in f32, by the same geometry as resampler's.
#pragma once

#include "stages/pixels/geometry.hpp"
#include "stages/pixels/resample.hpp"
#include "stages/pixels/scratch.hpp"

#include <cstddef>

namespace leat::pixels {

/// Takes the lines that a wide_resampler makes.
class wide_sink {
 public:
  ///   line   of the part of the row that shows the picture, interleaved, not mirrored
  ///   y      of the row
  virtual void take(const float* line, int y) noexcept = 0;

 protected:
  ~wide_sink() = default;
};

/// One sample's resampling, as Pillow's of mode F: across, then down, with sums in f64 that are stored as f32 after each. What is not
/// scaled stays what it is, bit for bit.
class wide_resampler {
 public:
  /// Works out what is needed; takes no memory.
  ///   drawn   without a warp, and padded with zeros only
  wide_resampler(const geometry& drawn, int channels) noexcept;

  /// What the reader has to deliver; empty where the crop lies outside the box.
  [[nodiscard]] const rectangle& region() const noexcept { return region_; }
  /// The part of the row that shows the picture, before it is mirrored.
  [[nodiscard]] const rectangle& part() const noexcept { return part_; }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept;

  /// Not of an empty region. False where the arena has not been reserved for it.
  [[nodiscard]] bool start(scratch_arena& arena, wide_sink& to) noexcept;
  /// The region's next line, interleaved.
  void push(const float* line) noexcept;

 private:
  void resample_across(const float* line, float* to) const noexcept;

  std::size_t channels_;
  axis horizontal_;
  axis vertical_;
  rectangle region_;
  rectangle part_;
  exact_table columns_;
  exact_table rows_;
  int taps_max_ = 0;  // down
  std::size_t line_values_ = 0;
  float* ring_ = nullptr;  // taps_max_ lines, input i in line i % taps_max_
  double* sums_ = nullptr;
  float* line_ = nullptr;
  wide_sink* to_ = nullptr;
  int pushed_ = 0;
  int made_ = 0;
};

}  // namespace leat::pixels
