#include "datasets/formats/records/mds.hpp"

#include "base/half.hpp"
#include "base/option_words.hpp"
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "base/xxh64.hpp"
#include "datasets/files/buffered_file.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

constexpr std::uint64_t mds_index_bytes_max = std::uint64_t{256} << 20;

/// The index, checked word by word.
class index_reader {
 public:
  index_reader(const std::string& folder, const std::string& path) : folder_(folder), path_(path) {}

  std::vector<mds_shard> read(const file_bytes& file) {
    if (file.size() > mds_index_bytes_max) fail(str_cat("an index of ", file.size(), " bytes"));
    const std::vector<std::byte> content = file.read(0, file.size());
    const json index = parsed({reinterpret_cast<const char*>(content.data()), content.size()});
    if (!index.is_object()) fail("no JSON object");
    const json version = member(index, "version");
    if (version != 2) refuse(str_cat("MDS of version ", version.dump().substr(0, 20), "; leat reads version 2"));
    std::vector<mds_shard> shards;
    for (const json& each : list(index, "shards")) shards.push_back(read_shard(each));
    return shards;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw error(errc::format, str_cat(path_, ": ", what, "; is it the index.json of MDS?"));
  }
  [[noreturn]] void refuse(std::string_view what) const { throw error(errc::unsupported, str_cat(path_, ": ", what)); }

  json parsed(std::string_view text) const {
    try {
      return parse_json(text);
    } catch (const error& wrong) {
      fail(str_cat("no JSON: ", wrong.what()));
    }
  }
  json member(const json& of, const char* name) const {
    if (!of.is_object() || !of.contains(name)) fail(str_cat("no member '", name, "'"));
    return of[name];
  }
  json list(const json& of, const char* name) const {
    const json found = member(of, name);
    if (!found.is_array()) fail(str_cat("'", name, "' is no list"));
    return found;
  }
  std::string text(const json& of, const char* name) const {
    const json found = member(of, name);
    if (!found.is_string()) fail(str_cat("'", name, "' is no text"));
    return found.get<std::string>();
  }

  mds_shard read_shard(const json& from) const {
    if (text(from, "format") != "mds")
      refuse(str_cat("shards of the format ", text(from, "format").substr(0, 20), "; leat reads mds"));
    mds_shard shard;
    if (from.contains("compression") && !from["compression"].is_null()) {
      shard.compression = from["compression"].dump().substr(0, 20);
    }
    const json file = member(from, "raw_data");
    const std::string name = text(file, "basename");
    if (name.empty() || name.starts_with('/') || name.find("..") != std::string::npos)
      fail("a shard outside the folder");
    shard.path = str_cat(folder_, folder_.ends_with('/') ? "" : "/", name);
    if (const auto hashes = file.find("hashes"); hashes != file.end() && hashes->is_object()) {
      for (const auto& [kind, value] : hashes->items()) {
        if (value.is_string()) shard.hashes.emplace_back(kind, value.get<std::string>());
      }
    }
    const json samples = member(from, "samples");
    if (!samples.is_number_unsigned()) fail("'samples' is no number");
    shard.samples = samples.get<std::uint64_t>();
    const json names = list(from, "column_names");
    const json encodings = list(from, "column_encodings");
    const json sizes = list(from, "column_sizes");
    constexpr std::size_t columns_max = 65'535;
    if (names.size() != encodings.size() || names.size() != sizes.size() || names.size() > columns_max) {
      fail("lists of columns that differ in length, or are too long");
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!names[i].is_string() || !encodings[i].is_string()) fail("a column without a name or an encoding");
      mds_column column{.name = names[i].get<std::string>(), .encoding = encodings[i].get<std::string>()};
      if (sizes[i].is_number_unsigned()) {
        const auto bytes = sizes[i].get<std::uint64_t>();
        if (bytes == 0 || bytes > (std::uint64_t{1} << 31)) fail("a column whose values are of no size that MDS has");
        column.bytes = static_cast<std::uint32_t>(bytes);
      } else if (!sizes[i].is_null()) {
        fail("a column whose size is no number");
      }
      shard.columns.push_back(std::move(column));
    }
    return shard;
  }

  const std::string& folder_;
  const std::string& path_;
};

