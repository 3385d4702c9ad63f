// Fields: what a batch holds. A field decodes one member of each sample to an output of the batch: a picture to pixels,
// a class to a number, a text to its bytes. Fields are values; the loader binds them to its dataset.
//
// The name of a field is the name of its output. It is also the member of the sample that it reads, unless from() names
// another. Several fields may read one member, which is read once for all of them.
#pragma once

#include <leat/compiler.hpp>
#include <leat/tensor.hpp>
#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::stages {
class field_model;  // stages/batch/field_model.hpp: what a field becomes inside the loader
}

#pragma GCC visibility push(default)
namespace leat {

class dataset;
struct picture_geometry;

/// Any field. image, label, text, bytes, sequence, graph, array, stack, columns, tokens, custom and collated convert to
/// it.
class field {
 public:
  explicit field(std::shared_ptr<const stages::field_model> model);
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const stages::field_model& model() const noexcept { return *model_; }

 private:
  std::shared_ptr<const stages::field_model> model_;  // Immutable, and shared by the copies of this value.
};

/// What decodes JPEG files: image::decoder().
///   turbo    (default) libjpeg-turbo and code of leat, on the host; photo packs also on a device. The same bits
///            everywhere
///   nvjpeg   NVIDIA's nvJPEG, on the device that batches go to. Slightly other pixels
enum class jpeg_decoder : std::uint8_t { turbo, nvjpeg };

/// How a JPEG whose end is missing is treated: image::truncated().
///   refuse   (default) a corrupt sample, even if the crop needs only the part that is there
///   accept   the missing part is grey (in a progressive file: blurred), as with Pillow's LOAD_TRUNCATED_IMAGES
enum class truncated_jpeg : std::uint8_t { refuse, accept };

/// A picture, with transforms as in torchvision and resampling as in Pillow: JPEG, PNG, WebP, BMP, GIF, TIFF of 8 bits or
/// a photo pack, by its content; of an animation its first frame. Or an array of pixels.
///   reads      the member of this name, or of from(). "jpg" also finds jpeg, png, webp, bmp, gif, tif, tiff, ppm, pgm
///              and jpe, and the picture of a folder
///   arrays     rows of a tensor, and .npy members: [height, width], [height, width, channels] or [channels, height,
///              width] of 1, 3 or 4 channels, as a PNG of these pixels. u8; floats from 0 to 1; u16 after white().
///              Where no step says otherwise, rows of a tensor keep their size
///   output     `name`: f32 [rows, 3, height, width]; as() changes dtype and layout. u8 is the pixel, 0..255. Floats
///              are u8 / 255, or (u8 / 255 - mean) / deviation after normalize()
///   corrupt    cut, or damaged inside the region that is decoded; an unsupported format; more than pixels_max() pixels
///   limit      a picture that takes more than a quarter of host_bytes_max to decode is corrupt. The reason names the
///              budget that works; with on_corrupt = raise it ends the run with error{errc::limit}
///   views      several image fields of one member are views of it, each with its own random numbers. Views are
///              numbered in the order of the fields, without those that are not random. Fields of different members draw
///              the same numbers, first view as first view; but a mask, boxes and points follow a picture by its name:
///              <leat/targets.hpp>. loader::plan() says which views share one decode
///   throws     (when the loader is built) error{errc::usage} for transforms that do not go together. A function of
///              yours (transforms::lookup, transforms::edit) that throws ends the run, as in a `custom` field
///
///     image{"view1"}.from("jpg").random_resized_crop(224), image{"view2"}.from("jpg").random_resized_crop(224)
class image {
 public:
  explicit image(std::string name = "jpg");

  /// Reads this member of a sample; the name of the field is then the name of its output only.
  [[nodiscard]] image from(std::string member) const;

  [[nodiscard]] image random_resized_crop(int size, std::array<double, 2> scale = {0.08, 1.0},
                                          std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0},
                                          filter how = filter::bilinear) const;
  [[nodiscard]] image resize(int shorter_side, filter how = filter::bilinear) const;
  [[nodiscard]] image resize(int height, int width, filter how = filter::bilinear) const;
  /// The picture whole, scaled to fit and laid in the middle of size x size of the colour `fill`.
  [[nodiscard]] image letterbox(int size, int fill = 114) const;
  [[nodiscard]] image longest_side(int size, filter how = filter::bilinear) const;
  [[nodiscard]] image smallest_side(int size, filter how = filter::bilinear) const;
  [[nodiscard]] image random_scale(std::array<double, 2> factor) const;
  [[nodiscard]] image pad_to(transforms::pad_to how) const;
  [[nodiscard]] image center_crop(int size) const;
  [[nodiscard]] image random_crop(int size, int padding = 0) const;
  [[nodiscard]] image random_flip(double probability = 0.5) const;
  // Templates, so that only who calls them pays for a list of all steps.
  template <class How = transforms::random_zoom_out>
  [[nodiscard]] image random_zoom_out(How how = {}) const {
    return apply(transform(std::move(how)));
  }
  template <class How = transforms::random_iou_crop>
  [[nodiscard]] image random_iou_crop(How how = {}) const {
    return apply(transform(std::move(how)));
  }
  [[nodiscard]] image apply(transform step) const;
  /// All steps of a text, as parse_transforms() reads them: "rand-m9-mstd0.5-inc1" is timm's.
  [[nodiscard]] image augment(std::string_view steps) const;

