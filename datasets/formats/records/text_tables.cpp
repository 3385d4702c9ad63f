// JSONL, CSV and TSV: each line, or row, is a sample whose values are picked out of it. Plain text: each is its value.
#include "base/hash_map.hpp"
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "datasets/files/buffered_file.hpp"
#include "datasets/files/coded_file.hpp"
#include "datasets/files/content.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/files/lines.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/records/coded_lines.hpp"
#include "datasets/tables/empty_files.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"
#include "datasets/tables/seen_values.hpp"
#include "datasets/wire/json_value.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t fields_max = 65'535;

void check_count(const std::string& path, std::size_t fields) {
  if (fields <= fields_max) return;
  throw error(errc::limit, str_cat(path, ": ", fields, " columns; leat reads up to ", fields_max, " of a table"));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string read_text(const file_bytes& file, const value_place& place) {
  const std::vector<std::byte> bytes = file.read(place.offset, place.bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A column of one file.
///   key_bytes   where the name is that of a list of objects and that of a member of each, how long the list's is; else 0
struct text_column {
  std::string name;
  seen_values seen;
  std::size_t key_bytes = 0;
};

/// Which line of a file something is in, from 1.
std::uint64_t line_of(const file_bytes& file, std::uint64_t offset) {
  constexpr std::uint64_t buffer = std::uint64_t{1} << 20;
  std::uint64_t line = 1;
  for (std::uint64_t at = 0; at < offset; at += buffer) {
    const std::vector<std::byte> bytes = file.read(at, std::min(buffer, offset - at));
    line += static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), std::byte{'\n'}));
  }
  return line;
}

// Calls each(text, place) for the first rows.
template <class Each>
void for_first_rows(const file_bytes& file, std::span<const value_place> records, const Each& each) {
  buffered_file buffer(file, std::uint64_t{256} << 10);
  for (const value_place& place : records.first(std::min(rows_looked_at, records.size()))) {
    const std::span<const std::byte> row = buffer.view(place.offset, place.bytes);
    each(std::string_view(reinterpret_cast<const char*>(row.data()), row.size()), place);
  }
}

void see(const json_member& member, seen_values& seen) {
  switch (member.kind) {
    case json_kind::text:
      seen.text = true;
      return;
    case json_kind::truth:
      seen.whole = true;
      return;
    case json_kind::number:
      return seen.add(member.written);
    case json_kind::list:
    case json_kind::object:
      seen.other = true;
      return;
    case json_kind::null:
      return;
  }
}

// Keys may be missing in the first lines, or null there.
std::vector<text_column> json_columns(const file_bytes& file, const record_table& table) {
  std::vector<text_column> columns;
  hash_map<std::string, std::size_t> known;
  std::vector<json_member> members;
  for_first_rows(file, table.records, [&](std::string_view line, const value_place& place) {
    members.clear();
    if (const auto fault = read_members(line, members)) {
      const std::uint64_t number = line_of(file, place.offset);
      fail_at(file.path(), place.offset + fault->at,
              str_cat("line ", number, ", column ", fault->at + 1, ": no JSON object: ", fault->why,
                      "; each line is one object"));
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto [found, is_new] = known.try_emplace(members[i].key, columns.size());
      if (is_new) {
        check_count(file.path(), columns.size() + 1);
        columns.push_back({.name = members[i].key, .seen = {}});
      }
      const auto is_same = [&](const json_member& other) { return other.key == members[i].key; };
      const bool is_last = std::none_of(members.begin() + static_cast<std::ptrdiff_t>(i) + 1, members.end(), is_same);
      if (is_last) see(members[i], columns[found->second].seen);
    }
  });
  return columns;
}

// What is asked for and no key may be a member of each of a list's objects: `messages.role`.
void add_members_of_lists(std::vector<text_column>& columns, std::span<const std::string> asked) {
  const auto find = [&](std::string_view name) {
    return std::find_if(columns.begin(), columns.end(), [&](const text_column& each) { return each.name == name; });
  };
  for (const std::string& name : asked) {
    if (find(name) != columns.end()) continue;
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      const auto list = find(std::string_view(name).substr(0, dot));
      if (list == columns.end() || !list->seen.other) continue;
      columns.push_back({.name = name, .seen = list->seen, .key_bytes = dot});
      break;
    }
  }
}

