// Parquet files: each a table of its own, one after another.
#include "base/near_miss.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/parquet/parquet_chats.hpp"
#include "datasets/formats/parquet/parquet_footer.hpp"
#include "datasets/formats/parquet/parquet_pages.hpp"
#include "datasets/formats/parquet/parquet_values.hpp"
#include "datasets/tables/column_units.hpp"
#include "datasets/tables/hub_features.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::string_view kept_names[] = {"label", "cls", "class"};

bool is_in(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// What a column of the file becomes.
struct choice {
  enum class role : std::uint8_t { field, packed, numbers, classes } becomes = role::field;
  std::size_t leaf = 0;
  std::string name;
  bool is_picture = false;
  const hub_features::class_names* labels = nullptr;
  std::string packed_by = {};
  std::string chats = {};  ///< chats_of(), where roles and contents were not asked for by their own names

  [[nodiscard]] bool is_field() const noexcept { return becomes == role::field || becomes == role::packed; }
};

/// A file: what its footer says, and then where its values lie.
struct table_file {
  std::string path;
  std::uint64_t size_bytes = 0;
  parquet_footer footer;
  hub_features features;
  std::vector<choice> choices;
  units_of_file units;
  std::vector<std::string> notes;
  // One for each choice; which of them is filled depends on its role.
  std::vector<record_field> fields;
  std::vector<record_numbers> numbers;
  std::vector<std::vector<few_texts>> texts;      // by row group
  std::vector<std::vector<packed_group>> packed;  // likewise
};

std::string note_of_packed(const parquet_leaf& leaf, std::string_view by) {
  if (leaf.repeated != 0) {
    return str_cat("the column '", leaf.path, "' has lists (", by,
                   "): it was read once for their lengths, and its row groups are expanded; shuffle blocks of them");
  }
  return str_cat(
      "the column '", leaf.path, "' is packed (", by,
      "): it was read once for the lengths of its values, and its row groups are expanded; shuffle blocks of "
      "them, or write it with compression none and PLAIN");
}

/// Chooses among the columns of one file.
class chooser {
 public:
  chooser(table_file& of, const table_options& options) : of_(of), options_(options) {}

  void choose() {
    for (std::size_t leaf = 0; leaf < of_.footer.leaves.size(); ++leaf) look_at(leaf);
    for (const auto* asked : {&options_.fields, &options_.columns}) {
      for (const std::string& name : *asked) check_is_there(name);
    }
    if (!numbers_.empty()) {
      of_.notes.push_back(
          str_cat("numbers that are not kept, as nobody asked for them: ", numbers_, "; name them as columns"));
    }
    std::sort(of_.choices.begin(), of_.choices.end(), [](const choice& a, const choice& b) { return a.leaf < b.leaf; });
    if (!of_.choices.empty() || of_.footer.leaves.empty()) return;
    throw error(errc::unsupported, str_cat(of_.path, ": no column of it can be read: ",
                                           of_.notes.empty() ? std::string("it has none") : of_.notes.front()));
  }

 private:
  // `image.bytes` is the picture `image`, where the Hub's metadata say so.
  std::string name_of(const parquet_leaf& leaf, bool& is_picture) const {
    constexpr std::string_view bytes = ".bytes";
    const std::string_view path = leaf.path;
    is_picture = path.ends_with(bytes) && of_.features.is_picture(path.substr(0, path.size() - bytes.size()));
    return std::string(is_picture ? path.substr(0, path.size() - bytes.size()) : std::string_view(leaf.shown));
  }
  bool is_path_of_picture(const parquet_leaf& leaf) const {
    constexpr std::string_view ending = ".path";
    const std::string_view path = leaf.path;
    return path.ends_with(ending) && of_.features.is_picture(path.substr(0, path.size() - ending.size()));
  }

  void note_unit(const parquet_leaf& leaf, const std::string& name) {
    const std::string unit = leaf.type == parquet_type::int96 ? "nanoseconds since 1970-01-01" : leaf.unit;
    if (unit.empty()) return;
    of_.units.emplace_back(name, unit);
    of_.notes.push_back(str_cat("the column '", leaf.shown, "' is in ", unit));
  }

  void look_at(std::size_t number) {
    const parquet_leaf& leaf = of_.footer.leaves[number];
    choice found{.leaf = number, .name = {}};
    found.name = name_of(leaf, found.is_picture);
    const bool by_name = is_in(options_.fields, found.name) || is_in(options_.fields, leaf.path);
    if (!by_name) found.chats = chats_of(of_.footer.leaves, number);
    const bool of_chats = !found.chats.empty() && is_in(options_.fields, found.chats);
    const bool as_field = by_name || of_chats;
    const bool as_column = is_in(options_.columns, found.name) || is_in(options_.columns, leaf.path);
    if (leaf.unnamed) return leave_out(leaf, as_field || as_column, "has no name; give it one");
    names_.push_back(found.name);
    if (!found.chats.empty() && !is_in(names_, found.chats)) names_.push_back(found.chats);
    if (leaf.repeated != 0) return look_at_lists(std::move(found), as_field, as_column);
    found.labels = of_.features.labels_of(leaf.path);
    if (number_type(leaf)) {
      const bool is_label = std::find(std::begin(kept_names), std::end(kept_names), found.name) != std::end(kept_names);
      const bool wanted = as_field || as_column || ((is_label || found.labels != nullptr) && options_.fields.empty());
      if (!wanted) {
        str_append(numbers_, numbers_.empty() ? "" : ", ", found.name);
        return;
      }
      found.becomes = choice::role::numbers;
      const std::size_t before = of_.choices.size();
      const std::string name = found.name;
      take(std::move(found), as_field || as_column);
      if (of_.choices.size() != before) note_unit(leaf, name);
      return;
    }
    const bool is_bytes = leaf.type == parquet_type::byte_array || leaf.type == parquet_type::fixed_byte_array;
    if (!is_bytes || leaf.is_decimal) {
      return leave_out(leaf, as_field || as_column,
                       leaf.is_decimal ? "has decimals of more than 38 digits; write them as numbers"
                                       : "has values of a type that is not known; write them as numbers");
    }
    if (as_column) {
      found.becomes = choice::role::classes;
      return take(std::move(found), true);
    }
    if (!as_field && (!options_.fields.empty() || is_path_of_picture(leaf))) return;
    for (const parquet_group& group : of_.footer.groups) {
      found.packed_by = why_not_bare(leaf, group.chunks[number]);
      // A checksum is one of a whole page.
      if (found.packed_by.empty() && options_.checksums) found.packed_by = "verified";
      if (found.packed_by.empty()) continue;
      found.becomes = choice::role::packed;
      return take_packed(std::move(found), as_field);
    }
    of_.choices.push_back(std::move(found));
  }

  void look_at_lists(choice found, bool as_field, bool as_column) {
    parquet_leaf& leaf = of_.footer.leaves[found.leaf];
    const hub_features::array* const array = of_.features.array_of(leaf.shown);
    const bool is_array = array != nullptr && array->axes == leaf.repeated && element_type(leaf);
    if (leaf.repeated > 1 && !is_array) {
      return leave_out(leaf, as_field || as_column, "has lists in lists; write them flat");
    }
    if (!element_type(leaf) && !has_lists_of_values(leaf)) {
      return leave_out(leaf, as_field || as_column,
                       "has lists of what are no numbers, texts or bytes; write one value a row");
    }
    if (as_column)
      return leave_out(
          leaf, true,
          str_cat("has lists, which are no column; name it as a field (", spelled(option_id::table_fields), ")"));
    if (!as_field && !options_.fields.empty()) return;
    for (const parquet_group& group : of_.footer.groups) {
      std::string how = why_not_bare(leaf, group.chunks[found.leaf]);
      if (how.size() > found.packed_by.size()) found.packed_by = std::move(how);
    }
    note_unit(leaf, found.name);
    if (is_array) leaf.array = array->extents;
    if (is_array && leaf.array.empty()) {
      of_.notes.push_back(str_cat(of_.path, ": the column '", leaf.shown, "' has arrays of ", array->shape,
                                  ": each is the list of its numbers, row after row, for a sequence"));
    }
    found.becomes = choice::role::packed;
    take_packed(std::move(found), as_field);
  }

  void take_packed(choice found, bool asked) {
    const parquet_leaf& leaf = of_.footer.leaves[found.leaf];
    std::string note = note_of_packed(leaf, found.packed_by);
    const std::size_t before = of_.choices.size();
    take(std::move(found), asked);
    if (of_.choices.size() != before) of_.notes.push_back(std::move(note));
  }
  void take(choice found, bool asked) {
    const parquet_leaf& leaf = of_.footer.leaves[found.leaf];
    for (const parquet_group& group : of_.footer.groups) {
      const std::string why = why_not_decoded(group.chunks[found.leaf]);
      if (!why.empty()) return leave_out(leaf, asked, why);
    }
    of_.choices.push_back(std::move(found));
  }

  void leave_out(const parquet_leaf& leaf, bool asked, std::string_view why) {
    const std::string text = str_cat("the column '", leaf.path, "' ", why);
    if (asked) throw error(errc::unsupported, str_cat(of_.path, ": ", text));
    of_.notes.push_back(str_cat("left out: ", text));
  }

  void check_is_there(const std::string& name) const {
    if (is_in(names_, name)) return;
    for (const parquet_leaf& leaf : of_.footer.leaves) {
      if (leaf.path == name) return;
    }
    std::string all;
    for (const std::string& each : names_) str_append(all, all.empty() ? "" : ", ", each);
    throw error(errc::not_found,
                str_cat(of_.path, ": it has no column '", name, "'; it has ", all, did_you_mean(name, names_)));
  }

  table_file& of_;
  const table_options& options_;
  std::vector<std::string> names_;
  std::string numbers_;
};

/// A column of a row group that is to be read.
struct piece {
  std::size_t file = 0;
  std::size_t choice = 0;
  std::size_t group = 0;
};

std::uint64_t bytes_of_row(choice::role becomes) {
  switch (becomes) {
    case choice::role::field:
      return sizeof(value_place);
    case choice::role::numbers:
      return sizeof(std::int64_t);
    default:
      return sizeof(std::uint32_t);
  }
}

// Rows that are all alike take next to nothing in the file; here they take memory, each of them.
void check_room(const table_file& of) {
  constexpr std::uint64_t always_bytes = std::uint64_t{1} << 30;
  constexpr std::uint64_t bytes_per_byte = 64;
  std::uint64_t of_row = 0;
  for (const choice& each : of.choices) {
    of_row += bytes_of_row(each.becomes);
    const parquet_leaf& leaf = of.footer.leaves[each.leaf];
    for (const parquet_group& group : of.footer.groups) check_rows(of.path, leaf, group, group.chunks[each.leaf]);
  }
  const std::uint64_t room = std::max(always_bytes, of.size_bytes * bytes_per_byte);
  if (of_row == 0 || of.footer.rows <= room / of_row) return;
  throw error(errc::limit, str_cat(of.path, ": ", of.footer.rows, " rows of ", of.choices.size(),
                                   " columns take more than ", bytes_text(room), " of memory, in a file of ",
                                   bytes_text(of.size_bytes), "; open fewer columns, or write several files"));
}

void make_room(table_file& of) {
  check_room(of);
  const std::uint64_t rows = of.footer.rows;
  of.fields.resize(of.choices.size());
  of.numbers.resize(of.choices.size());
  of.texts.resize(of.choices.size());
  of.packed.resize(of.choices.size());
  for (std::size_t i = 0; i < of.choices.size(); ++i) {
    const choice& each = of.choices[i];
    if (each.becomes == choice::role::field) {
      of.fields[i].name = each.name;
      of.fields[i].places.resize(rows);
    } else if (each.becomes == choice::role::packed) {
      of.fields[i].name = each.name;
      of.packed[i].resize(of.footer.groups.size());
    } else if (each.becomes == choice::role::classes) {
      of.texts[i].resize(of.footer.groups.size());
    } else {
      record_numbers& numbers = of.numbers[i];
      numbers.name = each.name;
      numbers.type = *number_type(of.footer.leaves[each.leaf]);
      if (numbers.type == dtype::i64) {
        numbers.whole.resize(rows);
      } else {
        numbers.bytes.resize(rows * size_bytes(numbers.type));
      }
    }
  }
}

// Columns of which a page is encoded, though the footer does not say so, are read as packed ones.
void pack_what_is_not_bare(std::vector<table_file>& files, std::span<const piece> pieces,
                           std::span<const bare_pages> found, const input_files& from, unsigned threads) {
  std::set<std::pair<std::size_t, std::size_t>> columns;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (found[i].all_bare || !columns.emplace(pieces[i].file, pieces[i].choice).second) continue;
    table_file& of = files[pieces[i].file];
    choice& chosen = of.choices[pieces[i].choice];
    chosen.becomes = choice::role::packed;
    chosen.packed_by = "dictionary";
    of.fields[pieces[i].choice].places = {};
    of.packed[pieces[i].choice].resize(of.footer.groups.size());
    of.notes.push_back(note_of_packed(of.footer.leaves[chosen.leaf], chosen.packed_by));
  }
  std::vector<piece> again;
  for (const piece& each : pieces) {
    if (columns.contains({each.file, each.choice})) again.push_back(each);
  }
  for_each_parallel(again.size(), threads, [&](std::size_t i) {
    table_file& of = files[again[i].file];
    const std::size_t leaf = of.choices[again[i].choice].leaf;
    const parquet_group& group = of.footer.groups[again[i].group];
    const std::unique_ptr<file_bytes> file = from.open(of.path);
    of.packed[again[i].choice][again[i].group] =
        find_packed_values(*file, of.footer.leaves[leaf], group, group.chunks[leaf]);
  });
}

