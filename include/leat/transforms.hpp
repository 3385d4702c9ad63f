// Transforms of pictures, as plain values: crops, flips and colour. leat::image holds a list of them, and draws their
// random numbers for each sample from (seed, epoch, draw).
#pragma once

#include <leat/compiler.hpp>
#include <leat/draws.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

class description;
class transform;

/// How a picture is resampled. bilinear and bicubic are antialiased when they shrink, as in Pillow.
enum class filter : std::uint8_t { nearest, bilinear, bicubic };

/// What pixels outside of a picture are: a colour, that of the nearest pixel, or the picture mirrored at its outermost
/// pixels, which come once.
enum class padding_mode : std::uint8_t { constant, edge, reflect };

/// How often a picture is rounded on its way. exact: each step gives u8 to the next, as torchvision does. fused: the crops,
/// scalings, flips and warps of a chain are one matrix, and pixels are looked up once.
enum class pixel_rounding : std::uint8_t { exact, fused };

/// Where a picture lies in a larger one.
enum class placement : std::uint8_t { center, top_left, top_right, bottom_left, bottom_right };

/// The set that a policy of AutoAugment was learned on.
enum class learned_policy : std::uint8_t { imagenet, cifar10, svhn };

/// A table of new values: value v of channel c becomes values[c][v].
struct table {
  std::array<std::array<std::uint8_t, 256>, 3> values = {};

  /// `make(v)` for v = 0..255, clamped to 0..255 and truncated, as all colour is; the same for every channel.
  template <class Make>
  [[nodiscard]] static table of(Make&& make) {
    table made;
    for (int v = 0; v < 256; ++v) made.values[0][static_cast<std::size_t>(v)] = to_value(static_cast<double>(make(v)));
    made.values[1] = made.values[2] = made.values[0];
    return made;
  }
  /// `make(c, v)` for each channel c, red first.
  template <class Make>
  [[nodiscard]] static table of_channels(Make&& make) {
    table made;
    for (int c = 0; c < 3; ++c) {
      for (int v = 0; v < 256; ++v) {
        made.values[static_cast<std::size_t>(c)][static_cast<std::size_t>(v)] =
            to_value(static_cast<double>(make(c, v)));
      }
    }
    return made;
  }

  friend bool operator==(const table&, const table&) = default;

 private:
  static constexpr std::uint8_t to_value(double v) noexcept {
    return static_cast<std::uint8_t>(v > 0 ? (v < 255 ? v : 255) : 0);
  }
};

/// A picture of three planes of u8, as it lies in a decode thread's memory. Line y of channel c has `width` values.
struct planes {
  std::uint8_t* first = nullptr;
  int height = 0;
  int width = 0;
  std::ptrdiff_t line_step = 0;
  std::ptrdiff_t plane_step = 0;

  [[nodiscard]] std::uint8_t* line(int channel, int y) const noexcept {
    return first + channel * plane_step + y * line_step;
  }
};

namespace transforms {

/// torchvision's RandomResizedCrop: a box of random area and aspect ratio, scaled to height x width.
struct random_resized_crop {
  int height = 224;
  int width = 224;
  std::array<double, 2> scale = {0.08, 1.0};             ///< share of the picture's area
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};  ///< width / height
  filter how = filter::bilinear;
};

/// Scales the shorter side to `shorter_side` (torchvision's Resize(int)); or, where that is 0, to height x width.
struct resize {
  int shorter_side = 0;
  int height = 0;
  int width = 0;
  filter how = filter::bilinear;
};

/// Scales the longer side to `size`; sides are rounded, as in Albumentations' LongestMaxSize.
struct longest_side {
  int size = 640;
  filter how = filter::bilinear;
};

/// Scales the shorter side to `size`; sides are rounded, as in Albumentations' SmallestMaxSize (resize() truncates).
struct smallest_side {
  int size = 640;
  filter how = filter::bilinear;
};

/// Scales both sides by one factor, drawn from [from, to] of 0.01 to 100; sides are truncated. Behind another scaling it
/// changes that one's size, so that the picture is resampled once (torchvision's ScaleJitter).
struct random_scale {
  std::array<double, 2> factor = {0.5, 2};
};

