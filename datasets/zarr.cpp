// Zarr: a folder of chunked arrays.
#include "base/text.hpp"
#include "datasets/array_choice.hpp"
#include "datasets/chunked_rows.hpp"
#include "datasets/input_files.hpp"
#include "datasets/zarr_store.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>

#include <utility>

namespace leat {

dataset open_zarr(const std::string& folder, const zarr_options& options) {
  if (!datasets::is_zarr(folder)) {
    throw error(errc::not_found,
                str_cat("open_zarr: ", folder,
                        ": no Zarr: it has neither zarr.json nor .zgroup nor .zarray; give the folder that has"));
  }
  datasets::zarr_contents contents = datasets::read_zarr(folder, datasets::wanted_by_path(options), options.threads);
  std::vector<datasets::placed_values> none;
  datasets::choose_arrays(contents.arrays, none, options, folder, contents.notes);
  datasets::placed_files placed = datasets::files_on_disk({})->place(contents.files);
  for (datasets::chunked_array& array : contents.arrays) {
    for (datasets::chunk_place& each : array.places) {
      if (each.offset != datasets::chunk_place::absent) each.file = placed.numbers[each.file];
    }
  }
  return datasets::chunked_rows({.format = "zarr",
                                 .title = folder,
                                 .files = std::move(placed.table),
                                 .source = std::move(placed.source),
                                 .arrays = std::move(contents.arrays),
                                 .values = {},
                                 .notes = std::move(contents.notes),
                                 .rows = {.window = options.window, .stride = options.stride}});
}

}  // namespace leat
