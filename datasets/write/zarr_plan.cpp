#include "datasets/write/zarr_plan.hpp"

#include "base/gzip.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

using ordered_json = nlohmann::ordered_json;

constexpr std::uint64_t default_chunk_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t chunks_max = std::uint64_t{1} << 24;  // What open_zarr() takes.
constexpr std::size_t file_name_bytes_max = 255;

[[noreturn]] void refuse(const std::string& name, std::string_view why) {
  throw error(errc::usage, str_cat("the field '", name, "' ", why));
}

// A part of a name becomes a folder: names come out of files, and "../.." is one that HDF5 can hold.
void check_part(const std::string& name, std::string_view part) {
  const bool is_fit = part.find_first_not_of('.') != std::string_view::npos && !part.starts_with("__") &&
                      part != "zarr.json" && part.size() <= file_name_bytes_max &&
                      part.find('\0') == std::string_view::npos;
  if (is_fit) return;
  refuse(name, str_cat("cannot be the name of an array of Zarr: '", part.substr(0, 60),
                       "' is no name of a folder there; rename it in the source, or open only other fields"));
}

void add_name(const std::string& name, std::set<std::string>& groups) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    check_part(name, std::string_view(name).substr(begin, end - begin));
    if (end < name.size()) groups.insert(name.substr(0, end));
    begin = end + 1;
  }
}

void check_kind(const field_info& field, std::uint64_t samples) {
  if (field.samples != samples) refuse(field.name, "is missing in some samples, and an array of Zarr has all of them");
  if (field.column) return;
  if (field.kind == field_kind::tokens) refuse(field.name, "is tokens; their files need no packing: copy them");
  if (field.kind != field_kind::tensor) {
    refuse(field.name,
           "has samples of any size, and an array of Zarr has rows of one dtype and shape; pack it into tar shards");
  }
}

zarr_array_plan plan_array(const field_info& field, std::uint16_t number, std::uint64_t samples,
                           const pack_zarr_options& options) {
  zarr_array_plan array;
  array.name = field.name;
  array.type = field.type;
  array.row_shape = field.shape;
  array.samples = samples;
  array.place = {.field = number, .offset = 0, .bytes = field.bytes_max};
  if (field.column) {
    array.row_shape = {};
    array.place.bytes = size_bytes(array.type);
  }
  const std::uint64_t row_bytes = array.place.bytes;
  if (row_bytes == 0) refuse(field.name, "has rows of no bytes; open only other fields");
  if (row_bytes > packed_bytes_max) {
    refuse(field.name, str_cat("has rows of ", bytes_text(row_bytes), ", and a chunk is at most ",
                               bytes_text(packed_bytes_max), "; write it as one array instead"));
  }
  const std::uint64_t most = std::max<std::uint64_t>(samples, 1);
  const std::uint64_t rows = options.rows_per_chunk != 0 ? options.rows_per_chunk
                                                         : std::max<std::uint64_t>(default_chunk_bytes / row_bytes, 1);
  array.rows_per_chunk = std::min(rows, most);
  if (array.rows_per_chunk > packed_bytes_max / row_bytes) {
    refuse(field.name, str_cat("would have chunks of ", array.rows_per_chunk, " rows of ", bytes_text(row_bytes),
                               ", and a chunk is at most ", bytes_text(packed_bytes_max), ": take at most ",
                               packed_bytes_max / row_bytes, " rows per chunk"));
  }
  array.chunk_bytes = array.rows_per_chunk * row_bytes;
  array.chunks = samples / array.rows_per_chunk + (samples % array.rows_per_chunk != 0 ? 1 : 0);
  if (array.chunks > chunks_max) {
    refuse(field.name, str_cat("would have ", array.chunks, " chunks, and more than ", chunks_max,
                               " are not read: take more rows per chunk, at least ", samples / chunks_max + 1));
  }
  array.chunks_per_shard = std::min(options.chunks_per_shard, std::max<std::uint64_t>(array.chunks, 1));
  return array;
}

std::string type_name(dtype type) {
  switch (type) {
    case dtype::u8:
      return "uint8";
    case dtype::i8:
      return "int8";
    case dtype::u16:
      return "uint16";
    case dtype::i16:
      return "int16";
    case dtype::u32:
      return "uint32";
    case dtype::i32:
      return "int32";
    case dtype::u64:
      return "uint64";
    case dtype::i64:
      return "int64";
    case dtype::f16:
      return "float16";
    case dtype::bf16:
      return "bfloat16";
    case dtype::f32:
      return "float32";
    case dtype::f64:
      return "float64";
    case dtype::boolean:
      return "bool";
  }
  return "";
}