  // Colour, after crop, resize and flip, in the order of the calls. A range is what a factor is drawn from: {0.6, 1.4};
  // {1.3, 1.3} is always 1.3. See leat::transforms.
  [[nodiscard]] image brightness(std::array<double, 2> factor) const;
  [[nodiscard]] image contrast(std::array<double, 2> factor) const;
  [[nodiscard]] image saturation(std::array<double, 2> factor) const;
  [[nodiscard]] image hue(std::array<double, 2> shift) const;
  [[nodiscard]] image gamma(std::array<double, 2> exponent) const;
  [[nodiscard]] image color_jitter(double brightness, double contrast = 0, double saturation = 0, double hue = 0) const;
  [[nodiscard]] image grayscale() const;
  [[nodiscard]] image invert() const;
  [[nodiscard]] image posterize(int bits) const;
  [[nodiscard]] image solarize(int threshold) const;
  [[nodiscard]] image autocontrast() const;
  [[nodiscard]] image equalize() const;
  [[nodiscard]] image sharpness(std::array<double, 2> factor) const;
  [[nodiscard]] image gaussian_blur(int kernel, std::array<double, 2> sigma = {0.1, 2.0}) const;
  [[nodiscard]] image channel_permutation() const;
  [[nodiscard]] image lookup(std::string name, std::function<table(draws&)> make) const;
  [[nodiscard]] image edit(std::string name, std::function<std::string(draws&, planes)> change) const;

  // Warps and policies: among the steps of colour, in the order of the calls. A number is that value, two are a range.
  [[nodiscard]] image rotate(double degrees) const;
  [[nodiscard]] image rotate(double from, double to) const;
  [[nodiscard]] image affine(transforms::affine how) const;
  [[nodiscard]] image perspective(double distortion = 0.5) const;
  [[nodiscard]] image vertical_flip() const;
  [[nodiscard]] image rand_augment(transforms::rand_augment how = {}) const;
  [[nodiscard]] image trivial_augment(transforms::trivial_augment how = {}) const;
  [[nodiscard]] image auto_augment(learned_policy policy = learned_policy::imagenet) const;

  [[nodiscard]] image random_apply(double probability, std::vector<transform> steps) const;
  [[nodiscard]] image one_of(std::vector<transform> steps, std::vector<double> weights = {}) const;
  [[nodiscard]] image in_random_order(std::vector<transform> steps) const;
  /// The last step: with this probability a rectangle of the finished row becomes `value`; after normalize() 0 is the
  /// mean.
  [[nodiscard]] image random_erasing(double probability = 0.5, std::array<double, 2> scale = {0.02, 0.33},
                                     std::array<double, 2> ratio = {0.3, 3.3}, double value = 0) const;

