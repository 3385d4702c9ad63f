// What is there to train on. A dataset knows, for each sample, where its bytes lie; it holds none of them itself
// (tensors in memory excepted). Opening any format ends in the same small value.
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

// Whoever has a coroutine to give to from_coroutine() includes <boost/asio/awaitable.hpp>.
namespace boost::asio {
class any_io_executor;
template <typename T, typename Executor>
class awaitable;
}  // namespace boost::asio

namespace leat {

namespace datasets {
class dataset_model;
}

/// What a field's bytes are, judged by its name alone: enough to choose the fields of a command nobody gave any.
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
///   bytes_max     the largest one, in bytes, decoded where it is stored in blocks that expand
///   bytes_total   of all samples, as stored
///   alignment     in bytes, a power of two, at most 4096: each lies on multiples of it in its file, from begin to end
///   column        the value is a number kept with the dataset (dataset::label); nothing is read for it
///   type, shape   of one row, for field_kind::tensor; of one token, for field_kind::tokens
///   stored_block_bytes_max, decoded_block_bytes_max
///                 the largest block that has to be expanded, in bytes, before and after; 0 where all bytes are as stored
///   expand_bytes_max   memory that expanding such a block takes beside it: pages of a column, dictionaries
///   chunked       a sample is a box out of one or more of these blocks, which other samples share: a row of a chunked array. Of bytes,
///                 texts and pictures it is a value out of one: of a packed column
///   blocks_max    of a chunked field, the most blocks that one sample lies in
///   chunk         of a chunked array, the shape of a chunk: rows, and elements along the axes of a row. Empty in concatenations of arrays
///                 that differ in it
///   filters       how its chunks were made, first one first: "shuffle, gzip"; likewise
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
  std::uint64_t stored_block_bytes_max = 0;
  std::uint64_t decoded_block_bytes_max = 0;
  std::uint64_t expand_bytes_max = 0;
  bool chunked = false;
  std::uint64_t blocks_max = 0;
  dimensions chunk = {};
  std::string filters = {};

  /// Rows of a chunk: as many samples share it.
  [[nodiscard]] std::uint64_t chunk_rows() const noexcept {
    return chunk.empty() ? 0 : static_cast<std::uint64_t>(chunk[0]);
  }
  [[nodiscard]] bool expands() const noexcept { return decoded_block_bytes_max != 0; }
  /// The most bytes that are read for one sample.
  [[nodiscard]] std::uint64_t read_bytes_max() const noexcept { return expands() ? stored_block_bytes_max : bytes_max; }
};

/// Host memory a dataset holds, in bytes, by what it is for.
struct dataset_memory {
  std::uint64_t extents = 0;  ///< at most 24 bytes per sample of one field
  std::uint64_t files = 0;    ///< paths and sizes of files, directories written once
  std::uint64_t columns = 0;  ///< labels and other numbers, order and choice of samples
  std::uint64_t data = 0;     ///< tensors in memory

  [[nodiscard]] std::uint64_t total() const noexcept { return extents + files + columns + data; }
};

/// Numbers kept beside the samples, one for each: "cls" is the label, "length" and "group" serve samplers.
///   values   whole numbers
///   reals    instead of these, real ones
///   type     what those become in a batch, unless the label says another: f64, f32, f16 or bf16
struct column_values {
  std::string name;
  std::vector<std::int64_t> values = {};
  std::vector<double> reals = {};
  dtype type = dtype::f64;

  [[nodiscard]] std::uint64_t size() const noexcept { return reals.empty() ? values.size() : reals.size(); }
};

/// A list of samples with named fields. A cheap value: copies share one immutable table (it may be large, and several
/// loaders, subsets and the caller hold it at once: that is what the shared_ptr is for). Every member may be called
/// from any thread.
class dataset {
 public:
  /// For those who bring a format of their own (datasets/model.hpp).
  explicit dataset(std::shared_ptr<const datasets::dataset_model> model) noexcept;

  /// Samples.
  [[nodiscard]] std::uint64_t size() const noexcept;

  /// Every field that some sample has: those with bytes in the order of their first appearance, then columns.
  [[nodiscard]] std::vector<field_info> fields() const;

  /// Class names by class number; empty where the source names none.
  [[nodiscard]] const std::vector<std::string>& classes() const noexcept;

