// .npz files: the members of a zip, each a .npy: stored as they are, or packed.
#include "base/text.hpp"
#include "datasets/codecs/deflate.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/arrays/npy_header.hpp"
#include "datasets/formats/arrays/zip_index.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/tables/array_choice.hpp"
#include "datasets/tables/chunked_rows.hpp"
#include "datasets/tables/dense_rows.hpp"
#include "datasets/tables/row_windows.hpp"

#include <leat/error.hpp>
#include <leat/open_arrays.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <exception>
#include <limits>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

struct npz_array {
  std::string name;
  npy_header header;
  zip_member member;

  // Of the first element, in the archive: of a member that is stored as it is.
  [[nodiscard]] std::uint64_t offset() const { return member.offset + header.data_offset; }

  [[nodiscard]] bool is_column() const { return header.shape.size() == 1; }
  [[nodiscard]] std::string text() const {
    std::string shape = str_cat(name, ": ", leat::name(header.type));
    for (std::size_t axis = 1; axis < header.shape.size(); ++axis) {
      str_append(shape, axis == 1 ? " [" : ", ", header.shape[axis]);
    }
    return header.shape.size() > 1 ? shape + "]" : shape;
  }
};

struct npz_file {
  std::vector<npz_array> arrays;
  std::uint64_t size = 0;
  std::uint64_t version = 0;
  std::uint64_t rows = 0;
  std::vector<std::string> notes;
  std::vector<std::string> others;  // members that were not asked for, by name

  // Whether a member is packed, or has a column whose numbers may be too large for one.
  [[nodiscard]] bool is_chunked() const {
    return std::any_of(arrays.begin(), arrays.end(), [](const npz_array& each) {
      return each.member.deflated || (each.is_column() && each.header.type == dtype::u64);
    });
  }
};

// Bytes of a member, unpacked: of one that is packed only its start is ever asked for.
std::vector<std::byte> bytes_of(const file_bytes& file, const zip_member& member, std::uint64_t offset,
                                std::uint64_t bytes) {
  bytes = std::min(bytes, member.bytes - std::min(member.bytes, offset));
  if (!member.deflated) return file.read(member.offset + offset, bytes);
  // What cannot be packed is stored by deflate in blocks, each with a few bytes before it.
  const std::uint64_t packed_max = offset + bytes + (offset + bytes) / 1024 + 1024;
  std::vector<std::byte> start = inflate_start(file.read(member.offset, std::min(member.stored_bytes, packed_max)),
                                               static_cast<std::size_t>(offset + bytes));
  start.erase(start.begin(),
              start.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(offset, start.size())));
  return start;
}

std::string array_name(const zip_member& member) {
  return member.name.ends_with(".npy") ? member.name.substr(0, member.name.size() - 4) : member.name;
}

npz_array array_in(const file_bytes& file, const zip_member& member) {
  const std::string where = str_cat(file.path(), "/", member.name);
  if (!member.not_read.empty()) throw error(errc::unsupported, str_cat(where, ": ", member.not_read));
  npz_array array;
  array.header = read_npy_header(where, member.bytes, [&](std::uint64_t offset, std::uint64_t bytes) {
    return bytes_of(file, member, offset, bytes);
  });
  array.name = array_name(member);
  array.member = member;
  return array;
}

// What is not wanted by its name and cannot be read is a note.
npz_file look_at(const file_bytes& file, const std::vector<std::string>& wanted) {
  const std::string& path = file.path();
  npz_file found;
  found.size = file.size();
  found.version = file.version();
  std::exception_ptr refused;
  for (const zip_member& member : read_zip_index(file)) {
    if (member.name.ends_with("/")) continue;  // A directory.
    const std::string name = array_name(member);
    const auto means_it = [&](const std::string& each) { return is_named_by(name, each); };
    if (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), means_it)) {
      found.others.push_back(name);
      continue;
    }
    try {
      found.arrays.push_back(array_in(file, member));
    } catch (const error& odd) {
      const bool is_asked_for = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
      if (is_asked_for || odd.code() != errc::unsupported) throw;
      if (!refused) refused = std::current_exception();
      found.notes.push_back(str_cat("left out: ", odd.what()));
    }
  }
  if (found.arrays.empty() && refused) std::rethrow_exception(refused);
  if (found.arrays.empty() && found.others.empty())
    throw error(errc::format, str_cat(path, ": the archive has no member; numpy.savez(path, x=x) writes one"));
  return found;
}