void note_what_is_not_verified(std::vector<table_file>& files, std::span<const piece> pieces,
                               std::span<const bare_pages> found) {
  std::set<std::pair<std::size_t, std::size_t>> columns;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    table_file& of = files[pieces[i].file];
    const choice& chosen = of.choices[pieces[i].choice];
    if (found[i].with_checksum == 0 || chosen.becomes != choice::role::field) continue;
    if (!columns.emplace(pieces[i].file, pieces[i].choice).second) continue;
    of.notes.push_back(str_cat("checksums present, not verified: the values of '", chosen.name,
                               "' are read where they lie, and a checksum is one of a whole page; ",
                               spelled(option_id::table_checksums),
                               " reads and "
                               "verifies whole row groups"));
  }
}

// The first value tells the kind of picture.
void find_kind(const file_bytes& file, const parquet_leaf& leaf, const choice& chosen,
               std::span<const packed_group> packed, record_field& field) {
  if (const std::optional<dtype> elements = element_type(leaf)) {
    field.type = *elements;
    if (!leaf.array.empty()) field.kind = field_kind::tensor;
    for (const std::int64_t extent : leaf.array) field.shape.push_back(extent);
    return;
  }
  if (has_lists_of_values(leaf)) return;
  field.kind = chosen.is_picture ? field_kind::picture : leaf.is_text ? field_kind::text : field_kind::bytes;
  const auto is_what = [&](std::span<const std::byte> start) {
    const value_kind found = kind_of_value(start);
    field.extension = found.extension;
    if (found.kind == field_kind::picture) field.kind = field_kind::picture;
  };
  if (leaf.is_text) return;
  for (const packed_group& group : packed) {
    if (!group.start.empty()) return is_what(group.start);
  }
  const auto first = std::find_if(field.places.begin(), field.places.end(),
                                  [](const value_place& each) { return each.is_there() && each.bytes != 0; });
  if (first == field.places.end()) return;
  constexpr std::uint64_t looked_at = 512;
  is_what(file.read(first->offset, std::min(first->bytes, looked_at)));
}

