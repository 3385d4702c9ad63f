#include "datasets/open/formats.hpp"

#include "base/option_words.hpp"
#include "base/text.hpp"
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
     .options = index_use_of_source},
    {.what = source_format::tar, .name = "tar shards", .options = ignore_zeros | index_use_of_source},
    {.what = source_format::npy,
     .name = ".npy",
     .begins = [](const file_look& look) { return is_npy(look.start); },
     .is_called = [](const file_look& look) { return look.called.ends_with(".npy"); },
     .open = [](const input_files& files, const open_options&) { return open_npy_files(files, {}); }},
    {.what = source_format::npz,
     .name = ".npz",
     .is_called = [](const file_look& look) { return look.called.ends_with(".npz"); },
     .open = [](const input_files& files,
                const open_options& options) { return open_npz_files(files, {.fields = options.arrays.fields}); },
     .chooses = true},
    {.what = source_format::parquet,
     .name = "Parquet",
     .options = table_options_all | checksums_option,
     .begins = [](const file_look& look) { return starts_with(look.start, "PAR1") || starts_with(look.start, "PARE"); },
     .open = open_table<open_parquet_files>,
     .chooses = true},
    {.what = source_format::arrow,
     .name = "Arrow",
     .options = table_options_all,
     .begins = [](const file_look& look) { return is_arrow(look.start); },
     .open = open_table<open_arrow_files>,
     .chooses = true},
    {.what = source_format::lmdb,
     .name = "LMDB",
     .options = database_option,
     .begins = [](const file_look& look) { return is_lmdb(look.start); },
     .open = [](const input_files& files,
                const open_options& options) { return open_lmdb_files(files, options.lmdb); }},
    {.what = source_format::tfrecord,
     .name = "TFRecord",
     .options = table_options_all | checksums_option,
     .begins = [](const file_look& look) { return is_tfrecord(look.start); },
     .open = open_table<open_tfrecord_files>,
     .chooses = true},
    {.what = source_format::mds,
     .name = "MDS",
     .given_as = "a folder",
     .options = table_options_all | checksums_option},
    {.what = source_format::jsonl,
     .name = "JSONL",
     .options = table_options_all | path_column_option | root_option | types_option,
     .is_called = [](const file_look& look) { return ends_in(look.called, {".jsonl", ".ndjson"}); },
     .open = open_table<open_jsonl_files>,
     .chooses = true},
    {.what = source_format::csv,
     .name = "CSV",
     .options = table_options_all | path_column_option | root_option | types_option,
     .is_called = [](const file_look& look) { return ends_in(look.called, {".csv", ".tsv"}); },
     .open = open_table<open_csv_files>,
     .chooses = true},
    {.what = source_format::records,
     .name = "records",
     .given_as = ".bin with a .json beside it",
     .is_called = has_description,
     .open = [](const input_files& files, const open_options&) { return open_record_files(files); }},
    {.what = source_format::tokens,
     .name = "tokens",
     .given_as = ".bin",
     .begins = [](const file_look& look) { return starts_with(look.start, megatron_magic); },
     .is_called = are_tokens,
     .open = [](const input_files& files, const open_options&) { return open_token_files(files, {}); }},
    {.what = source_format::raw, .name = "a .bin of no known kind", .is_called = is_bin, .open = refuse_raw},
    {.what = source_format::hdf5,
     .name = "HDF5",
     .options = array_options_all,
     .is_called = has_hdf5_signature,
     .open = [](const input_files& files,
                const open_options& options) { return open_hdf5_files(files, options.arrays); },
     .chooses = true},
    {.what = source_format::zarr, .name = "Zarr", .given_as = "a folder, or references", .options = array_options_all},
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