/// Scales the picture to fit into height x width, and lays it in the middle, as Ultralytics' LetterBox.
struct letterbox {
  int height = 640;
  int width = 640;
  std::array<int, 3> fill = {114, 114, 114};
  filter how = filter::bilinear;
};

/// Pads to height x width. The steps before it say how large a picture can be: longest_side, or a size of two sides.
struct pad_to {
  int height = 640;
  int width = 640;
  std::array<int, 3> fill = {0, 0, 0};
  placement position = placement::center;
  padding_mode mode = padding_mode::constant;
};

/// The middle height x width, padded where the picture is smaller, as torchvision's CenterCrop; or that of a corner.
struct center_crop {
  int height = 224;
  int width = 224;
  std::array<int, 3> fill = {0, 0, 0};
  padding_mode mode = padding_mode::constant;
  placement position = placement::center;
};

/// A random height x width window of the picture padded by `padding` on every side.
struct random_crop {
  int height = 32;
  int width = 32;
  int padding = 0;
  std::array<int, 3> fill = {0, 0, 0};
  padding_mode mode = padding_mode::constant;
};

/// Flips left and right, with this probability.
struct random_flip {
  double probability = 0.5;
};

// Detection's crops. They stand before what scales or crops; a scaling to a fixed size, such as resize or letterbox, follows.

/// Lays the picture at a random place of a canvas `side` times as wide and high, with this probability. Where a scaling
/// follows, the picture is scaled by itself, and its edges are rounded to pixels of the row.
///   side     drawn from [from, to] of 1 to 100
///   source   torchvision.transforms.v2.RandomZoomOut, which has the same probability
struct random_zoom_out {
  std::array<double, 2> side = {1, 4};
  double probability = 0.5;
  std::array<int, 3> fill = {0, 0, 0};
};

/// A part of the picture that has the middle of a box in it, and overlaps such a box by what is drawn from `options`.
///   scale     of each side, by the picture's
///   ratio     width / height
///   options   the least overlap, intersection by union; 1 or more: the picture stays as it is
///   trials    parts that are tried for an option, before another is drawn
///   boxes     the name of a field of leat::boxes, all of which count; empty: the one that follows the picture
///   none      without boxes, and where 100 options have led to nothing, the picture stays as it is
///   throws    (when the loader is built) error{errc::usage}: no such field, or several without a name; boxes of another
///             picture
///   source    Liu et al., "SSD", ECCV 2016, as torchvision.transforms.v2.RandomIoUCrop. It also drops the boxes whose middle
///             lies outside: boxes::center_inside()
struct random_iou_crop {
  std::array<double, 2> scale = {0.3, 1};
  std::array<double, 2> ratio = {0.5, 2};
  std::vector<double> options = {0, 0.1, 0.3, 0.5, 0.7, 0.9, 1};
  int trials = 40;
  std::string boxes = {};
};

// Colour. Each step takes u8 and gives u8, as torchvision.transforms.v2 on u8 tensors; docs/internals/pixels.md has the
// rules. Steps act in the order written, after the picture was cropped, scaled and flipped.
//   factor   drawn uniformly in [from, to]; {1.3, 1.3} is always 1.3

