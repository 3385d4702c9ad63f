#include "datasets/write/references_writer.hpp"

#include "base/base64.hpp"
#include "base/half.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/formats/hdf5/hdf5_file.hpp"
#include "datasets/formats/zarr/zarr_consolidated.hpp"
#include "datasets/formats/zarr/zarr_hierarchy.hpp"
#include "datasets/formats/zarr/zarr_references.hpp"
#include "datasets/formats/zarr/zarr_store.hpp"
#include "datasets/open/formats.hpp"
#include "datasets/tables/array_choice.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

namespace leat::datasets {
namespace {

using ordered_json = nlohmann::ordered_json;

[[noreturn]] void refuse(const chunked_array& array, std::string_view why) {
  throw error(errc::unsupported, str_cat("references to '", array.name, "': ", why, "; choose other arrays, as with ",
                                         spelled(option_id::array_fields)));
}

std::string_view name_of(filter_kind kind) {
  switch (kind) {
    case filter_kind::gzip:
      return "gzip";
    case filter_kind::zlib:
      return "zlib";
    case filter_kind::zstd:
      return "zstd";
    case filter_kind::lz4:
      return "lz4";
    case filter_kind::lz4_hdf5:
      return "lz4 in HDF5's frames";
    case filter_kind::lzf:
      return "lzf";
    case filter_kind::blosc:
      return "blosc";
    case filter_kind::bitshuffle:
      return "bitshuffle";
    case filter_kind::bitshuffle_lz4:
      return "bitshuffle with lz4";
    case filter_kind::shuffle:
      return "shuffle";
    case filter_kind::fletcher32:
      return "fletcher32";
    case filter_kind::crc32c:
      return "crc32c";
    case filter_kind::swap:
      return "big-endian elements";
    case filter_kind::deflate:
      return "deflate";
  }
  return "another";
}

// As numcodecs writes it. Levels concern only writing; readers ignore them.
ordered_json codec_of(const filter& what, const chunked_array& array) {
  const std::string id(name_of(what.kind));
  switch (what.kind) {
    case filter_kind::gzip:
    case filter_kind::zlib:
    case filter_kind::zstd:
      return {{"id", id}, {"level", 1}};
    case filter_kind::lz4:
      return {{"id", id}, {"acceleration", 1}};
    case filter_kind::blosc:
      return {{"id", id}, {"cname", "lz4"}, {"clevel", 5}, {"shuffle", 1}, {"blocksize", 0}};
    case filter_kind::shuffle:
      return {{"id", id}, {"elementsize", what.element_bytes}};
    case filter_kind::fletcher32:
      return {{"id", id}};
    case filter_kind::crc32c:
      return {{"id", id}, {"location", "end"}};
    case filter_kind::lz4_hdf5:
    case filter_kind::lzf:
    case filter_kind::bitshuffle:
    case filter_kind::bitshuffle_lz4:
    case filter_kind::swap:
    case filter_kind::deflate:
      break;
  }
  refuse(array, str_cat("numcodecs has no codec for the filter '", id, "'"));
}

bool compresses(filter_kind kind) {
  return kind == filter_kind::gzip || kind == filter_kind::zlib || kind == filter_kind::zstd ||
         kind == filter_kind::lz4 || kind == filter_kind::blosc;
}

template <class T>
T number_in(const std::vector<std::byte>& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

ordered_json of_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

ordered_json fill_of(const chunked_array& array) {
  std::vector<std::byte> bytes = array.fill;
  if (bytes.empty()) bytes.resize(size_bytes(array.type));
  switch (array.type) {
    case dtype::boolean:
      return number_in<std::uint8_t>(bytes) != 0;
    case dtype::u8:
      return number_in<std::uint8_t>(bytes);
    case dtype::i8:
      return number_in<std::int8_t>(bytes);
    case dtype::u16:
      return number_in<std::uint16_t>(bytes);
    case dtype::i16:
      return number_in<std::int16_t>(bytes);
    case dtype::u32:
      return number_in<std::uint32_t>(bytes);
    case dtype::i32:
      return number_in<std::int32_t>(bytes);
    case dtype::u64:
      return number_in<std::uint64_t>(bytes);
    case dtype::i64:
      return number_in<std::int64_t>(bytes);
    case dtype::f16:
      return of_float(f16_value(number_in<std::uint16_t>(bytes)));
    case dtype::f32:
      return of_float(number_in<float>(bytes));
    case dtype::f64:
      return of_float(number_in<double>(bytes));
    default:
      refuse(array, str_cat("Zarr version 2 has no dtype for ", name(array.type)));
  }
}

std::string dtype_text(const chunked_array& array, bool big_endian) {
  const std::size_t bytes = size_bytes(array.type);
  const char order = bytes == 1 ? '|' : big_endian ? '>' : '<';
  const auto text = [&](char kind) { return str_cat(std::string(1, order), std::string(1, kind), bytes); };
  switch (array.type) {
    case dtype::boolean:
      return text('b');
    case dtype::i8:
    case dtype::i16:
    case dtype::i32:
    case dtype::i64:
      return text('i');
    case dtype::f16:
    case dtype::f32:
    case dtype::f64:
      return text('f');
    default:
      return text('u');
  }
}

std::string order_of(const chunked_array& array) {
  if (array.stored_axes.empty() || std::is_sorted(array.stored_axes.begin(), array.stored_axes.end())) return "C";
  if (!std::is_sorted(array.stored_axes.rbegin(), array.stored_axes.rend()))
    refuse(array, "its axes are stored in an order that is neither C's nor Fortran's");
  return "F";
}

ordered_json metadata_of(const chunked_array& array) {
  if (array.record_bytes != 0 || array.inner_axes != 0) refuse(array, "it is a member of records");
  std::span<const filter> filters = array.filters;
  const bool big_endian = !filters.empty() && filters.front().kind == filter_kind::swap;
  if (big_endian) filters = filters.subspan(1);
  ordered_json codecs = ordered_json::array();
  for (const filter& each : filters) codecs.push_back(codec_of(each, array));
  ordered_json compressor;
  if (!filters.empty() && compresses(filters.back().kind)) {
    compressor = codecs.back();
    codecs.erase(codecs.size() - 1);
  }
  return {{"zarr_format", 2},
          {"shape", array.shape},
          {"chunks", array.chunk},
          {"dtype", dtype_text(array, big_endian)},
          {"fill_value", fill_of(array)},
          {"order", order_of(array)},
          {"filters", codecs.empty() ? ordered_json() : codecs},
          {"compressor", compressor},
          {"dimension_separator", "."}};
}

// xarray wants names: arrays share their samples and no other axis.
ordered_json attributes_of(const chunked_array& array) {
  const std::string own = array.name.substr(array.name.rfind('/') + 1);
  ordered_json axes = ordered_json::array();
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) {
    axes.push_back(axis == 0 ? "sample" : str_cat(own, "_", axis));
  }
  return {{"_ARRAY_DIMENSIONS", axes}};
}

// Refuses a chunk that other readers would misread.
void check(const chunked_array& array, const chunk_place& place, std::uint64_t number) {
  for (std::size_t k = 0; k < array.filters.size() && k < 32; ++k) {
    const bool changes = array.filters[k].kind != filter_kind::shuffle || array.filters[k].element_bytes != 1;
    if (changes && ((place.skipped >> k) & 1) != 0) {
      refuse(array, str_cat("chunk ", number, " was stored without the filter '", name_of(array.filters[k].kind),
                            "', which references cannot say of one chunk"));
    }
  }
  const bool as_stored = std::all_of(array.filters.begin(), array.filters.end(), [](const filter& each) {
    return each.kind == filter_kind::swap || each.kind == filter_kind::shuffle;
  });
  if (!as_stored) return;
  std::uint64_t bytes = size_bytes(array.type);
  for (const std::uint64_t extent : array.chunk) bytes *= extent;
  if (place.bytes != bytes) {
    refuse(array, str_cat("chunk ", number, " has ", place.bytes, " bytes, and whole ones have ", bytes));
  }
}

/// Writes members of "refs", a few thousand at a time.
class members {
 public:
  explicit members(const std::function<void(std::string_view)>& write) : write_(write) {}

