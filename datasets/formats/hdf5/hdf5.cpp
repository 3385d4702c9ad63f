// HDF5 files: each a table of chunked arrays, one after another.
#include "base/text.hpp"
#include "datasets/files/content.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/hdf5/attribute_columns.hpp"
#include "datasets/formats/hdf5/hdf5_file.hpp"
#include "datasets/tables/array_choice.hpp"
#include "datasets/tables/chunked_rows.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <utility>

namespace leat::datasets {
namespace {

// Arrays of bytes may be files.
void find_pictures(const file_bytes& file, placed_values& values) {
  if (values.kind != field_kind::bytes || values.type != dtype::u8 || values.file != 0) return;
  const auto first =
      std::find_if(values.rows.begin(), values.rows.end(), [](const value_place& each) { return each.bytes != 0; });
  if (first == values.rows.end()) return;
  values.kind = kind_of_value(file.read(first->offset, std::min<std::uint64_t>(first->bytes, content_bytes))).kind;
}

/// What attributes give.
struct columns_of_files {
  std::vector<std::vector<chunked_array>> arrays;  // of each file
  std::shared_ptr<const class_names> classes;
};

columns_of_files join_all(std::span<const std::vector<attribute_column>> columns, std::span<const std::string> paths,
                          std::vector<std::string>& notes) {
  columns_of_files all;
  all.arrays.resize(paths.size());
  for (std::size_t number = 0; number < columns.front().size(); ++number) {
    std::vector<const attribute_column*> of;
    for (const auto& each : columns) of.push_back(&each[number]);
    joined_column joined = join_columns(of, paths);
    for (std::size_t i = 0; i < paths.size(); ++i) all.arrays[i].push_back(std::move(joined.arrays[i]));
    if (joined.classes.empty()) continue;
    if (!all.classes) {
      all.classes = std::make_shared<class_names>(class_names{std::move(joined.classes), of.front()->name});
    } else {
      notes.push_back(note_of_more_classes(all.classes->column, of.front()->name));
    }
  }
  return all;
}

}  // namespace

dataset open_hdf5_files(const input_files& from, const hdf5_options& options) {
  const std::vector<std::string>& paths = from.names();
  std::vector<hdf5_contents> contents(paths.size());
  std::vector<sized_file> sized(paths.size());
  std::vector<std::vector<attribute_column>> columns(paths.size());
  std::vector<std::string> attributes;
  for (const std::string& each : options.columns) attributes.push_back(attribute_of(each));
  for_each_parallel(paths.size(), threads_for_walking(options.threads), [&](std::size_t i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    contents[i] = read_hdf5(*file, wanted_by_path(options), &from, attributes);
    sample_objects objects;
    choose_arrays(contents[i].arrays, contents[i].values, options, paths[i], contents[i].notes,
                  attributes.empty() ? nullptr : &objects);
    columns[i] = attribute_columns(objects, *contents[i].attributes, options.columns, paths[i]);
    contents[i].attributes.reset();
    for (placed_values& each : contents[i].values) find_pictures(*file, each);
  });
  std::vector<std::size_t> first_linked;  // in `sized`, of each file
  for (const hdf5_contents& each : contents) {
    first_linked.push_back(sized.size());
    sized.insert(sized.end(), each.linked.begin(), each.linked.end());
  }
  columns_of_files added = join_all(columns, paths, contents.front().notes);
  const placed_files placed = from.place(sized);
  std::vector<dataset> parts;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto number_of = [&](std::uint32_t file) {
      return placed.numbers[file == 0 ? i : first_linked[i] + file - 1];
    };
    for (chunked_array& array : contents[i].arrays) {
      array.held_from = number_of(array.held_from);
      for (chunk_place& each : array.places) each.file = number_of(each.file);
    }
    for (placed_values& values : contents[i].values) values.file = number_of(values.file);
    for (chunked_array& array : added.arrays[i]) {
      array.held_from = number_of(0);
      contents[i].arrays.push_back(std::move(array));
    }
    parts.push_back(chunked_rows({.format = "hdf5",
                                  .title = paths[i],
                                  .files = placed.table,
                                  .source = placed.source,
                                  .watch = i == 0 ? placed.watch : nullptr,  // one for all files
                                  .arrays = std::move(contents[i].arrays),
                                  .values = std::move(contents[i].values),
                                  .notes = std::move(contents[i].notes),
                                  .rows = {.window = options.window, .stride = options.stride},
                                  .classes = added.classes}));
  }
  return parts.size() == 1 ? parts.front() : concat(parts);
}

}  // namespace leat::datasets