/// Brightness: a factor of 0 gives black, 1 changes nothing. Factors are not negative.
struct brightness {
  std::array<double, 2> factor = {1, 1};
};
/// Contrast: a factor of 0 gives the mean of the picture's grey, 1 changes nothing. Factors are not negative.
struct contrast {
  std::array<double, 2> factor = {1, 1};
};
/// Saturation: a factor of 0 gives grey, 1 changes nothing. Factors are not negative.
struct saturation {
  std::array<double, 2> factor = {1, 1};
};
/// Turns the hue by `shift` of a whole turn, from -0.5 to 0.5.
struct hue {
  std::array<double, 2> shift = {0, 0};
};
/// Gamma: (v / 255) ^ exponent. Exponents are above 0.
struct gamma {
  std::array<double, 2> exponent = {1, 1};
};
/// Brightness, contrast and saturation by factors within 1 - x .. 1 + x (not below 0), hue by -x .. x, in a random
/// order. What is 0 is left out.
struct color_jitter {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;
};
/// Sets all three channels to 0.2989 r + 0.587 g + 0.114 b.
struct grayscale {};
/// Inverts each value: 255 - v.
struct invert {};
/// Keeps the upper bits of each value, 0 to 8 of them.
struct posterize {
  int bits = 4;
};
/// Inverts values that are not below the threshold, 0 to 256.
struct solarize {
  int threshold = 128;
};
/// Adds `amount`, 0 to 255, to values below the threshold, 255 at most.
struct solarize_add {
  int amount = 0;
  int threshold = 128;
};
/// Stretches each channel to 0..255.
struct autocontrast {};
/// Equalises the histogram of each channel, as Pillow does.
struct equalize {};
/// Sharpness: a factor of 0 blurs, 1 changes nothing, more sharpens. Factors are not negative.
struct sharpness {
  std::array<double, 2> factor = {1, 1};
};
/// A Gaussian filter of kernel x kernel values, an odd number; the picture continues as its mirror image.
struct gaussian_blur {
  int kernel = 23;
  std::array<double, 2> sigma = {0.1, 2.0};
};
/// Puts the three channels in a random order.
struct channel_permutation {};
/// A table of your own. `make` is called by several threads at once, and must depend on its draws alone.
///   name   the key of its draws, and its name in a saved run: change it whenever `make` makes another table
struct lookup {
  std::string name;
  std::function<table(draws&)> make;
};
/// A function of your own that changes the picture in place. It is called by several threads at once, and must depend
/// on draws and pixels alone. It returns "", or why the sample is corrupt. An exception ends the run, as in a `custom`
/// field.
///   name   as that of a lookup
struct edit {
  std::string name;
  std::function<std::string(draws&, planes)> change;
};

// Warps. Each reads the picture as the steps before have left it and gives one of the same size, in u8. They stand among the
// steps of colour, in the order written, and may stand in groups.
//   fill     of pixels that lie outside of the picture: red, green, blue, 0..255
//   how      nearest or bilinear
//   center   of the turning, shearing and scaling, in shares of width and height from the upper left corner
//   source   torchvision.transforms.v2: RandomRotation, RandomAffine, RandomPerspective, on u8 tensors. It fills otherwise at a bilinear rim:
//            pixels outside of the picture count as `fill` here

/// Turns by an angle drawn from [from, to], counter-clockwise as in torchvision's rotate.
struct rotate {
  std::array<double, 2> degrees = {0, 0};
  filter how = filter::nearest;
  std::array<int, 3> fill = {0, 0, 0};
  std::array<double, 2> center = {0.5, 0.5};
};
/// Turned clockwise, moved by up to `translate` (shares of width and height, rounded to pixels), scaled, and sheared, in torchvision's order.
///   degrees, scale, shear_x, shear_y   drawn from [from, to]; shears in degrees
struct affine {
  std::array<double, 2> degrees = {0, 0};
  std::array<double, 2> translate = {0, 0};
  std::array<double, 2> scale = {1, 1};
  std::array<double, 2> shear_x = {0, 0};
  std::array<double, 2> shear_y = {0, 0};
  filter how = filter::nearest;
  std::array<int, 3> fill = {0, 0, 0};
  std::array<double, 2> center = {0.5, 0.5};
};
/// Shears by angles drawn from [from, to].
struct shear {
  std::array<double, 2> x = {0, 0};
  std::array<double, 2> y = {0, 0};
  filter how = filter::nearest;
  std::array<int, 3> fill = {0, 0, 0};
  std::array<double, 2> center = {0.5, 0.5};
};
/// Moves by shares of width and height drawn from [from, to], rounded to pixels.
struct translate {
  std::array<double, 2> x = {0, 0};
  std::array<double, 2> y = {0, 0};
  std::array<int, 3> fill = {0, 0, 0};
};
/// Moves each corner inwards, by up to this share of half the width and height.
struct perspective {
  double distortion = 0.5;
  filter how = filter::bilinear;
  std::array<int, 3> fill = {0, 0, 0};
};
/// Flips top and bottom.
struct vertical_flip {};