  /// The class number of a sample, where the dataset itself knows it (a folder of classes, a column "cls", the column of a table
  /// whose classes have names); a tar's `.cls` is a field to be read.
  ///   throws   error{errc::usage} for a sample that is not there; so do all below
  [[nodiscard]] std::optional<std::int64_t> label(std::uint64_t sample) const;

  /// A whole number of a column by name ("cls", "length", "group"); nullopt where there is none for this sample.
  [[nodiscard]] std::optional<std::int64_t> column(std::uint64_t sample, std::string_view name) const;

  /// Any number of a column, a real one too ("score").
  [[nodiscard]] std::optional<double> number(std::uint64_t sample, std::string_view name) const;

  /// What a person would call the sample. A folder: the path below its root; a tar: shard and key, "train-0.tar/n01/17".
  /// Names inside shards are read from the shard when asked for: this may block on the disk.
  ///   throws   error{errc::io} when the shard cannot be read any more
  [[nodiscard]] std::string name(std::uint64_t sample) const;

  /// The bytes of one field, for looking at a few samples (a loader reads them otherwise). Blocks.
  ///   field    as in fields(); empty: the sample's first
  ///   throws   error{errc::not_found} naming the fields the sample has; error{errc::io}; error{errc::corrupt} for a
  ///            sample known to be damaged
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t sample, std::string_view field = {}) const;

  /// These samples, in this order; a sample may come several times.
  [[nodiscard]] dataset subset(std::span<const std::uint64_t> samples) const;
  [[nodiscard]] dataset subset(std::initializer_list<std::uint64_t> samples) const;

  /// The samples first .. first + count - 1.
  [[nodiscard]] dataset slice(std::uint64_t first, std::uint64_t count) const;

  /// Disjoint random parts that together are the whole, the same for the same seed everywhere and for ever. Part k
  /// has round(n * (f_0 + .. + f_k)) - round(n * (f_0 + .. + f_k-1)) samples, in this dataset's order. Where the
  /// fractions add up to less than one, what is left is one more part: split(7, {0.9}) gives 90 % and 10 %.
  ///   throws   error{errc::usage} for a fraction outside [0, 1] or a sum above 1
  [[nodiscard]] std::vector<dataset> split(std::uint64_t seed, std::span<const double> fractions) const;
  [[nodiscard]] std::vector<dataset> split(std::uint64_t seed, std::initializer_list<double> fractions) const;

  /// With one integer column more: what an order sorts or balances by, or a label.
  ///   values   one per sample
  ///   throws   error{errc::usage} for another number of values, or a column of this name that is there
  [[nodiscard]] dataset with_column(std::string name, std::vector<std::int64_t> values) const;
  /// The same, of real numbers too.
  [[nodiscard]] dataset with_column(column_values added) const;

  /// The same samples with these fields and columns only, in this order. "jpg" is whichever picture a sample has.
  ///   throws   error{errc::usage} with those that there are, where there is none of a name
  [[nodiscard]] dataset with_fields(std::span<const std::string> names) const;

  /// What is odd about the source and hurts no sample: members skipped, bytes after an archive's end, a shard cut within a
  /// member that belongs to none.
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept;

  [[nodiscard]] dataset_memory memory() const;

  /// For the loader and for tools: the table behind the handle.
  [[nodiscard]] const std::shared_ptr<const datasets::dataset_model>& model() const noexcept { return model_; }

 private:
  std::shared_ptr<const datasets::dataset_model> model_;
};

/// One after the other. Fields are matched by name. Class names that are equal stay; where they differ, the classes of
/// the whole are the sorted union, and class numbers are translated by name.
///   throws   error{errc::usage} when numbers would have to be translated that carry no name: class names differ and
///            some part has labels without class names
[[nodiscard]] dataset concat(std::span<const dataset> parts);
[[nodiscard]] dataset concat(std::initializer_list<dataset> parts);

/// What to do with an index that an earlier run has kept: what opening a source found out, so that it need not be found out again.
enum class index_use : std::uint8_t {
  off,  ///< neither read nor written
  check,  ///< read where every file (of folders: every directory) has the size and time of modification that it had; else built
  rebuild,  ///< built, and written
  trust     ///< read without looking at the files; built where there is none. Of objects at addresses: as check
};

/// What became of the index of a source.
///   why   of one that was used: its path; else why it was not
struct index_report {
  enum class outcome : std::uint8_t { used, written, none };
  std::string source;
  outcome what = outcome::none;
  std::string why;
};

