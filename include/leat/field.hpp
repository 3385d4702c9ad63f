// What a batch shall hold. A field takes the encoded parts of a sample and maps them to one or more outputs: a picture
// to pixels, a class to a number, a text to its bytes. Fields are values; the loader binds them to its dataset.
//
// A field's name is the name of its output, and also of the member of the sample that it reads, unless from() names another
// member. Several fields may read the same member; it is read once for all of them.
#pragma once

#include <leat/tensor.hpp>
#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

class dataset;

namespace stages {
class field_model;  // stages/field_model.hpp: what a field becomes inside the loader
}

/// Any field, as the loader takes it. image, label, text, bytes, array, tokens and custom convert to it.
class field {
 public:
  explicit field(std::shared_ptr<const stages::field_model> model);
  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const stages::field_model& model() const noexcept { return *model_; }

 private:
  std::shared_ptr<const stages::field_model> model_;  // Immutable, and shared by the copies of this value.
};

/// Who decodes JPEG files: image::decoder().
///   turbo    libjpeg-turbo and stages of our own, on the host; of photo packs also kernels of our own. The same bits everywhere
///   nvjpeg   NVIDIA's nvJPEG, on the device that batches go to
enum class jpeg_decoder : std::uint8_t { turbo, nvjpeg };

/// A picture: JPEG, PNG, WebP or BMP by content, whatever its name says.
///   encoded    the sample's member of this name, or that of from(); "jpg" also finds jpeg, png, webp, bmp, tif, tiff, ppm, pgm
///              and jpe, and the picture of a folder
///   output     `name`: [rows, 3, height, width] (nchw) or [rows, height, width, 3] (nhwc) of f32, unless changed by as().
///              u8 is the pixel, 0..255; floats are u8 / 255, or (u8 / 255 - mean) / deviation after normalize()
///   corrupt    cut or damaged inside the region that is decoded, unsupported format, more than pixels_max() pixels
///   limit      a picture that takes more than a quarter of host_bytes_max to decode (of a progressive one: all its
///              coefficients) is no corrupt sample: it ends the run when next() comes to its batch, with an error that names
///              the budget that would do
///   views      several image fields of one member are views of it. Each view draws its own random numbers; views are
///              numbered in the order of the fields, those without a random transform left out. Fields of different members
///              (a photograph and its mask) draw the same numbers: first view as first view, second as second. Views whose
///              crops are decimated alike share one decode: see loader::plan()
///   source     transforms as in torchvision; resampling as in Pillow
///   throws     (when the loader is built) error{errc::usage} for transforms that do not go together; a function of the user's
///              (transforms::lookup, transforms::edit) that throws ends the run, as that of a `custom` field does
///
///     image{"view1"}.from("jpg").random_resized_crop(224), image{"view2"}.from("jpg").random_resized_crop(224)
class image {
 public:
  explicit image(std::string name = "jpg");

  /// Reads this member of a sample; the field's name is then only the output's. "jpg" finds the same members as it does as a
  /// name.
  [[nodiscard]] image from(std::string member) const;