// Noise and damage, in place of the pixels that the steps before have left. Numbers are drawn for each picture; noise, which
// is the same on every machine, for each value.
//   kernel   odd; the odd numbers of the range are as likely as one another
//   source   Albumentations 2.0.8: GaussNoise, ISONoise, SaltAndPepper, CoarseDropout, ImageCompression, Downscale, MedianBlur,
//            MotionBlur, CLAHE

/// Adds a number of the normal law to every value. Both are shares of 255.
struct gaussian_noise {
  std::array<double, 2> mean = {0, 0};
  std::array<double, 2> sigma = {0.2, 0.44};
};
/// The noise of a camera's sensor: lightness is raised where light hits, and hues are turned.
///   color_shift   deviation of the hue, in degrees, of intensity 1
struct iso_noise {
  std::array<double, 2> color_shift = {0.01, 0.05};
  std::array<double, 2> intensity = {0.1, 0.5};
};
/// Makes pixels white or black, each by itself: `amount` of them on average, and `salt` of these white.
struct salt_and_pepper {
  std::array<double, 2> amount = {0.01, 0.06};
  std::array<double, 2> salt = {0.4, 0.6};
};
/// Fills rectangles. Their sides are shares of the picture's, drawn for each.
struct coarse_dropout {
  std::array<int, 2> holes = {1, 2};
  std::array<double, 2> height = {0.1, 0.2};
  std::array<double, 2> width = {0.1, 0.2};
  std::array<int, 3> fill = {0, 0, 0};
};
/// What the picture is after it was encoded as a JPEG and decoded, by libjpeg-turbo with 4:2:0, as Pillow and OpenCV do.
struct jpeg_quality {
  std::array<int, 2> quality = {60, 100};
};
/// Scales the picture down and up again, both times to the nearest pixel.
struct downscale {
  std::array<double, 2> scale = {0.25, 0.25};
};
/// The median of kernel x kernel values, 1 to 7; the picture continues as its outermost pixels.
struct median_blur {
  std::array<int, 2> kernel = {3, 7};
};
/// The mean of the pixels on a line of up to `kernel` of them, 1 to 31; the picture continues as its mirror image.
///   direction   -1: the line ends in the middle, 0: it has its middle there, 1: it begins there
///   shifted     and is moved by up to a quarter of the kernel
struct motion_blur {
  std::array<int, 2> kernel = {3, 7};
  std::array<double, 2> angle = {0, 360};
  std::array<double, 2> direction = {-1, 1};
  bool shifted = true;
};
/// Contrast limited adaptive equalisation, in tiles of the picture. It is of luma, which is added to all channels alike:
/// Albumentations goes by way of L*a*b*.
///   clip   how many times the mean of the histogram a value may have; 0: any
struct clahe {
  std::array<double, 2> clip = {1, 4};
  int rows = 8;
  int columns = 8;
};

// Policies: steps drawn from a published space of operations and magnitudes, warps and steps of colour.

/// Cubuk et al., "RandAugment", CVPRW 2020, as torchvision's RandAugment: `ops` operations, one after the other, each drawn
/// from 14; `magnitude` of `bins`, from 0.
struct rand_augment {
  int ops = 2;
  int magnitude = 9;
  int bins = 31;
  filter how = filter::nearest;
  std::array<int, 3> fill = {0, 0, 0};
};
/// Müller and Hutter, "TrivialAugment", ICCV 2021, as torchvision's TrivialAugmentWide: one operation of 14, at any of `bins` magnitudes.
struct trivial_augment {
  int bins = 31;
  filter how = filter::nearest;
  std::array<int, 3> fill = {0, 0, 0};
};
/// Cubuk et al., "AutoAugment", CVPR 2019, as torchvision's AutoAugment: two operations, by one of 25 learned pairs.
struct auto_augment {
  learned_policy policy = learned_policy::imagenet;
  filter how = filter::nearest;
  std::array<int, 3> fill = {0, 0, 0};
};

