#include "datasets/tables/record_columns.hpp"

#include "base/hash_map.hpp"
#include "base/near_miss.hpp"
#include "base/numbers.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "datasets/files/asked_files.hpp"
#include "datasets/files/buffered_file.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/path_error.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/seen_values.hpp"
#include "datasets/tables/wider_lists.hpp"
#include "io/remote/address.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

namespace leat::datasets {
namespace {

// As a label is written: a column of numbers must not become classes for a plus, a space or an exponent. What is too large for a double is
// infinite here, as in pandas; a label refuses it.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  if constexpr (!std::is_floating_point_v<Number>) {
    return parse_signed(text);
  } else {
    const std::optional<double> value = parse_real(text);
    // A whole number that a double does not tell from the next one, such as an id of 64 bits, is no number but a text. The first that it
    // does not tell is 2^53, which is also what it makes of 2^53 + 1.
    constexpr double too_large = 9007199254740992.0;
    const bool is_whole = trimmed(text).find_first_not_of("+-0123456789") == std::string_view::npos;
    if (value && is_whole && std::abs(*value) >= too_large) return std::nullopt;
    return value;
  }
}

// A dataset has one list of classes.
void name_classes(record_table& table, const std::string& column, const std::vector<std::string>& names, bool says) {
  if (!table.classes) {
    table.classes = std::make_shared<class_names>(class_names{names, column});
  } else if (says) {
    table.notes.push_back(note_of_more_classes(table.classes->column, column));
  }
}

// Calls each(text) for each record's value, null where it has none, until it returns false.
template <class Each>
void for_each_value(const file_bytes& file, const record_table& table, const record_field& field, const Each& each) {
  const value_picker& picker = *field.picker;
  constexpr std::uint64_t ahead_bytes = std::uint64_t{1} << 20;
  buffered_file buffer(file, ahead_bytes);
  std::vector<std::byte> room;
  for (const value_place& record : field.places.empty() ? table.records : field.places) {
    room.resize(picker.room(record.bytes));
    std::span<std::byte> value(room);
    std::optional<std::string_view> text;
    if (!picker.pick(buffer.view(record.offset, record.bytes), value)) {
      text.emplace(reinterpret_cast<const char*>(value.data()), value.size());
    }
    if (!each(text)) return;
  }
}

enum class values_as : std::uint8_t { whole, real, text };

/// A column of one table, as far as its values are what they were taken for.
struct column_found {
  record_numbers numbers;
  few_texts texts;
  bool fits = true;
};

column_found read_column(const file_bytes& file, const record_table& table, const record_field& field, values_as what) {
  column_found found;
  found.numbers.name = field.name;
  const auto add_number = [&](auto& to, const std::optional<std::string_view>& text) {
    using number = typename std::remove_reference_t<decltype(to)>::value_type;
    if (!text) found.numbers.missing.push_back(to.size());
    const std::optional<number> value = text ? number_in<number>(*text) : number{0};
    found.fits = value.has_value();
    if (value) to.push_back(*value);
    return found.fits;
  };
  for_each_value(file, table, field, [&](const std::optional<std::string_view>& text) {
    if (what == values_as::whole) return add_number(found.numbers.whole, text);
    if (what == values_as::real) return add_number(found.numbers.reals, text);
    if (!text || (text->empty() && table.format == "csv")) {
      found.texts.add_missing();
    } else if (!found.texts.add(*text)) {
      refuse_texts(field.name, file.path());
    }
    return true;
  });
  return found;
}

record_field* field_named(record_table& table, std::string_view name) {
  const auto found = std::find_if(table.fields.begin(), table.fields.end(),
                                  [&](const record_field& each) { return each.name == name; });
  return found == table.fields.end() ? nullptr : &*found;
}