  [[nodiscard]] image random_resized_crop(int size, std::array<double, 2> scale = {0.08, 1.0},
                                          std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0},
                                          filter how = filter::bilinear) const;
  [[nodiscard]] image resize(int shorter_side, filter how = filter::bilinear) const;
  [[nodiscard]] image resize(int height, int width, filter how = filter::bilinear) const;
  [[nodiscard]] image center_crop(int size) const;
  [[nodiscard]] image random_crop(int size, int padding = 0) const;
  [[nodiscard]] image random_flip(double probability = 0.5) const;
  [[nodiscard]] image apply(transform step) const;

  // Colour, behind crop, resize and flip, in the order of the calls. Ranges are what a factor is drawn from: {0.6, 1.4}; {1.3, 1.3} is
  // always 1.3. See leat::transforms.
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
  [[nodiscard]] image random_apply(double probability, std::vector<transform> steps) const;
  [[nodiscard]] image one_of(std::vector<transform> steps, std::vector<double> weights = {}) const;
  [[nodiscard]] image in_random_order(std::vector<transform> steps) const;
  /// The last step: a rectangle of the finished row becomes `value`, an element of the batch; after normalize() 0 is the mean.
  [[nodiscard]] image random_erasing(double probability = 0.5, std::array<double, 2> scale = {0.02, 0.33},
                                     std::array<double, 2> ratio = {0.3, 3.3}, double value = 0) const;

  /// Floats become (u8 / 255 - mean) / deviation, in two roundings.
  [[nodiscard]] image normalize(const normalization& statistics) const;
  [[nodiscard]] image as(dtype type) const;
  [[nodiscard]] image as(layout order) const;
  /// Turns the picture upright first, as its EXIF or XMP says, like Pillow's ImageOps.exif_transpose. Off by default, as in
  /// pipelines that use Pillow.
  [[nodiscard]] image exif_orientation(bool on = true) const;
  /// Lets the JPEG decoder halve the picture (1/2, 1/4, 1/8) where the crop stays at least as large as the output.
  /// Part of what a batch holds: pixels differ slightly from undecimated ones. On where a crop or flip is random, off
  /// where none is, unless set here.
  [[nodiscard]] image decimate(bool on) const;
  /// Who decodes JPEG files. nvjpeg is never chosen by itself, and is part of what a batch holds: its pixels differ slightly from turbo's, and
  /// may from one GPU or version of the library to the next.
  ///   decodes    baseline files of one scan, grey or YCbCr, that fit their row's slot; all others, decided by their headers and sizes alone,
  ///              are decoded on the host as by turbo: stats().device counts both. decimate() says nothing about what it decodes
  ///   needs      a loader with a device, finish_on_device, and no digests, which the host would make; no edit
  ///   throws     (when the loader is built) error{errc::unsupported} without a GPU or the library (libnvjpeg.so.13 or .12, or what the
  ///              environment's LEAT_NVJPEG names); error{errc::usage} for what does not go with it
  [[nodiscard]] image decoder(jpeg_decoder which) const;
  /// Pictures of more pixels are corrupt samples. 178 956 970 by default, as Pillow's bomb limit.
  [[nodiscard]] image pixels_max(std::int64_t pixels) const;

  operator field() const;  // NOLINT: a picture is a field.

  /// What the functions above have set.
  struct settings {
    std::string name;
    std::string member;  ///< the name, unless from() was called
    std::vector<transform> steps;
    std::optional<normalization> statistics;
    dtype type = dtype::f32;
    layout order = layout::nchw;
    bool exif_orientation = false;
    std::optional<bool> decimate;
    jpeg_decoder decoder = jpeg_decoder::turbo;
    std::int64_t pixels_max = 178'956'970;
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  settings settings_;
};

/// A number, or a few.
///   encoded    text: an integer, a float, or a vector separated by blanks or commas; with key(), a JSON object's
///              member. Where the dataset has no such member but a column (a folder's classes, numbers of a table), that
///   output     `name`: [rows] of i64, of a column of floats as these are stored (f16 as f32), or [rows, length] after vector();
///              as() changes the type
///   corrupt    text that is no such number, a vector of another length
class label {
 public:
  explicit label(std::string name = "cls");
  /// Reads this member, or column, of the dataset.
  [[nodiscard]] label from(std::string member) const;
  [[nodiscard]] label as(dtype type) const;
  [[nodiscard]] label vector(std::int64_t length) const;
  [[nodiscard]] label key(std::string json_key) const;

  operator field() const;  // NOLINT: a label is a field.

  struct settings {
    std::string name;
    std::string member;         ///< the name, unless from() was called
    std::optional<dtype> type;  ///< unless as() was called: i64, or of a column of floats theirs
    std::optional<std::int64_t> length;
    std::string json_key;
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  settings settings_;
};

/// The member's bytes as they are, ragged.
///   output     `name`: u8 [bytes of all rows], and `name`.offsets: i64 [rows + 1]; row r is
///              [offsets[r], offsets[r + 1]), or batch.bytes(name, r)
class bytes {
 public:
  explicit bytes(std::string name);
  /// Reads this member of a sample.
  [[nodiscard]] bytes from(std::string member) const;
  /// Samples of more bytes are corrupt, and no room is planned for them: one endless text does not decide what a batch takes.
  [[nodiscard]] bytes bytes_max(std::size_t most) const;
  operator field() const;  // NOLINT: bytes are a field.