// Which arrays become fields: as of HDF5.
void choose(npz_file& from, const std::vector<std::string>& wanted, const std::string& path) {
  std::vector<chunked_array> shapes;
  for (const npz_array& each : from.arrays) {
    chunked_array& shape = shapes.emplace_back();
    shape.name = each.name;
    shape.type = each.header.type;
    shape.shape = each.header.shape;
  }
  for (const std::string& each : from.others) shapes.emplace_back().name = each;
  std::vector<placed_values> none;
  choose_arrays(shapes, none, {.fields = wanted, .samples = array_options::sample::row}, path, from.notes);
  std::erase_if(from.arrays, [&](const npz_array& each) {
    return std::none_of(shapes.begin(), shapes.end(),
                        [&](const chunked_array& chosen) { return chosen.name == each.name; });
  });
  from.rows = from.arrays.front().header.shape.front();
}

// The same arrays in the same order, whatever the archive's.
void put_in_order(const npz_file& first, npz_file& other, const std::string& first_path, const std::string& path) {
  std::vector<npz_array> ordered;
  for (const npz_array& wanted : first.arrays) {
    const auto found = std::find_if(other.arrays.begin(), other.arrays.end(),
                                    [&](const npz_array& each) { return each.text() == wanted.text(); });
    if (found == other.arrays.end()) {
      throw error(errc::usage, str_cat(path, " has other arrays than ", first_path, ", which has ", wanted.text(),
                                       "; open them apart"));
    }
    ordered.push_back(*found);
    if (ordered.back().header.shape.front() == ordered.front().header.shape.front()) continue;
    throw error(errc::usage, str_cat(path, ": '", ordered.back().name, "' has ", ordered.back().header.shape.front(),
                                     " rows and '", ordered.front().name, "' ", ordered.front().header.shape.front(),
                                     "; the first axis of all members counts the samples: save them apart"));
  }
  other.arrays = std::move(ordered);
  other.rows = other.arrays.front().header.shape.front();
}

void check_names(const npz_file& file, const std::string& path) {
  if (file.arrays.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw error(errc::limit, str_cat(path, ": more than 65,535 arrays"));
  }
  std::set<std::string_view> names;
  for (const npz_array& each : file.arrays) {
    if (names.insert(each.name).second) continue;
    throw error(errc::format, str_cat(path, "/", each.name, ": the archive has this member twice"));
  }
}

// A column is read whole in any case.
void check_sum(const file_bytes& file, const npz_array& array) {
  const zip_member& member = array.member;
  if (member.deflated || crc32(file.read(member.offset, member.bytes)) == member.crc32) return;
  throw error(errc::format, str_cat(file.path(), "/", array.name, ": the CRC-32 of its ", member.bytes,
                                    " bytes is another one than the archive has; copy it again, or save it anew"));
}

// Rows are read where they lie, and the checksum is one of the whole member.
std::string note_of_checksums(const npz_file& file, const std::string& path) {
  std::string names;
  for (const npz_array& each : file.arrays) {
    if (each.member.deflated || each.is_column()) continue;
    str_append(names, names.empty() ? "'" : ", '", each.name, "'");
  }
  if (names.empty()) return {};
  return str_cat(
      path, ": checksums present, not verified: rows of ", names,
      " are read where they lie, and a checksum is one of a whole array; numpy.savez_compressed() writes arrays "
      "that are verified");
}

// A member that is packed is one block: reading a row expands all of it.
chunked_array as_chunks(const npz_array& from, std::uint32_t file) {
  chunked_array array;
  array.name = from.name;
  array.type = from.header.type;
  array.shape = from.header.shape;
  array.chunk = from.header.shape;
  for (std::uint64_t& each : array.chunk) each = std::max<std::uint64_t>(each, 1);
  if (from.header.shape.front() == 0) return array;
  if (from.member.deflated) {
    array.filters = {{.kind = filter_kind::deflate, .crc32 = from.member.crc32}};
    array.lead_bytes = from.header.data_offset;
    array.places = {{.offset = from.member.offset, .bytes = from.member.stored_bytes, .file = file}};
  } else {
    array.places = {{.offset = from.offset(), .bytes = from.header.data_bytes, .file = file}};
  }
  return array;
}