/// Whether and where indexes are kept: of tar shards, whose headers need not be read again, and of folders, which need not be walked.
///   directory   empty: $XDG_CACHE_HOME/leat, or ~/.cache/leat; there only for files with 10,000 samples and more, and for shards at addresses
///   on_report   called once for each source that may have one
///
/// An index that is damaged or cannot be written does no harm: the source is looked through as without one. Two processes may build one at
/// the same time.
///   limit   a file that is rewritten in place with its size and time of modification kept is not noticed; of a folder's files, which are
///           not looked at one by one, one that is rewritten in place
struct index_options {
  index_use use = index_use::off;
  std::string directory = {};
  std::function<void(const index_report&)> on_report = {};
};

/// How the samples of a folder are found.
struct folder_options {
  enum class class_folders : std::uint8_t {
    automatic,  ///< class folders where the folder holds folders with pictures, else flat
    yes,        ///< each folder is a class, as torchvision's ImageFolder has it
    no          ///< every picture below the folder; no classes, no labels
  };
  class_folders classes = class_folders::automatic;
  bool allow_empty_classes = false;  ///< a class folder without a picture is an error unless this is set
  /// Lower case, with the dot; a file's name is compared whatever its case. Empty: torchvision's, .jpg .jpeg .png .ppm
  /// .bmp .pgm .tif .tiff .webp, and photo packs, .fjpg .fjpeg .fjpe.
  std::vector<std::string> extensions = {};
  unsigned threads = 0;  ///< that walk and stat; 0: chosen from the machine
  index_options index = {};
  remote_options remote = {};  ///< of a folder at an address
};

/// Pictures in a folder. Field "jpg" (whatever the format inside), and the column "cls" where there are classes.
///   order    torchvision's: classes by name, then directories by their whole path, then file names. Symbolic links
///            are followed; one that leads back to a folder it lies in is not entered again
///   notes    pictures that are no samples: those beside class folders, which have no class, and those whose names end in
///            .gif, .heic and the like, which leat does not read. Files .tif, .tiff, .ppm and .pgm are samples, as in
///            torchvision; loading finds them corrupt, unless their content is of a format that leat reads
///   throws   error{errc::not_found} no such folder, no picture, or (named) class folders without one;
///            error{errc::permission} naming the directory that could not be read
///   source   torchvision/datasets/folder.py: find_classes, make_dataset
///   path     or s3://bucket/folder/, by its listing; no index of it is kept
[[nodiscard]] dataset open_folder(const std::string& path, const folder_options& options = {});
/// Deleted: it opens one folder, and open() takes several. Without this, {"a", "b"} would call std::string's constructor from
/// two iterators.
dataset open_folder(std::initializer_list<std::string_view> paths, const folder_options& options = {}) = delete;

/// How shards are indexed.
///   ignore_zeros   reads on behind an archive's end marker, as GNU tar's --ignore-zeros: for files that `cat a.tar b.tar`
///                  made. Without it, what lies behind the marker is no sample, and notes() mentions it
struct tar_options {
  unsigned shards_in_flight = 0;  ///< indexed at a time; 0: 64
  bool ignore_zeros = false;
  index_options index = {};
  remote_options remote = {};  ///< of shards at addresses
};

/// Samples of WebDataset tar shards: neighbouring members of one key, the path up to the first dot of its last part;
/// what follows the dot, in lower case, is the field. Members that are no regular files are skipped (notes() counts
/// them). Shards come in the order given, a glob's sorted.
///   shards   paths, brace lists (a-{000..127}.tar, {train,val}.tar) and globs; or addresses, as `files` of all functions below
///            (docs/remote.md): https:// with brace lists, s3:// with globs too. One call has paths or addresses, not both
///   throws   error{errc::not_found} a shard is missing or a pattern matches none; error{errc::format} a damaged header,
///            with shard and offset; error{errc::unsupported} sparse members and hard links, by name, compressed
///            archives and files of another kind. A field given twice, or a shard that ends inside a member, is a defect of
///            one sample, and left to the loader's corrupt policy
///   source   webdataset/tariterators.py: base_plus_ext, group_by_keys; POSIX.1-2001 pax; GNU tar manual
[[nodiscard]] dataset open_tar(std::span<const std::string> shards, const tar_options& options = {});
[[nodiscard]] dataset open_tar(std::initializer_list<std::string_view> shards, const tar_options& options = {});
[[nodiscard]] dataset open_tar(const std::string& shards, const tar_options& options = {});