// Of the arrays of a column that have another shape.
std::string note_of_misshapen(const table_file& of, std::size_t number) {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  for (const packed_group& group : of.packed[number]) {
    if (count == 0) first = group.first_misshapen;
    count += group.misshapen;
  }
  if (count == 0) return {};
  const parquet_leaf& leaf = of.footer.leaves[of.choices[number].leaf];
  const hub_features::array* const array = of.features.array_of(leaf.shown);
  return note_of_misshapen_arrays(of.path, leaf.shown, array == nullptr ? "" : array->shape, count, first);
}

// Of the lists of a column that have a null in them.
std::string note_of_nulls(const table_file& of, std::size_t number) {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  for (const packed_group& group : of.packed[number]) {
    if (count == 0) first = group.first_with_null;
    count += group.with_nulls;
  }
  if (count == 0) return {};
  return note_of_lists_with_nulls(of.path, of.footer.leaves[of.choices[number].leaf].path, count, first);
}

std::shared_ptr<const value_blocks> blocks_of(const table_file& of, std::size_t number) {
  const choice& chosen = of.choices[number];
  auto packed = std::make_shared<value_blocks>();
  packed->packed_by = chosen.packed_by;
  packed->ends.reserve(of.footer.rows);
  std::vector<parquet_chunk> chunks;
  for (std::size_t i = 0; i < of.footer.groups.size(); ++i) {
    const parquet_group& group = of.footer.groups[i];
    if (group.rows == 0) continue;
    const parquet_chunk& chunk = group.chunks[chosen.leaf];
    packed->blocks.push_back(
        {.first_row = group.first_row, .rows = group.rows, .offset = chunk.offset, .bytes = chunk.bytes});
    packed->ends.insert(packed->ends.end(), of.packed[number][i].ends.begin(), of.packed[number][i].ends.end());
    packed->expand_bytes_max = std::max(packed->expand_bytes_max, of.packed[number][i].expand_bytes);
    chunks.push_back(chunk);
  }
  packed->expander = expand_parquet(of.path, of.footer.leaves[chosen.leaf], std::move(chunks));
  return packed;
}