/// Hendrycks et al., "AugMix", ICLR 2020, as torchvision's AugMix: a weighted sum of the picture and of `width` chains of
/// operations of it.
///   severity   1 to 10: magnitudes are those of the first so many of 10 bins
///   depth      operations of a chain; 0: 1 to 3, drawn (torchvision's -1)
///   alpha      of the Dirichlet laws that the weights are drawn from, 0.05 to 100
///   all_ops    brightness, saturation, contrast and sharpness too
struct aug_mix {
  int severity = 3;
  int width = 3;
  int depth = 0;
  double alpha = 1;
  bool all_ops = true;
  filter how = filter::bilinear;
  std::array<int, 3> fill = {0, 0, 0};
};
/// timm's RandAugment, with its operations, levels and laws. Its own text is read too: "rand-m9-mstd0.5-inc1".
///   magnitude       0 to 100; what is above magnitude_max counts as that
///   probability     of each of the `ops` operations
///   magnitude_std   of a normal law around the magnitude. Above 100: uniform from 0 to the magnitude
///   increasing      all operations are stronger at a larger magnitude (inc1)
///   weighted        operations by timm's weights, none of them twice, all increasing (tweights)
///   how             timm draws bilinear or bicubic; here it is one of them, and bicubic is not there
///   fill            the mean of ImageNet, as timm's create_transform() has it
struct timm_rand_augment {
  int magnitude = 10;
  int ops = 2;
  double probability = 0.5;
  double magnitude_std = 0;
  int magnitude_max = 10;
  bool increasing = false;
  bool weighted = false;
  filter how = filter::bilinear;
  std::array<int, 3> fill = {124, 116, 104};
};

/// timm's AugMix: "augmix-m5-w4-d2". As aug_mix, with timm's operations, levels and way of mixing.
///   magnitude_std   as in timm_rand_augment; by default uniform from 0 to the magnitude
struct timm_augmix {
  int magnitude = 3;
  int width = 3;
  int depth = 0;
  double alpha = 1;
  double magnitude_std = 101;
  filter how = filter::bilinear;
  std::array<int, 3> fill = {124, 116, 104};
};

/// Overwrites a rectangle of the finished row, with this probability. It is the last step.
///   scale   its share of the area
///   ratio   height / width
///   value   of each channel, as an element of the batch: after normalize() 0 is the mean
///   noise   elements from the normal law N(0, 1) instead; not of u8
struct random_erasing {
  double probability = 0.5;
  std::array<double, 2> scale = {0.02, 0.33};
  std::array<double, 2> ratio = {0.3, 3.3};
  std::array<double, 3> value = {0, 0, 0};
  bool noise = false;
};

// Groups, of steps of colour and of groups.

/// Does all of the steps, with this probability, or none.
struct random_apply {
  double probability = 0.5;
  std::vector<transform> steps;
};
/// Does one of the steps.
///   weights   one for each step. Empty: all steps have the same probability
struct one_of {
  std::vector<transform> steps;
  std::vector<double> weights = {};
};
/// Does all of the steps, in a random order.
struct in_random_order {
  std::vector<transform> steps;
};

}  // namespace transforms

/// One step, or a group of steps: any struct of leat::transforms.
class transform {
  template <class... Steps>
  struct list {
    using variant = std::variant<Steps...>;
    template <class Step>
    [[nodiscard]] static constexpr bool has() noexcept {
      return (std::same_as<std::remove_cvref_t<Step>, Steps> || ...);
    }
  };
  using steps =
      list<transforms::random_resized_crop, transforms::resize, transforms::longest_side, transforms::smallest_side,
           transforms::random_scale, transforms::letterbox, transforms::pad_to, transforms::center_crop,
           transforms::random_crop, transforms::random_flip, transforms::random_zoom_out, transforms::random_iou_crop,
           transforms::brightness, transforms::contrast, transforms::saturation, transforms::hue, transforms::gamma,
           transforms::color_jitter, transforms::grayscale, transforms::invert, transforms::posterize,
           transforms::solarize, transforms::solarize_add, transforms::autocontrast, transforms::equalize,
           transforms::sharpness, transforms::gaussian_blur, transforms::channel_permutation, transforms::lookup,
           transforms::edit, transforms::rotate, transforms::affine, transforms::shear, transforms::translate,
           transforms::perspective, transforms::vertical_flip, transforms::gaussian_noise, transforms::iso_noise,
           transforms::salt_and_pepper, transforms::coarse_dropout, transforms::jpeg_quality, transforms::downscale,
           transforms::median_blur, transforms::motion_blur, transforms::clahe, transforms::rand_augment,
           transforms::trivial_augment, transforms::auto_augment, transforms::aug_mix, transforms::timm_rand_augment,
           transforms::timm_augmix, transforms::random_erasing, transforms::random_apply, transforms::one_of,
           transforms::in_random_order>;