void add_column(std::span<record_table> tables, const input_files& from, const std::string& name, unsigned threads,
                const dtype* wish) {
  std::vector<column_found> found(tables.size());
  const auto read_all = [&](values_as what) {
    for_each_parallel(tables.size(), threads, [&](std::size_t i) {
      const record_field* const field = field_named(tables[i], name);
      if (field == nullptr || !field->picker) return;
      found[i] = read_column(*from.open(tables[i].title), tables[i], *field, what);
    });
    return std::all_of(found.begin(), found.end(), [](const column_found& each) { return each.fits; });
  };
  const bool are_real = wish != nullptr && has_nan(*wish);
  const bool are_whole = !are_real && read_all(values_as::whole);
  const bool are_numbers = are_whole || ((wish == nullptr || are_real) && read_all(values_as::real));
  if (!are_numbers && wish != nullptr) {
    const auto odd = std::find_if(found.begin(), found.end(), [](const column_found& each) { return !each.fits; });
    const record_numbers& numbers = odd->numbers;
    throw error(errc::format, str_cat(tables[static_cast<std::size_t>(odd - found.begin())].title, ": '", name,
                                      "' of row ", std::max(numbers.whole.size(), numbers.reals.size()),
                                      " is no number of type ", leat::name(*wish)));
  }
  if (are_real) {
    for (column_found& each : found) each.numbers.type = *wish;
  }
  if (!are_numbers) {
    static_cast<void>(read_all(values_as::text));
    std::vector<const few_texts*> all;
    for (const column_found& each : found) all.push_back(&each.texts);
    const std::vector<std::string> sorted = sorted_texts(all, name, tables.front().title);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      found[i].texts.append_to(found[i].numbers, sorted);
      name_classes(tables[i], name, sorted, i == 0);
    }
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (found[i].numbers.name.empty()) continue;
    std::erase_if(tables[i].fields, [&](const record_field& each) { return each.name == name; });
    tables[i].numbers.push_back(std::move(found[i].numbers));
  }
}

std::uint64_t size_of_file(const std::string& path, std::size_t row, const std::string& named_by) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    throw path_error(errno, path,
                     str_cat("row ", row, " of the table ", named_by, " names it; ", spelled(option_id::table_root),
                             " says what its paths are relative to"));
  }
  return static_cast<std::uint64_t>(status.st_size);
}

void find_sizes_on_disk(std::span<sized_file> files, const std::string& named_by, unsigned threads) {
  constexpr std::size_t together = 256;
  for_each_parallel((files.size() + together - 1) / together, threads_for_walking(threads), [&](std::size_t item) {
    for (std::size_t i = item * together; i < std::min(files.size(), (item + 1) * together); ++i) {
      files[i].size_bytes = size_of_file(files[i].name, i, named_by);
    }
  });
}

// All are asked for together. That one has changed is told by the read of it, not by looking at each anew.
void find_sizes_at_addresses(std::span<sized_file> files, const std::string& named_by, const input_files& from) {
  std::vector<std::string> names;
  for (const sized_file& each : files) {
    if (!io::is_address(each.name)) {
      throw error(
          errc::usage,
          str_cat("row ", names.size(), " of the table ", named_by, " names ", each.name, ", a file of a disk; ",
                  spelled(option_id::table_root), " says what its paths are relative to, as s3://bucket/"),
          option_id::table_root);
    }
    names.push_back(each.name);
  }
  from.expect(names);
  for (std::size_t row = 0; row < files.size(); ++row) {
    const std::optional<sized_file> found = from.find(files[row].name);
    if (!found) {
      throw error(errc::not_found,
                  str_cat(io::redacted(files[row].name), ": it is not there, and row ", row, " of the table ", named_by,
                          " names it; ", spelled(option_id::table_root), " says what its paths are relative to"));
    }
    files[row].size_bytes = found->size_bytes;
  }
}

// As gs:// is: it would be a path below the root.
void refuse_other_address(std::string_view path, std::size_t row, const std::string& named_by) {
  try {
    refuse_address(path);
  } catch (const error& refused) {
    throw error(refused.code(), str_cat("row ", row, " of the table ", named_by, ": ", refused.what()));
  }
}

void check_is_there(std::span<record_table> tables, const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (record_table& table : tables) {
    if (field_named(table, name) != nullptr) return;
    for (const record_field& field : table.fields) {
      if (std::find(names.begin(), names.end(), field.name) != names.end()) continue;
      names.push_back(field.name);
      str_append(all, all.empty() ? "" : ", ", field.name);
    }
  }
  throw error(errc::not_found,
              str_cat(tables.front().title, ": it has no '", name, "'; it has ", all, did_you_mean(name, names)));
}

}  // namespace

bool few_texts::add(std::string_view text) {
  const auto [known, is_new] = known_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) {
    if (texts_.size() == texts_max) return false;
    texts_.emplace_back(text);
  }
  numbers_.push_back(known->second);
  return true;
}

