// What a dataset is: which samples there are, and where the bytes of each lie. A dataset holds no bytes of samples, except of
// tensors in memory. Every open function (dataset.hpp) returns this type.
#pragma once

#include <leat/compiler.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {
class dataset_model;
}

#pragma GCC visibility push(default)
namespace leat {

/// What a field holds, as its name suggests. The command chooses fields by it where none are given.
enum class field_kind : std::uint8_t {
  picture,  ///< an encoded picture: jpg, jpeg, png, webp ...
  label,    ///< a number as text (cls), or a column of numbers kept with the dataset
  text,     ///< txt, text, caption
  bytes,    ///< anything else
  tensor,   ///< rows of a fixed dtype and shape
  tokens    ///< a run of integers of one dtype, of any length: a shard, a document
};

/// One field of a dataset.
///   samples       how many samples have it
///   bytes_max     bytes of the largest one; after expansion, if it is stored in compressed blocks
///   bytes_total   bytes of all samples, as stored
///   alignment     each sample begins and ends in its file on a multiple of this, in bytes; a power of two, at most
///                 4096
///   column        the value is a number that the dataset keeps (dataset::label); nothing is read for it
///   type, shape   of one row, for field_kind::tensor; of one token, for field_kind::tokens. For field_kind::label the type
///                 of the number, if the format tells it: i64, f32 or f64
///   stored_block_bytes_max, decoded_block_bytes_max
///                 bytes of the largest compressed block, before and after expansion; 0 if nothing is compressed
///   expand_bytes_max   memory that expanding a block takes besides it, in bytes: pages of a column, dictionaries
///   chunked       a sample is part of one or more blocks, which other samples share: a row of a chunked array, or a
///                 value of a compressed column
///   blocks_max    of a chunked field, the most blocks that one sample is part of
///   chunk         of a chunked array, the shape of a chunk: rows, and elements along the axes of a row. Empty if parts
///                 of a concatenation differ in it
///   filters       the filters of the chunks in the order in which they were applied: "shuffle, gzip". Empty as `chunk`
struct field_info {
  std::string name;
  field_kind kind = field_kind::bytes;
  bool column = false;
  std::uint64_t samples = 0;
  std::uint64_t bytes_max = 0;
  std::uint64_t bytes_total = 0;
  std::uint32_t alignment = 1;
  dtype type = dtype::u8;
  dimensions shape;
  bool characters = false;  ///< of a tensor of u8: its rows are text of a fixed length
  std::uint64_t stored_block_bytes_max = 0;
  std::uint64_t decoded_block_bytes_max = 0;
  std::uint64_t expand_bytes_max = 0;
  bool chunked = false;
  std::uint64_t blocks_max = 0;
  dimensions chunk = {};
  std::string filters = {};

  /// Rows of a chunk: this many samples share it.
  [[nodiscard]] std::uint64_t chunk_rows() const noexcept {
    return chunk.empty() ? 0 : static_cast<std::uint64_t>(chunk[0]);
  }
  [[nodiscard]] bool expands() const noexcept { return decoded_block_bytes_max != 0; }
  /// The most bytes that are read for one sample.
  [[nodiscard]] std::uint64_t read_bytes_max() const noexcept { return expands() ? stored_block_bytes_max : bytes_max; }
};

/// Host memory that a dataset holds, in bytes, by purpose.
struct dataset_memory {
  std::uint64_t extents = 0;  ///< at most 24 bytes per sample of one field
  std::uint64_t files = 0;    ///< paths and sizes of files, directories written once
  std::uint64_t columns = 0;  ///< labels and other numbers, order and choice of samples
  std::uint64_t data = 0;     ///< tensors in memory

  [[nodiscard]] std::uint64_t total() const noexcept { return extents + files + columns + data; }
};

/// A column of numbers that the dataset keeps, one for each sample: "cls" is the label, orders use others.
///   values   whole numbers
///   reals    real numbers, in place of `values`
///   type     the dtype of reals in a batch, unless leat::label says another: f64, f32, f16 or bf16
struct column_values {
  std::string name;
  std::vector<std::int64_t> values = {};
  std::vector<double> reals = {};
  dtype type = dtype::f64;