  /// Floats become (u8 / 255 - mean) / deviation, as ToTensor() and Normalize(); rounded twice.
  [[nodiscard]] image normalize(const normalization& statistics) const;
  [[nodiscard]] image as(dtype type) const;
  [[nodiscard]] image as(layout order) const;
  /// 1: grey, as torchvision's Grayscale(1): the last step makes the picture grey, and one plane of it is kept; normalize()
  /// takes the first mean and deviation. 3 (default): RGB. Other counts, and bits(): so many channels as stored.
  ///   output   [rows, count, height, width]
  [[nodiscard]] image channels(int count) const {
    image changed = *this;
    changed.settings_.channels = count;
    return changed;
  }
  /// Reads PNG and TIFF of 16 bits, or TIFF of 32 (float, integer), without reducing them to 8.
  ///   output    16: u16, 32: f32, the numbers as stored; as() changes the dtype. Floats of 16 bits, and normalized ones:
  ///             number / 65535, or / white(). Signed and float numbers are divided by white() only
  ///   channels  as many as stored, without alpha; a grey picture also fills 3
  ///   steps     crop, resize (antialiased, rounded once), flip, padding with 0, with the numbers drawn for 8 bits;
  ///             masks and boxes follow
  ///   TIFF      the first page; strips or tiles, compressed by LZW, Deflate, Zstandard or PackBits
  ///   corrupt   another number of bits or channels; a number that the dtype cannot hold
  ///   throws    (when the loader is built) error{errc::usage}: other bits than 8 (default), 16 and 32; steps of colour,
  ///             warps and policies, which are of 8 bits only
  [[nodiscard]] image bits(int per_sample) const {
    image changed = *this;
    changed.settings_.bits = per_sample;
    return changed;
  }
  /// Turns the picture upright first, as its EXIF or XMP says, like Pillow's ImageOps.exif_transpose. Default: off, as
  /// in torchvision.
  [[nodiscard]] image exif_orientation(bool on = true) const;
  [[nodiscard]] image truncated(truncated_jpeg how) const;
  /// Pictures with alpha are laid over this colour, each channel 0 to 255, before they are resampled. Default: alpha is
  /// dropped, as with Pillow's convert("RGB").
  ///   throws   error{errc::usage} for a channel that is not from 0 to 255
  [[nodiscard]] image background(int red, int green, int blue) const;
  /// Where an array has its channels, if its shape does not tell: nchw is [channels, height, width]. Four planes are
  /// always to be said.
  [[nodiscard]] image stored(layout order) const;
  /// The number that is white in an array, and with bits(); 0 is black. Arrays become 0 to 255, rounded.
  /// Default: 255 of u8, 1 of floats, 65535 with bits(16). In an array a sample with another number is corrupt.
  ///   throws   error{errc::usage} for a number that is not above 0
  [[nodiscard]] image white(double number) const;
  /// Lets the JPEG decoder reduce the picture to 1/2, 1/4 or 1/8 while the crop stays at least as large as the output:
  /// faster, and slightly other pixels. Default: on if a crop or flip is random, else off (a flip of probability 0 or 1
  /// is not random).
  [[nodiscard]] image decimate(bool on) const;
  /// How often pixels are rounded. Default: exact, each step as torchvision does it. fused makes one matrix of all crops,
  /// scalings, flips and warps and looks pixels up once: sharper, with real pixels where exact has corners of
  /// `fill`, which lies only outside of the picture. Steps of colour are done after it. Rows without a warp are exact's.
  ///   throws   (when the loader is built) error{errc::usage} for what is no single matrix: AugMix, fills that differ,
  ///            padding other than a colour, a warp behind a blur, noise or an edit
  [[nodiscard]] image rounding(pixel_rounding how) const;
  /// What decodes JPEG files. Default: turbo. nvjpeg has to be asked for: its pixels differ slightly from turbo's, and
  /// may differ between GPUs and versions of the library.
  ///   decodes    nvjpeg takes baseline files of one scan, grey or YCbCr, that fit the slot of their row. The host
  ///              decodes all others, as turbo: headers and sizes alone decide, and stats().device counts both. nvjpeg
  ///              ignores decimate()
  ///   needs      nvjpeg needs a loader with a device and finish_on_device, without digests or an edit
  ///   throws     (when the loader is built) error{errc::unsupported} without a GPU or the library (libnvjpeg.so.13 or
  ///              .12, or what the environment's LEAT_NVJPEG names); error{errc::usage} for what does not go with it
  [[nodiscard]] image decoder(jpeg_decoder which) const;
  /// Pictures with more pixels are corrupt samples. Default: 178 956 970, Pillow's limit against decompression bombs.
  [[nodiscard]] image pixels_max(std::int64_t pixels) const;
  /// Draws by this name, and not as a numbered view of its member: pictures of one group are cropped, flipped and warped
  /// alike, wherever they stand. View k of leat::views() is of the group `name/k`.
  ///   throws   (when the loader is built) error{errc::usage} where two of a group have other steps of geometry
  [[nodiscard]] image together(std::string group) const;

  operator field() const;  // NOLINT: a picture is a field.

  /// The settings that the functions above change.
  struct settings {
    std::string name;
    std::string member;  ///< the name, unless from() was called
    std::vector<transform> steps;
    std::optional<normalization> statistics;
    dtype type = dtype::f32;
    layout order = layout::nchw;
    bool exif_orientation = false;
    truncated_jpeg truncated = truncated_jpeg::refuse;
    std::optional<std::array<std::uint8_t, 3>> background;
    std::optional<layout> stored;
    std::optional<double> white;
    std::optional<bool> decimate;
    jpeg_decoder decoder = jpeg_decoder::turbo;
    pixel_rounding rounding = pixel_rounding::exact;
    std::int64_t pixels_max = 178'956'970;
    std::string group = {};  ///< together(); empty: it is numbered
    int channels = 3;
    int bits = 8;
    bool typed = false;  ///< as(dtype) was called
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  settings settings_;
};

/// A number, or a few numbers.
///   reads      text: an integer, a float, or a vector with blanks or commas between its numbers; with key(), the
///              member of a JSON object. A tensor: one element, or as many as vector() says. If the dataset has no such
///              member but a column of this name (classes of a folder, numbers of a table), the column
///   output     `name`: i64 [rows]; of a column of floats the type in which they are stored (f16 becomes f32); [rows,
///              length] after vector(). as() changes the type
///   corrupt    text that is no such number, a vector of another length
///   throws     when the loader is built, error{errc::usage}: a picture, tokens, or a tensor of another number of elements
class label {
 public:
  explicit label(std::string name = "cls");
  /// Reads this member or column.
  [[nodiscard]] label from(std::string member) const;
  [[nodiscard]] label as(dtype type) const;
  [[nodiscard]] label vector(std::int64_t length) const;
  [[nodiscard]] label key(std::string json_key) const;