/// What becomes of a cell without a value.
enum class empty_cell : std::uint8_t { text, missing, nan };

class csv_picker final : public value_picker {
 public:
  csv_picker(std::size_t column, std::size_t columns, char separator, std::string name, empty_cell empty)
      : column_(column), columns_(columns), separator_(separator), name_(std::move(name)), empty_(empty) {}

  std::uint64_t room(std::uint64_t record_bytes) const noexcept override {
    return std::max<std::uint64_t>(record_bytes, not_a_number.size());
  }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    const std::string_view row(reinterpret_cast<const char*>(record.data()), record.size());
    const std::vector<std::string_view> values = split_csv(row, separator_);
    if (values.size() != columns_)
      return str_cat("the row has ", values.size(), " values where the header has ", columns_);
    unquote_csv(values[column_], into);
    if (!into.empty() || empty_ == empty_cell::text) return std::nullopt;
    if (empty_ == empty_cell::missing) {
      return value_fault(str_cat("'", name_, "' is empty in this row"), corrupt_kinds::incomplete);
    }
    into = {into.data(), not_a_number.size()};  // There is room for it.
    std::memcpy(into.data(), not_a_number.data(), not_a_number.size());
    return std::nullopt;
  }
  std::string what() const override {
    return str_cat("column ", column_, " of ", columns_, " by ", static_cast<int>(separator_));
  }

 private:
  static constexpr std::string_view not_a_number = "nan";

  std::size_t column_;
  std::size_t columns_;
  char separator_;
  std::string name_;
  empty_cell empty_;
};

/// The record is the value.
class whole_picker final : public value_picker {
 public:
  std::uint64_t room(std::uint64_t record_bytes) const noexcept override { return record_bytes; }
  std::optional<value_fault> pick(std::span<const std::byte> record, std::span<std::byte>& into) const override {
    if (!record.empty()) std::memcpy(into.data(), record.data(), record.size());
    into = into.first(record.size());
    return std::nullopt;
  }
  std::string what() const override { return "all of the text"; }
};

char separator_of(const std::string& path, std::span<const std::byte> begins) {
  if (name_decoded(path).ends_with(".tsv")) return '\t';
  const std::string_view start = text_of(begins).substr(0, 4096);
  const std::string_view header = start.substr(0, start.find_first_of("\r\n"));
  const auto count = [&](char letter) { return std::count(header.begin(), header.end(), letter); };
  char best = ',';
  for (const char other : {'\t', ';'}) {
    if (count(other) > count(best)) best = other;
  }
  return best;
}

// Takes the header, which is no record.
std::vector<text_column> csv_columns(const file_bytes& file, char separator, record_table& table) {
  std::vector<text_column> columns;
  if (table.records.empty()) return columns;
  const std::string header = read_text(file, table.records.front());
  const std::vector<std::string_view> names = split_csv(header, separator);
  check_count(file.path(), names.size());
  table.records.erase(table.records.begin());
  hash_set<std::string> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text_column column{.name = unquoted_csv(names[i]), .seen = {}};
    if (column.name.empty()) column.name = str_cat("column ", i);  // as pandas writes its index
    if (!known.insert(column.name).second) {
      throw error(errc::format,
                  str_cat(file.path(), ": the header has the column '", column.name, "' twice; rename one of them"));
    }
    columns.push_back(std::move(column));
  }
  for_first_rows(file, table.records, [&](std::string_view row, const value_place&) {
    const std::vector<std::string_view> values = split_csv(row, separator);
    for (std::size_t i = 0; i < std::min(values.size(), columns.size()); ++i) {
      if (const std::string cell = unquoted_csv(values[i]); !cell.empty()) columns[i].seen.add(cell);
    }
  });
  return columns;
}