 private:
  std::string name_;
  std::string member_;
  std::optional<std::size_t> bytes_max_;
};

/// As bytes; corrupt where the member is not UTF-8.
class text {
 public:
  explicit text(std::string name = "txt");
  /// Reads this member of a sample.
  [[nodiscard]] text from(std::string member) const;
  /// Samples of more bytes are corrupt, and no room is planned for them: one endless text does not decide what a batch takes.
  [[nodiscard]] text bytes_max(std::size_t most) const;
  operator field() const;  // NOLINT: a text is a field.

 private:
  std::string name_;
  std::string member_;
  std::optional<std::size_t> bytes_max_;
};

/// Numbers in a row, as many as there are: token ids, boxes, signals.
///   encoded    text: a list of JSON, "[1, 2, 3]", or numbers with blanks or commas between them. Of a field of tensors or tokens, of a
///              column of lists (but those of u8), and after stored(), elements of that dtype, little-endian, one after another. Of a member
///              called "npy" or "ids.npy" a .npy file of one axis, which says its dtype itself
///   output     `name`: [elements of all rows] of i64, or as() says, and `name`.offsets: i64 [rows + 1], in elements; row r is
///              [offsets[r], offsets[r + 1])
///   after pad()   `name`: [rows, length]; `name`.length: i64 [rows], without what was filled up; after mask() `name`.mask: boolean
///              [rows, length], true where an element is the row's own. The length is another one in each batch: that of the longest row
///              planned for it, at most `max`, rounded up to a multiple; a row that turns out corrupt when it is decoded counts. Of texts, and of values that are picked out of
///              records, it is the most elements that the stored bytes can hold, since their number is known only when they are read
///   corrupt    text that is no such list; a .npy that is damaged, or of another number of axes; a number that does not fit the dtype, or is no whole number where the dtype has such only; after
///              pad() a row of more than `max` elements, unless truncate() was called, which cuts it. A substitute that is longer than its
///              batch's rows is drawn again, which counts as a try: where the batch has short rows only, that may end the run
///   digests    of a row, without what was filled up
///   throws     (when the loader is built) error{errc::usage}: no `max` where lengths are known only when rows are read
///   types      u8 to i64, f32, f64
class sequence {
 public:
  /// What rows are filled up to, and with what: the longest of the batch, rounded up to a multiple.
  struct padding {
    std::int64_t multiple = 1;
    std::int64_t max = 0;  ///< elements of the longest row that there may be; 0: as the dataset says
    double value = 0;
  };

  explicit sequence(std::string name);
  /// Reads this member of a sample.
  [[nodiscard]] sequence from(std::string member) const;
  [[nodiscard]] sequence as(dtype type) const;
  /// The member's bytes are elements of this dtype, and no text.
  [[nodiscard]] sequence stored(dtype type) const;
  /// Samples of which more bytes are stored are corrupt, and no room is planned for them.
  [[nodiscard]] sequence bytes_max(std::size_t most) const;
  [[nodiscard]] sequence pad(padding how) const;
  [[nodiscard]] sequence truncate() const;
  [[nodiscard]] sequence mask() const;
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
  };
  [[nodiscard]] const settings& get() const noexcept { return settings_; }

 private:
  settings settings_;
};

/// Nodes and edges of each sample, joined to one graph of the batch as PyTorch Geometric's Batch has it.
///
///     leat::graph{}.x({.member = "node_feat", .width = 9}).edge_attr({.member = "edge_attr", .width = 3})
///
///   encoded    as those of sequence: text, or elements of the dtype that the dataset or `stored` says. Of x and edge_attr one node's or
///              edge's features after another's, of edge_index where all edges begin and then where they end, by the sample's nodes from 0;
///              a text may have lists in its list, "[[0, 1], [1, 0]]"
///   output     `x`: [nodes of all rows, width], `edge_index`: i64 [2, edges of all rows], by the batch's nodes; after edge_attr()
///              `edge_attr`: [edges of all rows, width]; `batch`: i64 [nodes of all rows], the row of each node; `ptr`: i64 [rows + 1], the
///              first node of each row, and all
///   corrupt    an edge to a node that is not there; numbers that make no whole rows; attributes of more or fewer edges than there are; what
///              is corrupt in a sequence
///   digests    of a row: its nodes, its edges by its own nodes, their attributes
///   throws     (when the loader is built) error{errc::usage}: a width below 1, a dtype that sequences have not; a second graph
class graph {
 public:
  /// Numbers of each node or edge.
  ///   stored   the member's bytes are elements of this dtype, and no text
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

/// Rows of a fixed dtype and shape (field_kind::tensor): of .npy and .npz files, records, tensors in memory.
///   output     `name`: [rows, shape...] of the stored dtype, the stored bytes as they are
class array {
 public:
  explicit array(std::string name);
  /// Reads this field of the dataset.
  [[nodiscard]] array from(std::string member) const;