  void add(const std::string& key, const ordered_json& value) {
    constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    str_append(text_, first_ ? "\n" : ",\n", text_of(key), ": ", value.dump());
    first_ = false;
    if (text_.size() >= piece_bytes) flush();
  }
  void flush() {
    write_(text_);
    text_.clear();
  }

 private:
  static std::string text_of(const std::string& key) { return ordered_json(key).dump(); }

  const std::function<void(std::string_view)>& write_;
  std::string text_;
  bool first_ = true;
};

void add_chunks(const chunked_array& array, const std::vector<std::string>& paths, members& to) {
  std::vector<std::uint64_t> cells;
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis) {
    cells.push_back(array.shape[axis] / array.chunk[axis] + (array.shape[axis] % array.chunk[axis] != 0));
  }
  for (std::uint64_t number = 0; number < array.places.size(); ++number) {
    const chunk_place& place = array.places[number];
    if (place.offset == chunk_place::absent) continue;
    check(array, place, number);
    std::string coordinates;
    for (std::uint64_t axis = cells.size(), left = number; axis-- > 0; left /= cells[axis]) {
      const std::string one = str_cat(left % cells[axis]);
      coordinates = coordinates.empty() ? one : str_cat(one, ".", coordinates);
    }
    const std::string key = str_cat(array.name, "/", coordinates);
    if (place.is_in_file()) {
      to.add(key, {paths[place.file], place.offset, place.bytes});
    } else {
      const std::string_view bytes(reinterpret_cast<const char*>(array.held.data()) + place.offset, place.bytes);
      to.add(key, "base64:" + to_base64(bytes));
    }
  }
}

// An array in one piece, which its reader has cut along the first axis, is one chunk to others: the last piece has fewer rows.
void join_pieces(chunked_array& array) {
  if (array.places.size() < 2 || !array.stored_axes.empty()) return;
  if (!std::equal(array.shape.begin() + 1, array.shape.end(), array.chunk.begin() + 1)) return;
  if (array.shape.front() % array.chunk.front() == 0) return;
  for (const filter& each : array.filters) {
    if (each.kind != filter_kind::swap) return;
  }
  std::uint64_t end = array.places.front().offset;
  for (const chunk_place& each : array.places) {
    if (!each.is_in_file() || each.file != array.places.front().file || each.offset != end) return;
    end += each.bytes;
  }
  std::uint64_t bytes = size_bytes(array.type);
  for (const std::uint64_t extent : array.shape) bytes *= extent;
  if (end - array.places.front().offset != bytes) return;
  array.places.resize(1);
  array.places.front().bytes = bytes;
  array.chunk = array.shape;
}

}  // namespace