/// A stored number, as text.
class number_picker final : public value_picker {
 public:
  explicit number_picker(std::string encoding) : encoding_(std::move(encoding)) {}
  [[nodiscard]] static bool knows(std::string_view encoding) {
    constexpr std::string_view names[] = {"int",    "int8",   "int16",  "int32",   "int64",   "uint8",
                                          "uint16", "uint32", "uint64", "float16", "float32", "float64"};
    return std::find(std::begin(names), std::end(names), encoding) != std::end(names);
  }
  [[nodiscard]] static dtype type_of(std::string_view encoding) noexcept {
    if (!encoding.starts_with("float")) return dtype::i64;
    return encoding == "float64" ? dtype::f64 : dtype::f32;
  }
  std::uint64_t room(std::uint64_t) const noexcept override { return 32; }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    if (encoding_ == "int" || encoding_ == "int64") return put<std::int64_t>(record, into);
    if (encoding_ == "int32") return put<std::int32_t>(record, into);
    if (encoding_ == "int16") return put<std::int16_t>(record, into);
    if (encoding_ == "int8") return put<std::int8_t>(record, into);
    if (encoding_ == "uint64") return put<std::uint64_t>(record, into);
    if (encoding_ == "uint32") return put<std::uint32_t>(record, into);
    if (encoding_ == "uint16") return put<std::uint16_t>(record, into);
    if (encoding_ == "uint8") return put<std::uint8_t>(record, into);
    if (encoding_ == "float32") return put<float>(record, into);
    if (encoding_ == "float16") return put<half>(record, into);
    return put<double>(record, into);
  }
  std::string what() const override { return encoding_; }

 private:
  struct half {
    std::uint16_t bits = 0;
    operator float() const noexcept { return f16_value(bits); }  // NOLINT: it is that number.
  };
  template <class Number>
  static std::optional<std::string> put(std::span<const std::byte> record, std::span<std::byte>& into) {
    Number value;
    if (record.size() != sizeof value)
      return str_cat("a number of ", record.size(), " bytes where ", sizeof value, " are expected");
    std::memcpy(&value, record.data(), sizeof value);
    char* const begin = reinterpret_cast<char*>(into.data());
    const auto [end, failure] = std::to_chars(begin, begin + into.size(), +value);
    if (failure != std::errc{}) return "a number that is too long";
    into = into.first(static_cast<std::size_t>(end - begin));
    return std::nullopt;
  }
  std::string encoding_;
};

/// "ndarray:uint16:8,8": an array whose dtype, and perhaps shape, each value shares.
struct array_encoding {
  dtype type = dtype::u8;
  dimensions shape = {};
};

std::optional<array_encoding> array_encoding_of(std::string_view encoding) {
  constexpr std::string_view kind = "ndarray:";
  if (!encoding.starts_with(kind)) return std::nullopt;
  encoding.remove_prefix(kind.size());
  const std::size_t colon = std::min(encoding.find(':'), encoding.size());
  constexpr std::pair<std::string_view, dtype> types[] = {
      {"uint8", dtype::u8},    {"int8", dtype::i8},     {"uint16", dtype::u16}, {"int16", dtype::i16},
      {"uint32", dtype::u32},  {"int32", dtype::i32},   {"uint64", dtype::u64}, {"int64", dtype::i64},
      {"float16", dtype::f16}, {"float32", dtype::f32}, {"float64", dtype::f64}};
  const auto known = std::find_if(std::begin(types), std::end(types),
                                  [&](const auto& each) { return each.first == encoding.substr(0, colon); });
  if (known == std::end(types)) return std::nullopt;
  array_encoding found{.type = known->second};
  constexpr std::int64_t elements_max = std::int64_t{1} << 31;
  for (std::size_t at = colon + 1; at < encoding.size();) {
    const std::size_t end = std::min(encoding.find(',', at), encoding.size());
    std::int64_t extent = 0;
    const auto [stop, failure] = std::from_chars(encoding.data() + at, encoding.data() + end, extent);
    const bool is_number = failure == std::errc{} && stop == encoding.data() + end && extent > 0 &&
                           extent <= elements_max / found.shape.elements();
    if (!is_number || found.shape.size() + 1 >= dimensions::rank_max) return std::nullopt;
    found.shape.push_back(extent);
    at = end + 1;
  }
  return found;
}

