#include "datasets/formats/zarr/zarr_metadata.hpp"

#include "base/half.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

constexpr std::size_t rank_max = 32;
constexpr std::uint64_t chunk_bytes_max = std::uint64_t{1} << 40;

[[noreturn]] void fail(const std::string& where, std::string_view what) {
  throw error(errc::format, str_cat(where, ": ", what));
}

const json& member(const json& of, const char* name, const std::string& where) {
  const auto found = of.find(name);
  if (found == of.end()) fail(where, str_cat("it has no \"", name, "\""));
  return *found;
}

std::vector<std::uint64_t> extents(const json& of, const char* name, const std::string& where) {
  const json& list = member(of, name, where);
  if (!list.is_array() || list.size() > rank_max)
    fail(where, str_cat("\"", name, "\" is no list of at most 32 numbers"));
  std::vector<std::uint64_t> values;
  for (const json& each : list) {
    if (!each.is_number_unsigned()) fail(where, str_cat("\"", name, "\" has an element that counts nothing"));
    values.push_back(each.get<std::uint64_t>());
  }
  return values;
}

void check_chunk(const std::vector<std::uint64_t>& shape, const std::vector<std::uint64_t>& chunk, dtype type,
                 const std::string& where) {
  if (shape.size() != chunk.size())
    fail(where, str_cat("chunks of ", chunk.size(), " axes in an array of ", shape.size()));
  std::uint64_t bytes = size_bytes(type);
  for (const std::uint64_t extent : chunk) {
    if (extent == 0 || bytes > chunk_bytes_max / extent) fail(where, "chunks of no size, or of more than 1 TiB");
    bytes *= extent;
  }
}

std::optional<dtype> type_of(char kind, std::uint64_t bytes) {
  const auto of_size = [&](dtype one, dtype two, dtype four, dtype eight) -> std::optional<dtype> {
    switch (bytes) {
      case 1:
        return one;
      case 2:
        return two;
      case 4:
        return four;
      case 8:
        return eight;
      default:
        return std::nullopt;
    }
  };
  if (kind == 'b' && bytes == 1) return dtype::boolean;
  if (kind == 'u') return of_size(dtype::u8, dtype::u16, dtype::u32, dtype::u64);
  if (kind == 'i') return of_size(dtype::i8, dtype::i16, dtype::i32, dtype::i64);
  if (kind == 'f' && bytes != 1) return of_size(dtype::f16, dtype::f16, dtype::f32, dtype::f64);
  return std::nullopt;
}

template <class T>
std::vector<std::byte> bytes_of(T value) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&value);
  return {begin, begin + sizeof value};
}

