// Arrays: NumPy, HDF5 and Zarr.
#pragma once

#include <leat/compiler.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

struct npy_options {
  enum class sample : std::uint8_t {
    automatic,  ///< row for one file, file for several
    row,        ///< each row of the first axis is a sample; several files follow one another
    file        ///< each file is a sample
  };
  sample samples = sample::automatic;
  unsigned threads = 0;                  ///< threads that read headers. 0 (default): chosen for the machine
  remote_options remote = {};            ///< for files at addresses
  std::vector<std::string> fields = {};  ///< only these members of .npz, by name or pattern ("train_*")
  std::uint64_t window = 0;              ///< rows of a sample, as array_options::window: of several files, too
  std::uint64_t stride = 1;              ///< as array_options::stride
};

/// Arrays of numpy.save(), versions 1 to 3: the field "npy", of field_kind::tensor, for leat::array. All of leat::dtype
/// but bf16, little-endian and in C order. If each number of a one-dimensional array is a sample, it is the column
/// "npy", for leat::label.
///   files    paths, brace lists and globs; all of one dtype and row shape
///   throws   error{errc::not_found}; error{errc::format} a damaged header, or a file that ends before its array does,
///            by name; error{errc::unsupported} big-endian, complex, structured, object and text dtypes and Fortran
///            order, with what to do about each; error{errc::usage} files of different dtypes or shapes, fewer rows than
///            a window
///   source   numpy.lib.format
[[nodiscard]] dataset open_npy(const source_names& files, const npy_options& options = {});

/// Arrays of numpy.savez() and savez_compressed(): each member `x.npy` is the field "x", and its first axis the
/// samples; one-dimensional members are columns. Without options.fields, fields are the members that share the most
/// common number of rows; notes() names the others, and what cannot be read. Several archives follow one another.
///   throws   as open_npy(), for members that options.fields names; error{errc::not_found} for a name that is not there,
///            with those that are; error{errc::usage} for named members with different numbers of rows;
///            error{errc::unsupported} for members that are compressed by another method than deflate
///   source   PKWARE APPNOTE 6.3.3 (zip, zip64); numpy.lib.format
[[nodiscard]] dataset open_npz(const source_names& files, const npy_options& options = {});

/// Which arrays of HDF5 or Zarr are fields, and what a sample is.
///   fields    paths of arrays, "train/images". Empty (default): the arrays whose first axis has the most common
///             length; dataset::notes() names the others. With sample::array also the last parts of paths
///   window   rows of one sample: sample i has the rows from i * stride on, in shape [window, ...]. No window crosses
///            from one file to the next. 0 (default): one row, without that axis
///   stride    rows from the beginning of one sample to that of the next. Default: 1
///   threads   threads that read headers and indexes. 0 (default): chosen for the machine
///   remote    for files at addresses
///   columns   of HDF5 where arrays or groups are samples: names of attributes that each of them has, numbers or texts.
///             "image/label" is the attribute `label` of the sample's `image`
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
  std::vector<std::string> columns = {};
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
[[nodiscard]] dataset open_hdf5(const source_names& files, const hdf5_options& options = {});

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

}  // namespace leat
#pragma GCC visibility pop