/// The elements of a one-dimensional array, behind the bytes that say how many there are.
class elements_picker final : public value_picker {
 public:
  explicit elements_picker(dtype type) : type_(type) {}
  /// Whether an array that begins so has one axis.
  [[nodiscard]] static bool takes(std::byte head) noexcept { return std::to_integer<unsigned>(head) >> 2 == 1; }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    // The low two bits: as how many bytes, a power of two, each extent is stored; the others: how many there are.
    if (record.empty()) return "an array of no bytes";
    const auto head = std::to_integer<unsigned>(record.front());
    if (!takes(record.front())) return str_cat("an array of ", head >> 2, " axes, where the first one has one");
    const std::size_t extent_bytes = std::size_t{1} << (head & 3U);
    if (record.size() < 1 + extent_bytes) return "an array that ends within its shape";
    std::uint64_t elements = 0;
    std::memcpy(&elements, record.data() + 1, extent_bytes);
    const std::span<const std::byte> values = record.subspan(1 + extent_bytes);
    if (values.size() % size_bytes(type_) != 0 || values.size() / size_bytes(type_) != elements) {
      return str_cat("an array of ", elements, " elements in ", values.size(), " bytes");
    }
    into = into.first(values.size());
    if (!values.empty()) std::memcpy(into.data(), values.data(), values.size());
    return std::nullopt;
  }
  std::string what() const override { return str_cat("elements of ", leat::name(type_)); }

 private:
  dtype type_;
};

record_field field_of(const mds_column& column) {
  record_field field{.name = column.name};
  if (const std::optional<array_encoding> array = array_encoding_of(column.encoding)) {
    const std::uint64_t row_bytes = static_cast<std::uint64_t>(array->shape.elements()) * size_bytes(array->type);
    field.type = array->type;
    if (array->shape.empty()) {
      field.picker = std::make_shared<elements_picker>(array->type);
    } else if (column.bytes == row_bytes) {
      field.kind = field_kind::tensor;
      field.shape = array->shape;
    }
    return field;
  }
  if (number_picker::knows(column.encoding) && column.bytes != 0) {
    field.kind = field_kind::label;
    field.type = number_picker::type_of(column.encoding);
    field.picker = std::make_shared<number_picker>(column.encoding);
  } else if (column.encoding == "jpeg" || column.encoding == "png") {
    field.kind = field_kind::picture;
    field.extension = column.encoding == "png" ? "png" : "jpg";
  } else if (column.encoding == "str" || column.encoding == "json") {
    field.kind = field_kind::text;
  }
  return field;
}

// Of a whole shard, which is read once for that.
void check_hash(const file_bytes& file, const mds_shard& shard, const std::string& index) {
  const auto known =
      std::find_if(shard.hashes.begin(), shard.hashes.end(), [](const auto& each) { return each.first == "xxh64"; });
  if (known == shard.hashes.end()) {
    throw error(errc::unsupported, str_cat(index, ": it has no hash of ", file.path(), " that leat computes (xxh64); ",
                                           "write it with hashes=['xxh64'], or leave checksums out"));
  }
  constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
  std::vector<std::byte> buffer(buffer_bytes);
  xxh64 sum;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::size_t bytes = file.read(at, buffer);
    if (bytes == 0) fail_at(file.path(), at, "the file ends earlier than it did");
    sum.add(std::span(buffer).first(bytes));
    at += bytes;
  }
  std::uint64_t said = 0;
  const std::string& text = known->second;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), said, 16);
  if (failure == std::errc{} && end == text.data() + text.size() && said == sum.value()) return;
  throw error(errc::format,
              str_cat(file.path(), ": its hash (xxh64) is another one than ", index, " has; copy the shard again"));
}

std::string index_path(const std::string& folder) {
  return str_cat(folder, folder.ends_with('/') ? "" : "/", "index.json");
}

}  // namespace

std::vector<mds_shard> read_mds_index(const std::string& folder, const file_bytes& file) {
  return index_reader(folder, file.path()).read(file);
}