  operator field() const;  // NOLINT: a label is a field.

  struct settings {
    std::string name;
    std::string member;         ///< the name, unless from() was called
    std::optional<dtype> type;  ///< unless as() was called: i64, or of floats theirs
    std::optional<std::int64_t> length;
    std::string json_key;
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  settings settings_;
};

/// The bytes of a member as they are; rows differ in length.
///   output     `name`: u8 [bytes of all rows], and `name`.offsets: i64 [rows + 1]. Row r is [offsets[r], offsets[r +
///              1]), or batch.bytes(name, r)
class bytes {
 public:
  explicit bytes(std::string name);
  /// Reads this member of a sample.
  [[nodiscard]] bytes from(std::string member) const;
  /// Samples of more bytes are corrupt, and no memory is planned for them. Without it the largest sample decides how
  /// much memory a batch takes.
  [[nodiscard]] bytes bytes_max(std::size_t most) const;
  operator field() const;  // NOLINT: bytes are a field.

 private:
  std::string name_;
  std::string member_;
  std::optional<std::size_t> bytes_max_;
};

/// Text: as bytes, and corrupt if it is not UTF-8.
class text {
 public:
  explicit text(std::string name = "txt");
  /// Reads this member of a sample.
  [[nodiscard]] text from(std::string member) const;
  /// Samples of more bytes are corrupt, and no memory is planned for them. Without it the largest sample decides how
  /// much memory a batch takes.
  [[nodiscard]] text bytes_max(std::size_t most) const;
  operator field() const;  // NOLINT: a text is a field.

 private:
  std::string name_;
  std::string member_;
  std::optional<std::size_t> bytes_max_;
};

/// A list of numbers of any length in each row: token ids, boxes, signals. pad() fills rows up, as pad_sequence() does.
///   reads      text: a JSON list, "[1, 2, 3]", or numbers with blanks or commas between them. Of a field of tensors or
///              tokens, of a column of lists (except of u8), and after stored(): elements of that dtype, little-endian,
///              one after another. Of a member called "npy" or "ids.npy": a .npy file of one axis, with its own dtype
///   output     `name`: i64 [elements of all rows], as() changes the type; and `name`.offsets: i64 [rows + 1], in
///              elements. Row r is [offsets[r], offsets[r + 1])
///   padded     after pad(): `name`: [rows, length], and `name`.length: i64 [rows], without the padding; after mask()
///              also `name`.mask: boolean [rows, length], true for elements of the row itself. Each batch has its own
///              length: that of its longest row, at most `max`, rounded up to a multiple. A row that turns out to be
///              corrupt counts; not so of texts and values in records, whose numbers are known only when they are read.
///              Of these a batch takes memory for the most elements that the stored bytes can hold
///   corrupt    text that is no such list; a .npy that is damaged or has another number of axes; a number that does not
///              fit the dtype; after pad() a row of more than `max` elements, unless truncate() cuts it. A substitute
///              that is longer than the rows of its batch is drawn again, which counts as a try. If the batch has short
///              rows only, that may end the run
///   digests    of the elements of a row, without padding
///   throws     (when the loader is built) error{errc::usage}: no `max`, though lengths are known only when rows are
///              read
///   types      u8 to i64, f32, f64
class sequence {
 public:
  /// Rows are filled with `value` up to the longest row of the batch, rounded up to a multiple.
  struct padding {
    std::int64_t multiple = 1;
    std::int64_t max = 0;  ///< the most elements of a row; 0 (default): as the dataset says
    double value = 0;
  };

