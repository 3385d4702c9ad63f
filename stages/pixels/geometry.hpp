// Which pixels of a picture become a row, and how: the compiled slot "geometry" of the transforms.
#pragma once

#include "base/random.hpp"
#include "stages/pixels/box.hpp"
#include "stages/pixels/fused.hpp"
#include "stages/pixels/matrix.hpp"

#include <leat/transforms.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <utility>

namespace leat::pixels {

/// A part of a picture, in its pixels.
struct rectangle {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const rectangle&, const rectangle&) = default;
};

/// One sample's geometry. Coordinates are of the picture as it stands, after EXIF orientation where that is on.
///   box                what is resampled; inside the picture
///   scaled_*           to how many pixels; equal to the box's size where nothing is scaled
///   crop_*, out_*      the part of the scaled box that is the row. It may lie partly or wholly outside the box, where
///                      pixels are as padding and fill say
///   flip               left and right exchanged, last
///   window             what of the picture the row shows, where random_zoom_out or random_iou_crop has a part in it: not rounded, and it may
///                      reach outside of the picture. None: as from_row() says
///   warp               of a fused chain that is more than that: the row is looked up by it, what of it lies outside of the picture
///                      is fill, and `how` is how pixels are shrunk before
struct geometry {
  rectangle box;
  std::int64_t scaled_width = 0;
  std::int64_t scaled_height = 0;
  std::int64_t crop_x = 0;
  std::int64_t crop_y = 0;
  int out_width = 0;
  int out_height = 0;
  bool flip = false;
  filter how = filter::bilinear;
  padding_mode padding = padding_mode::constant;
  std::array<std::uint8_t, 3> fill = {0, 0, 0};
  std::optional<pixels::box> window = std::nullopt;
  std::optional<fused_warp> warp = std::nullopt;

  /// From a place in the row to one in the picture; the inverse says where a pixel of the picture goes. Of mirrored padding it says
  /// where the picture would go on.
  [[nodiscard]] warp_matrix from_row() const noexcept;

  /// Whether no device makes it.
  [[nodiscard]] bool is_of_host() const noexcept { return warp.has_value() || pads_otherwise(); }
  /// Whether some of the row is padding other than zeros.
  [[nodiscard]] bool pads_otherwise() const noexcept {
    const bool is_inside =
        crop_x >= 0 && crop_y >= 0 && crop_x + out_width <= scaled_width && crop_y + out_height <= scaled_height;
    return !is_inside && (padding != padding_mode::constant || fill != std::array<std::uint8_t, 3>{});
  }

  friend bool operator==(const geometry&, const geometry&) = default;
};

/// JPEG's limit for a side, and far beyond any network's input: a wrong number fails here and not in an allocation.
inline constexpr int side_max = 65'535;

/// The geometry of a chain while it is checked, before there is a picture: enough to refuse what cannot be folded into a single
/// resampling (two scalings, a scaling after a crop, a crop that would look outside an earlier one), and numbers out of range.
/// check() throws error{errc::usage}, which names the transform.
class geometry_check {
 public:
  /// Of a chain, or of steps each by itself, whose neighbours are not known.
  enum class of : std::uint8_t { chain, single_steps };
  explicit geometry_check(of what = of::chain) noexcept : what_(what) {}

  void check(const transforms::random_resized_crop& step);
  void check(const transforms::resize& step);
  void check(const transforms::longest_side& step);
  void check(const transforms::smallest_side& step);
  void check(const transforms::random_scale& step);
  void check(const transforms::letterbox& step);
  void check(const transforms::pad_to& step);
  void check(const transforms::center_crop& step);
  void check(const transforms::random_crop& step);
  void check(const transforms::random_flip& step);
  void check(const transforms::random_zoom_out& step);
  void check(const transforms::random_iou_crop& step);

  /// Whether a step can follow only where geometry is fused: a second scaling, a scaling after a crop, a crop that would look outside
  /// an earlier one.
  template <class Step>
  [[nodiscard]] bool needs_fusing(const Step& step) const noexcept {
    if constexpr (std::same_as<Step, transforms::random_flip>) {
      return false;
    } else if constexpr (std::same_as<Step, transforms::random_scale>) {
      return rescaled_ || cropped_;
    } else if constexpr (std::same_as<Step, transforms::random_zoom_out>) {
      return scaled_ || cropped_ || zoomed_ || has_part_;
    } else if constexpr (std::same_as<Step, transforms::center_crop> || std::same_as<Step, transforms::random_crop> ||
                         std::same_as<Step, transforms::pad_to>) {
      return cropped_ && (step.height > cropped_->first || step.width > cropped_->second || pads(step));
    } else {
      return scaled_ || cropped_;
    }
  }
  /// What follows is of the picture as it is now.
  void begin_again() noexcept {
    scaled_ = rescaled_ = has_part_ = false;
    zoomed_.reset();
    cropped_.reset();
  }

