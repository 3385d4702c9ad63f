// open_parquet() and its kin, the component leat::tables: where the files lie is found out here, and what is in them by the format.
#include "base/text.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/zarr/zarr_store.hpp"
#include "datasets/open/formats.hpp"
#include "datasets/open/named_files.hpp"
#include "datasets/open/open_objects.hpp"
#include "datasets/open/source_folder.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>
#include <leat/source_names.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace leat {
namespace {

using datasets::files_at;
using datasets::input_files;
using datasets::named;
using datasets::source_format;

using table_opener = dataset (*)(const input_files& files, const table_options& options);

dataset open_table(source_format what, table_opener open, const input_files& files, const table_options& options) {
  datasets::refuse_options(what, options, files.names().front());
  return open(files, options);
}

// Tables of paths at addresses are opened one by one, each with what it may name.
dataset open_texts(source_format what, table_opener open, std::span<const std::string> names,
                   const table_options& options) {
  if (options.path_column.empty() || !datasets::are_remote(names)) {
    return open_table(what, open, *files_at(names, options.remote), options);
  }
  std::vector<dataset> parts;
  for (const io::named_object& each : datasets::find_objects(names, options.remote)) {
    datasets::refuse_folder(each.address);
    parts.push_back(open_table(what, open, *datasets::files_named_by(each, options.remote), options));
  }
  return parts.size() == 1 ? parts.front() : concat(parts);
}

void check_is_zarr(bool is_zarr, const std::string& folder) {
  if (is_zarr) return;
  throw error(errc::not_found,
              str_cat("open_zarr: ", folder,
                      ": no Zarr: it has neither zarr.json nor .zgroup nor .zarray; give the folder that has"));
}

}  // namespace

dataset open_npz(const source_names& files, const npy_options& options) {
  return datasets::open_npz_files(*files_at(named(files, "open_npz", "train.npz"), options.remote), options);
}

dataset open_hdf5(const source_names& files, const hdf5_options& options) {
  return datasets::open_hdf5_files(*files_at(named(files, "open_hdf5", "train.h5"), options.remote), options);
}

dataset open_zarr(const std::string& folder, const zarr_options& options) {
  if (datasets::is_remote(folder)) {
    const auto there = datasets::folder_at(folder, options.remote);
    check_is_zarr(datasets::is_zarr(there->files(), there->path()), there->path());
    return datasets::open_zarr_files(there->files(), there->path(), options);
  }
  check_is_zarr(datasets::is_zarr(folder), folder);
  return datasets::open_zarr_folder(folder, options);
}

dataset open_parquet(const source_names& files, const table_options& options) {
  const auto from = files_at(named(files, "open_parquet", "train.parquet"), options.remote);
  return open_table(source_format::parquet, datasets::open_parquet_files, *from, options);
}

dataset open_arrow(const source_names& files, const table_options& options) {
  const auto from = files_at(named(files, "open_arrow", "train.arrow"), options.remote);
  return open_table(source_format::arrow, datasets::open_arrow_files, *from, options);
}

dataset open_tfrecord(const source_names& files, const table_options& options) {
  const auto from = files_at(named(files, "open_tfrecord", "train.tfrecord"), options.remote);
  return open_table(source_format::tfrecord, datasets::open_tfrecord_files, *from, options);
}

dataset open_jsonl(const source_names& files, const table_options& options) {
  const auto& names = named(files, "open_jsonl", "train.jsonl");
  return open_texts(source_format::jsonl, datasets::open_jsonl_files, names, options);
}

dataset open_csv(const source_names& files, const table_options& options) {
  const auto& names = named(files, "open_csv", "train.csv");
  return open_texts(source_format::csv, datasets::open_csv_files, names, options);
}

dataset open_text(const source_names& files, const table_options& options) {
  const auto from = files_at(named(files, "open_text", "book.txt"), options.remote);
  return open_table(source_format::text, datasets::open_text_files, *from, options);
}

dataset open_mds(const std::string& folder, const table_options& options) {
  datasets::refuse_options(source_format::mds, options, folder);
  if (!datasets::is_remote(folder)) return datasets::open_mds_files(*datasets::files_on_disk({}), folder, options);
  const auto there = datasets::folder_at(folder, options.remote);
  return datasets::open_mds_files(there->files(), there->path(), options);
}

dataset open_lmdb(const source_names& environments, const lmdb_options& options) {
  const auto& names = named(environments, "open_lmdb", "train.lmdb");
  return datasets::open_lmdb_files(*files_at(names, options.remote, datasets::beside_environment), options);
}

}  // namespace leat