  [[nodiscard]] std::uint64_t size() const noexcept { return reals.empty() ? values.size() : reals.size(); }
};

/// A list of samples with named fields. Cheap to copy: copies, subsets and loaders share one immutable table, hence the
/// shared_ptr. Every member may be called from any thread.
class dataset {
 public:
  /// For formats of your own (datasets/model/model.hpp).
  explicit dataset(std::shared_ptr<const datasets::dataset_model> model) noexcept;

  /// The number of samples.
  [[nodiscard]] std::uint64_t size() const noexcept;

  /// Every field that some sample has: fields with bytes in the order in which they first appear, then columns.
  [[nodiscard]] std::vector<field_info> fields() const;

  /// Class names by class number; empty if the source has none.
  [[nodiscard]] const std::vector<std::string>& classes() const noexcept;

  /// The class number of a sample, if the dataset knows it without reading: of class folders, of a column "cls", of a
  /// table's column of named classes. The `.cls` member of a tar shard is a field, which has to be read.
  ///   throws   error{errc::usage} for a sample that is not there; so do the functions below
  [[nodiscard]] std::optional<std::int64_t> label(std::uint64_t sample) const;

  /// A whole number of a column ("cls", "length", "group"); nullopt if this sample has none.
  [[nodiscard]] std::optional<std::int64_t> column(std::uint64_t sample, std::string_view name) const;

  /// A number of a column, whole or real ("score"); nullopt if this sample has none.
  [[nodiscard]] std::optional<double> number(std::uint64_t sample, std::string_view name) const;

  /// The name of a sample. Of a folder: the path below its root; of a tar shard: shard and key, "train-0.tar/n01/17".
  /// Names in shards are read from the shard each time, so this may wait for the disk.
  ///   throws   error{errc::io} when the shard cannot be read any more
  [[nodiscard]] std::string name(std::uint64_t sample) const;

  /// The bytes of one field, to look at a few samples; use a loader for many. Blocks.
  ///   field    a name of fields(); empty: the first field of the sample
  ///   throws   error{errc::not_found} naming the fields the sample has; error{errc::io}; error{errc::corrupt} for a
  ///            sample known to be damaged
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t sample, std::string_view field = {}) const;

  /// These samples, in this order; a sample may come several times.
  [[nodiscard]] dataset subset(std::span<const std::uint64_t> samples) const;
  [[nodiscard]] dataset subset(std::initializer_list<std::uint64_t> samples) const;

  /// The same samples, of which these are never delivered, as `leat check` finds them. A loader treats them as corrupt ones, of the kind
  /// "excluded": with on_corrupt = skip their rows are left out, with substitute another sample takes each row. No other row changes,
  /// whereas a subset() is shuffled anew. They are counted and written to the journal, but not against corrupt_max. With raise the run
  /// ends at the first of them.
  ///
  ///     leat::loader train{photos.exclude({17, 4031}), {.on_corrupt = leat::corrupt_policy::substitute}, …};
  ///
  ///   samples   numbers of samples, in any order; one may come twice
  ///   throws    error{errc::usage} for a sample that is not there, and for all of them
  ///   order     make columns first: read_column() refuses what is excluded
  ///   resume    a state names them by a digest: a run goes on with the same ones only
  [[nodiscard]] dataset exclude(std::span<const std::uint64_t> samples) const;
  [[nodiscard]] dataset exclude(std::initializer_list<std::uint64_t> samples) const;