  explicit sequence(std::string name) { settings_.name = settings_.member = std::move(name); }
  /// Reads this member of a sample.
  [[nodiscard]] sequence from(std::string member) const {
    return with([&](settings& to) { to.member = std::move(member); });
  }
  [[nodiscard]] sequence as(dtype type) const {
    return with([&](settings& to) { to.type = type; });
  }
  /// The bytes of the member are elements of this dtype, and not text.
  [[nodiscard]] sequence stored(dtype type) const {
    return with([&](settings& to) { to.stored = type; });
  }
  /// Samples with more stored bytes are corrupt, and no memory is planned for them.
  [[nodiscard]] sequence bytes_max(std::size_t most) const {
    return with([&](settings& to) { to.bytes_max = most; });
  }
  [[nodiscard]] sequence pad(padding how) const {
    return with([&](settings& to) { to.padding = how; });
  }
  [[nodiscard]] sequence truncate() const {
    return with([](settings& to) { to.truncate = true; });
  }
  [[nodiscard]] sequence mask() const {
    return with([](settings& to) { to.mask = true; });
  }
  /// Tokens that were made before: the rows of an order packed(), as those of tokenize(). Fields of the same lengths
  /// (labels) lie in the same places; pad({.value = -100}) says what stands there where no sample is.
  ///
  ///     options.order = packed(2048);
  ///     loader train{open("tokens/*.parquet"), options, sequence("input_ids").packed()};
  [[nodiscard]] sequence packed() const {
    return with([](settings& to) { to.packed = true; });
  }
  operator field() const;  // NOLINT: a sequence is a field.

  struct settings {
    std::string name;
    std::string member;
    dtype type = dtype::i64;
    std::optional<dtype> stored;
    std::optional<std::size_t> bytes_max;
    std::optional<sequence::padding> padding;
    bool truncate = false;
    bool mask = false;
    bool packed = false;
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  template <class Change>
  [[nodiscard]] sequence with(const Change& change) const {
    sequence changed = *this;
    change(changed.settings_);
    return changed;
  }

  settings settings_;
};

/// Graphs: nodes and edges of each sample, joined to one graph of the batch, as PyTorch Geometric's Batch.
///
///     leat::graph{}.x({.member = "node_feat", .width = 9}).edge_attr({.member = "edge_attr", .width = 3})
///
///   reads      as sequence: text, or elements of the dtype that the dataset or `stored` says. A text may have nested
///              lists, "[[0, 1], [1, 0]]". x and edge_attr: the features of one node or edge after another. edge_index:
///              the begins of all edges, then their ends, by the nodes of the sample from 0
///   output     `x`: [nodes of all rows, width]; `edge_index`: i64 [2, edges of all rows], by the nodes of the batch;
///              after edge_attr() `edge_attr`: [edges of all rows, width]; `batch`: i64 [nodes of all rows], the row of
///              each node; `ptr`: i64 [rows + 1], the first node of each row, and the number of all
///   corrupt    an edge to a node that does not exist; numbers that are not a multiple of the width; more or fewer
///              attributes than edges; what is corrupt in a sequence
///   digests    of a row: its nodes, its edges by the nodes of the sample, their attributes
///   throws     (when the loader is built) error{errc::usage}: a width below 1, a dtype that sequence does not have, a
///              second graph
class graph {
 public:
  /// Numbers of each node or edge.
  ///   stored   the bytes of the member are elements of this dtype, and not text
  struct features {
    std::string member;
    std::int64_t width = 1;
    dtype type = dtype::f32;
    std::optional<dtype> stored = {};
  };

  [[nodiscard]] graph x(features of) const;
  [[nodiscard]] graph edge_index(std::string member, std::optional<dtype> stored = {}) const;
  [[nodiscard]] graph edge_attr(features of) const;
  operator field() const;  // NOLINT: a graph is a field.

  struct settings {
    features x{.member = "x"};
    std::string edge_index = "edge_index";
    std::optional<dtype> edges_stored;
    std::optional<features> edge_attr;
  };

 private:
  settings settings_;
};

/// Rows of a fixed dtype and shape (field_kind::tensor): of .npy, .npz, HDF5, Zarr, records and tensors in memory; and .npy members of
/// shards ("depth.npy"), all of the dtype and shape that the first sample's has.
///   output     `name`: [rows, shape...] of the stored dtype, the stored bytes as they are; with the steps below what
///              they make of them
class array {
 public:
  explicit array(std::string name);
  /// Reads this field of the dataset.
  [[nodiscard]] array from(std::string member) const;

  /// Part of each row; the output has its shape. Of an array in chunks (HDF5, Zarr) only the chunks of this part are
  /// read and expanded; of any other, the bytes between its first and its last element along the first axis.
  ///   shape    elements along the last axes of a row; axes before them are taken whole
  ///   axis     axis of a row, from 0; -1 is the last. Slices come before a crop; a second slice is taken of what is
  ///            left
  ///   output   [rows, ...the part]
  ///   throws   error{errc::usage} for a part that does not fit into the rows, when the loader is built; for a slice
  ///            after a crop, or two crops, at once
  ///
  /// A random crop has a place that is drawn from (seed, epoch, draw), uniformly along each axis, beginning with the
  /// last. Two fields of a loader with as much room along their last axes (a volume with channels, and its mask
  /// without) therefore take the same box. A box in the middle begins at (extent - elements) / 2, rounded down.
  [[nodiscard]] array random_crop(std::vector<std::int64_t> shape) const;
  [[nodiscard]] array center_crop(std::vector<std::int64_t> shape) const;
  [[nodiscard]] array slice(std::int64_t axis, std::int64_t first, std::int64_t count) const;