struct npy_options {
  enum class sample : std::uint8_t {
    automatic,  ///< of one file its rows, of several files each file
    row,        ///< the first axis counts the samples; several files follow one another, as shards do
    file        ///< each file is a sample
  };
  sample samples = sample::automatic;
  unsigned threads = 0;        ///< that read headers; 0: chosen from the machine
  remote_options remote = {};  ///< of files at addresses
};

/// Arrays that numpy.save() wrote, versions 1 to 3: the field "npy", of field_kind::tensor, which leat::array reads. Of all
/// dtypes that leat::dtype has (bf16 excepted, which NumPy does not know), little-endian and in C order. One-dimensional
/// arrays whose numbers are the samples are the column "npy": leat::label reads them.
///   files    paths, brace lists and globs; all of one dtype and row shape
///   throws   error{errc::not_found}; error{errc::format} a damaged header, or a file that ends before its array does, by
///            name; error{errc::unsupported} big-endian, complex, structured, object and text dtypes and Fortran order, with
///            what to do about each; error{errc::usage} files of different dtypes or shapes
///   source   numpy.lib.format
[[nodiscard]] dataset open_npy(std::span<const std::string> files, const npy_options& options = {});
[[nodiscard]] dataset open_npy(std::initializer_list<std::string_view> files, const npy_options& options = {});
[[nodiscard]] dataset open_npy(const std::string& files, const npy_options& options = {});

/// Arrays that numpy.savez() wrote: each member `x.npy` is the field "x", its first axis the samples; one-dimensional
/// ones are columns. All members have the same number of rows. Several archives follow one another, as shards do.
///   throws   as open_npy(); error{errc::unsupported} for compressed members, which numpy.savez() would have stored
///   source   PKWARE APPNOTE 6.3.3 (zip, zip64); numpy.lib.format
[[nodiscard]] dataset open_npz(std::span<const std::string> files, const npy_options& options = {});
[[nodiscard]] dataset open_npz(std::initializer_list<std::string_view> files, const npy_options& options = {});
[[nodiscard]] dataset open_npz(const std::string& files, const npy_options& options = {});

/// Which arrays of a file or hierarchy become fields, and what of them is a sample.
///   fields    arrays by their paths, "train/images"; empty: those that share the commonest length of the first axis, and
///             dataset::notes() names the rest. Where arrays are samples: by their paths or the last parts of those
///   window    rows of a sample: sample i has those from i * stride on, and one axis more, [window, ...]. No window crosses from one file to
///             the next. 0: one row, without that axis
///   stride    rows from one sample to the next
///   threads   that read headers and indexes; 0: chosen from the machine
///   remote    of files at addresses
struct array_options {
  enum class sample : std::uint8_t {
    /// The first axis counts the samples.
    row,
    /// Each array is a sample: all are of one type and shape. Those of one name in different groups ("0/image", "1/image") become the
    /// field of that name; where no name comes twice, all of them become "array". In the order of their paths.
    array
  };
  std::vector<std::string> fields = {};
  sample samples = sample::row;
  std::uint64_t window = 0;
  std::uint64_t stride = 1;
  unsigned threads = 0;
  remote_options remote = {};
};
using hdf5_options = array_options;
using zarr_options = array_options;

/// Arrays of HDF5 files: each dataset of numbers is a field of its path, its first axis the samples; one-dimensional ones are columns.
/// A field is of field_kind::tensor, which leat::array reads; one-dimensional numbers in windows are kept in memory.
/// Several files follow one another, as shards do.
///
/// Contiguous, compact and chunked datasets; the filters gzip, shuffle, fletcher32 (which is verified), lzf, lz4, zstd, blosc 1 and
/// bitshuffle; integers, floats and bool, of either byte order; fill values. Of a compound each member is a field, "points/x". Text and
/// opaque bytes of a fixed length are u8 with a last axis of that length; values of variable length are read where they lie, as
/// members of a tar are: JPEGs are pictures. A chunk that a batch needs is read once and expanded once for all rows of the batch, and
/// rows that are stored as they are are read as those of a .npy are.
///   files    paths, brace lists and globs
///   throws   error{errc::not_found} a file, or a field, with those that are there; error{errc::format} a damaged header or index, with the
///            offset; error{errc::unsupported} a wanted field of references or of another filter, a virtual or
///            external dataset, and a file that is open for writing, each with what to do; error{errc::usage} fields of different
///            lengths
///   source   HDF5 File Format Specification 3.0
[[nodiscard]] dataset open_hdf5(std::span<const std::string> files, const hdf5_options& options = {});
[[nodiscard]] dataset open_hdf5(std::initializer_list<std::string_view> files, const hdf5_options& options = {});
[[nodiscard]] dataset open_hdf5(const std::string& files, const hdf5_options& options = {});

