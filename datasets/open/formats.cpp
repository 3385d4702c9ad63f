#include "datasets/open/formats.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/coded_file.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/input_files.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/formats/arrow/arrow_file.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/hdf5/hdf5_bytes.hpp"
#include "datasets/formats/lmdb/lmdb_tree.hpp"
#include "datasets/formats/records/tfrecord.hpp"

#include <leat/error.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_tables.hpp>

#include <cstring>
#include <memory>
#include <vector>

namespace leat::datasets {
namespace {

constexpr std::size_t start_bytes = 32;
constexpr std::uint32_t table_options_all = fields_of_table | columns_of_table;
constexpr std::uint32_t array_options_all = window_option | stride_option | samples_option;

bool starts_with(std::span<const std::byte> start, std::string_view text) {
  return start.size() >= text.size() && std::memcmp(start.data(), text.data(), text.size()) == 0;
}

template <std::size_t Count>
bool ends_in(const std::string& name, const std::string_view (&endings)[Count]) {
  for (const std::string_view each : endings) {
    if (name.ends_with(each)) return true;
  }
  return false;
}

// The signature may lie behind bytes of the user's.
bool has_hdf5_signature(const file_look& look) {
  if (look.file == nullptr) return false;
  try {
    return hdf5_signature(*look.file).has_value();
  } catch (const error&) {
    return false;  // Opening it reports what is wrong.
  }
}

bool is_bin(const file_look& look) { return look.called.ends_with(".bin"); }

bool has_description(const file_look& look) {
  return is_bin(look) && look.files.has(with_extension(look.called, ".json"));
}

// Megatron's index beside it, or llm.c's header.
bool are_tokens(const file_look& look) {
  if (!is_bin(look)) return false;
  const std::string index = with_extension(look.called, ".idx");
  if (look.files.has(index) && starts_with(look.files.open(index)->read(0, start_bytes), megatron_magic)) return true;
  if (look.start.size() < sizeof(std::uint32_t)) return false;
  const auto magic = number_at<std::uint32_t>(look.start, 0);
  return magic == llmc_magic_u16 || magic == llmc_magic_u32 || magic == llmc_magic_eval;
}

template <dataset (*Open)(const input_files&, const table_options&)>
dataset open_table(const input_files& files, const open_options& options) {
  return Open(files, table_options_of(options));
}

dataset refuse_raw(const input_files& files, const open_options&) {
  const std::string& first = files.names().front();
  throw error(
      errc::usage,
      str_cat(first, ": it has no header, and no file beside it says what it holds: ", looks_like(*files.open(first))));
}

constexpr format all_formats[] = {
    {.what = source_format::pictures,
     .name = "a folder of pictures",
     .given_as = "or of class folders",
     .options = index_use_of_source,
     .opener = "open_folder",
     .recognised_by = "a folder that is none of the others",
     .fields = "`jpg`, the picture, of any format. `cls`, the number of its class folder, where there are class "
               "folders: numbered as torchvision's ImageFolder does.",
     .reads = "Files whose names end in .jpg, .jpeg, .png, .bmp, .webp, .fjpg, .fjpeg or .fjpe. Contents are told "
              "by their first bytes: JPEG, PNG, WebP, BMP, GIF and photo packs, of an animation the first frame.",
     .refuses = "A folder without a picture, and one with pictures of several splits. Left out, with a note: .gif, "
                ".tif, .tiff, .ppm, .pgm, .heic, .heif, .avif, .jxl, .jp2, .svg, .psd; pictures beside class "
                "folders; hidden files and folders (a dot in front, __MACOSX, Thumbs.db, @eaDir). A picture of "
                "another format is a corrupt sample (`unsupported format: TIFF`)."},
    {.what = source_format::tar,
     .name = "tar shards",
     .options = ignore_zeros | index_use_of_source,
     .opener = "open_tar",
     .recognised_by =
         "a name that ends in .tar, compressed or not, or a folder with such files; a file that nothing else tells",
     .fields = "The members' extensions, as WebDataset has it: `jpg`, `cls`, `seg.png`. Neighbouring members of one "
               "key are a sample. In a name %2f, %41 and the like stand for a slash, a capital and so on, as `leat "
               "pack` writes them. A member `npy` or `depth.npy` is a row for leat::array.",
     .reads = "ustar, GNU and pax headers. An archive ends at its end marker, a block of zeros; `ignore_zeros` "
              "reads on behind it, in files that `cat a.tar b.tar` made. `.tar.gz`, `.tgz`, `.tar.zst`: samples lie in "
              "blocks of about 1 MiB, or of a frame of Zstandard; opening reads the shards through.",
     .refuses =
         "Frames of Zstandard of more than 256 MiB (`pzstd` writes small ones), sparse members, members that go on in "
         "another volume. With a note: symbolic links (`tar --dereference` stores their files), an archive "
         "without an end marker, what lies behind one. A hard link to no earlier member makes its sample corrupt (`tar "
         "--hard-dereference` stores the bytes), and so does a shard that ends within a member."},
    {.what = source_format::npy,
     .name = ".npy",
     .options = window_option | stride_option,
     .begins = [](const file_look& look) { return is_npy(look.start); },
     .is_called = [](const file_look& look) { return look.called.ends_with(".npy"); },
     .open =
         [](const input_files& files, const open_options& options) {
           return open_npy_files(files, {.window = options.arrays.window, .stride = options.arrays.stride});
         },
     .opener = "open_npy",
     .recognised_by = "its first bytes, or the name's end",
     .fields = "`npy`. Of one file each row of the first axis is a sample. Of several files each file is one; "
               "`npy_options::samples` says otherwise. With `window` a sample is so many rows. Numbers of a "
               "one-dimensional array are a column: integers as i64, floats as they are stored.",
     .reads = "Versions 1 to 3; bool, u8 to u64, i8 to i64, f16, f32, f64; up to 8 axes.",
     .refuses = "Big-endian, complex, structured, object, text and time dtypes; raw memory, such as bf16 (save its "
                "bits as uint16); Fortran order; u64 beyond 2^63 - 1 in a column; files of several dtypes or shapes."},
    {.what = source_format::npz,
     .name = ".npz",
     .options = window_option | stride_option,
     .is_called = [](const file_look& look) { return look.called.ends_with(".npz"); },
     .open =
         [](const input_files& files, const open_options& options) {
           return open_npz_files(
               files,
               {.fields = options.arrays.fields, .window = options.arrays.window, .stride = options.arrays.stride});
         },
     .chooses = true,
     .opener = "open_npz",
     .recognised_by = "the name's end",
     .fields = "The members' names, without .npy; the first axis counts the samples. One-dimensional members are "
               "columns, but a field if they hold u64 beyond 2^63 - 1. If none are named, the members that share the "
               "commonest length are fields; a note names "
               "the others.",
     .reads = "Stored members, zip64 too, are read where they lie. A member of numpy.savez_compressed() is one "
              "block: it is expanded whole, kept while there is memory for it, and its checksum is verified. "
              "Several archives follow one another.",
     .refuses = "As .npy, for members that are named; other methods of compression than deflate."},
    {.what = source_format::parquet,
     .name = "Parquet",
     .options = table_options_all | checksums_option,
     .begins = [](const file_look& look) { return starts_with(look.start, "PAR1") || starts_with(look.start, "PARE"); },
     .open = open_table<open_parquet_files>,
     .chooses = true,
     .opener = "open_parquet",
     .recognised_by = "the first bytes PAR1",
     .fields = "Columns of bytes and texts; of a struct `image.bytes`. What the Hub calls an Image is the picture "
               "`image`. Lists of numbers are for leat::sequence (`ids`, or `objects.category` of a list of "
               "structs), lists of texts and of bytes (base64) are JSON; a list of structs with `role` and `content` "
               "is one field "
               "for leat::chat. The Hub's Array2D to Array5D are rows for "
               "leat::array, or lists of their numbers if an extent is open. Numbers are columns where `columns` names "
               "them, or where they are called label, cls or class; a ClassLabel of the Hub is one with classes(). "
               "Dates and times are "
               "numbers in the file's unit, decimals f64. A null is a field that the sample lacks. Samples are called "
               "`train.parquet[17]`.",
     .reads = "Pages of both versions, all encodings; snappy, gzip, zstd, lz4_raw. Values in PLAIN without "
              "compression are read one by one. Others are expanded with their row group, of up to 2 GiB a column; "
              "opening reads such columns once. An index takes 16 bytes a row and field, of packed ones 4. "
              "Checksums are verified of pages that are read whole; with `checksums` of all.",
     .refuses = "Encrypted files, columns in other files, brotli, lzo, the lz4 of Hadoop. Left out, with a note: "
                "decimals of more than 38 digits, lists in lists that are no arrays of the Hub. A number that does not "
                "fit its column's width is damage."},
    {.what = source_format::arrow,
     .name = "Arrow",
     .options = table_options_all,
     .begins = [](const file_look& look) { return is_arrow(look.start); },
     .open = open_table<open_arrow_files>,
     .chooses = true,
     .opener = "open_arrow",
     .recognised_by =
         "the first bytes ARROW1, or a stream's first message; a folder of save_to_disk(), by its state.json",
     .fields = "As Parquet. Lists of one length are rows for leat::array, others for leat::sequence. Texts and "
               "bytes of a dictionary are its values.",
     .reads = "Files and streams; views; batches that are packed with lz4 or zstd, which are expanded whole. "
              "Batches of lists of texts and bytes are expanded whole, too.",
     .refuses = "Big-endian files; batches as Arrow 0.17 packed them; rows of another file, as filter(), select() "
                "and shuffle() of the Hub's library leave them (call flatten_indices()). Left out, with a note: "
                "dictionaries of other things, views of lists, views in packed batches, unions, lists of other "
                "things (structs, dictionaries), intervals, decimals of 256 bits."},
    {.what = source_format::lmdb,
     .name = "LMDB",
     .options = database_option,
     .begins = [](const file_look& look) { return is_lmdb(look.start); },
     .open = [](const input_files& files, const open_options& options) { return open_lmdb_files(files, options.lmdb); },
     .opener = "open_lmdb",
     .recognised_by = "the magic number at offset 16; a folder with data.mdb",
     .fields = "`value`, a picture or text where the first value is one. Keys such as image-000000001 and "
               "label-000000001, or 256-00017, are samples with the fields `image` and `label`, or `256`. A Datum "
               "of Caffe has `data` and `label`. msgpack, and pickles of protocol 2 to 5, have a field for each "
               "value in the first one: `image` of a dict, `0` of a tuple, `meta.id` of what lies deeper. Samples "
               "are in the order of their keys.",
     .reads = "Data of version 1, as liblmdb 0.9 writes it. Nothing is unpickled: bytes, texts, numbers and lists "
              "of numbers are found in the pickle. One that makes other objects, such as NumPy's arrays, is the "
              "field `value`; a note says how to write it anew.",
     .refuses = "Several values for a key (DUPSORT); liblmdb 1.0. A commit of another program during a run ends the "
                "run."},
    {.what = source_format::tfrecord,
     .name = "TFRecord",
     .options = table_options_all | checksums_option,
     .begins = [](const file_look& look) { return is_tfrecord(look.start); },
     .open = open_table<open_tfrecord_files>,
     .chooses = true,
     .opener = "open_tfrecord",
     .recognised_by = "the checksum of the first length",
     .fields = "The features of a tf.train.Example: one value of bytes, or numbers as text. Integers are labels of "
               "i64, floats of f32; lists of different lengths are for leat::sequence. Fields are those of the "
               "first 1,000 records of each file. A SequenceExample has those of its context, and its frames of "
               "numbers one after another. Other records are `value`.",
     .reads = "Checksums of lengths are verified when a file is opened; those of records each time a picture is "
              "taken out of one, and with `checksums` of all.",
     .refuses = "Files that are compressed as a whole; ArrayRecord, with a line of Python that writes it as "
                "TFRecord. Left out, with a note: frames of bytes of a SequenceExample."},
    {.what = source_format::mds,
     .name = "MDS",
     .given_as = "a folder",
     .options = table_options_all | checksums_option,
     .opener = "open_mds",
     .recognised_by = "a folder with an index.json of shards",
     .fields = "The columns: jpeg and png are pictures, str and json texts, numbers labels of i64, f32 or f64. "
               "Arrays of one dtype and shape are rows for leat::array, one-dimensional ones of any length are for "
               "leat::sequence. All else is bytes, as that library encodes it.",
     .reads = "Version 2. With `checksums` xxh64 of each shard is verified when it is opened.",
     .refuses = "Compressed shards, unless they lie there decompressed as well."},
    {.what = source_format::jsonl,
     .name = "JSONL",
     .options = table_options_all | path_column_option | root_option | types_option | index_use_of_source,
     .is_called = [](const file_look& look) { return ends_in(name_decoded(look.called), {".jsonl", ".ndjson"}); },
     .open = open_table<open_jsonl_files>,
     .chooses = true,
     .opener = "open_jsonl",
     .recognised_by = "the name's end; a folder with metadata.jsonl",
     .fields = "The keys of the first 1,000 lines of a file. A text is its characters; numbers are labels of i64 if "
               "all of these lines have whole ones, else of f64; true and false are 1 and 0; lists and objects are "
               "bytes as they are written. Of a list of objects, `fields` may name a member: `messages.role` is the "
               "list of each object's. `types` says it otherwise. With `path_column` the file of that path is "
               "`jpg`, or `file`.",
     .reads = "One object a line; NaN and Infinity, as Python writes them; of a key that comes twice the last "
              "value. An index takes 16 bytes a line. `.jsonl.gz`, `.jsonl.zst`: in blocks, as tar shards are; opening "
              "reads them through once.",
     .refuses = "UTF-16, a line of more than 256 MiB, one of the first 1,000 "
                "lines that is no object. A later one, a line without the key or with null, and text that is no "
                "UTF-8 are corrupt samples. A path that leads nowhere is an error when the table is opened."},
    {.what = source_format::csv,
     .name = "CSV",
     .options = table_options_all | path_column_option | root_option | types_option | index_use_of_source,
     .is_called = [](const file_look& look) { return ends_in(name_decoded(look.called), {".csv", ".tsv"}); },
     .open = open_table<open_csv_files>,
     .chooses = true,
     .opener = "open_csv",
     .recognised_by = "the name's end; a folder with metadata.csv",
     .fields = "The names in the first row; types as of JSONL. An empty cell is NaN among real numbers, else a "
               "corrupt sample.",
     .reads = "RFC 4180, with or without a byte order mark, LF, CRLF or CR. The separator is whichever of comma, "
              "tab and semicolon the first row has most of; of .tsv it is the tab.",
     .refuses = "As JSONL; a column that is there twice; quotes without an end; more than 65,535 columns."},
    {.what = source_format::text,
     .name = "text",
     .given_as = ".txt",
     .options = fields_of_table | text_option | index_use_of_source,
     .is_called = [](const file_look& look) { return ends_in(name_decoded(look.called), {".txt"}); },
     .open = open_table<open_text_files>,
     .chooses = true,
     .opener = "open_text",
     .recognised_by = "the name's end",
     .fields = "`text`: a line, with `table_options::text` (`--text`) a paragraph or a file.",
     .reads = "LF and CRLF, with or without a byte order mark. Blank lines are no samples, and end a paragraph. "
              "`.txt.gz`, `.txt.zst` as of JSONL.",
     .refuses = "UTF-16, a sample of more than 256 MiB."},
    {.what = source_format::records,
     .name = "records",
     .given_as = ".bin with a .json beside it",
     .is_called = has_description,
     .open = [](const input_files& files, const open_options&) { return open_record_files(files); },
     .opener = "open_records",
     .recognised_by = "a .json of the same name beside it",
     .fields = "As the JSON says: `{\"fields\": [{\"name\": \"x\", \"dtype\": \"f32\", \"shape\": [3, 224, 224]}], "
               "\"records\": 50000, \"header_bytes\": 0}`. A record is its fields in this order, little-endian, "
               "without gaps. Each field is a row for leat::array.",
     .reads = "u8 to u64, i8 to i64, f16, bf16, f32, f64, bool; up to 7 axes. Left out, `shape` is a single "
              "number, `records` as many as the file holds, `header_bytes` 0.",
     .refuses = "Any other member in the JSON; a size that is no whole number of records."},
    {.what = source_format::tokens,
     .name = "tokens",
     .given_as = ".bin",
     .begins = [](const file_look& look) { return starts_with(look.start, megatron_magic); },
     .is_called = are_tokens,
     .open = [](const input_files& files, const open_options&) { return open_token_files(files, {}); },
     .opener = "open_tokens",
     .recognised_by = "Megatron's .idx beside it, or llm.c's magic number; any file with `--tokens`",
     .fields = "`tokens`, for leat::tokens. Samples are files, or documents where an index has them; cut_windows() "
               "makes windows of them.",
     .reads = "nanoGPT: no header, u16 unless `token_options::type` says otherwise. llm.c: magic 20240520 of "
              "version 1 (u16), 20240801 of version 7 (u32). Megatron: index of version 1, dtype codes 1, 2, 3, 4, "
              "5 and 8. A one-dimensional .npy of integers.",
     .refuses = "A header that is almost llm.c's, unless a type is given; Megatron's codes of floats; llm.c's files "
                "of questions. A token that does not fit the output's dtype makes its window a corrupt sample."},
    {.what = source_format::raw, .name = "a .bin of no known kind", .is_called = is_bin, .open = refuse_raw},
    {.what = source_format::hdf5,
     .name = "HDF5",
     .options = array_options_all | columns_of_table,
     .is_called = has_hdf5_signature,
     .open =
         [](const input_files& files, const open_options& options) {
           hdf5_options arrays = options.arrays;
           if (arrays.columns.empty()) arrays.columns = options.tables.columns;
           return open_hdf5_files(files, arrays);
         },
     .chooses = true,
     .opener = "open_hdf5",
     .recognised_by = "the signature at offset 0, 512, 1024, 2048 ...",
     .fields = "The datasets' paths, `train/images`; the first axis counts the samples. One-dimensional ones are "
               "columns: integers as i64, floats as they are stored. If none are named, the arrays that share the "
               "commonest length are fields; a note names the others. Of a compound each member is a field "
               "(`points/x`). Text of a fixed length is u8 with one more axis. Four or more groups or arrays of one "
               "form (sample_0, sample_1) are samples, and attributes of these that `columns` names are columns. "
               "Values of variable length are bytes, "
               "text or pictures.",
     .reads = "Superblocks 0 to 3; contiguous, compact and chunked datasets; the filters gzip, shuffle, fletcher32 "
              "(verified), lzf, lz4, zstd, blosc 1 and bitshuffle; integers, floats and bool of either byte order; "
              "fill values. Links are followed where `fields` names them. A row may lie in 8,192 chunks, a sample "
              "in 60,000.",
     .refuses = "References, virtual and external datasets, other filters: a note, or an error where they are asked "
                "for (`h5repack`). A file that says that it is open for writing (`h5clear -s FILE`): files of "
                "superblock 3 say so, older ones cannot. Columns of more than 2^28 values. A damaged chunk makes the "
                "samples that need it corrupt."},
    {.what = source_format::zarr,
     .name = "Zarr",
     .given_as = "a folder, or references",
     .options = array_options_all,
     .opener = "open_zarr",
     .recognised_by = "a folder with zarr.json, .zgroup or .zarray; a .json of references (kerchunk)",
     .fields = "As HDF5: the arrays' paths.",
     .reads = "Versions 2 and 3; chunks in files and in shards (sharding_indexed); gzip, zlib, zstd, lz4, blosc, "
              "shuffle, transpose, fletcher32 and crc32c (verified); Fortran order; up to 16,777,216 chunks an "
              "array. References (open_references) of versions 0 and 1: paths relative to the JSON, file://, s3:// "
              "and https:// urls, text and base64; templates that are names of texts; a JSON of up to 512 MiB.",
     .refuses = "A codec or a setting of one that is not known. Of references `gen`, and templates that compute."},
};

struct option_line {
  source_option what;
  option_id id;
  bool (*is_asked)(const open_options&);
};

constexpr option_line all_options[] = {
    {ignore_zeros, option_id::ignore_zeros, [](const open_options& asked) { return asked.tar.ignore_zeros; }},
    {index_use_of_source, option_id::index_use,
     [](const open_options& asked) {
       return asked.index.use == index_use::rebuild || asked.index.use == index_use::trust;
     }},
    {window_option, option_id::array_window, [](const open_options& asked) { return asked.arrays.window != 0; }},
    {stride_option, option_id::array_stride, [](const open_options& asked) { return asked.arrays.stride != 1; }},
    {samples_option, option_id::array_samples,
     [](const open_options& asked) { return asked.arrays.samples != array_options::sample::automatic; }},
    {fields_of_table, option_id::table_fields, [](const open_options& asked) { return !asked.tables.fields.empty(); }},
    {columns_of_table, option_id::table_columns,
     [](const open_options& asked) { return !asked.tables.columns.empty(); }},
    {path_column_option, option_id::table_path_column,
     [](const open_options& asked) { return !asked.tables.path_column.empty(); }},
    {root_option, option_id::table_root, [](const open_options& asked) { return !asked.tables.root.empty(); }},
    {text_option, option_id::table_text, [](const open_options& asked) { return asked.tables.text.has_value(); }},
    {types_option, option_id::table_types, [](const open_options& asked) { return !asked.tables.types.empty(); }},
    {checksums_option, option_id::table_checksums, [](const open_options& asked) { return asked.tables.checksums; }},
    {database_option, option_id::lmdb_database, [](const open_options& asked) { return !asked.lmdb.database.empty(); }},
};

// "a, b and c", of those that are wanted.
template <class Wanted, class Name>
std::string listed(const Wanted& wanted, const Name& name) {
  std::string text;
  std::size_t last = 0;  // where the comma before the last one is, which may have commas of its own
  for (const format& each : all_formats) {
    if (!wanted(each)) continue;
    last = text.size();
    str_append(text, text.empty() ? "" : ", ", name(each));
  }
  return last == 0 ? text : text.replace(last, 2, " and ");
}

}  // namespace

std::span<const format> formats() noexcept { return all_formats; }

const format& format_of(source_format what) noexcept {
  const format* found = all_formats;
  while (found->what != what) ++found;
  return *found;
}

std::string formats_text() {
  return listed([](const format& each) { return each.what != source_format::raw; },
                [](const format& each) {
                  return each.given_as.empty() ? std::string(each.name) : str_cat(each.name, " (", each.given_as, ")");
                });
}

table_options table_options_of(const open_options& options) {
  table_options tables = options.tables;
  if (tables.fields.empty()) tables.fields = options.arrays.fields;
  tables.remote = options.remote;
  tables.index = options.index;
  return tables;
}

source_format format_of_file(const std::string& path) {
  if (path.ends_with(".tar")) return source_format::tar;
  return format_of_file(*files_on_disk({path}), path);
}

source_format format_of_file(const input_files& files, const std::string& name) {
  return format_of_file(files, name, name);
}

source_format format_of_file(const input_files& files, const std::string& name, const std::string& called) {
  if (called.ends_with(".tar")) return source_format::tar;
  if (!files.has(name)) {
    return files.has(name + ".bin") && files.has(name + ".idx") ? source_format::tokens : source_format::tar;
  }
  std::unique_ptr<file_bytes> file;
  std::vector<std::byte> start;
  try {
    file = files.open(name);
    start = file->read(0, start_bytes);
  } catch (const error& failed) {
    if (failed.code() == errc::io) throw;  // Else opening it reports the error.
  }
  const file_look look{files, name, called, start, file.get()};
  for (const format& each : all_formats) {
    if (each.begins != nullptr && each.begins(look)) return each.what;
  }
  for (const format& each : all_formats) {
    if (each.is_called != nullptr && each.is_called(look)) return each.what;
  }
  return source_format::tar;
}

void refuse_options(source_format what, const open_options& asked, std::string_view source) {
  const format& of = format_of(what);
  for (const option_line& each : all_options) {
    if ((of.options & each.what) != 0 || !each.is_asked(asked)) continue;
    const auto takes_it = [&](const format& other) { return (other.options & each.what) != 0; };
    throw error(errc::usage,
                str_cat(source, ": ", spelled(each.id), " is of ",
                        listed(takes_it, [](const format& other) { return other.name; }), ", and this is ", of.name,
                        "; leave it out"),
                each.id);
  }
}

void refuse_options(source_format what, const table_options& asked, std::string_view source) {
  open_options all;
  all.tables = asked;
  refuse_options(what, all, source);
}

}  // namespace leat::datasets
