// Fixed-size records, described by a JSON beside them.
#include "base/parse_json.hpp"
#include "base/text.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/raw_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/tables/dense_rows.hpp"

#include <leat/error.hpp>
#include <leat/open_records.hpp>
#include <leat/samples.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

using json = nlohmann::json;

// No description of a record needs more.
constexpr std::uint64_t json_bytes_max = std::uint64_t{1} << 20;

struct record_layout {
  std::vector<field_info> fields;
  std::vector<std::uint64_t> offsets;  // of each field in the record
  std::uint64_t record_bytes = 0;
  std::optional<std::uint64_t> records;
  std::uint64_t header_bytes = 0;
};

/// The description, checked word by word: it is written by hand.
class layout_reader {
 public:
  explicit layout_reader(const file_bytes& file) : file_(file), path_(file.path()) {}

  record_layout read() {
    if (file_.size() > json_bytes_max) fail(str_cat("it has ", file_.size(), " bytes, and describes no records"));
    const std::vector<std::byte> content = file_.read(0, file_.size());
    const char* const begin = reinterpret_cast<const char*>(content.data());
    const json description = parsed({begin, content.size()});
    if (!description.is_object()) fail("it is no object");
    for (const auto& [key, value] : description.items()) {
      if (key == "fields" || key == "records" || key == "header_bytes") continue;
      fail(str_cat("the member '", key.substr(0, 40), "' is none of fields, records, header_bytes"));
    }
    const auto fields = description.find("fields");
    if (fields == description.end() || !fields->is_array() || fields->empty()) fail("it has no list \"fields\"");
    for (const json& field : *fields) add_field(field);
    if (description.contains("records")) layout_.records = count(description["records"], "records");
    if (description.contains("header_bytes")) layout_.header_bytes = count(description["header_bytes"], "header_bytes");
    return std::move(layout_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw error(errc::format, str_cat(path_, ": ", what,
                                      R"(; records are described as {"fields": [{"name": "x", "dtype": "f32", )"
                                      R"("shape": [3, 224, 224]}, {"name": "y", "dtype": "i64"}]})"));
  }

  json parsed(std::string_view text) const {
    try {
      return parse_json(text);
    } catch (const error& wrong) {
      fail(str_cat("it is no JSON: ", wrong.what()));
    }
  }

  std::uint64_t count(const json& value, std::string_view of) const {
    if (!value.is_number_unsigned()) fail(str_cat("\"", of, "\" is no number from 0 on"));
    return value.get<std::uint64_t>();
  }

  void add_field(const json& field) {
    const std::size_t number = layout_.fields.size() + 1;
    if (!field.is_object()) fail(str_cat("entry ", number, " of \"fields\" is no object"));
    for (const auto& [key, value] : field.items()) {
      if (key == "name" || key == "dtype" || key == "shape") continue;
      fail(str_cat("the member '", key.substr(0, 40), "' of a field is none of name, dtype, shape"));
    }
    field_info info;
    if (!field.contains("name") || !field["name"].is_string() || field["name"].get_ref<const std::string&>().empty()) {
      fail(str_cat("entry ", number, " of \"fields\" has no \"name\""));
    }
    info.name = field["name"].get<std::string>();
    if (std::any_of(layout_.fields.begin(), layout_.fields.end(),
                    [&](const field_info& before) { return before.name == info.name; })) {
      fail(str_cat("the field '", info.name, "' is there twice"));
    }
    if (layout_.fields.size() == std::numeric_limits<std::uint16_t>::max()) fail("it has more than 65,535 fields");
    const std::string type =
        field.contains("dtype") && field["dtype"].is_string() ? field["dtype"].get<std::string>() : "";
    const std::optional<dtype> known = dtype_named(type);
    if (!known) {
      fail(str_cat("the dtype '", type.substr(0, 40), "' of the field '", info.name,
                   "' is none of u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 bool"));
    }
    info.type = *known;
    if (field.contains("shape")) add_shape(field["shape"], info);
    const std::uint64_t bytes = row_bytes(info.type, info.shape, path_);
    if (bytes == 0) fail(str_cat("an axis of the field '", info.name, "' has no elements"));
    layout_.offsets.push_back(layout_.record_bytes);
    layout_.record_bytes += bytes;
    layout_.fields.push_back(std::move(info));
  }

  void add_shape(const json& shape, field_info& info) const {
    if (!shape.is_array() || shape.size() >= dimensions::rank_max) {
      fail(str_cat("\"shape\" of the field '", info.name, "' is no list of up to ", dimensions::rank_max - 1,
                   " numbers"));
    }
    for (const json& extent : shape) {
      const std::uint64_t elements = count(extent, "shape");
      if (elements > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        fail("\"shape\" is too large");
      info.shape.push_back(static_cast<std::int64_t>(elements));
    }
  }

  const file_bytes& file_;
  const std::string& path_;
  record_layout layout_;
};

bool same_fields(const record_layout& a, const record_layout& b) {
  return std::equal(a.fields.begin(), a.fields.end(), b.fields.begin(), b.fields.end(),
                    [](const field_info& one, const field_info& other) {
                      return one.name == other.name && one.type == other.type && one.shape == other.shape;
                    });
}

std::uint64_t records_in(const record_layout& layout, const std::string& path, std::uint64_t file_bytes_there,
                         std::vector<std::string>& notes) {
  if (layout.header_bytes > file_bytes_there) {
    throw error(errc::format, str_cat(path, ": has ", file_bytes_there, " bytes, fewer than the header_bytes ",
                                      layout.header_bytes, " in the JSON beside it"));
  }
  const std::uint64_t bytes = file_bytes_there - layout.header_bytes;
  const std::uint64_t whole = bytes / layout.record_bytes;
  if (!layout.records) {
    if (bytes % layout.record_bytes == 0) return whole;
    throw error(errc::format, str_cat(path, ": ", bytes, " bytes after the header are no whole number of records of ",
                                      layout.record_bytes,
                                      " bytes; is the copy complete, or a \"dtype\" or \"shape\" wrong? "
                                      "(\"records\" in the JSON says how many there are.)"));
  }
  if (*layout.records > whole) {
    throw error(errc::format,
                str_cat(path, ": has room for ", whole, " records of ", layout.record_bytes,
                        " bytes, and the JSON beside it says ", *layout.records, "; is the copy complete?"));
  }
  if (const std::uint64_t rest = bytes - *layout.records * layout.record_bytes; rest != 0) {
    notes.push_back(str_cat(path, ": ", rest, " bytes after the last record are not looked at"));
  }
  return *layout.records;
}

}  // namespace

dataset open_record_files(const input_files& from) {
  dense_table table;
  std::vector<sized_file> sized;
  std::optional<record_layout> first;
  for (const std::string& path : from.names()) {
    const std::unique_ptr<file_bytes> file = from.open(path);
    const std::string beside = with_extension(path, ".json");
    if (!from.has(beside)) {
      throw error(errc::not_found,
                  str_cat(path, ": there is no ", beside, " that says what a record is; ", looks_like(*file)));
    }
    const record_layout layout = layout_reader(*from.open(beside)).read();
    if (!first) {
      first = layout;
    } else if (!same_fields(*first, layout)) {
      throw error(errc::usage, str_cat(path, " has other fields than ", sized.front().name,
                                       "; a batch has room for one dtype and shape each: open them apart"));
    }
    dense_run run{.file = 0, .samples = records_in(layout, path, file->size(), table.notes)};
    for (const std::uint64_t offset : layout.offsets) run.offsets.push_back(layout.header_bytes + offset);
    table.runs.push_back(std::move(run));
    sized.push_back({path, file->size()});
  }
  placed_files placed = from.place(sized);
  for (std::size_t i = 0; i < table.runs.size(); ++i) table.runs[i].file = placed.numbers[i];
  table.files = std::move(placed.table);
  table.source = std::move(placed.source);
  table.strides.assign(first->fields.size(), first->record_bytes);
  table.fields = std::move(first->fields);
  return dense_rows(std::move(table));
}

}  // namespace leat::datasets
