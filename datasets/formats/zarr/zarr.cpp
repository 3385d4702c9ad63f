// Zarr: chunked arrays in a folder, or in files that references point into.
#include "base/text.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/zarr/zarr_consolidated.hpp"
#include "datasets/formats/zarr/zarr_hierarchy.hpp"
#include "datasets/formats/zarr/zarr_references.hpp"
#include "datasets/formats/zarr/zarr_store.hpp"
#include "datasets/tables/array_choice.hpp"
#include "datasets/tables/chunked_rows.hpp"
#include "io/remote/describe_objects.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <utility>

namespace leat {
namespace {

using datasets::chunk_place;
using datasets::chunked_array;

dataset open_store(datasets::zarr_store& store, const datasets::input_files& files, const zarr_options& options) {
  if (!options.columns.empty()) {
    throw error(errc::usage, str_cat(store.title(), ": columns of attributes are of HDF5, and this is Zarr; leave '",
                                     options.columns.front(), "' out"));
  }
  datasets::zarr_contents contents = datasets::read_zarr(store, datasets::wanted_by_path(options), options.threads);
  if (contents.arrays.empty() && !contents.notes.empty()) {
    throw error(errc::unsupported,
                str_cat(store.title(), ": it has no array that leat reads; ", contents.notes.front()));
  }
  std::vector<datasets::placed_values> none;
  datasets::choose_arrays(contents.arrays, none, options, store.title(), contents.notes);
  datasets::placed_files placed = files.place(contents.files);
  for (chunked_array& array : contents.arrays) {
    for (chunk_place& each : array.places) {
      if (each.is_in_file()) each.file = placed.numbers[each.file];
    }
    if (!array.held.empty()) array.held_from = placed.numbers[array.held_from];
  }
  return datasets::chunked_rows({.format = "zarr",
                                 .title = store.title(),
                                 .files = std::move(placed.table),
                                 .source = std::move(placed.source),
                                 .watch = std::move(placed.watch),
                                 .arrays = std::move(contents.arrays),
                                 .values = {},
                                 .notes = std::move(contents.notes),
                                 .rows = {.window = options.window, .stride = options.stride}});
}

}  // namespace

namespace datasets {

dataset open_zarr_files(const input_files& files, const std::string& folder, const zarr_options& options) {
  return open_store(*with_consolidated_metadata(zarr_in_files(files, folder)), files, options);
}

dataset open_zarr_folder(const std::string& folder, const zarr_options& options) {
  return open_store(*with_consolidated_metadata(zarr_in_folder(folder)), *files_on_disk({}), options);
}

}  // namespace datasets

dataset open_references(const std::string& path, const zarr_options& options) {
  if (datasets::is_remote(path)) {
    const auto files = datasets::files_named_by({.address = path}, options.remote);
    return open_store(*datasets::zarr_of_references(files->names().front(), *files), *files, options);
  }
  std::shared_ptr<const datasets::input_files> files;
  const auto store = datasets::zarr_of_references(path, options.remote, files);
  return open_store(*store, *files, options);
}

}  // namespace leat