 public:
  using variant = steps::variant;

  template <class Step>
    requires(steps::has<Step>())
  transform(Step&& step)  // NOLINT: a step is a transform.
      : what_(
            std::make_shared<const variant>(std::in_place_type<std::remove_cvref_t<Step>>, std::forward<Step>(step))) {}
  // Without moves, which would leave it without a step.
  transform(const transform&) noexcept = default;
  transform& operator=(const transform&) noexcept = default;

  [[nodiscard]] const variant& what() const noexcept { return *stored(); }
  /// The step, or null where it is another one.
  template <class Step>
  [[nodiscard]] const Step* get_if() const noexcept {
    return std::get_if<Step>(stored());
  }
  /// "random_flip", as the struct is called.
  [[nodiscard]] std::string_view name() const noexcept;

 private:
  [[nodiscard]] const variant* stored() const noexcept { return static_cast<const variant*>(what_.get()); }

  // A variant. Immutable, and shared by the copies of this value. Of no type here: a variant of so many types takes a tenth
  // of what loader.hpp takes to compile, and only who asks for a step needs it.
  std::shared_ptr<const void> what_;
};

/// A chain as text: "random_apply(0.8, color_jitter(0.4, 0.4, 0.4, 0.1)) random_apply(0.2, grayscale)". Arguments stand
/// in the order of the struct's members, and may be left out from the end; a range is 0.1..2, or a number alone; height
/// x width is 224x200, or 224. timm's own text is read as well: "rand-m9-mstd0.5-inc1".
///   throws   error{errc::usage} with the place of what is wrong, numbers out of range too; of lookup and edit, which
///            are functions
[[nodiscard]] std::vector<transform> parse_transforms(std::string_view text);
/// What parse_transforms() reads.
[[nodiscard]] std::string to_string(const transform& step);

/// Mixes the rows of a batch: mixup() and cutmix() here, mosaic() in <leat/mosaic.hpp>, which has rules of its own. By these
/// two row r is mixed with row r + 1, the last with the first. Only pictures of floats. A batch then also has `cls.partner`
/// for every label `cls`, and `mix.weight` (f32 [rows]), the share of the row's own label. The loss is
/// weight * loss(cls) + (1 - weight) * loss(cls.partner).
///   source   Zhang et al., "mixup", ICLR 2018; Yun et al., "CutMix", ICCV 2019. Each row draws its own weight
struct batch_mix {
  enum class kind : std::uint8_t { none, mixup, cutmix, mosaic };
  kind what = kind::none;
  double alpha = 0;  ///< weights are drawn from Beta(alpha, alpha), 0 < alpha <= 100; of mosaic: the probability

  /// Nothing where nothing is mixed.
  void describe(description& out) const;

  friend bool operator==(const batch_mix&, const batch_mix&) = default;
};

/// As v2.MixUp: a picture becomes weight * own + (1 - weight) * partner.
[[nodiscard]] constexpr batch_mix mixup(double alpha = 0.2) noexcept { return {batch_mix::kind::mixup, alpha}; }
/// As v2.CutMix: a box of the partner's picture replaces that of the row; the weight is the share that is left of the
/// row's own.
[[nodiscard]] constexpr batch_mix cutmix(double alpha = 1.0) noexcept { return {batch_mix::kind::cutmix, alpha}; }

/// Mean and standard deviation of each channel, for pixels of 0 to 1.
struct normalization {
  std::array<double, 3> mean = {0, 0, 0};
  std::array<double, 3> deviation = {1, 1, 1};
};

/// The usual mean and deviation of ImageNet.
inline constexpr normalization imagenet{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};

}  // namespace leat
#pragma GCC visibility pop