  // Steps, on what slices and crop have left. Whatever the order of the calls, rows are flipped first, then normalised,
  // converted and transposed. An axis is of a row before it is transposed, from 0; -1 is the last.

  /// Mirrors along the axis: always, or with this probability. Draws as a random crop does: a volume with channels and
  /// its mask without are mirrored alike.
  [[nodiscard]] array flip(std::int64_t axis) const;
  [[nodiscard]] array random_flip(std::int64_t axis, double probability = 0.5) const;
  /// Numbers become (number - mean) / deviation, computed in f64: f32, or the stored type where that is a type of floats.
  ///   mean, deviation   one of each for each place along the axis
  [[nodiscard]] array normalize(double mean, double deviation) const;
  [[nodiscard]] array normalize(std::vector<double> mean, std::vector<double> deviation, std::int64_t axis) const;
  /// Converts. A sample with a number that the type has not is corrupt: 300 as u8, 0.5 as any integer.
  [[nodiscard]] array as(dtype type) const;
  /// Axis i of the output is axis order[i].
  [[nodiscard]] array transpose(std::vector<std::int64_t> order) const;
  operator field() const;  // NOLINT: an array is a field.

 private:
  struct flipped {
    std::int64_t axis;
    double probability;
    bool random;
  };
  struct normalized {
    std::vector<double> mean;
    std::vector<double> deviation;
    std::int64_t axis;
  };
  [[nodiscard]] array cropped(std::vector<std::int64_t> shape, bool random) const;

  std::string name_;
  std::string member_;
  std::vector<std::array<std::int64_t, 3>> slices_;  // axis, first, count
  std::vector<std::int64_t> crop_;
  bool random_ = false;
  std::vector<flipped> flips_;
  std::optional<normalized> statistics_;
  std::optional<dtype> type_;
  std::vector<std::int64_t> order_;
};

/// The rows of several fields beside one another: cameras, channels. Each is made where it stays.
///   output     `name`: [rows, fields, shape...], of the dtype and shape that the rows of all fields have
///   throws     (when the loader is built) error{errc::usage}: fields of different dtypes or shapes, with rows of any
///              length, or with several outputs
///
///     stack{"cameras", {image{"left"}.resize(224, 224), image{"right"}.resize(224, 224)}}
class stack {
 public:
  stack(std::string name, std::vector<field> fields);
  operator field() const;  // NOLINT: it is a field.

 private:
  std::string name_;
  std::vector<field> fields_;
};

/// Views of a picture in one output. They share a decode, and each draws by a name of its own: view k is the same
/// whatever `count` is, and whichever other fields there are.
///
///     views(image{}.random_resized_crop(224, {0.4, 1}).random_flip().normalize(imagenet), 2, "global"),
///     views(image{}.random_resized_crop(96, {0.05, 0.4}).random_flip().normalize(imagenet), 8, "local")
///
///   output   `name`: [rows, count, 3, height, width], of the picture's dtype and layout. View k holds the bytes of
///            image{...}.together("name/k")
///   throws   error{errc::usage}: a count outside 1 to 256; (when the loader is built) jpeg_decoder::nvjpeg; rows that are
///            mixed (loader_options::mix)
[[nodiscard]] field views(const image& of, int count, std::string name);

/// The corners of a picture and its middle, as torchvision's FiveCrop: top left, top right, bottom left, bottom right,
/// middle. ten_crop: then those of the mirrored picture, as TenCrop. They share a decode, and draw alike.
///
///     ten_crop(image{}.resize(256).normalize(imagenet), 224)
///
///   output   the picture's name: [rows, 5 or 10, 3, size, size]. Steps of colour are done in each crop. Where the picture
///            is smaller than a crop it is padded, as by center_crop; torchvision has an error
///   throws   as views()
[[nodiscard]] field five_crop(const image& of, int size);
[[nodiscard]] field ten_crop(const image& of, int size);

/// Number columns of a table as one matrix.
///   members   each is read as leat::label reads it. A glob ("f*") stands for all that match, in the dataset's order
///   output    `name`: [rows, columns]
///   corrupt   as a label; a sample without a value in one of them
///   throws    (when the loader is built) error{errc::usage} for a member that is not there, or is no number
class columns {
 public:
  columns(std::string name, std::vector<std::string> members, dtype type = dtype::f32);
  operator field() const;  // NOLINT: it is a field.

