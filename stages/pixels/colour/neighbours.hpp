// Passes that look at the neighbours of a pixel: line by line, in place, with the few lines in between that are still needed. Sums are of
// integers: a picture that is mirrored before has the same bits as one that is mirrored after.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace leat::pixels {

/// A picture of lines, each of three planes one behind the other.
struct picture {
  std::uint8_t* first = nullptr;
  int height = 0;
  int width = 0;

  [[nodiscard]] std::size_t line_bytes() const noexcept { return static_cast<std::size_t>(width) * 3; }
  [[nodiscard]] std::uint8_t* line(int y) const noexcept { return first + static_cast<std::size_t>(y) * line_bytes(); }
};

/// A Gaussian filter's weights, of the middle and one side: rounded, with the middle chosen so that their sum is 1. Outer weights that
/// round to 0 are left out.
///   source   torchvision's gaussian_blur: exp(-(j / sigma)^2 / 2)
struct blur_weights {
  static constexpr int radius_max = 63;

  std::array<float, radius_max + 1> across = {};       // in 2^-16
  std::array<std::int32_t, radius_max + 1> down = {};  // in 2^-15
  int radius = 0;

  blur_weights() = default;
  blur_weights(int kernel, double sigma) noexcept;
};

/// What is done.
///   kernel   of a Gaussian filter, an odd number, and `value` its sigma; 0: the picture is sharpened by the factor `value`
struct neighbour_step {
  int kernel = 0;
  double value = 0;
};

/// One step of a picture.
class neighbour_filter {
 public:
  /// What start() wants, for a picture of this size.
  [[nodiscard]] static std::size_t scratch_bytes(const neighbour_step& step, int height, int width) noexcept;

  /// `scratch` is aligned for vectors, and stays until the last line.
  void start(const neighbour_step& step, const picture& from, void* scratch) noexcept;
  /// Line y = 0, 1, 2 ... `to` may be the picture's own line y.
  void line(int y, std::uint8_t* to) noexcept;

 private:
  void blur_line(int y, std::uint8_t* to) noexcept;
  void sharpen_line(int y, std::uint8_t* to) noexcept;
  void blur_next_across() noexcept;
  [[nodiscard]] std::uint16_t* blurred(int y) const noexcept;

  picture from_;
  bool blurs_ = false;
  double factor_ = 1;
  blur_weights weights_;
  int lines_ = 0;  // that are kept
  int taken_ = 0;  // of the picture's
  float* padded_ = nullptr;
  std::uint16_t* across_ = nullptr;
  std::uint8_t* copies_ = nullptr;
};

}  // namespace leat::pixels
