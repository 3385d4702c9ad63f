// How a sample of more than 8 bits becomes an element of the batch.
#pragma once

#include "stages/pixels/wide_reader.hpp"
#include "stages/pixels/wide_resampler.hpp"

#include <leat/tensor.hpp>
#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace leat::pixels {

/// One field's store: a value.
///   type       u16, i16, i32, u8: numbers as stored, rounded to nearest where they were resized. f32, f16, bf16: (number / white - mean) /
///              deviation in f64, rounded once to f32, and that to the others
///   channels   of the row
///   white      none: the largest number of unsigned samples of 8 and 16 bits; others are not divided
/// Lines are f32, so that whole numbers of 32 bits have to be ones that it holds. Only numbers that a crop reaches are looked at.
struct wide_store {
  dtype type = dtype::u16;
  layout order = layout::nchw;
  int channels = 1;
  std::optional<double> white = std::nullopt;
  std::optional<normalization> statistics = std::nullopt;

  [[nodiscard]] bool is_whole() const noexcept {
    return type == dtype::u8 || type == dtype::u16 || type == dtype::i16 || type == dtype::i32;
  }
  /// The least and the largest number of a whole type.
  [[nodiscard]] std::array<double, 2> range() const noexcept;
  /// The largest f32 that the type has a finite number for, of fractions.
  [[nodiscard]] float largest() const noexcept;
};

/// Writes one picture's row.
class wide_row final : public wide_sink {
 public:
  ///   height, width   of the row
  ///   part            of it, not mirrored, what shows the picture; the rest becomes the number 0
  ///   row             aligned to the element's size
  wide_row(const wide_store& how, const wide_info& info, int height, int width, const rectangle& part, bool flip,
           std::byte* row) noexcept;

  /// Puts zeros where the part does not reach. Before the first line.
  void start() noexcept;
  void take(const float* line, int y) noexcept override;
  /// A finite number of so many pixels, as stored, that the row's type cannot hold, if there is one.
  [[nodiscard]] std::optional<float> first_beyond(const float* line, std::size_t pixels) const noexcept;

 private:
  template <class Visit>
  void with_element(const Visit& visit) noexcept;
  template <class Element>
  void clear(Element) noexcept;
  template <class Element>
  void put(Element, const float* line, int y) noexcept;
  [[nodiscard]] bool fits(double value, std::size_t channel) const noexcept;
  // Of a channel. Statistics are of one or three channels, or of none.
  [[nodiscard]] std::pair<double, double> scaling(std::size_t channel) const noexcept {
    const std::size_t of = channel < 3 ? channel : 0;
    return {scale_[of], bias_[of]};
  }

  const wide_store& how_;
  int height_;
  int width_;
  rectangle part_;
  bool flip_;
  std::byte* row_;
  int stored_channels_;
  bool fits_all_ = true;  // numbers that samples of these bits may be
  std::array<double, 3> scale_ = {1, 1, 1};
  std::array<double, 3> bias_ = {0, 0, 0};
};

}  // namespace leat::pixels