 private:
  std::string name_;
  std::vector<std::string> members_;
  dtype type_;
};

/// Where the windows of an epoch begin. A run is a file, or a row of documents in one; no window leaves its run.
enum class window_order : std::uint8_t {
  /// One after another from a random offset below `length`, drawn for each run and epoch. An epoch has every token at
  /// most once as input, and leaves out fewer than 2 * length tokens of each run, other ones each time.
  shifted,
  /// One after another from the first token on, the same in every epoch. Leaves out fewer than `length` at the end.
  tiled,
  /// Each at a random place, as nanoGPT's get_batch; as many windows as with tiled.
  random
};

/// What happens at the borders between documents.
enum class document_rule : std::uint8_t {
  ignore,  ///< a window runs across them
  mark,    ///< the same, and the outputs `document` and `position` say where, for attention masks
  /// No window crosses one: the last window of a document is filled up with `pad` and `ignored`. Only documents of one
  /// token are left out, and nothing is shifted.
  within
};

/// Windows of tokens. The dataset is one of windows, which cut_windows() makes of the same settings:
///
///     const tokens how{.length = 1024};
///     loader train{cut_windows(open_tokens("train-{000..099}.bin"), how), {.batch_size = 12}, how};
///
///   length     tokens of a row. Default: 1024
///   type       dtype of x and y: i32, i64 (default), or std::nullopt for that of the file
///   field      the field of the dataset that has the tokens
///   output     `x`: [rows, length], and `y`: [rows, length], the next token of each: y[t] = x[t + 1]
///   output     with document_rule::mark `document`: i32 [rows, length], the number of the document in its row, from 0;
///              and `position`: i32 [rows, length], the place of the token in it, from 0 at its begin or the row's
///   throws     (when the loader is built) error{errc::usage}: a length below 1, no field of tokens, a dataset that
///              is not cut or is cut by another rule, a type that the tokens need not fit into, another field beside it
///   source     karpathy/nanoGPT train.py, get_batch; NVIDIA/Megatron-LM, reset_position_ids
struct tokens {
  std::int64_t length = 1024;
  std::optional<dtype> type = dtype::i64;
  window_order windows = window_order::shifted;
  document_rule documents = document_rule::ignore;
  std::int64_t pad = 0;         ///< padding of x, with document_rule::within
  std::int64_t ignored = -100;  ///< padding of y: PyTorch's cross_entropy ignores it
  std::string field = "tokens";

  operator leat::field() const;  // NOLINT: they are a field.
};

/// Cuts token files or documents into windows: each window is a sample of the result. Windows can be counted, split and
/// joined (subset(), split(), concat()), and any order takes them. Load them with a field of the same length, windows
/// and documents.
///
///     const dataset windows = cut_windows(open_tokens("train-{000..099}.bin"), how);
///     loader train{windows.slice(0, windows.size() / 2), {.batch_size = 12}, how};
///
///   returns   `samples` itself where it is cut by the same rule already
///   throws    error{errc::usage} as a loader with this field does; no run as long as a window; windows of another rule
[[nodiscard]] dataset cut_windows(const dataset& samples, const tokens& how);

/// What the function of a custom field is told about its sample.
struct sample_context {
  std::uint64_t sample = 0;  ///< its number in the dataset's order
  /// draw and epoch key what is random: leat::pick.
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;
  std::uint64_t seed = 0;
  std::optional<std::int64_t> label;
};

/// An output of a custom field.
///   row_shape   of each row; after bytes_max that of an element
///   bytes_max   not 0: rows are of any number of elements, of at most so many bytes, as those of a sequence: `name` and
///               `name`.offsets. So much memory is planned for each row
struct custom_output {
  std::string name;
  dtype type = dtype::f32;
  dimensions row_shape = {};
  std::size_t bytes_max = 0;
};

/// What the function of a custom field with several members or outputs gets of a sample.
///   members   the encoded bytes of each, in the order of from(); not valid after the function returns
///   picture   after follows(): where the picture's row lies, <leat/picture_geometry.hpp>; else nullptr
///   random    numbers of this sample and field alone: the same in every run
struct custom_sample {
  std::span<const std::span<const std::byte>> members;
  sample_context context;
  draws random;
  const picture_geometry* picture = nullptr;
};

/// A row of one of its outputs.
///   used   of rows of any length, to be set: how many bytes were written
struct custom_row {
  std::span<std::byte> bytes;
  std::size_t used = 0;
};

/// Decoding of your own, on the decode threads.
///   function   (encoded bytes, context, row) -> "", or the reason why the sample is corrupt. Writes every byte of the
///              row. The encoded bytes are not valid after it returns. Called by several threads at once. Must depend
///              on its arguments alone, or batches are not reproducible. An exception ends the run when next() comes to
///              that batch: error{errc::callback} names sample and field, and the exception is nested in it
///              (std::rethrow_if_nested)
///   several    members and outputs: (sample, rows) -> the same. Members are copied into the batch's memory first, if
///              there are several
class custom {
 public:
  using function = std::function<std::string(std::span<const std::byte>, const sample_context&, std::span<std::byte>)>;
  custom(std::string name, dtype type, dimensions row_shape, function decode);
  using function_of_rows = std::function<std::string(custom_sample&, std::span<custom_row>)>;
  /// Several outputs, or several members by from(). The name of the field is that of its first output.
  custom(std::vector<custom_output> outputs, function_of_rows decode);
  /// Reads this member of a sample, which other fields may read too.
  [[nodiscard]] custom from(std::string member) const;
  /// Reads these members together. A sample that lacks one of them is corrupt.
  ///   throws   error{errc::usage} for none, or for several where the function takes one
  [[nodiscard]] custom from(std::initializer_list<std::string> members) const;
  /// The name of an image field: custom_sample::picture tells the function where that picture's row lies, so that what it
  /// makes follows, as a mask does (<leat/targets.hpp>).
  ///   throws   (when the loader is built) as a mask; error{errc::usage} where the function takes one member
  [[nodiscard]] custom follows(std::string picture) const {
    custom changed = *this;
    changed.picture_ = std::move(picture);
    return changed;
  }
  /// A name for what the function makes, "mel spectrogram, v3", which you change whenever it writes other bytes.
  /// Without it a run can neither be saved nor resumed.
  [[nodiscard]] custom described_as(std::string name) const;
  operator field() const;  // NOLINT: it is a field.