/// Arrays of a Zarr hierarchy, version 2 or 3, in a folder: a field each, as open_hdf5() has them. Chunks in files of their own or in
/// shards (`sharding_indexed`); the codecs gzip, zlib, zstd, lz4, blosc, shuffle, fletcher32 and crc32c, which are verified, and
/// transpose; C's order and Fortran's; integers, floats and bool, of either byte order; fill values, which chunks that were never written are.
///   folder   that has zarr.json, .zgroup or .zarray; or an address, of s3:// by its listing, of https:// by the names of its chunks: there
///            groups have to have consolidated metadata
///   throws   error{errc::not_found} a folder that is no Zarr, or a field, with those that are there; error{errc::format} metadata or
///            the index of a shard that is damaged, by name; error{errc::unsupported} a wanted field of another dtype or codec,
///            with what to do; error{errc::usage} fields of different lengths
///   source   zarr-specs: v2, v3 core, sharding-indexed 1.0
[[nodiscard]] dataset open_zarr(const std::string& folder, const zarr_options& options = {});

/// Arrays of a Zarr hierarchy whose chunks lie anywhere in other files, as a JSON of references says: what kerchunk writes of HDF5, NetCDF
/// and others, and `leat inspect --references`. Versions 0 and 1; values are text, "base64:...", [url] or [url, offset, length].
///   path     of the JSON. A url is a path, relative to its folder, or file://; "templates" may be names of texts. Of a JSON at an address a
///            url is relative to its folder, or an address; of one on a disk they may be addresses, all of them
///   throws   as open_zarr(); error{errc::format} what is no such JSON, or a chunk beyond its file; error{errc::unsupported} "gen",
///            templates that compute, and of a JSON on a disk that leads to a disk too, chunks at addresses; error{errc::limit} more than 512 MiB
///   source   fsspec.github.io/kerchunk/spec.html
[[nodiscard]] dataset open_references(const std::string& path, const zarr_options& options = {});

/// Which columns of a table are read.
///   fields    by their names; empty: all whose values lie in the file as they are
///   columns   numbers that are kept with the dataset, and texts that are classes: up to 65,536 different ones, which are then numbered
///             in their order. "label", "cls" and "class" need not be named where they are numbers, nor need the Hub's classes
///   path_column   of JSONL and CSV: it has paths, and each sample is the file of its path, the field "jpg". Other columns are fields as ever.
///             They may be addresses: of a table on a disk all of them, or none
///   root      what these paths are relative to, which may be an address; empty: the folder of the table
///   checksums   of TFRecord: each record is read with the checksum behind it, and is corrupt where that is another one
///   threads   that read headers and indexes; 0: chosen from the machine
///   remote    of files at addresses
struct table_options {
  std::vector<std::string> fields = {};
  std::vector<std::string> columns = {};
  std::string path_column = {};
  std::string root = {};
  bool checksums = false;
  unsigned threads = 0;
  remote_options remote = {};
};