  /// The samples that a condition holds of, in this dataset's order: it is evaluated once, here, by what the dataset knows without
  /// reading a sample, and by the first bytes of pictures whose size decides. Where these do not tell it, it is missing, and notes() counts.
  ///
  ///     photos.where("width >= 224 and cls != 7")
  ///     photos.where("class in ('cat', 'dog') or not (jpg.bytes > 100000)")
  ///
  ///   condition   comparisons (== != < <= > >=, in (..), not in (..), matches 'n01*', is null, is not null) joined by not, and, or, which
  ///               bind in this order, and parentheses. Texts stand between quotes; a name of other letters than a word's between ` and `
  ///   names       columns; `class`, the class's name; `name` (in shards a read each) and `sample`, its number; `jpg.bytes`, of a field;
  ///               `width` and `height` of its picture as stored, `jpg.width` of one of several. A column goes before others of its name
  ///   missing     a comparison with a value that a sample lacks, or with a NaN, is neither true nor false, nor is `not` of it
  ///   throws      error{errc::usage} naming the letter at which the condition is wrong, what the dataset knows, or several pictures;
  ///               error{errc::unsupported} where bytes are not known before a value is read; as name() and read()
  ///   resume      a state has the condition: a run goes on with the same one only
  [[nodiscard]] dataset where(std::string_view condition) const;

  /// The samples from `first` to `first` + `count` - 1.
  [[nodiscard]] dataset slice(std::uint64_t first, std::uint64_t count) const;

  /// Random parts without common samples, as random_split(): split(7, {0.9}) gives 90 % and 10 %. The same seed gives
  /// the same parts on every machine. Part k has round(n * (f_0 + .. + f_k)) - round(n * (f_0 + .. + f_k-1)) samples,
  /// in this dataset's order. If the fractions add up to less than 1, the rest is one more part.
  ///   throws   error{errc::usage} for a fraction outside [0, 1] or a sum above 1
  [[nodiscard]] std::vector<dataset> split(std::uint64_t seed, std::span<const double> fractions) const;
  [[nodiscard]] std::vector<dataset> split(std::uint64_t seed, std::initializer_list<double> fractions) const;

  /// The same samples with one more column of whole numbers: a label, or what an order sorts or balances by.
  ///   values   one for each sample
  ///   throws   error{errc::usage} for another number of values, or a column of this name that is there
  [[nodiscard]] dataset with_column(std::string name, std::vector<std::int64_t> values) const;
  /// The same for whole or real numbers.
  [[nodiscard]] dataset with_column(column_values added) const;

  /// The same samples with these fields and columns only, in this order. "jpg" is any picture that a sample has.
  ///   throws   error{errc::usage} with the names that there are, if one of these is not among them
  [[nodiscard]] dataset with_fields(std::span<const std::string> names) const;

  /// What is odd about the source and harms no sample: members that were skipped, bytes after the end of an archive.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept;

  [[nodiscard]] dataset_memory memory() const;

  /// The shared table, for loaders and tools.
  [[nodiscard]] const std::shared_ptr<const datasets::dataset_model>& model() const noexcept { return model_; }

 private:
  std::shared_ptr<const datasets::dataset_model> model_;
};

/// The samples of several datasets one after another, as ConcatDataset. Fields are matched by name, whatever format or
/// storage they come from. If class names differ, the classes are their sorted union, and class numbers are translated
/// by name.
///   throws   error{errc::usage} if class names differ and some part has labels without class names, which cannot be
///            translated; a field whose kind, dtype or shape differs between parts (texts, labels and bytes are joined)
[[nodiscard]] dataset concat(std::span<const dataset> parts);
[[nodiscard]] dataset concat(std::initializer_list<dataset> parts);

/// Datasets of one length side by side, as StackDataset: sample i has the fields of sample i of each. Its name is that
/// in the first, and it is corrupt if it is in any.
///   throws   error{errc::usage} for datasets of different lengths, and for a field that two of them have
[[nodiscard]] dataset zip(std::span<const dataset> parts);
[[nodiscard]] dataset zip(std::initializer_list<dataset> parts);

/// An integer of each sample, for dataset::with_column(): the field "cls" of shards, for example. Reads all samples,
/// some thousand at a time. Blocks.
///   name      a field whose bytes are one integer as text, or of field_kind::tensor one of an integer dtype; or a
///             column
///   throws    error{errc::usage} naming the dataset's fields where it has none of this name; error{errc::corrupt}
///             naming a sample that lacks it, or whose bytes are no integer; error{errc::io}
[[nodiscard]] std::vector<std::int64_t> read_column(const dataset& samples, std::string_view name);

}  // namespace leat
#pragma GCC visibility pop