// Roles and contents of a chat become one field, in the place of the first. Only now, since their lengths are those of both.
void join_chats_of(const table_file& of, const file_bytes& file, std::vector<record_field>& fields,
                   std::vector<std::string>& notes) {
  for (std::size_t first = 0; first < of.choices.size(); ++first) {
    const std::string& chats = of.choices[first].chats;
    if (chats.empty()) continue;
    const auto second = std::find_if(of.choices.begin() + static_cast<std::ptrdiff_t>(first) + 1, of.choices.end(),
                                     [&](const choice& each) { return each.chats == chats; });
    if (second == of.choices.end()) continue;
    const auto field_called = [&](const std::string& name) {
      return std::find_if(fields.begin(), fields.end(), [&](const record_field& each) { return each.name == name; });
    };
    const auto role = field_called(chats + ".role");
    const auto content = field_called(chats + ".content");
    if (role == fields.end() || content == fields.end() || !role->packed || !content->packed) continue;
    std::shared_ptr<const value_blocks> both = join_chats(file, role->packed, content->packed);
    if (!both) {
      notes.push_back(str_cat(
          of.path, ": the column '", chats,
          "' has chats in row groups that are too large, or whose roles and contents lie too far apart, to be read "
          "as one field; write smaller ones"));
      continue;
    }
    record_field whole{.name = chats};
    whole.packed = std::move(both);
    *std::min(role, content) = std::move(whole);
    fields.erase(std::max(role, content));
  }
}