/// Rows of Parquet files, as they lie: nothing is converted. A column of bytes or texts is a field; a member of a struct is "image.bytes".
/// Numbers that are kept are columns. A null is a field that the sample lacks. By the Hub's
/// metadata (the key "huggingface") `Image` is the picture "image", and `ClassLabel` a column with classes(); else the first value says
/// whether a field is of pictures. Several files follow one another, as shards do.
///
/// Values that lie in the file as they are (not compressed, in the encoding PLAIN, as the Hub's libraries write pictures) are read one by
/// one. Those that are packed (snappy, gzip, zstd, lz4_raw, in any encoding) are read once by this call, for their lengths; then a row
/// group is expanded for the rows of a batch that are in it (field_info::chunked, shuffled_blocks()).
///   files    paths, brace lists and globs
///   notes    columns that are left out, each with the reason
///   throws   error{errc::not_found} a file, or a column, with those that are there; error{errc::format} damage, with file and offset;
///            error{errc::unsupported} a wanted column that is a list, or compressed by another codec, and encrypted files, each with what to do;
///            error{errc::usage} files of different columns or classes
///   source   github.com/apache/parquet-format
[[nodiscard]] dataset open_parquet(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_parquet(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_parquet(const std::string& files, const table_options& options = {});

/// Rows of Arrow IPC files and streams, as they lie: fields, columns and the Hub's metadata as open_parquet() has them. Lists of numbers of
/// one length are fields of field_kind::tensor, those of any length bytes, which leat::sequence reads. A batch that is packed (lz4, zstd) is
/// expanded for the rows of a batch that are in it, as open_parquet() does; lists of one length are bytes there, too.
///   throws   as open_parquet(); error{errc::unsupported} views of lists and big-endian files, each with what to do
///   source   arrow.apache.org: Arrow Columnar Format
[[nodiscard]] dataset open_arrow(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_arrow(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_arrow(const std::string& files, const table_options& options = {});

/// Values of LMDB databases (version 0.9) where they lie, in the order of their keys: the field "value", which is of pictures where the
/// first value is one. Keys that name a field and a number ("image-000000001", "label-000000001"; "256-00017") are samples with these
/// fields; a Datum of Caffe has "data" and "label", msgpack and pickles what the first one has. A sample is called by its key. Keys about
/// the set ("num-samples", "length", "__len__", ...) are left out. Only pages of the tree are read when it is opened.
///   environments   folders with data.mdb, or files, by paths, brace lists and globs; or addresses of either
///   database       a named one; empty: the main one, or the only one
///   throws         error{errc::not_found} a file, or a database, with those that are there; error{errc::format} damage, with file and offset;
///                  error{errc::unsupported} databases with several values for a key, and files of another version, with what to do;
///                  error{errc::usage} several named databases of which none was named
///   limit          a program that commits to it ends a run (errc::changed), since it may overwrite what is read
///   source         OpenLDAP, liblmdb 0.9
struct lmdb_options {
  std::string database = {};
  unsigned threads = 0;
  remote_options remote = {};
};
[[nodiscard]] dataset open_lmdb(std::span<const std::string> environments, const lmdb_options& options = {});
[[nodiscard]] dataset open_lmdb(std::initializer_list<std::string_view> environments, const lmdb_options& options = {});
[[nodiscard]] dataset open_lmdb(const std::string& environment, const lmdb_options& options = {});

/// Records of TFRecord files where they lie. Those of a tf.train.Example have a field for each feature: its one value of bytes, which is a
/// picture or text where the first one is, or its numbers as text, which leat::label reads. Others have the field "value".
/// Checksums of records are verified where table_options::checksums asks for it, each time that a value is picked out of one.
///   throws   error{errc::not_found}; error{errc::format} a length whose checksum is another one, with file and offset
///   source   tensorflow.org/tutorials/load_data/tfrecord; tensorflow/core/example
[[nodiscard]] dataset open_tfrecord(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_tfrecord(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_tfrecord(const std::string& files, const table_options& options = {});

/// Lines of JSON: each an object, a sample, and each of its members a field. A text is its characters, a number as it is written, which
/// leat::label reads; true and false are 1 and 0, lists and objects as they are written. Members are those of the first 100 lines. A
/// line that lacks one, or has null there, is a corrupt sample of who loads it. Blank lines are none.
///   throws   error{errc::not_found}; error{errc::format} one of the first 100 lines that is no object, with the offset; a line of more than
///            256 MiB
///   source   RFC 8259, jsonlines.org
[[nodiscard]] dataset open_jsonl(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_jsonl(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_jsonl(const std::string& files, const table_options& options = {});

/// Rows of comma-separated values, of which the first names the columns: each a field, numbers for leat::label, others texts. Values may be
/// in quotes, with line ends in them. The separator is the one of comma, tab and semicolon that the header has most of; of .tsv the tab.
///   throws   error{errc::not_found}; error{errc::format} a column that is there twice, quotes without an end; error{errc::limit} more than
///            65,535 columns
///   source   RFC 4180
[[nodiscard]] dataset open_csv(std::span<const std::string> files, const table_options& options = {});
[[nodiscard]] dataset open_csv(std::initializer_list<std::string_view> files, const table_options& options = {});
[[nodiscard]] dataset open_csv(const std::string& files, const table_options& options = {});

/// Shards of MosaicML's streaming library (MDS, version 2), as the index.json in their folder lists them. Each column is a field: of jpeg and
/// png pictures, of str and json texts, of numbers labels (which are given as text), of arrays of one dtype and shape rows, of one-dimensional
/// ones of one dtype their elements; others are bytes.
///   throws   error{errc::not_found} a folder without index.json, or a shard; error{errc::format} an index or a shard that is damaged, with
///            the offset; error{errc::unsupported} compressed shards and other versions, with what to do
///   folder   or an address
///   source   github.com/mosaicml/streaming: streaming/base/format/mds
[[nodiscard]] dataset open_mds(const std::string& folder, const table_options& options = {});

///   remote   of files at addresses
struct record_options {
  remote_options remote = {};
};

/// Records of one size, one after the other in `name.bin`, as `name.json` beside it says:
///
///     {"fields": [{"name": "x", "dtype": "f32", "shape": [3, 224, 224]}, {"name": "y", "dtype": "i64"}],
///      "records": 50000, "header_bytes": 0}
///
/// A record is its fields' bytes in this order, without gaps, little-endian. "shape" left out is a single number, "records"
/// what the file's size gives, "header_bytes" 0. Each field is one of field_kind::tensor, which leat::array reads.
///   files    the .bin files, by path, brace list or glob; several follow one another, and have the same fields
///   throws   error{errc::not_found} a file, or the JSON beside it; error{errc::format} names what is wrong in the JSON, or
///            sizes that do not fit together; error{errc::usage} files of different fields
[[nodiscard]] dataset open_records(std::span<const std::string> files, const record_options& options = {});
[[nodiscard]] dataset open_records(std::initializer_list<std::string_view> files, const record_options& options = {});
[[nodiscard]] dataset open_records(const std::string& files, const record_options& options = {});

///   type   of files that have no header to say it (nanoGPT's): u16 or u32, or any other integer; u16 where it is not given.
///          Where it is, a file that begins almost as llm.c's do is one without a header
///   remote of files at addresses
struct token_options {
  std::optional<dtype> type = std::nullopt;
  remote_options remote = {};
};

/// Tokens: the field "tokens" of field_kind::tokens. A sample is a document where an index names documents, else a file; cut_windows()
/// makes windows of them, which the field leat::tokens loads. By content:
///
///     nanoGPT    train.bin without a header: tokens of `token_options::type`
///     llm.c      a header of 256 int32: 20240520, 1: u16; 20240801, 7: u32
///     Megatron   name.bin with name.idx beside it (either may be named, or `name` alone): documents
///     NumPy      a one-dimensional .npy of integers
///
///   files    paths, brace lists and globs
///   throws   error{errc::not_found}; error{errc::format} sizes that do not fit together, with both; error{errc::unsupported}
///            versions and dtypes that hold no tokens; a header like llm.c's with another magic number
///   source   karpathy/nanoGPT data/*/prepare.py; karpathy/llm.c dev/data/data_common.py; NVIDIA/Megatron-LM
///            megatron/core/datasets/indexed_dataset.py
[[nodiscard]] dataset open_tokens(std::span<const std::string> files, const token_options& options = {});
[[nodiscard]] dataset open_tokens(std::initializer_list<std::string_view> files, const token_options& options = {});
[[nodiscard]] dataset open_tokens(const std::string& files, const token_options& options = {});

/// Options that open() passes on to the function that opens the format.
///   index    of shards and of folders; tar.index is not looked at
///   arrays   of HDF5 and Zarr; where it asks for windows, or arrays as samples, all sources are of these formats. `fields` are those of
///            any source: dataset::with_fields()
///   tables   of Parquet, Arrow, TFRecord, MDS, JSONL and CSV; where it asks for something all sources are of these formats. Where it names no fields, those of `arrays` are meant
///   remote   of objects at addresses; those of `tar`, `arrays`, `tables` and `lmdb` are not looked at
struct open_options {
  tar_options tar = {};
  index_options index = {};
  array_options arrays = {};
  table_options tables = {};
  lmdb_options lmdb = {};
  remote_options remote = {};
};

/// What the command does with its SOURCEs: a folder that holds *.tar files is those shards, sorted; one with zarr.json,
/// .zgroup or .zarray is Zarr; one with data.mdb is LMDB, with an index.json of shards MDS, with metadata.jsonl or metadata.csv the pictures
/// that this lists; any other folder is one of pictures; a file is what its first bytes and the files beside it say (.npy, .npz,
/// HDF5, Parquet, Arrow, LMDB, TFRecord, references to chunks, records, tokens), or its name (.jsonl, .csv, .tsv), else a shard; brace lists and globs stand for several. Several become one, in their order.
/// An https://, http:// or s3:// address is a file, too, which is read by ranges, or a folder where it ends with a slash (docs/remote.md).
///   throws   as the functions that it calls; error{errc::not_found} says what was looked for; error{errc::unsupported} an
///            address that leat does not read (hf://), or a file of a kind that leat does not read; error{errc::usage} names a folder of
///            classes and one without, whose pictures would have no label, and a .bin file that nothing tells about
[[nodiscard]] dataset open(std::span<const std::string> sources, const open_options& options = {});
[[nodiscard]] dataset open(std::initializer_list<std::string_view> sources, const open_options& options = {});
[[nodiscard]] dataset open(const std::string& source, const open_options& options = {});

/// An integer of each sample, to be given to dataset::with_column(): the field "cls" out of shards, for example. All samples are read,
/// some thousand at a time. Blocks.
///   name      a field whose bytes are one integer as text, or of field_kind::tensor one of an integer dtype; or a column
///   throws    error{errc::usage} naming the dataset's fields where it has none of this name; error{errc::corrupt} naming a sample that
///             lacks it, or whose bytes are no integer; error{errc::io}
[[nodiscard]] std::vector<std::int64_t> read_column(const dataset& samples, std::string_view name);

/// A table of one's own.
///   fields    one extent per sample: `file` indexes `files`, `source` is 0, decoded_bytes 0 means "as stored"; an
///             extent of 0 bytes at offset extent_list::missing says that this sample lacks the field
///   codec     of a field whose bytes are compressed, each sample's by itself: "gzip", "zlib" or "deflate" (bare). Then decoded_bytes is
///             said for each extent, and a sample that does not become exactly as many is corrupt. Empty: as stored
///   names     one per sample, or none: then file and offset name it
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
///            is not there or ends before an extent does, with file, sample and offset; error{errc::unsupported} an extent
///            that would have to be decompressed, without a codec, and a codec that leat does not have
[[nodiscard]] dataset from_extents(extent_list table);

/// What a function's samples are.
///   bytes_max   the most one call returns; charged to the loader's budget for each sample on its way. Must be given
struct function_options {
  std::string field = "bytes";
  std::uint64_t bytes_max = 0;
  std::vector<column_values> columns = {};
  std::vector<std::string> classes = {};
  std::function<std::string(std::uint64_t)> name = {};
  /// What the samples are, for loader_state: a name that changes whenever the function gives other bytes, "fractals, v2". Without it a
  /// run can neither be saved nor resumed.
  std::string described_as = {};
};

/// Samples that a function makes: `make(i)` runs on the decode threads, several at a time, and must be thread-safe and
/// give the same bytes for the same i. What it throws is what became of that sample (the loader's corrupt policy).
[[nodiscard]] dataset from_function(std::uint64_t samples, std::function<std::vector<std::byte>(std::uint64_t)> make,
                                    function_options options);

/// Samples that a coroutine fetches: awaited on the loader's I/O thread, as many at a time as there are reads in flight.
/// It must not block, and honours its cancellation state as any Asio operation.
using coroutine_of_bytes = boost::asio::awaitable<std::vector<std::byte>, boost::asio::any_io_executor>;
[[nodiscard]] dataset from_coroutine(std::uint64_t samples, std::function<coroutine_of_bytes(std::uint64_t)> fetch,
                                     function_options options);

/// Rows of dense host tensors that share their first axis. Rank-1 tensors are columns (labels), all others
/// fields of field_kind::tensor, whose bytes are not copied: `owner` keeps them alive as long as the dataset is.
///   described_as   for loader_state, a name that changes whenever the bytes do. Tensors of 64 MiB or less need none, since their
///                  digest is taken; a run over more can neither be saved nor resumed without it
struct named_tensor {
  std::string name;
  tensor values;
};
[[nodiscard]] dataset from_tensors(std::vector<named_tensor> tensors, std::shared_ptr<const void> owner,
                                   std::vector<std::string> classes = {}, std::string described_as = {});

}  // namespace leat