  /// Only a part of each row, which the output's shape is then. Of an array in chunks (HDF5, Zarr) only those that the part touches are
  /// read and expanded; of any other, what lies between its first and its last element along the first axis.
  ///   shape    elements along the last axes of a row, as many as are given; axes before them are taken whole
  ///   axis     of a row, from 0; negative: from the last, -1. Slices come before a crop, and another slice is one of what is left
  ///   output   [rows, ...what is taken]
  ///   throws   (slices after a crop and two crops at once, the others when the loader is built) error{errc::usage} what does not fit
  ///            into the rows
  ///
  /// A random crop's place is drawn by (seed, epoch, draw), uniformly along each axis, from the last axis on: fields of a loader whose
  /// crops have as much room along their last axes (a volume with channels and its mask without) take the same box. The box in the middle
  /// begins at (extent - elements) / 2, rounded down.
  [[nodiscard]] array random_crop(std::vector<std::int64_t> shape) const;
  [[nodiscard]] array center_crop(std::vector<std::int64_t> shape) const;
  [[nodiscard]] array slice(std::int64_t axis, std::int64_t first, std::int64_t count) const;
  operator field() const;  // NOLINT: an array is a field.

 private:
  [[nodiscard]] array cropped(std::vector<std::int64_t> shape, bool random) const;

  std::string name_;
  std::string member_;
  std::vector<std::array<std::int64_t, 3>> slices_;  // axis, first, count
  std::vector<std::int64_t> crop_;
  bool random_ = false;
};

/// Where the windows of an epoch begin. A run is a file, or documents that lie side by side in one; no window leaves its run.
enum class window_order : std::uint8_t {
  shifted,  ///< side by side from an offset below `length` on, drawn for each run and epoch: an epoch has every token at most
            ///< once as an input, and leaves out fewer than 2 * length of each run, others each time
  tiled,  ///< side by side from the first token on, the same in every epoch: leaves out fewer than `length`, at the end
  random  ///< each anywhere, drawn by (seed, epoch, window), as nanoGPT's get_batch: as many as tiled would be
};

/// What becomes of the borders between documents.
enum class document_rule : std::uint8_t {
  ignore,  ///< a window runs across them
  mark,    ///< likewise, and the outputs `document` and `position` say where, for attention masks
  within  ///< no window crosses one: a document's last window is filled up with `pad` and `ignored`. Nothing is left out
          ///< but documents of one token, and nothing is shifted
};

/// Windows of tokens. The dataset is one of windows, which cut_windows() makes of the same settings:
///
///     const tokens how{.length = 1024};
///     loader train{cut_windows(open_tokens("train-{000..099}.bin"), how), {.batch_size = 12}, how};
///
///   length     tokens of a row
///   type       of x and y: i32, i64, or std::nullopt for the file's own
///   field      the dataset's
///   output     `x`: [rows, length], `y`: [rows, length], the same shifted by one: y[t] = x[t + 1]
///   output     with document_rule::mark `document`: [rows, length] of i32, the number of x's document in its row, from 0,
///              and `position`: [rows, length] of i32, x's place in it, from 0 where it begins or the row does
///   throws     (when the loader is built) error{errc::usage}: a length below 1, no field of tokens, a dataset that
///              is not cut or is cut by another rule, a type that the tokens need not fit into, another field beside it
///   source     karpathy/nanoGPT train.py, get_batch; NVIDIA/Megatron-LM, reset_position_ids
struct tokens {
  std::int64_t length = 1024;
  std::optional<dtype> type = dtype::i64;
  window_order windows = window_order::shifted;
  document_rule documents = document_rule::ignore;
  std::int64_t pad = 0;         ///< fills x, with document_rule::within
  std::int64_t ignored = -100;  ///< fills y: what PyTorch's cross_entropy leaves out
  std::string field = "tokens";