referable_arrays arrays_to_refer_to(const std::string& source, std::span<const std::string> fields) {
  const std::vector<std::string> paths = expand_paths(source);
  if (paths.size() != 1) {
    throw error(errc::usage, str_cat(source, ": it stands for ", paths.size(),
                                     " files, and references are written of one: name it"));
  }
  const std::string& path = paths.front();
  referable_arrays found;
  std::vector<placed_values> values;
  std::vector<std::string> notes;
  if (!is_folder(path) && format_of_file(path) == source_format::hdf5) {
    const local_file file(path);
    hdf5_contents contents = read_hdf5(file, fields);
    found.arrays = std::move(contents.arrays);
    values = std::move(contents.values);
    found.files.push_back({path, file.size()});
  } else if (is_folder(path) ? is_zarr(path) : is_references(path)) {
    const std::unique_ptr<zarr_store> store =
        is_folder(path) ? with_consolidated_metadata(zarr_in_folder(path)) : zarr_of_references(path);
    zarr_contents contents = read_zarr(*store, fields);
    found.arrays = std::move(contents.arrays);
    found.files = std::move(contents.files);
  } else {
    throw error(errc::usage, str_cat(path, ": references are written of HDF5 and Zarr, and this is neither"));
  }
  choose_arrays(found.arrays, values, {.fields = {fields.begin(), fields.end()}}, path, notes);
  if (!values.empty()) {
    throw error(errc::unsupported, str_cat("references to '", values.front().name,
                                           "': values of variable length are no chunks; choose other arrays, as with "
                                           "--fields"));
  }
  for (chunked_array& each : found.arrays) join_pieces(each);
  return found;
}

void write_references(const referable_arrays& what, const std::function<void(std::string_view)>& write) {
  std::vector<std::string> paths;
  for (const sized_file& each : what.files)
    paths.push_back(std::filesystem::absolute(each.name).lexically_normal().string());
  try {
    write("{\"version\": 1, \"refs\": {");
    members to(write);
    ordered_json all = ordered_json::object();
    const auto add_metadata = [&](const std::string& key, const ordered_json& value) {
      to.add(key, value.dump());
      all[key] = value;
    };
    const ordered_json group = {{"zarr_format", 2}};
    add_metadata(".zgroup", group);
    std::set<std::string> groups;
    for (const chunked_array& array : what.arrays) {
      for (std::size_t slash = array.name.find('/'); slash != std::string::npos;
           slash = array.name.find('/', slash + 1)) {
        const std::string path = array.name.substr(0, slash);
        if (groups.insert(path).second) add_metadata(path + "/.zgroup", group);
      }
      add_metadata(array.name + "/.zarray", metadata_of(array));
      add_metadata(array.name + "/.zattrs", attributes_of(array));
      add_chunks(array, paths, to);
    }
    // Consolidated: zarr-python 3.1 lists no group that lies in a group of references.
    to.add(".zmetadata", ordered_json{{"zarr_consolidated_format", 1}, {"metadata", std::move(all)}}.dump());
    to.flush();
    write("\n}}\n");
  } catch (const ordered_json::type_error&) {
    throw error(errc::unsupported, "references: a name or a path is no UTF-8, which JSON has to be; rename it");
  }
}

}  // namespace leat::datasets