std::optional<double> number_in(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// Little-endian. In version 2 null means zeros.
std::vector<std::byte> fill_of(const json& value, dtype type, const std::string& where) {
  if (value.is_null()) return {};
  if (value.is_string() && value.get<std::string>().starts_with("0x")) {  // an element's bits
    const std::string text = value.get<std::string>();
    std::uint64_t bits = 0;
    try {
      bits = std::stoull(text, nullptr, 16);
    } catch (const std::exception&) {
      fail(where, str_cat("the fill value '", text.substr(0, 40), "' is no number"));
    }
    std::vector<std::byte> bytes = bytes_of(bits);
    bytes.resize(size_bytes(type));
    return bytes;
  }
  const std::optional<double> number = number_in(value);
  if (!number) fail(where, "the fill value is no number");
  switch (type) {
    case dtype::f64:
      return bytes_of(*number);
    case dtype::f32:
      return bytes_of(static_cast<float>(*number));
    case dtype::f16:
      return bytes_of(f16_bits(static_cast<float>(*number)));
    case dtype::bf16:
      return bytes_of(bf16_bits(static_cast<float>(*number)));
    default:
      break;
  }
  std::uint64_t bits = 0;
  if (value.is_boolean()) {
    bits = value.get<bool>() ? 1 : 0;
  } else if (value.is_number_unsigned()) {
    bits = value.get<std::uint64_t>();
  } else if (value.is_number_integer()) {
    bits = std::bit_cast<std::uint64_t>(value.get<std::int64_t>());
  } else if (*number != 0) {
    fail(where, "the fill value of integers is none");
  }
  std::vector<std::byte> bytes = bytes_of(bits);
  bytes.resize(size_bytes(type));
  return bytes;
}

[[noreturn]] void refuse_codec(const std::string& name) {
  throw zarr_not_read{str_cat(
      "the codec '", name.substr(0, 60),
      "'; leat has gzip, zlib, zstd, lz4, blosc, shuffle, fletcher32 and crc32c: write it anew with one of these")};
}

/// A codec, and the keys of its configuration: those that are used, and those that only say how the writer went about it.
struct known_codec {
  std::string_view name;
  filter_kind kind;
  std::array<std::string_view, 5> keys = {};
};
constexpr known_codec known_codecs[] = {
    {"gzip", filter_kind::gzip, {"level"}},
    {"zlib", filter_kind::zlib, {"level"}},
    {"zstd", filter_kind::zstd, {"level", "checksum"}},
    {"lz4", filter_kind::lz4, {"acceleration"}},
    {"blosc", filter_kind::blosc, {"cname", "clevel", "shuffle", "blocksize", "typesize"}},
    {"fletcher32", filter_kind::fletcher32},
    {"crc32c", filter_kind::crc32c, {"location"}},
    {"shuffle", filter_kind::shuffle, {"elementsize"}},
};

// A key that leat does not know may change what the bytes mean.
void check_keys(const std::string& codec, const json& of, std::span<const std::string_view> known) {
  for (const auto& [key, value] : of.items()) {
    if (key == "id" || std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw zarr_not_read{str_cat("the codec '", codec, "' with the setting \"", key.substr(0, 60),
                                "\", which leat does not know; write it anew without")};
  }
}

// One of two texts, the first where there is none.
bool is_second(const json& of, const char* key, std::string_view first, std::string_view second) {
  const auto given = of.find(key);
  if (given == of.end() || given->is_null() || *given == first) return false;
  if (*given == second) return true;
  const std::string text = given->is_string() ? given->get<std::string>().substr(0, 60) : "no text";
  throw zarr_not_read{str_cat("\"", key, "\" is '", text, "', where leat has \"", first, "\" and \"", second,
                              "\"; write it anew with one of them")};
}

filter codec_named(const std::string& name, const json& of, dtype type) {
  const auto* const known = std::find_if(std::begin(known_codecs), std::end(known_codecs),
                                         [&](const known_codec& each) { return each.name == name; });
  if (known == std::end(known_codecs)) refuse_codec(name);
  check_keys(name, of, known->keys);
  filter made{.kind = known->kind, .element_bytes = static_cast<std::uint32_t>(size_bytes(type))};
  if (made.kind == filter_kind::crc32c && is_second(of, "location", "end", "start"))
    refuse_codec("crc32c at the start");
  if (made.kind == filter_kind::shuffle) {
    const auto given = of.find("elementsize");
    if (given == of.end() || !given->is_number_unsigned() || given->get<std::uint64_t>() > 4096) refuse_codec(name);
    made.element_bytes = given->get<std::uint32_t>();
  }
  return made;
}

std::string name_in(const json& codec, const char* key, const std::string& where) {
  if (!codec.is_object()) fail(where, "a codec that is no object");
  const json& name = member(codec, key, where);
  if (!name.is_string()) fail(where, "a codec whose name is no text");
  return name.get<std::string>();
}

const json& configuration_of(const json& codec) {
  static const json none = json::object();
  const auto found = codec.find("configuration");
  return found == codec.end() || !found->is_object() ? none : *found;
}

// Axes as they are after "transpose", slowest first.
//   before   empty: the array's own order; so is what is returned
std::vector<std::uint8_t> transposed(const json& how, const std::vector<std::uint8_t>& before, std::size_t rank,
                                     const std::string& where) {
  std::vector<std::uint8_t> axes(rank);
  for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::uint8_t>(i);
  const std::vector<std::uint8_t> in_order = axes;
  const json& order = member(how, "order", where);
  const std::vector<std::uint8_t>& from = before.empty() ? in_order : before;
  if (order == "F") {
    axes.assign(from.rbegin(), from.rend());
  } else if (order != "C") {
    const std::vector<std::uint64_t> asked = extents(how, "order", where);
    if (!std::is_permutation(asked.begin(), asked.end(), in_order.begin(), in_order.end()))
      fail(where, "a \"transpose\" whose order does not name each axis once");
    for (std::size_t i = 0; i < rank; ++i) axes[i] = from[asked[i]];
  }
  return axes == in_order ? std::vector<std::uint8_t>() : axes;
}

/// What became of a chunk before it was stored.
struct chunk_codecs {
  std::vector<filter> filters;
  std::vector<std::uint8_t> stored_axes;
};

// The codecs of version 3 behind one another; in a shard these are those of its chunks.
chunk_codecs codecs_of(const json& codecs, dtype type, std::size_t rank, const std::string& where) {
  if (!codecs.is_array()) fail(where, "\"codecs\" is no list");
  chunk_codecs found;
  std::vector<filter>& filters = found.filters;
  for (const json& each : codecs) {
    std::string name = name_in(each, "name", where);
    const json& how = configuration_of(each);
    if (name == "bytes") {
      check_keys(name, how, std::array<std::string_view, 1>{"endian"});
      if (is_second(how, "endian", "little", "big") && size_bytes(type) > 1) {
        filters.push_back({filter_kind::swap, static_cast<std::uint32_t>(size_bytes(type))});
      }
      continue;
    }
    if (name == "transpose") {
      check_keys(name, how, std::array<std::string_view, 1>{"order"});
      found.stored_axes = transposed(how, found.stored_axes, rank, where);
      continue;
    }
    constexpr std::string_view numcodecs = "numcodecs.";
    if (name.starts_with(numcodecs)) name = name.substr(numcodecs.size());
    filters.push_back(codec_named(name, how, type));
  }
  return found;
}

void set_codecs(chunked_array& array, const json& codecs, const std::string& where) {
  chunk_codecs found = codecs_of(codecs, array.type, array.shape.size(), where);
  array.filters = std::move(found.filters);
  array.stored_axes = std::move(found.stored_axes);
}

}  // namespace

zarr_layout zarr_layout_v2(const json& metadata, const std::string& name, const std::string& where) {
  zarr_layout layout;
  chunked_array& array = layout.array;
  array.name = name;
  array.shape = extents(metadata, "shape", where);
  array.chunk = extents(metadata, "chunks", where);
  const json& type = member(metadata, "dtype", where);
  if (!type.is_string()) throw zarr_not_read{"records of several values; write each of them as an array of its own"};
  const std::string text = type.get<std::string>();
  const std::optional<dtype> known =
      text.size() == 3 ? type_of(text[1], static_cast<std::uint64_t>(text[2] - '0')) : std::nullopt;
  if (!known || std::string_view("<>|").find(text[0]) == std::string_view::npos) {
    throw zarr_not_read{str_cat("the dtype '", text.substr(0, 40), "'; write it as integers, floats or bool")};
  }
  array.type = *known;
  check_chunk(array.shape, array.chunk, array.type, where);
  if (is_second(metadata, "order", "C", "F") && array.shape.size() > 1) {
    for (std::size_t axis = array.shape.size(); axis-- > 0;)
      array.stored_axes.push_back(static_cast<std::uint8_t>(axis));
  }
  if (text[0] == '>' && size_bytes(array.type) > 1) {
    array.filters.push_back({filter_kind::swap, static_cast<std::uint32_t>(size_bytes(array.type))});
  }
  if (const auto filters = metadata.find("filters"); filters != metadata.end() && !filters->is_null()) {
    if (!filters->is_array()) fail(where, "\"filters\" is no list");
    for (const json& each : *filters)
      array.filters.push_back(codec_named(name_in(each, "id", where), each, array.type));
  }
  if (const auto compressor = metadata.find("compressor"); compressor != metadata.end() && !compressor->is_null()) {
    array.filters.push_back(codec_named(name_in(*compressor, "id", where), *compressor, array.type));
  }
  if (const auto fill = metadata.find("fill_value"); fill != metadata.end())
    array.fill = fill_of(*fill, array.type, where);
  if (is_second(metadata, "dimension_separator", ".", "/")) layout.separator = '/';
  layout.file_chunk = array.chunk;
  return layout;
}

namespace {

// Types that have a configuration are objects.
std::string name_of_type(const json& type) {
  if (type.is_string()) return type.get<std::string>();
  const bool has_name = type.is_object() && type.contains("name") && type["name"].is_string();
  return has_name ? type["name"].get<std::string>() : "an extension";
}

}  // namespace

zarr_layout zarr_layout_v3(const json& metadata, const std::string& name, const std::string& where) {
  zarr_layout layout;
  chunked_array& array = layout.array;
  array.name = name;
  array.shape = extents(metadata, "shape", where);
  const json& type = member(metadata, "data_type", where);
  const std::string text = name_of_type(type);
  const std::pair<const char*, dtype> types[] = {
      {"bool", dtype::boolean}, {"int8", dtype::i8},     {"int16", dtype::i16},     {"int32", dtype::i32},
      {"int64", dtype::i64},    {"uint8", dtype::u8},    {"uint16", dtype::u16},    {"uint32", dtype::u32},
      {"uint64", dtype::u64},   {"float16", dtype::f16}, {"bfloat16", dtype::bf16}, {"float32", dtype::f32},
      {"float64", dtype::f64}};
  const auto known =
      std::find_if(std::begin(types), std::end(types), [&](const auto& each) { return text == each.first; });
  if (known == std::end(types)) {
    throw zarr_not_read{str_cat("the data type '", text.substr(0, 40), "'; write it as integers, floats or bool")};
  }
  array.type = known->second;

  const json& grid = member(metadata, "chunk_grid", where);
  if (name_in(grid, "name", where) != "regular")
    throw zarr_not_read{"chunks of several sizes; write it anew in a regular grid"};
  layout.file_chunk = extents(configuration_of(grid), "chunk_shape", where);
  check_chunk(array.shape, layout.file_chunk, array.type, where);
  array.chunk = layout.file_chunk;
  const json& keys = member(metadata, "chunk_key_encoding", where);
  const std::string encoding = name_in(keys, "name", where);
  if (encoding != "default" && encoding != "v2")
    throw zarr_not_read{str_cat("chunk keys of '", encoding.substr(0, 40), "'")};
  const json& encoded = configuration_of(keys);
  check_keys(encoding, encoded, std::array<std::string_view, 1>{"separator"});
  if (encoding == "default") {
    layout.separator = is_second(encoded, "separator", "/", ".") ? '.' : '/';
  } else {
    layout.separator = is_second(encoded, "separator", ".", "/") ? '/' : '.';
  }
  if (encoding == "default") layout.prefix = str_cat("c", std::string(1, layout.separator));
  if (const auto more = metadata.find("storage_transformers"); more != metadata.end() && !more->empty()) {
    throw zarr_not_read{"storage transformers, which leat does not know; write it anew without"};
  }
  array.fill = fill_of(member(metadata, "fill_value", where), array.type, where);

  const json& codecs = member(metadata, "codecs", where);
  const bool is_sharded = codecs.is_array() && codecs.size() == 1 && codecs[0].is_object() &&
                          codecs[0].value("name", json()) == "sharding_indexed";
  if (!is_sharded) {
    set_codecs(array, codecs, where);
    return layout;
  }
  layout.sharded = true;
  const json& how = configuration_of(codecs[0]);
  constexpr std::array<std::string_view, 4> keys_of_shards{"chunk_shape", "codecs", "index_codecs", "index_location"};
  check_keys("sharding_indexed", how, keys_of_shards);
  array.chunk = extents(how, "chunk_shape", where);
  check_chunk(array.shape, array.chunk, array.type, where);
  for (std::size_t axis = 0; axis < array.chunk.size(); ++axis) {
    if (layout.file_chunk[axis] % array.chunk[axis] != 0) fail(where, "a shard that is no whole number of chunks");
  }
  set_codecs(array, member(how, "codecs", where), where);
  chunk_codecs index = codecs_of(member(how, "index_codecs", where), dtype::u64, array.shape.size() + 1, where);
  if (!index.stored_axes.empty()) throw zarr_not_read{"shards whose index is transposed; write it anew without"};
  layout.index_filters = std::move(index.filters);
  layout.index_at_end = !is_second(how, "index_location", "end", "start");
  for (const filter& each : layout.index_filters) {
    if (each.kind != filter_kind::crc32c)
      throw zarr_not_read{"shards whose index is packed; write it anew with bytes and crc32c"};
  }
  return layout;
}

}  // namespace leat::datasets