// A sample has the sizes of values whose column has no fixed size, then the values.
record_table read_mds_shard(const file_bytes& file, const mds_shard& shard) {
  const std::string& path = file.path();
  constexpr std::uint64_t head_bytes = 4;
  buffered_file buffer(file, std::uint64_t{64} << 10);
  if (const auto samples = buffer.at(0, head_bytes).number<std::uint32_t>(); samples != shard.samples) {
    fail_at(path, 0, str_cat("a shard of ", samples, " samples where the index has ", shard.samples));
  }
  const std::uint64_t sizes_bytes =
      4 * static_cast<std::uint64_t>(std::count_if(shard.columns.begin(), shard.columns.end(),
                                                   [](const mds_column& each) { return each.bytes == 0; }));
  record_table table{.format = "mds", .title = path};
  table.samples = shard.samples;
  if (shard.samples > file.size() / 4)
    fail_at(path, 0, str_cat(shard.samples, " samples, for which the shard has no room"));
  std::vector<std::uint32_t> begins;
  for (std::uint64_t i = 0; i <= shard.samples; ++i) {
    begins.push_back(buffer.at(head_bytes + 4 * i, 4).number<std::uint32_t>());
  }
  for (const mds_column& column : shard.columns) {
    table.fields.push_back(field_of(column));
    table.fields.back().places.reserve(shard.samples);
  }
  buffer.read_ahead(sizes_bytes);
  for (std::uint64_t i = 0; i < shard.samples; ++i) {
    const std::uint64_t begin = begins[i];
    const std::uint64_t end = begins[i + 1];
    if (end < begin || end > file.size() || end - begin < sizes_bytes)
      fail_at(path, begin, str_cat("sample ", i, " ends at ", end));
    cursor sizes = buffer.at(begin, sizes_bytes);
    std::uint64_t at = begin + sizes_bytes;
    for (std::size_t column = 0; column < shard.columns.size(); ++column) {
      const std::uint64_t bytes =
          shard.columns[column].bytes != 0 ? shard.columns[column].bytes : sizes.number<std::uint32_t>();
      if (bytes > end - at) fail_at(path, at, str_cat("a value of ", bytes, " bytes, beyond sample ", i));
      table.fields[column].places.push_back({.offset = at, .bytes = bytes});
      at += bytes;
    }
    if (at != end) fail_at(path, at, str_cat("sample ", i, " has ", end - at, " bytes more than its values"));
  }
  for (record_field& field : table.fields) {
    if (field.kind != field_kind::bytes) continue;
    if (field.picker) {
      // Of arrays of several axes nobody would know the shape without the bytes that say it.
      const std::vector<std::byte> first = first_record(file, field.places);
      if (!first.empty() && !elements_picker::takes(first.front())) {
        field.picker = nullptr;
        field.type = dtype::u8;
      }
      continue;
    }
    find_kind_of_values(file, field);
    // Declared as bytes: that the first value can be read as text says nothing of the others.
    if (field.kind == field_kind::text) field.kind = field_kind::bytes;
  }
  return table;
}

bool is_mds(const input_files& files, const std::string& folder) {
  const std::string path = index_path(folder);
  if (!files.has(path)) return false;
  try {
    constexpr std::uint64_t looked_at = 4096;
    const std::vector<std::byte> start = files.open(path)->read(0, looked_at);
    return std::string_view(reinterpret_cast<const char*>(start.data()), start.size()).find("\"column_encodings\"") !=
           std::string_view::npos;
  } catch (const error&) {
    return false;
  }
}

dataset open_mds_files(const input_files& files, const std::string& folder, const table_options& options) {
  const std::string path = index_path(folder);
  const std::vector<mds_shard> shards = read_mds_index(folder, *files.open(path));
  if (shards.empty()) throw error(errc::not_found, str_cat(path, ": it lists no shard"));
  std::vector<std::string> paths;
  for (const mds_shard& each : shards) paths.push_back(each.path);
  files.expect(paths);
  // Streaming keeps what it has decompressed beside what was compressed, or in its place.
  const auto packed = std::find_if(shards.begin(), shards.end(), [&](const mds_shard& each) {
    return !each.compression.empty() && !files.has(each.path);
  });
  if (packed != shards.end()) {
    throw error(errc::unsupported,
                str_cat(path, ": its shards are compressed (", packed->compression,
                        "), and samples are read in any order: ", packed->path,
                        " is not there; write them without compression, or decompress them beside it"));
  }
  std::vector<record_table> tables(shards.size());
  std::vector<sized_file> sized(shards.size());
  for_each_parallel(shards.size(), threads_for_walking(options.threads), [&](std::size_t i) {
    const std::unique_ptr<file_bytes> file = files.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    if (options.checksums) check_hash(*file, shards[i], path);
    tables[i] = read_mds_shard(*file, shards[i]);
  });
  keep_what_was_asked(tables, files, options);
  if (!options.checksums && !shards.front().hashes.empty()) {
    tables.front().notes.push_back(str_cat(path, ": checksums present, not verified: they are of whole shards; ",
                                           spelled(option_id::table_checksums), " reads each through once"));
  }
  return join_tables(std::move(tables), files, sized);
}

}  // namespace leat::datasets