// A text gets the same number in every file.
std::vector<std::string> number_texts(std::vector<table_file>& files, std::string_view name) {
  std::vector<const few_texts*> all;
  for (const table_file& file : files) {
    for (std::size_t i = 0; i < file.choices.size(); ++i) {
      if (file.choices[i].name != name) continue;
      for (const few_texts& each : file.texts[i]) all.push_back(&each);
    }
  }
  std::vector<std::string> sorted = sorted_texts(all, name, files.front().path);
  for (table_file& file : files) {
    for (std::size_t i = 0; i < file.choices.size(); ++i) {
      if (file.choices[i].name != name) continue;
      file.numbers[i].name = name;
      for (const few_texts& each : file.texts[i]) each.append_to(file.numbers[i], sorted);
      file.texts[i].clear();
    }
  }
  return sorted;
}

/// Which column has the dataset's classes, and what they are called.
struct classes_found {
  std::string column;
  std::vector<std::string> names;
};

// A column of numbers in one file and of texts in the next would silently give other labels.
void check_same_roles(const std::vector<table_file>& files) {
  for (const table_file& file : files) {
    for (const choice& each : file.choices) {
      const auto first = std::find_if(files.front().choices.begin(), files.front().choices.end(),
                                      [&](const choice& other) { return other.name == each.name; });
      if (first == files.front().choices.end() || first->becomes == each.becomes) continue;
      if (first->is_field() && each.is_field()) continue;
      throw error(errc::unsupported, str_cat(file.path, ": the column '", each.name, "' is of another type than in ",
                                             files.front().path, "; open them apart, or leave it out"));
    }
  }
}

classes_found find_classes(std::vector<table_file>& files, std::vector<std::string>& notes) {
  std::vector<classes_found> all;
  for (const choice& each : files.front().choices) {
    if (each.becomes == choice::role::classes) {
      all.push_back({each.name, number_texts(files, each.name)});
    } else if (each.labels != nullptr) {
      all.push_back({each.name, each.labels->names});
      for (const table_file& file : files) {
        const hub_features::class_names* const theirs = file.features.labels_of(each.labels->path);
        if (theirs != nullptr && theirs->names == each.labels->names) continue;
        throw error(errc::usage, str_cat(file.path, ": its metadata call the classes of '", each.name,
                                         "' otherwise than those of ", files.front().path, "; open them apart"));
      }
    }
  }
  if (all.empty()) return {};
  auto best = all.begin();
  for (const std::string_view usual : kept_names) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const classes_found& each) { return each.column == usual; });
    if (found == all.end()) continue;
    best = found;
    break;
  }
  for (auto each = all.begin(); each != all.end(); ++each) {
    if (each != best)
      notes.push_back(
          str_cat("classes() has the names of '", best->column, "'; those of '", each->column, "' are left out"));
  }
  return std::move(*best);
}

}  // namespace