// Such a file may have what looks like lines, too.
void check_is_text(const std::string& path, std::span<const std::byte> begins) {
  const std::span<const std::byte> start = begins.first(std::min(content_bytes, begins.size()));
  const std::string_view text = text_of(start);
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw error(errc::unsupported, str_cat(path, ": this is UTF-16; write it as UTF-8 (iconv -f UTF-16 -t UTF-8)"));
  }
  const content_kind found = content_of(start);
  const bool is_packed = found.group == content_group::compressed && first_invalid_utf8(start);
  if (!is_packed && found.name != "a pointer of Git LFS") return;
  throw error(errc::unsupported, str_cat(path, ": this is ", found.name, advice_about(found)));
}

/// What is found out of one file.
///   separator   of CSV; 0 of JSONL; the end of a line of plain text
struct text_file {
  std::vector<text_column> columns;
  char separator = 0;
};

std::shared_ptr<const value_picker> picker_of(const text_file& file, std::size_t column, const record_field& field) {
  if (const std::size_t key = file.columns[column].key_bytes; key != 0) {
    return pick_json_of_each(field.name.substr(0, key), field.name.substr(key + 1));
  }
  if (file.separator == '\n') return std::make_shared<whole_picker>();
  const bool is_nan = is_nan_where_missing(field);
  if (file.separator == 0) return pick_json(field.name, is_nan);
  const empty_cell empty = is_nan                            ? empty_cell::nan
                           : field.kind == field_kind::label ? empty_cell::missing
                                                             : empty_cell::text;
  return std::make_shared<csv_picker>(column, file.columns.size(), file.separator, field.name, empty);
}

void check_types(const table_options& options, const seen_columns& seen, const std::string& path) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : seen) names.push_back(name);
  for (const table_options::typed& each : options.types) {
    if (each.type != dtype::i64 && !has_nan(each.type)) {
      throw error(errc::usage, str_cat(path, ": '", each.name, "' as ", leat::name(each.type),
                                       "; numbers of a table are i64, f32 or f64"));
    }
    if (seen.contains(each.name)) continue;
    throw error(errc::not_found, str_cat(path, ": it has no '", each.name, "'", did_you_mean(each.name, names)));
  }
}

// A value says little: shards of one set may begin with an empty cell each.
void add_fields(std::span<record_table> tables, std::span<const text_file> files, const table_options& options) {
  seen_columns seen;
  for (const text_file& file : files) {
    for (const text_column& column : file.columns) seen[column.name].merge(column.seen);
  }
  check_types(options, seen, tables.front().title);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (std::size_t column = 0; column < files[i].columns.size(); ++column) {
      record_field field{.name = files[i].columns[column].name};
      set_kind(field, seen.find(field.name)->second, options.types);
      field.picker = picker_of(files[i], column, field);
      tables[i].fields.push_back(std::move(field));
    }
  }
}

// The lines of a compressed file lie in blocks.
void put_in_blocks(record_table& table, const decoded_files& files) {
  const std::shared_ptr<const coded_file> coded = files.coded(table.title);
  if (!coded) return;
  coded_blocks blocks(coded);
  for (const value_place& each : table.records) blocks.add(each.offset, each.offset + each.bytes);
  blocks.finish();
  table.coded = std::make_shared<const coded_blocks>(std::move(blocks));
  if (!coded->note().empty()) table.notes.push_back(str_cat(table.title, ": ", coded->note()));
}

/// How the lines of a format are found, and what their columns are.
struct text_format {
  std::string_view name;
  char (*separator)(const std::string& path, std::span<const std::byte> start);
  std::unique_ptr<line_finder> (*finder)(std::string path, char separator);
  std::vector<value_place> (*find)(const input_files& files, const file_bytes& file, char separator, unsigned threads);
  std::vector<text_column> (*columns)(const file_bytes& file, char separator, record_table& table);
};

