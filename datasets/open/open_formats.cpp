// open_parquet() and its kin: where the files lie is found out here, and what is in them by the format.
#include "base/text.hpp"
#include "datasets/files/listed_folder.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/tar/indexes_beside.hpp"
#include "datasets/formats/zarr/zarr_store.hpp"
#include "datasets/open/formats.hpp"
#include "datasets/open/open_objects.hpp"
#include "datasets/open/source_folder.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/open_records.hpp>
#include <leat/open_tables.hpp>
#include <leat/open_tar.hpp>
#include <leat/open_tokens.hpp>
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
using datasets::source_format;

// Refuses an empty list.
const std::vector<std::string>& named(const source_names& files, std::string_view function, std::string_view example) {
  if (!files.empty()) return files.all();
  throw error(errc::usage, str_cat(function, ": no file was given; name one, as ", example));
}

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

dataset open_shards_at(std::span<const std::string> patterns, const tar_options& options) {
  const std::vector<io::named_object> objects = datasets::find_objects(patterns, options.remote);
  std::vector<std::string> shards;
  for (const io::named_object& each : objects) {
    datasets::refuse_folder(each.address);
    shards.push_back(each.address);
  }
  return datasets::open_shards_of_source(io::describe_objects(objects, options.remote), options,
                                         [&] { return datasets::indexes_of(shards, options.remote); });
}

void check_is_zarr(bool is_zarr, const std::string& folder) {
  if (is_zarr) return;
  throw error(errc::not_found,
              str_cat("open_zarr: ", folder,
                      ": no Zarr: it has neither zarr.json nor .zgroup nor .zarray; give the folder that has"));
}

}  // namespace

dataset open_npy(const source_names& files, const npy_options& options) {
  return datasets::open_npy_files(*files_at(named(files, "open_npy", "train.npy"), options.remote), options);
}

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

dataset open_records(const source_names& files, const record_options& options) {
  const auto description = [](const std::string& path) { return std::vector{datasets::with_extension(path, ".json")}; };
  const auto& names = named(files, "open_records", "train.bin");
  return datasets::open_record_files(*files_at(names, options.remote, description));
}

dataset open_tokens(const source_names& files, const token_options& options) {
  const auto& names = named(files, "open_tokens", "train.bin");
  return datasets::open_token_files(*files_at(names, options.remote, datasets::beside_tokens), options);
}

dataset open_tar(const source_names& shards, const tar_options& options) {
  const auto& names = named(shards, "open_tar", "train-{000..127}.tar");
  return datasets::are_remote(names) ? open_shards_at(names, options) : datasets::open_shards_on_disk(names, options);
}

dataset open_folder(const std::string& folder, const folder_options& options) {
  if (folder.empty()) throw error(errc::usage, "a folder of pictures was asked for with an empty path");
  if (!datasets::is_remote(folder)) return datasets::open_pictures_in(folder, options);
  return datasets::open_listed_pictures(datasets::list_folder(folder, options.remote), options, options.remote);
}

}  // namespace leat