  operator leat::field() const;  // NOLINT: they are a field.
};

/// The windows of a dataset of tokens, as a dataset: one sample is one window, and the samples of `samples` (files, documents) are
/// where they lie. Windows can be counted, split and joined (subset(), split(), concat()), and an order can be given over them
/// (leat::sampler). A loader takes them with a field of the same length, windows and documents.
///
///     const dataset windows = cut_windows(open_tokens("train-{000..099}.bin"), how);
///     loader train{windows.slice(0, windows.size() / 2), {.batch_size = 12}, how};
///
///   returns   `samples` itself where it is cut by the same rule already
///   throws    error{errc::usage} as a loader with this field does; no run as long as a window; windows of another rule
[[nodiscard]] dataset cut_windows(const dataset& samples, const tokens& how);

/// What a custom field's function is told about its sample.
struct sample_context {
  std::uint64_t sample = 0;  ///< its number in the dataset's order
  /// draw and epoch key what is random: leat::pick.
  std::uint64_t draw = 0;
  std::uint32_t epoch = 0;
  std::uint64_t seed = 0;
  std::optional<std::int64_t> label;
};

/// One's own decoding, run on the decode threads.
///   function   (encoded bytes, context, row) -> empty, or the reason why the sample is corrupt. Writes every byte of
///              the row; the encoded bytes are gone after it returns. Called by several threads at once; must be a
///              pure function of its arguments, or batches are not reproducible. An exception of any type ends the run
///              when next() comes to that batch: error{errc::callback} names sample and field, and the original is nested
///              in it (std::rethrow_if_nested)
class custom {
 public:
  using function = std::function<std::string(std::span<const std::byte>, const sample_context&, std::span<std::byte>)>;
  custom(std::string name, dtype type, dimensions row_shape, function decode);
  /// Reads this member of a sample, which other fields may read too.
  [[nodiscard]] custom from(std::string member) const;
  /// What the function makes, for loader_state: a name that changes whenever it writes other bytes, "mel spectrogram, v3". Without it
  /// a run can neither be saved nor resumed.
  [[nodiscard]] custom described_as(std::string name) const;
  operator field() const;  // NOLINT: it is a field.

 private:
  std::string name_;
  std::string member_;
  std::string described_as_;
  dtype type_;
  dimensions row_shape_;
  function decode_;
};

/// What a function that collates is told about its batch.
///   samples   of each row, by its number in the dataset's order
struct batch_context {
  std::span<const std::uint64_t> samples;
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
};

/// One's own collate function: one tensor of all rows of a batch.
///   function    (each row's bytes as the member has them, context, target) -> the tensor's shape, of at most `bytes_max`. Called once a
///               batch, on a decode thread, and of several batches at once; must be a pure function of its arguments. Rows of skipped samples
///               are not among those it gets, which may be none; the target is not cleared. What it throws ends the run when next() comes to that batch: error{errc::callback} with the
///               original nested in it; so does a shape of more than `bytes_max`
///   bytes_max   of the largest tensor of any batch: as much memory is planned for each
///   output      `name`: of the shape that the function returns. Not batch.bytes(), since it has no rows
///   digests     over the rows that the function gets, not over what it makes
class collated {
 public:
  using function = std::function<dimensions(std::span<const std::span<const std::byte>>, const batch_context&,
                                            std::span<std::byte>)>;
  collated(std::string name, dtype type, std::size_t bytes_max, function make);
  /// Reads this member of a sample, which other fields may read too.
  [[nodiscard]] collated from(std::string member) const;
  /// As custom::described_as().
  [[nodiscard]] collated described_as(std::string name) const;
  operator field() const;  // NOLINT: it is a field.

 private:
  std::string name_;
  std::string member_;
  std::string described_as_;
  dtype type_;
  std::size_t bytes_max_;
  function make_;
};

}  // namespace leat