dataset open_texts(const input_files& stored, const table_options& options, const text_format& format) {
  constexpr std::size_t start_bytes = 4096;
  const coded_lines coded = read_coded_lines(stored, format.name, options.index,
                                             [&](const std::string& path, std::span<const std::byte> start) {
                                               check_is_text(path, start);
                                               return format.finder(path, format.separator(path, start));
                                             });
  const input_files& from = coded.files ? *coded.files : stored;
  const std::vector<std::string>& paths = from.names();
  std::vector<record_table> tables(paths.size());
  std::vector<text_file> files(paths.size());
  std::vector<sized_file> sized(paths.size());
  std::shared_ptr<const input_files> elsewhere;
  const unsigned threads = threads_for_walking(options.threads);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    record_table& table = tables[i];
    table.title = paths[i];
    table.format = format.name;
    if (file->size() == 0) table.notes.push_back(note_of_empty_file(paths[i]));
    const std::vector<std::byte> start = file->read(0, start_bytes);
    const auto lines = coded.lines.find(paths[i]);
    if (lines == coded.lines.end()) check_is_text(paths[i], start);
    files[i].separator = format.separator(paths[i], start);
    if (lines == coded.lines.end()) {
      table.records = format.find(from, *file, files[i].separator, threads);
    } else {
      table.records = lines->second;
    }
    files[i].columns = format.columns(*file, files[i].separator, table);
    if (files[i].separator == 0) add_members_of_lists(files[i].columns, options.fields);
    if (coded.files) put_in_blocks(table, *coded.files);
    table.samples = table.records.size();
  }
  add_fields(tables, files, options);
  for (std::size_t i = 0; i < paths.size() && !options.path_column.empty(); ++i) {
    if (sized[i].size_bytes == 0) continue;
    follow_paths(tables[i], *from.open(paths[i]), from, elsewhere, options);
  }
  keep_what_was_asked(tables, from, options);
  return join_tables(std::move(tables), from, sized);
}

}  // namespace

dataset open_jsonl_files(const input_files& from, const table_options& options) {
  return open_texts(
      from, options,
      {.name = "jsonl",
       .separator = [](const std::string&, std::span<const std::byte>) { return '\0'; },
       .finder = [](std::string path, char) { return finder_of_text_lines(std::move(path)); },
       .find = [](const input_files& files, const file_bytes& file, char,
                  unsigned threads) { return find_lines([&] { return files.open(file.path()); }, threads); },
       .columns = [](const file_bytes& file, char, record_table& table) { return json_columns(file, table); }});
}

namespace {

// Of each of text_samples another name: an index that was kept of lines is none of paragraphs.
text_format text_format_of(text_samples what) {
  text_format made{
      .name = "text lines",
      .separator = [](const std::string&, std::span<const std::byte>) { return '\n'; },
      .finder = [](std::string path, char) { return finder_of_text_lines(std::move(path)); },
      .find = [](const input_files& files, const file_bytes& file, char,
                 unsigned threads) { return find_lines([&] { return files.open(file.path()); }, threads); },
      .columns =
          [](const file_bytes&, char, record_table&) {
            text_column whole{.name = "text", .seen = {}};
            whole.seen.text = true;
            return std::vector<text_column>{whole};
          }};
  if (what == text_samples::paragraphs) {
    made.name = "text paragraphs";
    made.finder = [](std::string path, char) { return finder_of_paragraphs(std::move(path)); };
    made.find = [](const input_files&, const file_bytes& file, char, unsigned) {
      return find_in(file, *finder_of_paragraphs(file.path()));
    };
  } else if (what == text_samples::files) {
    made.name = "text files";
    made.finder = [](std::string path, char) { return finder_of_whole_text(std::move(path)); };
    made.find = [](const input_files&, const file_bytes& file, char, unsigned) {
      return find_in(file, *finder_of_whole_text(file.path()));
    };
  }
  return made;
}

}  // namespace

dataset open_text_files(const input_files& from, const table_options& options) {
  return open_texts(from, options, text_format_of(options.text.value_or(text_samples::lines)));
}

dataset open_csv_files(const input_files& from, const table_options& options) {
  return open_texts(from, options,
                    {.name = "csv",
                     .separator = separator_of,
                     .finder = finder_of_csv_rows,
                     .find = [](const input_files&, const file_bytes& file, char separator,
                                unsigned) { return find_csv_rows(file, separator); },
                     .columns = csv_columns});
}

}  // namespace leat::datasets
