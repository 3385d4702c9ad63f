// Tables: Parquet, Arrow, TFRecord, JSONL, CSV and MDS.
#pragma once

#include <leat/compiler.hpp>
#include <leat/index_options.hpp>
#include <leat/remote.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// What a sample of plain text is.
enum class text_samples : std::uint8_t { lines, paragraphs, files };

/// How tables and records are read.
///   fields    names of columns that are fields. Empty (default): all columns whose values lie in the file as they are
///   columns   names of columns whose values the dataset keeps in memory: numbers, or texts that are classes (up to
///             65,536 different ones, numbered in their order). Numbers called "label", "cls" or "class" and the
///             Hub's classes are kept without being named
///   path_column   a column of paths, in JSONL and CSV. Each sample is the file at its path, as the field "jpg"; the
///                 other columns are fields as well. Paths may be addresses; in a table on a disk all of them, or
///                 none
///   root      the folder or address that these paths are relative to. Empty (default): the folder of the table
///   types   the types of columns in JSONL and CSV. Default: i64 if all numbers of the first 1,000 rows are whole,
///           else f64; text if one of them is no number. An empty cell is NaN if the numbers are real, else a corrupt
///           sample
///   text    what a sample of plain text is. Default: a line
///   checksums   true: verify every record and page, and each shard of MDS when it is opened. false (default): verify
///               only where that costs next to nothing: records of TFRecord that pictures are taken from, and pages
///               of Parquet that are read whole
///   threads   threads that read headers and indexes. 0 (default): chosen for the machine
///   remote    for files at addresses
///   index     of compressed JSONL, CSV and text, which are read through to be opened
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
  std::optional<text_samples> text = {};
  bool checksums = false;
  unsigned threads = 0;
  remote_options remote = {};
  index_options index = {};
};

/// Rows of Parquet files. Nothing is converted. A column of bytes or texts is a field; a member of a struct is
/// "image.bytes". Numbers that table_options::columns names are columns. A sample with a null lacks that field. If the
/// file has the Hub's metadata (the key "huggingface"), `Image` is the picture "image" and `ClassLabel` a column with
/// classes(). Else the first value says whether a field is of pictures. Several files follow one another. Lists of
/// numbers are bytes, for leat::sequence; lists of texts are bytes as well, each a list of JSON: ["user","assistant"].
/// Lists of bytes are likewise, in base64. A list of structs with role and content (texts, no tool_calls) is one field, as JSONL has
/// it, unless table_options::fields names its members: [{"role":"user","content":"Hello"}]. The Hub's Array2D to Array5D of a fixed shape are of field_kind::tensor.
/// Dates and times are numbers in the file's unit, which notes() name; decimals are f64, or i64 without a place behind
/// the point.
///
/// Values that are stored as they are (not compressed, in the encoding PLAIN, as the Hub's libraries write pictures)
/// are read one by one. Compressed columns (snappy, gzip, zstd, lz4_raw, in any encoding) are read once by this call,
/// for the lengths of their values. Later a row group is expanded for the rows of a batch that are in it
/// (field_info::chunked); use shuffled_blocks() for these.
///   files    paths, brace lists and globs
///   notes    columns that are left out, each with the reason
///   throws   error{errc::not_found} a file, or a column, with those that are there; error{errc::format} damage, with
///            file and offset; error{errc::unsupported} a wanted column of other lists, or of another codec,
///            and encrypted files, each with what to do; error{errc::usage} files of different columns or classes
///   source   github.com/apache/parquet-format
[[nodiscard]] dataset open_parquet(const source_names& files, const table_options& options = {});

/// Rows of Arrow IPC files and streams, with fields, columns and the Hub's metadata as in open_parquet(). Lists of
/// numbers of one length are fields of field_kind::tensor; lists of any length are bytes, for leat::sequence. A
/// compressed record batch (lz4, zstd), and lists of texts or bytes, are expanded for the rows that a batch needs.
///   throws   as open_parquet(); error{errc::unsupported} views of lists and big-endian files, each with what to do
///   source   arrow.apache.org: Arrow Columnar Format
[[nodiscard]] dataset open_arrow(const source_names& files, const table_options& options = {});

/// Records of TFRecord files. A tf.train.Example has a field for each feature: its one value of bytes (a picture or
/// text if the first one is), or its numbers as text, for leat::label. Other records have the field "value".
/// Checksums of records are verified each time a picture is read; of other values if table_options::checksums is set.
///   throws   error{errc::not_found}; error{errc::format} a length whose checksum is another one, with file and offset
///   source   tensorflow.org/tutorials/load_data/tfrecord; tensorflow/core/example
[[nodiscard]] dataset open_tfrecord(const source_names& files, const table_options& options = {});

/// Lines of JSON. Each line is an object and a sample, and each of its members a field: a text without its quotes, a
/// number as it is written, for leat::label, true and false as 1 and 0, lists and objects as they are written. The
/// fields are the members of the first 1,000 lines. For a loader of a field, a line without this member, or with null,
/// is a corrupt sample. Blank lines are skipped.
///   throws   error{errc::not_found}; error{errc::format} one of the first 1,000 lines that is no object, with the
///            offset; a line of more than 256 MiB
///   source   RFC 8259, jsonlines.org
[[nodiscard]] dataset open_jsonl(const source_names& files, const table_options& options = {});

/// Rows of comma-separated values. The first row names the columns. Each column is a field: numbers for leat::label,
/// others texts. Values may be in quotes, with line ends in them. The separator is the most frequent of comma, tab and
/// semicolon in the first row; of .tsv the tab.
///   throws   error{errc::not_found}; error{errc::format} a column that is there twice, quotes without an end;
///            error{errc::limit} more than 65,535 columns
///   source   RFC 4180
[[nodiscard]] dataset open_csv(const source_names& files, const table_options& options = {});

/// Plain text. A sample is a line that is not blank, a paragraph, which is lines without a blank one between them, or a
/// file, as table_options::text says. Its field is "text": the bytes as they are stored, without the end of the (last)
/// line; of a file all of them. A byte order mark in front is left out.
///   throws   error{errc::not_found}; error{errc::format} a sample of more than 256 MiB; error{errc::unsupported} UTF-16
[[nodiscard]] dataset open_text(const source_names& files, const table_options& options = {});

/// Shards of MosaicML's streaming library (MDS, version 2), as the index.json in their folder lists them. Each column
/// is a field: jpeg and png are pictures, str and json texts, numbers labels (as text), arrays of one dtype and shape
/// rows, one-dimensional arrays of one dtype their elements. Others are bytes.
///   throws   error{errc::not_found} a folder without index.json, or a shard; error{errc::format} an index or a shard
///            that is damaged, with the offset; error{errc::unsupported} compressed shards and other versions, with
///            what to do
///   folder   or an address
///   source   github.com/mosaicml/streaming: streaming/base/format/mds
[[nodiscard]] dataset open_mds(const std::string& folder, const table_options& options = {});

}  // namespace leat
#pragma GCC visibility pop