// Archives, at least one of which is_chunked(), or windows of their rows.
dataset chunked_archives(const std::vector<std::string>& paths, const std::vector<npz_file>& files,
                         const placed_files& placed, const row_windows& windows) {
  std::vector<dataset> parts;
  for (std::size_t i = 0; i < files.size(); ++i) {
    chunked_table table{.format = "npz",
                        .title = paths[i],
                        .files = placed.table,
                        .source = placed.source,
                        .watch = i == 0 ? placed.watch : nullptr,  // one for all files
                        .arrays = {},
                        .values = {},
                        .notes = files[i].notes,
                        .rows = windows};
    for (const npz_array& each : files[i].arrays) {
      const std::string where = str_cat(paths[i], "/", each.name);
      if (row_bytes(each.header.type, each.header.row_shape(), where) == 0) {
        throw error(errc::usage, str_cat(where, ": an axis of the array has no elements: there is nothing to load"));
      }
      table.arrays.push_back(as_chunks(each, placed.numbers[i]));
    }
    parts.push_back(chunked_rows(std::move(table)));
  }
  return concat(parts);
}

}  // namespace

dataset open_npz_files(const input_files& from, const npy_options& options) {
  const std::vector<std::string>& paths = from.names();
  std::vector<npz_file> files(paths.size());
  for_each_parallel(paths.size(), threads_for_walking(options.threads),
                    [&](std::size_t i) { files[i] = look_at(*from.open(paths[i]), options.fields); });

  check_names(files.front(), paths.front());
  choose(files.front(), options.fields, paths.front());
  std::vector<sized_file> sized;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i > 0) put_in_order(files.front(), files[i], paths.front(), paths[i]);
    sized.push_back({paths[i], files[i].size, files[i].version});
  }
  placed_files placed = from.place(sized);
  const row_windows windows{options.window, options.stride};
  const bool in_windows = windows.window != 0 || windows.stride != 1;
  if (in_windows || std::any_of(files.begin(), files.end(), [](const npz_file& each) { return each.is_chunked(); })) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      for (const npz_array& each : files[i].arrays) {
        if (each.is_column() && !each.member.deflated) check_sum(*from.open(paths[i]), each);
      }
    }
    if (std::string note = note_of_checksums(files.front(), paths.front()); !note.empty()) {
      files.front().notes.push_back(std::move(note));
    }
    return chunked_archives(paths, files, placed, windows);
  }

  dense_table table;
  for (const npz_array& array : files.front().arrays) {
    if (array.is_column()) {
      table.columns.push_back({.name = array.name});
      continue;
    }
    field_info field;
    field.name = array.name;
    field.type = array.header.type;
    field.shape = array.header.row_shape();
    const std::string where = str_cat(paths.front(), "/", array.name);
    table.strides.push_back(row_bytes(field.type, field.shape, where));
    if (table.strides.back() == 0) {
      throw error(errc::usage, str_cat(where, ": an axis of the array has no elements: there is nothing to load"));
    }
    table.fields.push_back(std::move(field));
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    dense_run run{.file = placed.numbers[i], .samples = files[i].rows};
    std::size_t column = 0;
    for (const npz_array& array : files[i].arrays) {
      if (array.is_column()) {
        const std::unique_ptr<file_bytes> file = from.open(paths[i]);
        check_sum(*file, array);
        append_to_column(*file, array.offset(), array.header.type, files[i].rows, table.columns[column++]);
      } else {
        run.offsets.push_back(array.offset());
      }
    }
    table.runs.push_back(std::move(run));
    table.notes.insert(table.notes.end(), files[i].notes.begin(), files[i].notes.end());
  }
  if (std::string note = note_of_checksums(files.front(), paths.front()); !note.empty()) {
    table.notes.push_back(std::move(note));
  }
  table.files = std::move(placed.table);
  table.source = std::move(placed.source);
  table.watch = std::move(placed.watch);
  return dense_rows(std::move(table));
}

}  // namespace leat::datasets
