// Datasets: which samples there are, and where the bytes of each lie. A dataset holds no bytes of samples, except of
// tensors in memory. Every open function returns the same type.
#pragma once

#include <leat/extent.hpp>
#include <leat/remote.hpp>
#include <leat/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Include <boost/asio/awaitable.hpp> to call from_coroutine().
namespace boost::asio {
class any_io_executor;
template <typename T, typename Executor>
class awaitable;
}  // namespace boost::asio

namespace leat {

namespace datasets {
class dataset_model;
}

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

  /// Rows of a chunk: so many samples share it.
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
  /// For formats of your own (datasets/model.hpp).
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

/// The samples of several datasets one after another, as ConcatDataset. Fields are matched by name. If class names
/// differ, the classes are their sorted union, and class numbers are translated by name.
///   throws   error{errc::usage} if class names differ and some part has labels without class names, which cannot be
///            translated
[[nodiscard]] dataset concat(std::span<const dataset> parts);
[[nodiscard]] dataset concat(std::initializer_list<dataset> parts);

/// Whether to use the index of an earlier run. An index has what opening a source found out, so that opening it again
/// takes milliseconds.
enum class index_use : std::uint8_t {
  off,      ///< do not read or write one
  check,    ///< use it if every file (of folders: every directory) has the same size and time as then; else build it
  rebuild,  ///< build and write it
  trust     ///< use it without looking at the files; build it if there is none. Of objects at addresses: as check
};

/// Whether the index of a source was used.
///   why   its path if it was used; else why not
struct index_report {
  enum class outcome : std::uint8_t { used, written, none };
  std::string source;
  outcome what = outcome::none;
  std::string why;
};

/// Whether and where indexes of tar shards and folders are kept.
///   directory   empty (default): $XDG_CACHE_HOME/leat, or ~/.cache/leat, and only for 10,000 samples or more and for
///               shards at addresses
///   on_report   called once for each source that may have an index
///
/// An index that is damaged or cannot be written does no harm: the source is then read as without one. Two processes
/// may build one at the same time.
///   limit   not noticed are: a file that was rewritten with the same size and time; in a folder, whose files are not
///           looked at one by one, any file that was rewritten in place
struct index_options {
  index_use use = index_use::off;
  std::string directory = {};
  std::function<void(const index_report&)> on_report = {};
};

/// How the samples of a folder are found.
struct folder_options {
  enum class class_folders : std::uint8_t {
    automatic,  ///< as yes if the folder holds folders with pictures, else as no
    yes,        ///< each folder is a class, as in torchvision's ImageFolder
    no          ///< every picture below the folder; no classes, no labels
  };
  class_folders classes = class_folders::automatic;
  bool allow_empty_classes = false;  ///< false: a class folder without a picture is an error
  /// File names end in one of these, in any case; give them in lower case with the dot. Empty (default): what is read,
  /// .jpg .jpeg .png .bmp .webp, and photo packs, .fjpg .fjpeg .fjpe.
  std::vector<std::string> extensions = {};
  unsigned threads = 0;  ///< threads that walk the folder; 0 (default): chosen from the machine
  index_options index = {};
  remote_options remote = {};  ///< for a folder at an address
};

/// Pictures in a folder: the field "jpg" (of any picture format), and the column "cls" if there are classes.
///   order    as torchvision: classes by name, then directories by their whole path, then file names. Symbolic links
///            are followed, but a link to a folder that it lies in is not
///   notes    pictures that are no samples: those beside class folders, .gif, .tif, .ppm, .heic and other formats that
///            leat does not read, and hidden files and folders: names that begin with a dot, __MACOSX, Thumbs.db, @eaDir
///   throws   error{errc::not_found} no such folder, no picture, or (named) class folders without one;
///            error{errc::permission} naming the directory that could not be read
///   source   torchvision/datasets/folder.py: find_classes, make_dataset
///   path     a folder, or s3://bucket/folder/, which is listed; no index of the latter is kept
[[nodiscard]] dataset open_folder(const std::string& path, const folder_options& options = {});
/// Deleted: use open() for several folders. Without this, {"a", "b"} would call std::string's constructor from two
/// iterators.
dataset open_folder(std::initializer_list<std::string_view> paths, const folder_options& options = {}) = delete;

/// How tar shards are opened.
///   ignore_zeros   true: read on behind the end marker of an archive, as GNU tar's --ignore-zeros, for files that `cat
///                  a.tar b.tar` made. false (default): what lies behind it is no sample, and notes() mentions it
struct tar_options {
  unsigned shards_in_flight = 0;  ///< shards that are opened at a time; 0 (default): 64
  bool ignore_zeros = false;
  index_options index = {};
  remote_options remote = {};  ///< for shards at addresses
};

/// Tar shards of WebDataset. A sample is a run of members with one key: the path up to the first dot of the file name.
/// What follows the dot, in lower case, is the field. Members that are no regular files are skipped, and notes() counts
/// them. Shards are in the order given, those of a glob sorted.
///   shards   paths, brace lists (a-{000..127}.tar, {train,val}.tar) and globs; or addresses (docs/remote.md): https://
///            with brace lists, s3:// with globs too. One call takes paths or addresses, not both. So do the functions
///            below
///   throws   error{errc::not_found} a shard is missing or a pattern matches none; error{errc::format} a damaged
///            header, with shard and offset; error{errc::unsupported} sparse members and hard links, by name,
///            compressed archives and files of another kind. A field given twice, or a shard that ends inside a member,
///            is a defect of one sample, and left to the loader's corrupt policy
///   source   webdataset/tariterators.py: base_plus_ext, group_by_keys; POSIX.1-2001 pax; GNU tar manual
[[nodiscard]] dataset open_tar(std::span<const std::string> shards, const tar_options& options = {});
[[nodiscard]] dataset open_tar(std::initializer_list<std::string_view> shards, const tar_options& options = {});
[[nodiscard]] dataset open_tar(const std::string& shards, const tar_options& options = {});

struct npy_options {
  enum class sample : std::uint8_t {
    automatic,  ///< row for one file, file for several
    row,        ///< each row of the first axis is a sample; several files follow one another
    file        ///< each file is a sample
  };
  sample samples = sample::automatic;
  unsigned threads = 0;                  ///< threads that read headers; 0 (default): chosen from the machine
  remote_options remote = {};            ///< for files at addresses
  std::vector<std::string> fields = {};  ///< of .npz: these members only, by name or pattern ("train_*")
};

/// Arrays of numpy.save(), versions 1 to 3: the field "npy", of field_kind::tensor, for leat::array. All of leat::dtype
/// but bf16, little-endian and in C order. If each number of a one-dimensional array is a sample, it is the column
/// "npy", for leat::label.
///   files    paths, brace lists and globs; all of one dtype and row shape
///   throws   error{errc::not_found}; error{errc::format} a damaged header, or a file that ends before its array does,
///            by name; error{errc::unsupported} big-endian, complex, structured, object and text dtypes and Fortran
///            order, with what to do about each; error{errc::usage} files of different dtypes or shapes
///   source   numpy.lib.format
[[nodiscard]] dataset open_npy(std::span<const std::string> files, const npy_options& options = {});
[[nodiscard]] dataset open_npy(std::initializer_list<std::string_view> files, const npy_options& options = {});
[[nodiscard]] dataset open_npy(const std::string& files, const npy_options& options = {});

/// Arrays of numpy.savez() and savez_compressed(): each member `x.npy` is the field "x", and its first axis the
/// samples; one-dimensional members are columns. Without options.fields, fields are the members that share the most
/// common number of rows; notes() names the others, and what cannot be read. Several archives follow one another.
///   throws   as open_npy(), for members that options.fields names; error{errc::not_found} for a name that is not there,
///            with those that are; error{errc::usage} for named members with different numbers of rows;
///            error{errc::unsupported} for members that are compressed by another method than deflate
///   source   PKWARE APPNOTE 6.3.3 (zip, zip64); numpy.lib.format
[[nodiscard]] dataset open_npz(std::span<const std::string> files, const npy_options& options = {});
[[nodiscard]] dataset open_npz(std::initializer_list<std::string_view> files, const npy_options& options = {});
[[nodiscard]] dataset open_npz(const std::string& files, const npy_options& options = {});

/// Which arrays of HDF5 or Zarr are fields, and what a sample is.
///   fields    paths of arrays, "train/images". Empty (default): the arrays whose first axis has the most common
///             length; dataset::notes() names the others. With sample::array also the last parts of paths
///   window    rows of a sample: sample i has the rows from i * stride on, in shape [window, ...]. No window crosses
///             from one file to the next. 0 (default): one row, without that axis
///   stride    rows from the begin of one sample to the next. Default: 1
///   threads   threads that read headers and indexes. 0 (default): chosen from the machine
///   remote    for files at addresses
struct array_options {
  enum class sample : std::uint8_t {
    /// Default: `array` if no fields are named and many arrays or groups have names of one form ("sample_0",
    /// "sample_1", …), else `row`. notes() says which.
    automatic,
    /// Each row of the first axis is a sample.
    row,
    /// Each array is a sample, in the order of their paths; all have one type and shape. Arrays of one name in
    /// different groups ("0/image", "1/image") are the field of that name. If no name comes twice, all are the field
    /// "array".
    array
  };
  std::vector<std::string> fields = {};
  sample samples = sample::automatic;
  std::uint64_t window = 0;
  std::uint64_t stride = 1;
  unsigned threads = 0;
  remote_options remote = {};
};
using hdf5_options = array_options;
using zarr_options = array_options;

/// Arrays of HDF5 files. Each dataset of numbers is a field, named by its path, of field_kind::tensor, for leat::array.
/// Its first axis is the samples. One-dimensional datasets are columns, kept in memory if there are windows. Several
/// files follow one another.
///
/// Read are contiguous, compact and chunked datasets; the filters gzip, shuffle, fletcher32 (which is verified), lzf,
/// lz4, zstd, blosc 1 and bitshuffle; integers, floats and bool in either byte order; fill values. Each member of a
/// compound is a field, "points/x". Text and opaque bytes of a fixed length are u8 with a last axis of that length.
/// Values of variable length are read one by one: JPEGs are pictures. A chunk is read and expanded once for all rows of
/// a batch.
///   files    paths, brace lists and globs
///   throws   error{errc::not_found} a file, or a field, with those that are there; error{errc::format} a damaged
///            header or index, with the offset; error{errc::unsupported} a wanted field of references or of another
///            filter, a virtual or external dataset, and a file that is open for writing, each with what to do;
///            error{errc::usage} fields of different lengths
///   source   HDF5 File Format Specification 3.0
[[nodiscard]] dataset open_hdf5(std::span<const std::string> files, const hdf5_options& options = {});
[[nodiscard]] dataset open_hdf5(std::initializer_list<std::string_view> files, const hdf5_options& options = {});
[[nodiscard]] dataset open_hdf5(const std::string& files, const hdf5_options& options = {});

/// Arrays of a Zarr hierarchy, version 2 or 3, in a folder; each is a field, as in open_hdf5(). Read are chunks in
/// files of their own and in shards (`sharding_indexed`); the codecs gzip, zlib, zstd, lz4, blosc, shuffle, transpose,
/// and fletcher32 and crc32c, which are verified; C order and Fortran order; integers, floats and bool in either byte
/// order; fill values, also for chunks that were never written.
///   folder   a folder with zarr.json, .zgroup or .zarray; or an address: s3:// is listed, of https:// the chunks are
///            found by their names, and groups need consolidated metadata
///   throws   error{errc::not_found} a folder that is no Zarr, or a field, with those that are there;
///            error{errc::format} metadata or the index of a shard that is damaged, by name; error{errc::unsupported} a
///            wanted field of another dtype or codec, with what to do; error{errc::usage} fields of different lengths
///   source   zarr-specs: v2, v3 core, sharding-indexed 1.0
[[nodiscard]] dataset open_zarr(const std::string& folder, const zarr_options& options = {});

/// Arrays of Zarr whose chunks lie in other files, as a JSON of references says. kerchunk writes such a JSON for HDF5,
/// NetCDF and others, and so does `leat inspect --references`. Versions 0 and 1; values are text, "base64:...", [url]
/// or [url, offset, length].
///   path     the JSON. A url is a path relative to its folder, or file://; "templates" may be names of texts. In a
///            JSON at an address a url is relative to its folder, or an address. In a JSON on a disk all urls may be
///            addresses
///   throws   as open_zarr(); error{errc::format} what is no such JSON, or a chunk beyond its file;
///            error{errc::unsupported} "gen", templates that compute, and of a JSON on a disk that leads to a disk too,
///            chunks at addresses; error{errc::limit} more than 512 MiB
///   source   fsspec.github.io/kerchunk/spec.html
[[nodiscard]] dataset open_references(const std::string& path, const zarr_options& options = {});

/// How tables and records are read.
///   fields    names of columns that are fields. Empty (default): all columns whose values lie in the file as they are
///   columns   names of columns that the dataset keeps: numbers, or texts that are classes (up to 65,536 different
///             ones, numbered in their order). "label", "cls" and "class" need not be named if they are numbers, nor
///             need the Hub's classes
///   path_column   of JSONL and CSV: a column of paths. Each sample is the file at its path, as the field "jpg"; other
///                 columns are fields as well. Paths may be addresses; in a table on a disk all or none
///   root      the folder or address that these paths are relative to. Empty (default): the folder of the table
///   types     of JSONL and CSV, the types of columns. Default: i64 if all numbers of the first 1,000 rows are whole,
///             else f64; text if one is no number. An empty cell is NaN if the numbers are real, else a corrupt sample
///   checksums   verified in any case where that costs next to nothing: of TFRecord's records that pictures are picked
///             out of, of pages of Parquet that are read whole. true: of every record and page, and of each shard of MDS
///             as it is opened. Default: false
///   threads   threads that read headers and indexes. 0 (default): chosen from the machine
///   remote    for files at addresses
struct table_options {
  struct typed {
    std::string name;
    dtype type = dtype::f64;  ///< i64, f32 or f64
  };
  std::vector<std::string> fields = {};
  std::vector<std::string> columns = {};
  std::string path_column = {};
  std::string root = {};
  std::vector<typed> types = {};
  bool checksums = false;
  unsigned threads = 0;
  remote_options remote = {};
};

/// Rows of Parquet files. Nothing is converted. A column of bytes or texts is a field; a member of a struct is
/// "image.bytes". Numbers that table_options::columns names are columns. A sample with a null lacks that field. If the
/// file has the Hub's metadata (the key "huggingface"), `Image` is the picture "image" and `ClassLabel` a column with
/// classes(). Else the first value says whether a field is of pictures. Several files follow one another.
///
/// Values that are stored as they are (not compressed, in the encoding PLAIN, as the Hub's libraries write pictures)
/// are read one by one. Compressed columns (snappy, gzip, zstd, lz4_raw, in any encoding) are read once by this call,
/// for the lengths of their values. Later a row group is expanded for the rows of a batch that are in it
/// (field_info::chunked); use shuffled_blocks() for these.
///   files    paths, brace lists and globs
///   notes    columns that are left out, each with the reason
///   throws   error{errc::not_found} a file, or a column, with those that are there; error{errc::format} damage, with
///            file and offset; error{errc::unsupported} a wanted column that is a list, or compressed by another codec,
///            and encrypted files, each with what to do; error{errc::usage} files of different columns or classes
///   source   github.com/apache/parquet-format
[[nodiscard]] dataset open_parquet(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_parquet(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_parquet(const std::string& files, const table_options& options = {});

/// Rows of Arrow IPC files and streams, with fields, columns and the Hub's metadata as in open_parquet(). Lists of
/// numbers of one length are fields of field_kind::tensor; lists of any length are bytes, for leat::sequence. A
/// compressed record batch (lz4, zstd) is expanded for the rows that a batch needs of it; in it, lists of one length
/// are bytes as well.
///   throws   as open_parquet(); error{errc::unsupported} views of lists and big-endian files, each with what to do
///   source   arrow.apache.org: Arrow Columnar Format
[[nodiscard]] dataset open_arrow(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_arrow(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_arrow(const std::string& files, const table_options& options = {});

/// Values of LMDB databases (version 0.9), in the order of their keys: the field "value", which is of pictures if the
/// first value is one. Keys with a field and a number ("image-000000001", "label-000000001"; "256-00017") are samples
/// with these fields. A Datum of Caffe has "data" and "label"; msgpack and pickles have the members of the first value.
/// The key is the name of a sample. Keys about the set ("num-samples", "length", "__len__", ...) are left out. Opening
/// reads only pages of the tree.
///   environments   folders with data.mdb, or files, by paths, brace lists and globs; or addresses of either
///   database       the name of a database. Empty (default): the main one, or the only one
///   throws         error{errc::not_found} a file, or a database, with those that are there; error{errc::format}
///                  damage, with file and offset; error{errc::unsupported} databases with several values for a key, and
///                  files of another version, with what to do; error{errc::usage} several named databases of which none
///                  was named
///   limit          a program that writes to it during a run ends the run (errc::changed), since it may overwrite what
///                  is read
///   source         OpenLDAP, liblmdb 0.9
struct lmdb_options {
  std::string database = {};
  unsigned threads = 0;
  remote_options remote = {};
};
[[nodiscard]] dataset open_lmdb(std::span<const std::string> environments, const lmdb_options& options = {});
[[nodiscard]] dataset open_lmdb(std::initializer_list<std::string_view> environments, const lmdb_options& options = {});
[[nodiscard]] dataset open_lmdb(const std::string& environment, const lmdb_options& options = {});

/// Records of TFRecord files. A tf.train.Example has a field for each feature: its one value of bytes (a picture or
/// text if the first one is), or its numbers as text, for leat::label. Other records have the field "value".
/// Checksums of records are verified each time a picture is read; of other values if table_options::checksums is set.
///   throws   error{errc::not_found}; error{errc::format} a length whose checksum is another one, with file and offset
///   source   tensorflow.org/tutorials/load_data/tfrecord; tensorflow/core/example
[[nodiscard]] dataset open_tfrecord(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_tfrecord(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_tfrecord(const std::string& files, const table_options& options = {});

/// Lines of JSON. Each line is an object and a sample, and each of its members a field: a text without its quotes, a
/// number as it is written, for leat::label, true and false as 1 and 0, lists and objects as they are written. The
/// fields are the members of the first 100 lines. For a loader of a field, a line without this member, or with null, is
/// a corrupt sample. Blank lines are skipped.
///   throws   error{errc::not_found}; error{errc::format} one of the first 100 lines that is no object, with the
///            offset; a line of more than 256 MiB
///   source   RFC 8259, jsonlines.org
[[nodiscard]] dataset open_jsonl(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_jsonl(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_jsonl(const std::string& files, const table_options& options = {});

/// Rows of comma-separated values. The first row names the columns. Each column is a field: numbers for leat::label,
/// others texts. Values may be in quotes, with line ends in them. The separator is the most frequent of comma, tab and
/// semicolon in the first row; of .tsv the tab.
///   throws   error{errc::not_found}; error{errc::format} a column that is there twice, quotes without an end;
///            error{errc::limit} more than 65,535 columns
///   source   RFC 4180
[[nodiscard]] dataset open_csv(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_csv(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_csv(const std::string& files, const table_options& options = {});

/// Shards of MosaicML's streaming library (MDS, version 2), as the index.json in their folder lists them. Each column
/// is a field: jpeg and png are pictures, str and json texts, numbers labels (as text), arrays of one dtype and shape
/// rows, one-dimensional arrays of one dtype their elements. Others are bytes.
///   throws   error{errc::not_found} a folder without index.json, or a shard; error{errc::format} an index or a shard
///            that is damaged, with the offset; error{errc::unsupported} compressed shards and other versions, with
///            what to do
///   folder   or an address
///   source   github.com/mosaicml/streaming: streaming/base/format/mds
[[nodiscard]] dataset open_mds(const std::string& folder, const table_options& options = {});

///   remote   for files at addresses
struct record_options {
  remote_options remote = {};
};

/// Records of one size, one after another in `name.bin`. `name.json` beside it describes them:
///
///     {"fields": [{"name": "x", "dtype": "f32", "shape": [3, 224, 224]}, {"name": "y", "dtype": "i64"}],
///      "records": 50000, "header_bytes": 0}
///
/// A record is the bytes of its fields in this order, without gaps, little-endian. Without "shape" a field is one
/// number, without "records" the file's size says how many there are, and "header_bytes" is 0. Each field is of
/// field_kind::tensor, for leat::array.
///   files    the .bin files, by path, brace list or glob; several follow one another and have the same fields
///   throws   error{errc::not_found} a file, or the JSON beside it; error{errc::format} names what is wrong in the
///            JSON, or sizes that do not fit together; error{errc::usage} files of different fields
[[nodiscard]] dataset open_records(std::span<const std::string> files, const record_options& options = {});
[[nodiscard]] dataset open_records(std::initializer_list<std::string_view> files, const record_options& options = {});
[[nodiscard]] dataset open_records(const std::string& files, const record_options& options = {});

///   type     the integer type of tokens in files without a header, as nanoGPT's. Not set (default): u16. If set, a
///            file that begins almost as llm.c's do is one without a header
///   remote   for files at addresses
struct token_options {
  std::optional<dtype> type = std::nullopt;
  remote_options remote = {};
};

/// Token files: the field "tokens" of field_kind::tokens. A sample is a document if there is an index of documents,
/// else a file. Pass the dataset to cut_windows(), and load its windows by the field leat::tokens. The format is found
/// by content:
///
///     nanoGPT    train.bin without a header: tokens of `token_options::type`
///     llm.c      a header of 256 int32: 20240520, 1: u16; 20240801, 7: u32
///     Megatron   name.bin with name.idx beside it (either may be named, or `name` alone): documents
///     NumPy      a one-dimensional .npy of integers
///
///   files    paths, brace lists and globs
///   throws   error{errc::not_found}; error{errc::format} sizes that do not fit together, with both;
///            error{errc::unsupported} versions and dtypes that hold no tokens; a header like llm.c's with another
///            magic number
///   source   karpathy/nanoGPT data/*/prepare.py; karpathy/llm.c dev/data/data_common.py; NVIDIA/Megatron-LM
///            megatron/core/datasets/indexed_dataset.py
[[nodiscard]] dataset open_tokens(std::span<const std::string> files, const token_options& options = {});
[[nodiscard]] dataset open_tokens(std::initializer_list<std::string_view> files, const token_options& options = {});
[[nodiscard]] dataset open_tokens(const std::string& files, const token_options& options = {});

/// Options that open() gives to the function of the format. An option that a source does not take is refused by name.
///   index    for shards and folders; tar.index is ignored
///   arrays   for HDF5 and Zarr. If it sets windows or sample::array, all sources must be of these formats. Its
///            `fields` apply to every source, as dataset::with_fields()
///   tables   for Parquet, Arrow, TFRecord, MDS, JSONL and CSV. If it names no fields, those of `arrays` apply
///   remote   for objects at addresses; those of `tar`, `arrays`, `tables` and `lmdb` are ignored
///   split    of a folder that has several ("train", "test"), the one to open. Empty (default): a folder with splits is an
///            error that lists them
struct open_options {
  tar_options tar = {};
  index_options index = {};
  array_options arrays = {};
  table_options tables = {};
  lmdb_options lmdb = {};
  remote_options remote = {};
  std::string split = {};
};

/// Opens any source, as the command does with its SOURCEs. Brace lists and globs name several; several become one
/// dataset, in their order.
///   folder    with *.tar: shards, sorted. With zarr.json, .zgroup or .zarray: Zarr. With data.mdb: LMDB. With an
///             index.json of shards: MDS. With metadata.jsonl or metadata.csv: the pictures that it lists. Else:
///             pictures, as open_folder()
///   file      what its first bytes and the files beside it say (.npy, .npz, HDF5, Parquet, Arrow, LMDB, TFRecord,
///             references, records, tokens), or its name (.jsonl, .csv, .tsv). Else: a tar shard
///   address   https://, http:// and s3:// are read by ranges; one that ends with a slash is a folder (docs/remote.md)
///   throws   as the functions that it calls; error{errc::not_found} says what was looked for; error{errc::unsupported}
///            an address that leat does not read (hf://), or a file of a kind that leat does not read;
///            error{errc::usage} names a folder of classes and one without, whose pictures would have no label, and a
///            .bin file that nothing tells about
[[nodiscard]] dataset open(std::span<const std::string> sources, const open_options& options = {});
[[nodiscard]] dataset open(std::initializer_list<std::string_view> sources, const open_options& options = {});
[[nodiscard]] dataset open(const std::string& source, const open_options& options = {});

/// An integer of each sample, for dataset::with_column(): the field "cls" of shards, for example. Reads all samples,
/// some thousand at a time. Blocks.
///   name      a field whose bytes are one integer as text, or of field_kind::tensor one of an integer dtype; or a
///             column
///   throws    error{errc::usage} naming the dataset's fields where it has none of this name; error{errc::corrupt}
///             naming a sample that lacks it, or whose bytes are no integer; error{errc::io}
[[nodiscard]] std::vector<std::int64_t> read_column(const dataset& samples, std::string_view name);

/// A dataset of your own: where the bytes of each sample lie in files.
///   fields    one extent for each sample: `file` is an index into `files`, `source` is 0, decoded_bytes 0 means "as
///             stored". An extent of 0 bytes at offset extent_list::missing means that this sample lacks the field
///   codec     of a field that is compressed sample by sample: "gzip", "zlib" or "deflate" (without a header). Then
///             each extent needs decoded_bytes, and a sample that expands to another size is corrupt. Empty (default):
///             as stored
///   names     a name for each sample. Empty (default): file and offset are the name
struct extent_list {
  static constexpr std::uint64_t missing = ~std::uint64_t{0};
  struct field {
    std::string name;
    std::vector<extent> extents;
    std::string codec = {};
  };
  std::vector<std::string> files = {};
  std::vector<field> fields = {};
  std::vector<column_values> columns = {};
  std::vector<std::string> classes = {};
  std::vector<std::string> names = {};
};

///   throws   error{errc::usage} lists of different lengths; error{errc::not_found} and error{errc::format} a file that
///            is not there or ends before an extent does, with file, sample and offset; error{errc::unsupported} an
///            extent that would have to be decompressed, without a codec, and a codec that leat does not have
[[nodiscard]] dataset from_extents(extent_list table);

/// The samples of a function.
///   field       the name of their one field
///   bytes_max   the most bytes that one call returns; must be set. The loader's budget is charged with it for each
///               sample under way
struct function_options {
  std::string field = "bytes";
  std::uint64_t bytes_max = 0;
  std::vector<column_values> columns = {};
  std::vector<std::string> classes = {};
  std::function<std::string(std::uint64_t)> name = {};
  /// A name for what the function makes, "fractals, v2", which you change whenever it gives other bytes. Without it a
  /// run can neither be saved nor resumed.
  std::string described_as = {};
};

/// Samples that a function makes, as a map-style Dataset. `make(i)` runs on the decode threads, several at a time: it
/// must be thread-safe, and give the same bytes for the same i. If it throws, the sample is corrupt
/// (loader_options::on_corrupt).
[[nodiscard]] dataset from_function(std::uint64_t samples, std::function<std::vector<std::byte>(std::uint64_t)> make,
                                    function_options options);

/// Samples that a coroutine fetches. It is awaited on the loader's I/O thread, as many at a time as there are reads in
/// flight. It must not block, and must honour cancellation as any operation of Asio.
using coroutine_of_bytes = boost::asio::awaitable<std::vector<std::byte>, boost::asio::any_io_executor>;
[[nodiscard]] dataset from_coroutine(std::uint64_t samples, std::function<coroutine_of_bytes(std::uint64_t)> fetch,
                                     function_options options);

/// Rows of dense host tensors with a common first axis, as TensorDataset. Tensors of one axis are columns (labels),
/// others are fields of field_kind::tensor. Their bytes are not copied: `owner` keeps them alive as long as the
/// dataset.
///   described_as   a name for the bytes, which you change whenever they change. Without it a run over more than 64 MiB
///                  can neither be saved nor resumed; smaller tensors are known by their digest
struct named_tensor {
  std::string name;
  tensor values;
};
[[nodiscard]] dataset from_tensors(std::vector<named_tensor> tensors, std::shared_ptr<const void> owner,
                                   std::vector<std::string> classes = {}, std::string described_as = {});

}  // namespace leat