 private:
  std::vector<custom_output> outputs_;
  std::vector<std::string> members_;
  std::string picture_;
  std::string described_as_;
  function decode_;
  function_of_rows decode_rows_;
};

/// What a collate function is told about its batch.
///   samples   the number of each row's sample in the dataset
struct batch_context {
  std::span<const std::uint64_t> samples;
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
};

/// A tensor that a collate function makes.
///   bytes_max   bytes of the largest of any batch: so much memory is planned for each batch
struct collated_output {
  std::string name;
  dtype type = dtype::f32;
  std::size_t bytes_max = 0;
};

/// What a collate function with several members or outputs gets.
///   members   of each member the bytes of each row: members[m][row], in the order of from()
struct collated_rows {
  std::span<const std::span<const std::span<const std::byte>>> members;
  batch_context context;
};

/// One of its tensors.
///   shape   to be set: of what was written
struct collated_tensor {
  std::span<std::byte> bytes;
  dimensions shape;
};

/// A collate function of your own: one tensor of all rows of a batch, as collate_fn.
///   function    (the member's bytes of each row, context, target) -> the shape of the tensor, of at most `bytes_max`
///               bytes. Called once for a batch, on a decode thread, and for several batches at once. Must depend on
///               its arguments alone. It gets no rows of skipped samples, and so perhaps none; the target is not
///               cleared. An exception, or a shape of more than `bytes_max`, ends the run when next() comes to that
///               batch: error{errc::callback}, with the exception nested in it
///   bytes_max   bytes of the largest tensor of any batch: so much memory is planned for each batch
///   output      `name`, in the shape that the function returns. It has no rows, so batch.bytes() does not apply
///   digests     of the rows that the function gets, not of what it makes
class collated {
 public:
  using function = std::function<dimensions(std::span<const std::span<const std::byte>>, const batch_context&,
                                            std::span<std::byte>)>;
  collated(std::string name, dtype type, std::size_t bytes_max, function make);
  using function_of_rows = std::function<void(const collated_rows&, std::span<collated_tensor>)>;
  /// Several tensors, or several members by from(). The name of the field is that of its first output.
  collated(std::vector<collated_output> outputs, function_of_rows make);
  /// Reads this member of a sample, which other fields may read too.
  [[nodiscard]] collated from(std::string member) const;
  /// Reads these members together. A sample that lacks one of them is corrupt.
  ///   throws   error{errc::usage} for none, or for several where the function takes one
  [[nodiscard]] collated from(std::initializer_list<std::string> members) const;
  /// As custom::described_as().
  [[nodiscard]] collated described_as(std::string name) const;
  operator field() const;  // NOLINT: it is a field.

 private:
  std::vector<collated_output> outputs_;
  std::vector<std::string> members_;
  std::string described_as_;
  function_of_rows make_;
  bool takes_one_member_ = false;
};

}  // namespace leat
#pragma GCC visibility pop