dataset open_parquet_files(const input_files& from, const table_options& options) {
  const unsigned threads = threads_for_walking(options.threads);
  std::vector<table_file> files(from.names().size());
  std::vector<sized_file> sized(files.size());
  for_each_parallel(files.size(), threads, [&](std::size_t i) {
    table_file& each = files[i];
    each.path = from.names()[i];
    const std::unique_ptr<file_bytes> file = from.open(each.path);
    each.size_bytes = file->size();
    sized[i] = {each.path, each.size_bytes, file->version()};
    each.footer = read_parquet_footer(*file);
    each.features = read_hub_features(each.footer.hub_features);
    chooser(each, options).choose();
    make_room(each);
  });
  std::vector<piece> pieces;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (std::size_t group = 0; group < files[file].footer.groups.size(); ++group) {
      for (std::size_t i = 0; i < files[file].choices.size(); ++i) pieces.push_back({file, i, group});
    }
  }
  std::vector<std::vector<std::uint64_t>> missing(pieces.size());
  std::vector<bare_pages> bare(pieces.size());
  for_each_parallel(pieces.size(), threads, [&](std::size_t i) {
    table_file& of = files[pieces[i].file];
    const choice& chosen = of.choices[pieces[i].choice];
    const parquet_leaf& leaf = of.footer.leaves[chosen.leaf];
    const parquet_group& group = of.footer.groups[pieces[i].group];
    const parquet_chunk& chunk = group.chunks[chosen.leaf];
    const std::unique_ptr<file_bytes> file = from.open(of.path);
    switch (chosen.becomes) {
      case choice::role::field:
        bare[i] = find_bare_values(*file, leaf, chunk,
                                   std::span(of.fields[pieces[i].choice].places).subspan(group.first_row, group.rows));
        return;
      case choice::role::packed:
        of.packed[pieces[i].choice][pieces[i].group] = find_packed_values(*file, leaf, group, chunk);
        return;
      case choice::role::numbers:
        missing[i] = read_numbers(*file, leaf, group, chunk, of.numbers[pieces[i].choice]);
        return;
      case choice::role::classes:
        of.texts[pieces[i].choice][pieces[i].group] = read_few_texts(*file, leaf, group, chunk);
    }
  });
  pack_what_is_not_bare(files, pieces, bare, from, threads);
  note_what_is_not_verified(files, pieces, bare);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::vector<std::uint64_t>& all = files[pieces[i].file].numbers[pieces[i].choice].missing;
    all.insert(all.end(), missing[i].begin(), missing[i].end());
  }
  std::vector<std::string> of_classes;
  check_same_roles(files);
  column_units units;
  for (const table_file& each : files) {
    if (each.footer.rows != 0) units.add(each.path, each.units);
  }
  const classes_found classes = find_classes(files, of_classes);
  std::vector<record_table> tables;
  for (std::size_t i = 0; i < files.size(); ++i) {
    table_file& of = files[i];
    record_table table{.format = "parquet", .title = of.path};
    table.samples = of.footer.rows;
    const std::unique_ptr<file_bytes> file = from.open(of.path);
    for (std::size_t k = 0; k < of.choices.size(); ++k) {
      const choice& chosen = of.choices[k];
      if (chosen.is_field()) {
        if (chosen.becomes == choice::role::packed) {
          of.fields[k].packed = blocks_of(of, k);
          if (std::string note = note_of_nulls(of, k); !note.empty()) table.notes.push_back(std::move(note));
          if (std::string note = note_of_misshapen(of, k); !note.empty()) table.notes.push_back(std::move(note));
        }
        find_kind(*file, of.footer.leaves[chosen.leaf], chosen, of.packed[k], of.fields[k]);
        table.fields.push_back(std::move(of.fields[k]));
      } else {
        table.numbers.push_back(std::move(of.numbers[k]));
      }
      if (chosen.name == classes.column) {
        table.classes = std::make_shared<class_names>(class_names{classes.names, classes.column});
      }
    }
    join_chats_of(of, *file, table.fields, table.notes);
    // What would be said of every file is said once, of the first.
    const bool is_new = i == 0 || of.notes != files.front().notes;
    for (const std::string& note : of.notes) {
      if (is_new) table.notes.push_back(str_cat(of.path, ": ", note));
    }
    if (i == 0) table.notes.insert(table.notes.end(), of_classes.begin(), of_classes.end());
    tables.push_back(std::move(table));
  }
  return join_tables(std::move(tables), from, sized);
}

}  // namespace leat::datasets
