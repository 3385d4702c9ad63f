// JSONL, CSV and TSV: each line, or row, is a sample whose values are picked out of it.
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "datasets/content.hpp"
#include "datasets/cursor.hpp"
#include "datasets/input_files.hpp"
#include "datasets/json_value.hpp"
#include "datasets/lines.hpp"
#include "datasets/parallel.hpp"
#include "datasets/patterns.hpp"
#include "datasets/record_columns.hpp"
#include "datasets/record_rows.hpp"
#include "datasets/remote_files.hpp"
#include "datasets/source_options.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>

#include <absl/container/flat_hash_set.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace leat {
namespace datasets {
namespace {

constexpr std::size_t fields_max = 65'535;

void check_count(const std::string& path, std::size_t fields) {
  if (fields <= fields_max) return;
  throw error(errc::limit, str_cat(path, ": ", fields, " columns; leat reads up to ", fields_max, " of a table"));
}

std::string read_text(const file_bytes& file, const value_place& place) {
  const std::vector<std::byte> bytes = file.read(place.offset, place.bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

field_kind kind_of_json(json_kind kind) noexcept {
  if (kind == json_kind::text) return field_kind::text;
  return kind == json_kind::number || kind == json_kind::truth ? field_kind::label : field_kind::bytes;
}

// Keys may be missing in the first lines, or null there.
void add_json_fields(const file_bytes& file, record_table& table) {
  constexpr std::size_t lines_looked_at = 100;
  std::vector<json_member> members;
  absl::flat_hash_set<std::string> known;
  for (std::size_t i = 0; i < std::min(lines_looked_at, table.records.size()); ++i) {
    const value_place& place = table.records[i];
    const std::string line = read_text(file, place);
    members.clear();
    if (const auto fault = read_members(line, members)) {
      fail_at(file.path(), place.offset + fault->at, str_cat("line ", i + 1, " is no JSON object: ", fault->why));
    }
    for (const json_member& each : members) {
      if (known.contains(each.key)) continue;
      if (each.kind == json_kind::null && i + 1 < std::min(lines_looked_at, table.records.size())) continue;
      check_count(file.path(), table.fields.size() + 1);
      known.insert(each.key);
      table.fields.push_back(
          {.name = each.key, .kind = kind_of_json(each.kind), .places = {}, .picker = pick_json(each.key)});
    }
  }
}

class csv_picker final : public value_picker {
 public:
  csv_picker(std::size_t column, std::size_t columns, char separator, std::string name)
      : column_(column), columns_(columns), separator_(separator), name_(std::move(name)) {}

  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    const std::string_view row(reinterpret_cast<const char*>(record.data()), record.size());
    const std::vector<std::string_view> values = split_csv(row, separator_);
    if (values.size() != columns_)
      return str_cat("the row has ", values.size(), " values where the header has ", columns_);
    unquote_csv(values[column_], into);
    return std::nullopt;
  }
  std::string what() const override {
    return str_cat("column ", column_, " of ", columns_, " by ", static_cast<int>(separator_));
  }

 private:
  std::size_t column_;
  std::size_t columns_;
  char separator_;
  std::string name_;
};

char separator_of(const file_bytes& file) {
  if (file.path().ends_with(".tsv")) return '\t';
  constexpr std::uint64_t looked_at = 4096;
  const std::string start = read_text(file, {0, std::min(looked_at, file.size())});
  const std::string_view header = std::string_view(start).substr(0, start.find_first_of("\r\n"));
  const auto count = [&](char letter) { return std::count(header.begin(), header.end(), letter); };
  char best = ',';
  for (const char other : {'\t', ';'}) {
    if (count(other) > count(best)) best = other;
  }
  return best;
}

bool is_number(std::string_view text) {
  double value = 0;
  return absl::SimpleAtod(as_absl(text), &value);
}

void add_csv_fields(const file_bytes& file, char separator, record_table& table) {
  if (table.records.empty()) return;
  const std::string header = read_text(file, table.records.front());
  const std::vector<std::string_view> names = split_csv(header, separator);
  check_count(file.path(), names.size());
  table.records.erase(table.records.begin());
  const std::string first = table.records.empty() ? std::string() : read_text(file, table.records.front());
  const std::vector<std::string_view> values = split_csv(first, separator);
  absl::flat_hash_set<std::string> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    record_field field{.name = unquoted_csv(names[i])};
    if (field.name.empty()) field.name = str_cat("column ", i);  // as pandas writes its index
    if (!known.insert(field.name).second) {
      throw error(errc::format,
                  str_cat(file.path(), ": the header has the column '", field.name, "' twice; rename one of them"));
    }
    const bool is_label = values.size() == names.size() && is_number(unquoted_csv(values[i]));
    field.kind = is_label ? field_kind::label : field_kind::text;
    field.picker = std::make_shared<csv_picker>(i, names.size(), separator, field.name);
    table.fields.push_back(std::move(field));
  }
}

// Such a file may have what looks like lines, too.
void check_is_text(const file_bytes& file) {
  const std::vector<std::byte> start = file.read(0, content_bytes);
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw error(errc::unsupported,
                str_cat(file.path(), ": this is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)"));
  }
  const content_kind found = content_of(start);
  const bool is_packed = found.group == content_group::compressed && first_invalid_utf8(start);
  if (!is_packed && found.name != "a pointer of Git LFS") return;
  throw error(errc::unsupported, str_cat(file.path(), ": this is ", found.name, advice_about(found)));
}

template <class Read>
dataset open_texts(source_format format, const input_files& from, const table_options& options, const Read& read) {
  const std::vector<std::string>& paths = from.names();
  refuse_options(format, options, paths.front());
  std::vector<record_table> tables(paths.size());
  std::vector<sized_file> sized(paths.size());
  std::shared_ptr<const input_files> elsewhere;
  const unsigned threads = threads_for_walking(options.threads);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    tables[i].title = paths[i];
    check_is_text(*file);
    read(*file, threads, tables[i]);
    tables[i].samples = tables[i].records.size();
    if (!options.path_column.empty()) follow_paths(tables[i], *file, from, elsewhere, options);
  }
  keep_what_was_asked(tables, from, options);
  return join_tables(std::move(tables), from, sized);
}

}  // namespace

