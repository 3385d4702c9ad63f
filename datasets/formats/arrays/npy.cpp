// .npy files: rows of one array, shards of one, or an array for each sample.
#include "base/text.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/tables/dense_rows.hpp"
#include "datasets/tables/row_windows.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <utility>

namespace leat::datasets {
namespace {

constexpr const char* field_name = "npy";

struct npy_file {
  npy_header header;
  std::uint64_t size = 0;
  std::uint64_t version = 0;
};

std::vector<npy_file> look_at(const input_files& from, unsigned threads) {
  const std::vector<std::string>& paths = from.names();
  std::vector<npy_file> files(paths.size());
  for_each_parallel(paths.size(), threads_for_walking(threads), [&](std::size_t i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    files[i].size = file->size();
    files[i].version = file->version();
    files[i].header = read_npy_header(
        paths[i], file->size(), [&](std::uint64_t offset, std::uint64_t bytes) { return file->read(offset, bytes); });
  });
  return files;
}

std::string shape_text(const npy_header& header, bool of_rows) {
  std::string text = str_cat(name(header.type), " [");
  const std::size_t first = of_rows ? 1 : 0;
  for (std::size_t axis = first; axis < header.shape.size(); ++axis) {
    str_append(text, axis > first ? ", " : "", header.shape[axis]);
  }
  return text + "]";
}

void check_same(const std::vector<npy_file>& files, const std::vector<std::string>& paths, bool of_rows) {
  const std::string first = shape_text(files.front().header, of_rows);
  for (std::size_t i = 1; i < files.size(); ++i) {
    const std::string other = shape_text(files[i].header, of_rows);
    if (other == first) continue;
    throw error(errc::usage, str_cat(paths[i], " holds ", of_rows ? "rows of " : "", other, " where ", paths.front(),
                                     " holds ", of_rows ? "rows of " : "", first,
                                     "; a batch has room for one dtype and shape: open them apart"));
  }
}

}  // namespace

dataset open_npy_files(const input_files& from, const npy_options& options) {
  const std::vector<std::string>& paths = from.names();
  const std::vector<npy_file> files = look_at(from, options.threads);
  const row_windows windows{options.window, options.stride};
  const bool in_windows = windows.window != 0 || windows.stride != 1;
  if (in_windows && options.samples == npy_options::sample::file) {
    throw error(errc::usage, str_cat(paths.front(),
                                     ": windows are of rows, and each file is a sample; leave "
                                     "npy_options::samples out"));
  }
  const bool of_rows = in_windows || options.samples == npy_options::sample::row ||
                       (options.samples == npy_options::sample::automatic && paths.size() == 1);
  if (of_rows) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (!files[i].header.shape.empty()) continue;
      throw error(errc::usage, str_cat(paths[i],
                                       ": the array is a single number, without an axis of samples; give "
                                       "several files, a sample each"));
    }
  }
  check_same(files, paths, of_rows);
  const npy_header& first = files.front().header;

  dense_table table;
  const bool is_column = of_rows && first.shape.size() == 1 && windows.window == 0;
  column_values column{.name = field_name};
  if (!is_column) {
    field_info field;
    field.name = field_name;
    field.type = first.type;
    if (!of_rows && first.shape.size() == dimensions::rank_max) {
      throw error(errc::unsupported,
                  str_cat(paths.front(), ": the array has ", first.shape.size(),
                          " axes, and a batch one more; leat has up to ", dimensions::rank_max, ": reshape it"));
    }
    for (std::size_t axis = of_rows ? 1 : 0; axis < first.shape.size(); ++axis) {
      field.shape.push_back(static_cast<std::int64_t>(first.shape[axis]));
    }
    const std::uint64_t bytes = row_bytes(field.type, field.shape, paths.front());
    table.strides.push_back(bytes * windows.stride);
    field.shape = windows.shape_of(field.shape, paths.front());
    if (bytes == 0) {
      throw error(errc::usage,
                  str_cat(paths.front(), ": an axis of the array has no elements: there is nothing to load"));
    }
    table.fields.push_back(std::move(field));
  }
  std::vector<sized_file> sized;
  for (std::size_t i = 0; i < files.size(); ++i) sized.push_back({paths[i], files[i].size, files[i].version});
  placed_files placed = from.place(sized);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const npy_header& header = files[i].header;
    const std::uint64_t samples = of_rows ? windows.samples_of(header.shape.front(), paths[i]) : 1;
    dense_run run{.file = placed.numbers[i], .samples = samples};
    if (is_column) {
      const std::size_t before = is_integer(header.type) ? column.values.size() : column.reals.size();
      append_to_column(*from.open(paths[i]), header.data_offset, header.type, header.shape.front(), column);
      if (is_integer(header.type)) {
        windows.take_strided(column.values, before, samples);
      } else {
        windows.take_strided(column.reals, before, samples);
      }
    } else {
      run.offsets.push_back(header.data_offset);
    }
    if (const std::uint64_t rest = files[i].size - header.data_offset - header.data_bytes; rest != 0) {
      table.notes.push_back(str_cat(paths[i], ": ", rest, " bytes after the array are not looked at"));
    }
    table.runs.push_back(std::move(run));
  }
  table.files = std::move(placed.table);
  table.source = std::move(placed.source);
  table.watch = std::move(placed.watch);
  if (is_column) table.columns.push_back(std::move(column));
  return dense_rows(std::move(table));
}

}  // namespace leat::datasets
