// LMDB databases: each a table of its own, one after another.
#include "base/hash_map.hpp"
#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/files/remote_files.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/formats/lmdb/lmdb_tree.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"
#include "datasets/wire/proto_value.hpp"
#include "datasets/wire/serialized_value.hpp"

#include <leat/error.hpp>
#include <leat/open_lmdb.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace leat::datasets {
namespace {

// What makes records that leat reads out of any that Python can unpickle.
constexpr std::string_view unpickling =
    "nothing is unpickled here; where you trust them, write the values again as msgpack, arrays without their shapes: "
    "python3 -c "
    "\"import lmdb, msgpack, pickle; a = lmdb.open('OLD', readonly=True).begin(); "
    "b = lmdb.open('NEW', map_size=1 << 40).begin(write=True); "
    "d = lambda x: x.item() if getattr(x, 'ndim', 1) == 0 else x.tobytes(); "
    "[b.put(k, msgpack.packb(pickle.loads(v), default=d)) for k, v in a.cursor()]; b.commit()\"";

// Keys under which the writers of such sets keep facts about the whole set, and no sample.
bool is_about_the_set(std::string_view key) {
  constexpr std::string_view names[] = {"length", "num-samples", "num_samples", "__len__", "__keys__", "meta_info"};
  return std::find(std::begin(names), std::end(names), key) != std::end(names);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
}

/// A key that names a field and a sample: "image-000000001", "256-00017".
struct numbered_key {
  std::string_view field;
  std::uint64_t number = 0;
};

std::optional<numbered_key> numbered(std::string_view key) {
  const std::size_t dash = key.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || !is_number(key.substr(dash + 1))) return std::nullopt;
  numbered_key found{.field = key.substr(0, dash)};
  const std::string_view digits = key.substr(dash + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), found.number);
  return found;
}

/// A value and its key.
struct entry {
  std::string_view key;
  value_place value;
  lmdb_contents::key_place key_place = 0;
};

std::vector<entry> entries_of(const lmdb_contents& contents, std::vector<std::string>& notes) {
  std::vector<entry> entries;
  std::string left_out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < contents.values.size(); ++i) {
    const std::uint64_t bytes = lmdb_contents::length_of(contents.keys[i]);
    const std::string_view key = std::string_view(contents.key_bytes).substr(at, bytes);
    at += bytes;
    if (is_about_the_set(key)) {
      str_append(left_out, left_out.empty() ? "" : ", ", key);
    } else {
      entries.push_back({key, contents.values[i], contents.keys[i]});
    }
  }
  if (!left_out.empty()) notes.push_back(str_cat("keys that are no samples: ", left_out));
  return entries;
}

// Of StyleGAN's and OCR's sets each key names a field and a number. Names of fields: sizes, or "image" among others.
std::vector<std::string> fields_by_keys(const std::vector<entry>& entries) {
  constexpr std::size_t fields_max = 64;
  std::vector<std::string> fields;
  std::string_view last;
  for (const entry& each : entries) {
    const std::optional<numbered_key> key = numbered(each.key);
    if (!key) return {};
    if (key->field == last) continue;
    last = key->field;
    if (std::find(fields.begin(), fields.end(), last) != fields.end()) continue;
    if (fields.size() == fields_max) return {};
    fields.emplace_back(last);
  }
  const bool are_sizes =
      std::all_of(fields.begin(), fields.end(), [](const std::string& each) { return is_number(each); });
  const bool has_image = std::find(fields.begin(), fields.end(), "image") != fields.end();
  return are_sizes || has_image ? fields : std::vector<std::string>();
}

// Caffe's values are messages, whose members are fields.
void split_datums(const file_bytes& file, record_table& table) {
  std::vector<value_place>& places = table.fields.front().places;
  const std::vector<std::byte> first = first_record(file, places);
  const std::optional<datum> found = read_datum(first);
  if (!found || found->channels == 0 || found->data.empty()) return;
  const value_kind kind = kind_of_value(found->data);
  if (!found->encoded) {
    table.notes.push_back(str_cat("the first Datum has bare pixels, ", found->channels, " x ", found->height, " x ",
                                  found->width, ", which are the field 'data'"));
  }
  table.records = std::move(places);
  table.fields.clear();
  table.fields.push_back({.name = "data",
                          .kind = kind.kind,
                          .extension = std::string(kind.extension),
                          .places = {},
                          .picker = pick_datum_data()});
  table.fields.push_back({.name = "label",
                          .kind = field_kind::label,
                          .extension = "cls",
                          .places = {},
                          .picker = pick_datum_label(),
                          .type = dtype::i64});
}