dataset open_jsonl_files(const input_files& from, const table_options& options) {
  return open_texts(source_format::jsonl, from, options, [&](const file_bytes& file, unsigned threads, record_table& table) {
    table.format = "jsonl";
    table.records = find_lines([&] { return from.open(file.path()); }, threads);
    add_json_fields(file, table);
  });
}

dataset open_csv_files(const input_files& from, const table_options& options) {
  return open_texts(source_format::csv, from, options, [](const file_bytes& file, unsigned, record_table& table) {
    const char separator = separator_of(file);
    table.format = "csv";
    table.records = find_csv_rows(file, separator);
    add_csv_fields(file, separator, table);
  });
}

}  // namespace datasets

dataset open_jsonl(std::span<const std::string> files, const table_options& options) {
  if (files.empty()) throw error(errc::usage, "open_jsonl: no file was given; name one, as train.jsonl");
  return datasets::open_tables_at(files, options, datasets::open_jsonl_files);
}
dataset open_jsonl(std::initializer_list<std::string_view> files, const table_options& options) {
  return open_jsonl(datasets::as_strings(files), options);
}
dataset open_jsonl(const std::string& files, const table_options& options) {
  return open_jsonl(std::span(&files, 1), options);
}

dataset open_csv(std::span<const std::string> files, const table_options& options) {
  if (files.empty()) throw error(errc::usage, "open_csv: no file was given; name one, as train.csv");
  return datasets::open_tables_at(files, options, datasets::open_csv_files);
}
dataset open_csv(std::initializer_list<std::string_view> files, const table_options& options) {
  return open_csv(datasets::as_strings(files), options);
}
dataset open_csv(const std::string& files, const table_options& options) {
  return open_csv(std::span(&files, 1), options);
}

}  // namespace leat