ordered_json fill_of(dtype type) {
  switch (type) {
    case dtype::boolean:
      return false;
    case dtype::f16:
    case dtype::bf16:
    case dtype::f32:
    case dtype::f64:
      return 0.0;
    default:
      return 0;
  }
}

ordered_json bytes_codec(std::size_t element_bytes) {
  if (element_bytes == 1) return {{"name", "bytes"}};
  return {{"name", "bytes"}, {"configuration", {{"endian", "little"}}}};
}

ordered_json codecs_of(zarr_codec codec, dtype type) {
  const std::size_t element_bytes = size_bytes(type);
  ordered_json all = ordered_json::array();
  all.push_back(bytes_codec(element_bytes));
  switch (codec) {
    case zarr_codec::none:
      break;
    case zarr_codec::zstd:
      all.push_back({{"name", "zstd"}, {"configuration", {{"level", zstd_level}, {"checksum", false}}}});
      break;
    case zarr_codec::gzip:
      all.push_back({{"name", "gzip"}, {"configuration", {{"level", gzip_level}}}});
      break;
    case zarr_codec::lz4:
      all.push_back({{"name", "blosc"},
                     {"configuration",
                      {{"typesize", element_bytes},
                       {"cname", "lz4"},
                       {"clevel", blosc_level},
                       {"shuffle", element_bytes > 1 ? "shuffle" : "noshuffle"},
                       {"blocksize", 0}}}});
      break;
  }
  return all;
}

ordered_json shape_of(std::uint64_t rows, const dimensions& row_shape) {
  ordered_json shape = ordered_json::array();
  shape.push_back(rows);
  for (const std::int64_t extent : row_shape) shape.push_back(extent);
  return shape;
}

}  // namespace

zarr_plan plan_zarr(const dataset& from, const pack_zarr_options& options) {
  zarr_plan plan;
  std::set<std::string> names;
  std::set<std::string> groups;  // A group's name sorts before those within it.
  const std::vector<field_info> fields = from.fields();
  for (std::size_t number = 0; number < fields.size(); ++number) {
    const field_info& field = fields[number];
    check_kind(field, from.size());
    add_name(field.name, groups);
    if (!names.insert(field.name).second) refuse(field.name, "is there twice; rename one of them in the source");
    plan.arrays.push_back(plan_array(field, static_cast<std::uint16_t>(number), from.size(), options));
  }
  if (plan.arrays.empty()) throw error(errc::usage, "the source has no field");
  for (const std::string& name : names) {
    if (groups.contains(name)) {
      refuse(name,
             "is an array, and others lie in a group of its name, which Zarr does not have; open one or the other");
    }
  }
  plan.groups.assign(groups.begin(), groups.end());
  return plan;
}

std::string zarr_group_json() {
  const ordered_json group = {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", ordered_json::object()}};
  return group.dump(2) + "\n";
}

std::string zarr_array_json(const zarr_array_plan& array, zarr_codec codec) {
  const ordered_json chunk = shape_of(array.rows_per_chunk, array.row_shape);
  ordered_json codecs = codecs_of(codec, array.type);
  ordered_json file_chunk = chunk;
  if (array.is_sharded()) {
    ordered_json index_codecs = ordered_json::array();
    index_codecs.push_back(bytes_codec(sizeof(std::uint64_t)));
    index_codecs.push_back({{"name", "crc32c"}});
    const ordered_json sharding = {{"name", "sharding_indexed"},
                                   {"configuration",
                                    {{"chunk_shape", chunk},
                                     {"codecs", std::move(codecs)},
                                     {"index_codecs", std::move(index_codecs)},
                                     {"index_location", "end"}}}};
    codecs = ordered_json::array();
    codecs.push_back(sharding);
    file_chunk = shape_of(array.rows_per_chunk * array.chunks_per_shard, array.row_shape);
  }
  const ordered_json all = {{"zarr_format", 3},
                            {"node_type", "array"},
                            {"shape", shape_of(array.samples, array.row_shape)},
                            {"data_type", type_name(array.type)},
                            {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", file_chunk}}}}},
                            {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
                            {"fill_value", fill_of(array.type)},
                            {"codecs", codecs},
                            {"attributes", ordered_json::object()}};
  return all.dump(2) + "\n";
}

packing packing_of(zarr_codec codec) noexcept {
  switch (codec) {
    case zarr_codec::none:
      return packing::none;
    case zarr_codec::lz4:
      return packing::blosc_lz4;
    case zarr_codec::zstd:
      return packing::zstd;
    case zarr_codec::gzip:
      return packing::gzip;
  }
  return packing::none;
}

std::string zarr_chunk_key(const zarr_array_plan& array, std::uint64_t number) {
  std::string key = str_cat("c/", number);
  for (std::size_t axis = 0; axis < array.row_shape.size(); ++axis) str_append(key, "/0");
  return key;
}

}  // namespace leat::datasets