void few_texts::append_to(record_numbers& into, const std::vector<std::string>& sorted) const {
  std::vector<std::int64_t> ours;
  for (const std::string& text : texts_) {
    ours.push_back(std::lower_bound(sorted.begin(), sorted.end(), text) - sorted.begin());
  }
  for (const std::uint32_t number : numbers_) {
    if (number == none) into.missing.push_back(into.whole.size());
    into.whole.push_back(number == none ? 0 : ours[number]);
  }
}

void refuse_texts(std::string_view name, const std::string& path) {
  throw error(errc::limit, str_cat(path, ": the column '", name, "' has more than ", few_texts::texts_max,
                                   " different texts, which are no classes; leave it out of the columns"));
}

std::vector<std::string> sorted_texts(std::span<const few_texts* const> of, std::string_view name,
                                      const std::string& path) {
  std::set<std::string> all;
  for (const few_texts* const each : of) all.insert(each->texts().begin(), each->texts().end());
  if (all.size() > few_texts::texts_max) refuse_texts(name, path);
  return {all.begin(), all.end()};
}

void keep_what_was_asked(std::span<record_table> tables, const input_files& from, const table_options& options) {
  for (const auto* asked : {&options.fields, &options.columns}) {
    for (const std::string& name : *asked) check_is_there(tables, name);
  }
  const unsigned threads = threads_for_walking(options.threads);
  for (const std::string& name : options.columns)
    add_column(tables, from, name, threads, wish_for(name, options.types));
  if (options.fields.empty()) return;
  for (record_table& table : tables) {
    std::erase_if(table.fields, [&](const record_field& each) {
      return std::find(options.fields.begin(), options.fields.end(), each.name) == options.fields.end();
    });
  }
}

std::string note_of_more_classes(std::string_view column, std::string_view other) {
  return str_cat("classes() has the names of '", column, "'; those of '", other, "' are left out");
}

std::string note_of_lists_with_nulls(std::string_view path, std::string_view column, std::uint64_t count,
                                     std::uint64_t first) {
  return str_cat(path, ": the column '", column, "' has ", count, count == 1 ? " list" : " lists",
                 " with a null in it, which no number stands for (the first in row ", first,
                 "): such a row lacks the field; fill the nulls to have it");
}

std::string note_of_misshapen_arrays(std::string_view path, std::string_view column, std::string_view shape,
                                     std::uint64_t count, std::uint64_t first) {
  return str_cat(path, ": the column '", column, "' has ", count, count == 1 ? " array" : " arrays",
                 " of another shape than ", shape, ", which the Hub's metadata say (the first in row ", first,
                 "): such a row lacks the field");
}

// The files that a column names, without their sizes: as paths of a disk, or all of them as addresses.
//   whole     those that the table names by a whole address
//   returns   whether they are addresses
static bool name_files(record_table& table, const file_bytes& file, const table_options& options,
                       std::vector<std::string>& whole) {
  const record_field paths = *field_named(table, options.path_column);
  const bool is_at_address = io::is_address(table.title);
  const bool is_root_at_address = io::is_address(options.root);
  const std::size_t slash = table.title.rfind('/');
  if (!is_root_at_address) refuse_address(options.root);
  std::string root = is_root_at_address ? name_of_folder(options.root) : options.root;
  if (root.empty() && slash != std::string::npos) root = table.title.substr(0, slash);
  if (!root.empty() && !root.ends_with('/')) root += '/';
  std::vector<sized_file>& files = table.more_files;
  bool are_addresses = is_at_address || is_root_at_address;
  const bool may_be_either = !are_addresses;
  for_each_value(file, table, paths, [&](std::optional<std::string_view> path) {
    if (!path || path->empty()) {
      fail_at(table.title, table.records[files.size()].offset, str_cat("no path in '", options.path_column, "'"));
    }
    if (path->find('\0') != std::string_view::npos) {
      fail_at(table.title, table.records[files.size()].offset,
              str_cat("a zero byte in the path in '", options.path_column, "'"));
    }
    const bool is_address = io::is_address(*path);
    if (!is_address) refuse_other_address(*path, files.size(), table.title);
    if (may_be_either && files.empty()) are_addresses = is_address;
    if (may_be_either && is_address != are_addresses) {
      const std::string one = is_address ? io::redacted(*path) : std::string(*path);
      throw error(
          errc::usage,
          str_cat("row ", files.size(), " of the table ", table.title, " names ", is_address ? files.front().name : one,
                  ", a file of a disk, and ", is_address ? one : io::redacted(files.front().name),
                  ", which is at an address; put them into tables of their own and concatenate these"));
    }
    const bool is_whole = path->starts_with('/') || is_address;
    if (is_address) whole.emplace_back(*path);
    files.push_back({.name = is_whole        ? std::string(*path)
                             : are_addresses ? resolved_name(root, *path)
                                             : str_cat(root, *path)});
    return true;
  });
  return are_addresses;
}