  /// Height and width, where the chain fixes them.
  [[nodiscard]] const std::optional<std::pair<int, int>>& size() const noexcept { return size_; }
  /// Whether two draws of one picture can differ. A flip that is always or never done, and a crop that has one place only, do not.
  [[nodiscard]] bool random() const noexcept { return random_; }

 private:
  static bool pads(const transforms::random_crop& step) noexcept { return step.padding > 0; }
  static bool pads(const transforms::center_crop&) noexcept { return false; }
  static bool pads(const transforms::pad_to&) noexcept { return false; }
  void scale(const char* name);
  void crop(const char* name, int height, int width, int padding);
  void stand_first(const char* name) const;
  void pad(const char* name, const std::array<int, 3>& fill, padding_mode mode) const;

  of what_;
  bool scaled_ = false;
  bool rescaled_ = false;  // by random_scale
  bool has_part_ = false;  // of random_iou_crop
  bool random_ = false;
  std::optional<std::array<int, 3>> zoomed_;    // fill of random_zoom_out
  std::optional<std::pair<int, int>> cropped_;  // height, width of the last crop
  std::optional<std::pair<int, int>> size_;
  std::optional<std::pair<int, int>> most_;  // height and width are at most these
};

/// The transforms folded so far. Coordinates are of the picture as the next transform sees it: mirrored after a flip.
class geometry_folding {
 public:
  ///   boxes   what random_iou_crop looks at, seen in this picture
  geometry_folding(int width, int height, const seen_boxes& boxes = {}) noexcept;

  void fold(const transforms::random_resized_crop& step, random_draws draws) noexcept;
  void fold(const transforms::resize& step) noexcept;
  void fold(const transforms::longest_side& step) noexcept;
  void fold(const transforms::smallest_side& step) noexcept;
  void fold(const transforms::random_scale& step, random_draws draws) noexcept;
  void fold(const transforms::letterbox& step) noexcept;
  void fold(const transforms::pad_to& step) noexcept;
  void fold(const transforms::center_crop& step) noexcept;
  void fold(const transforms::random_crop& step, random_draws draws) noexcept;
  void fold(const transforms::random_flip& step, random_draws draws) noexcept;
  void fold(const transforms::random_zoom_out& step, random_draws draws) noexcept;
  void fold(const transforms::random_iou_crop& step, random_draws draws) noexcept;

  [[nodiscard]] geometry result(int out_width, int out_height) const noexcept;
  /// What the next transform sees, as a picture of its own: sides of more than side_most are taken for such.
  static constexpr int side_most = 1 << 30;
  [[nodiscard]] int width() const noexcept { return static_cast<int>(std::min<std::int64_t>(width_, side_most)); }
  [[nodiscard]] int height() const noexcept { return static_cast<int>(std::min<std::int64_t>(height_, side_most)); }

 private:
  void crop(std::int64_t x, std::int64_t y, int crop_width, int crop_height) noexcept;
  void crop_at(placement position, int crop_width, int crop_height) noexcept;
  void scale(std::int64_t to_width, std::int64_t to_height, filter how) noexcept;
  void scale_by(double factor, filter how) noexcept;
  [[nodiscard]] bool is_larger(int height, int width) const noexcept { return height > height_ || width > width_; }
  void pad(padding_mode mode, const std::array<int, 3>& fill) noexcept;

  // What is scaled, in pixels of the picture: a part of it, or a canvas that it lies on.
  struct frame {
    std::int64_t x = 0;
    std::int64_t y = 0;
    std::int64_t width = 0;
    std::int64_t height = 0;
  };
  void take_frame(std::int64_t x, std::int64_t y, std::int64_t width, std::int64_t height) noexcept;

  const int picture_width_;
  const int picture_height_;
  const seen_boxes boxes_;
  frame frame_;
  bool has_window_ = false;
  std::int64_t width_;  // of what the next transform sees
  std::int64_t height_;
  geometry result_;  // its box and what goes by that: of the frame
};

}  // namespace leat::pixels