// Records of msgpack or pickle, whose values are fields.
void split_serialized(const file_bytes& file, record_table& table) {
  std::vector<value_place>& places = table.fields.front().places;
  const std::vector<std::byte> first = first_record(file, places);
  const std::optional<serialization> how = serialization_of(first);
  if (!how) return;
  std::vector<serialized_member> members;
  try {
    members = read_serialized(*how, first);
  } catch (const error& failure) {
    // Damage: it only begins like one.
    if (failure.code() == errc::format) return;
    const bool makes_objects = *how == serialization::pickle && failure.code() == errc::unsupported;
    table.notes.push_back(str_cat("the first value is ", failure.what(), ", so 'value' is its bytes",
                                  makes_objects ? str_cat("; ", unpickling) : ""));
    return;
  }
  using content = serialized_member::content;
  const auto has_bytes = [](const serialized_member& each) {
    return each.holds == content::bytes || each.holds == content::text;
  };
  // A few numbers may as well be bytes of something else.
  if (*how == serialization::msgpack && std::none_of(members.begin(), members.end(), has_bytes)) return;
  std::vector<record_field> fields;
  std::string left_out;
  for (const serialized_member& each : members) {
    if (std::any_of(fields.begin(), fields.end(), [&](const record_field& one) { return one.name == each.path; })) {
      table.notes.push_back(str_cat("the first value has two of the name '", each.path, "', so 'value' is its bytes"));
      return;
    }
    if (each.holds == content::other) {
      str_append(left_out, left_out.empty() ? "" : ", ", each.path);
      continue;
    }
    record_field field{.name = each.path, .kind = field_kind::label};
    field.picker = pick_member(*how, each.path, each.holds);
    if (has_bytes(each)) {
      const value_kind kind =
          each.holds == content::text ? value_kind{field_kind::text, "txt"} : kind_of_value(each.bytes);
      field.kind = kind.kind;
      field.extension = kind.extension;
    } else if (each.holds == content::none) {
      field.kind = field_kind::bytes;  // Nothing tells what it is elsewhere.
    }
    fields.push_back(std::move(field));
  }
  if (!left_out.empty()) table.notes.push_back(str_cat("lists of more than numbers are left out: ", left_out));
  if (fields.empty()) return;
  table.records = std::move(places);
  table.fields = std::move(fields);
}

record_table table_of(const lmdb_contents& contents, const file_bytes& file) {
  record_table table{.format = "lmdb", .title = file.path()};
  const std::vector<entry> entries = entries_of(contents, table.notes);
  if (!contents.databases.empty()) {
    std::string names;
    for (const std::string& each : contents.databases) str_append(names, names.empty() ? "" : ", ", each);
    if (entries.empty()) {
      throw error(errc::usage, str_cat(file.path(), ": it holds the databases ", names, "; name one of them"));
    }
    table.notes.push_back(str_cat("the databases ", names, " are left out; each is opened by its name"));
  }
  const std::vector<std::string> names = fields_by_keys(entries);
  if (names.empty()) {
    record_field& values = table.fields.emplace_back(record_field{.name = "value"});
    table.samples = entries.size();
    for (const entry& each : entries) {
      values.places.push_back(each.value);
      table.names.push_back(each.key_place);
    }
  } else {
    std::vector<std::uint64_t> numbers;
    for (const entry& each : entries) numbers.push_back(numbered(each.key)->number);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    table.samples = numbers.size();
    table.names.resize(numbers.size());
    hash_map<std::string_view, std::size_t> by_name;
    for (const std::string& name : names) {
      by_name[name] = table.fields.size();
      table.fields.emplace_back(record_field{.name = name})
          .places.resize(numbers.size(), {.offset = value_place::missing});
    }
    for (const entry& each : entries) {
      const numbered_key key = *numbered(each.key);
      const auto sample =
          static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), key.number) - numbers.begin());
      table.fields[by_name.at(key.field)].places[sample] = each.value;
      table.names[sample] = each.key_place;
    }
  }
  for (record_field& field : table.fields) find_kind_of_values(file, field);
  if (names.empty() && table.fields.front().kind == field_kind::bytes) split_datums(file, table);
  if (names.empty() && table.records.empty() && table.fields.front().kind == field_kind::bytes) {
    split_serialized(file, table);
  }
  return table;
}

// A page that the opened snapshot has is overwritten only when two more transactions have been committed: where none was, when the values
// of a batch had been read, they are those of the snapshot. A file's time of modification is as coarse as the kernel's clock.
std::optional<std::string> committed_since(const std::string& path, std::uint64_t opened) {
  try {
    const std::uint64_t newest = newest_transaction(local_file(path));
    if (newest == opened) return std::nullopt;
    return str_cat(path, " has changed since the dataset was opened: transaction ", newest, " was committed, and ",
                   opened, " was the last one; open it again when nobody writes to it, or a copy of it (mdb_copy)");
  } catch (const error& failure) {
    return str_cat("a file of the dataset cannot be read any more: ", failure.what());
  }
}

// A folder is the environment, and data.mdb in it the file.
std::string data_file(const input_files& from, const std::string& path) {
  const std::string inside = str_cat(path, path.ends_with('/') ? "" : "/", "data.mdb");
  return from.has(inside) ? inside : path;
}

}  // namespace

std::vector<std::string> beside_environment(const std::string& path) {
  if (path.ends_with('/')) return {path + "data.mdb"};
  if (path.ends_with(".mdb")) return {};
  return {path, path + "/data.mdb"};
}

dataset open_lmdb_files(const input_files& from, const lmdb_options& options) {
  std::vector<std::string> paths;
  for (const std::string& each : from.names()) paths.push_back(data_file(from, each));
  std::vector<record_table> tables(paths.size());
  std::vector<sized_file> sized(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    const lmdb_contents contents =
        read_lmdb([&] { return from.open(paths[i]); }, options.database, threads_for_walking(options.threads));
    tables[i] = table_of(contents, *file);
    if (is_remote(paths[i])) continue;
    tables[i].changed = [path = paths[i], opened = contents.transaction] { return committed_since(path, opened); };
  }
  return join_tables(std::move(tables), from, sized);
}

}  // namespace leat::datasets