void follow_paths(record_table& table, const file_bytes& file, const input_files& from,
                  std::shared_ptr<const input_files>& elsewhere, const table_options& options) {
  check_is_there({&table, 1}, options.path_column);
  std::vector<std::string> whole;
  const bool are_addresses = name_files(table, file, options, whole);
  std::vector<sized_file>& files = table.more_files;
  const std::string root = io::is_address(options.root) ? options.root : "";
  // What signs the root is of the files below it, and not what signs the table.
  const bool is_root_signed = io::query_of(root) != root.size();
  if (!are_addresses) {
    find_sizes_on_disk(files, table.title, options.threads);
  } else if (io::is_address(table.title) && !is_root_signed) {
    from.expect_addresses(whole);
    find_sizes_at_addresses(files, table.title, from);
  } else if (!files.empty()) {
    if (!elsewhere) elsewhere = files_asked_for(root, options.remote);
    table.more_from = elsewhere;
    elsewhere->expect_addresses(whole);
    find_sizes_at_addresses(files, table.title, *elsewhere);
  }
  const auto ending_of = [](std::string_view name) {
    std::string lower(name.substr(name.rfind('.') + 1));
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return lower;
  };
  const std::string_view first = files.empty() ? std::string_view() : std::string_view(files.front().name);
  std::string lower = ending_of(first);
  // An address may be signed.
  if (are_addresses && kind_of(lower) != field_kind::picture) lower = ending_of(first.substr(0, first.find('?')));
  const bool are_pictures = kind_of(lower) == field_kind::picture;
  record_field content{.name = are_pictures ? "jpg" : "file"};
  content.kind = are_pictures ? field_kind::picture : field_kind::bytes;
  content.extension = lower;
  for (std::size_t i = 0; i < files.size(); ++i) {
    content.places.push_back({.offset = 0, .bytes = files[i].size_bytes});
    content.files.push_back(static_cast<std::uint32_t>(i));
  }
  std::erase_if(table.fields, [&](const record_field& each) {
    return each.name == options.path_column || each.name == content.name;
  });
  table.fields.insert(table.fields.begin(), std::move(content));
}

// Files may have their columns in another order each.
static const few_texts& texts_of(const std::vector<std::pair<std::string, few_texts>>& table, const std::string& name,
                                 const std::string& path) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.first == name; });
  if (found != table.end()) return found->second;
  throw error(errc::unsupported, str_cat(path, ": the column '", name,
                                         "' is no text here, and text in another of the files; open them apart, or "
                                         "leave it out of the columns"));
}

void add_class_columns(std::span<record_table> tables,
                       std::span<const std::vector<std::pair<std::string, few_texts>>> texts) {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (const auto& [name, unused] : texts[i]) static_cast<void>(texts_of(texts.front(), name, tables.front().title));
  }
  for (const auto& [name, unused] : texts.front()) {
    std::vector<const few_texts*> all;
    for (std::size_t i = 0; i < tables.size(); ++i) all.push_back(&texts_of(texts[i], name, tables[i].title));
    const std::vector<std::string> sorted = sorted_texts(all, name, tables.front().title);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      record_numbers numbers{.name = name};
      all[i]->append_to(numbers, sorted);
      tables[i].numbers.push_back(std::move(numbers));
      name_classes(tables[i], name, sorted, i == 0);
    }
  }
}

static void check_names(const record_table& table) {
  hash_set<std::string_view> known;
  const auto check = [&](const std::string& name) {
    if (known.insert(name).second) return;
    throw error(errc::format,
                str_cat(table.title, ": two of its columns are called '", name,
                        "'; rename one of them, or name the others in ", spelled(option_id::table_fields)),
                option_id::table_fields);
  };
  for (const record_field& field : table.fields) check(field.name);
  for (const record_numbers& numbers : table.numbers) check(numbers.name);
}

static bool is_of_bytes(const record_field& field) {
  return field.kind == field_kind::bytes || field.kind == field_kind::text || field.kind == field_kind::picture;
}

// Whether a field holds what both of them hold; then `whole` becomes such a field. Of bytes the kind is what the first value of each
// file looks like.
static bool widens(record_field& whole, const record_field& other) {
  const bool are_alike = whole.type == other.type && whole.shape == other.shape;
  if (whole.kind == other.kind && are_alike) return true;
  if (is_of_bytes(whole) && is_of_bytes(other) && are_alike) {
    whole.kind = field_kind::bytes;
    return true;
  }
  if (whole.kind == field_kind::bytes && other.kind == field_kind::bytes) {
    const std::optional<dtype> both = type_of_both(whole.type, other.type);
    whole.type = both.value_or(whole.type);
    return both.has_value();
  }
  if (whole.kind != field_kind::label || other.kind != field_kind::label) return false;
  whole.type = dtype::f64;
  return true;
}

// Shards may differ in what their fields look like.
static void make_alike(std::span<record_table> tables) {
  struct known {
    record_field whole;  // without its places
    const std::string* title;
  };
  std::map<std::string, known> all;
  for (const record_table& table : tables) {
    if (table.samples == 0) continue;
    for (const record_field& field : table.fields) {
      const record_field seen{.name = field.name, .kind = field.kind, .type = field.type, .shape = field.shape};
      const auto [found, is_new] = all.try_emplace(field.name, known{seen, &table.title});
      if (is_new || widens(found->second.whole, seen)) continue;
      throw error(
          errc::unsupported,
          str_cat(table.title, ": the column '", field.name, "' is of another type than in ", *found->second.title,
                  "; open them apart, or name the others in ", spelled(option_id::table_fields)),
          option_id::table_fields);
    }
  }
  for (record_table& table : tables) {
    for (record_field& field : table.fields) {
      const auto found = all.find(field.name);
      if (found == all.end()) continue;
      const record_field& whole = found->second.whole;
      const bool are_lists = field.kind == field_kind::bytes && whole.kind == field_kind::bytes;
      if (are_lists && field.type != whole.type && table.samples != 0) widen_lists(field, whole.type);
      field.kind = whole.kind;
      field.type = whole.type;
    }
  }
}

dataset join_tables(std::vector<record_table> tables, const input_files& from, std::span<const sized_file> sized) {
  std::vector<sized_file> all(sized.begin(), sized.end());
  std::vector<sized_file> all_elsewhere;
  std::shared_ptr<const input_files> elsewhere;  // one for all tables, whose files are named alike
  for (const record_table& table : tables) check_names(table);
  make_alike(tables);
  for (record_table& table : tables) {
    if (table.more_from) elsewhere = table.more_from;
    std::vector<sized_file>& all_of_its = table.more_from ? all_elsewhere : all;
    const auto begin = static_cast<std::uint32_t>(all_of_its.size());
    all_of_its.insert(all_of_its.end(), table.more_files.begin(), table.more_files.end());
    table.more_files.clear();
    for (record_field& field : table.fields) {
      for (std::uint32_t& file : field.files) file += begin;
    }
  }
  const placed_files placed = from.place(all);
  const placed_files placed_elsewhere = elsewhere ? elsewhere->place(all_elsewhere) : placed_files();
  std::vector<dataset> parts;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    tables[i].files = placed.table;
    tables[i].source = placed.source;
    if (i == 0) tables[i].watch = placed.watch;  // over all files: asking all parts of a concatenation checks them once
    tables[i].file = placed.numbers[i];
    const bool is_elsewhere = std::exchange(tables[i].more_from, nullptr) != nullptr;
    if (is_elsewhere) {
      tables[i].files_elsewhere = placed_elsewhere.table;
      tables[i].source_elsewhere = placed_elsewhere.source;
    }
    for (record_field& field : tables[i].fields) {
      for (std::uint32_t& file : field.files) file = (is_elsewhere ? placed_elsewhere : placed).numbers[file];
    }
    parts.push_back(record_rows(std::move(tables[i])));
  }
  return parts.size() == 1 ? parts.front() : concat(parts);
}

}  // namespace leat::datasets
