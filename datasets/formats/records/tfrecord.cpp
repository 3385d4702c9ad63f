// TFRecord files: each a chain of records, one file after another.
#include "datasets/formats/records/tfrecord.hpp"

#include "base/crc32c.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/buffered_file.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/tables/empty_files.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"
#include "datasets/wire/proto_value.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t head_bytes = 12;  // a length and its checksum
constexpr std::uint64_t tail_bytes = 4;   // the checksum of the record

bool is_head(std::span<const std::byte> head) noexcept {
  return masked_crc32c(head.first(length_bytes)) == number_at<std::uint32_t>(head, length_bytes);
}

/// Picks out of a record that its checksum follows.
class checked_picker final : public value_picker {
 public:
  ///   inner      null: the value is the record
  ///   verifies   the checksum; else it is passed over
  checked_picker(std::shared_ptr<const value_picker> inner, bool verifies)
      : inner_(std::move(inner)), verifies_(verifies) {}

  std::uint64_t room(std::uint64_t record_bytes) const noexcept override {
    const std::uint64_t bytes = record_bytes - std::min(record_bytes, tail_bytes);
    return inner_ ? inner_->room(bytes) : bytes;
  }
  std::optional<value_fault> pick(std::span<const std::byte> stored, std::span<std::byte>& into) const override {
    if (stored.size() < tail_bytes) return "a record that ends before its checksum does";
    const std::span<const std::byte> record = stored.first(stored.size() - tail_bytes);
    if (verifies_) {
      const std::uint32_t said = number_at<std::uint32_t>(stored, record.size());
      if (const std::uint32_t found = masked_crc32c(record); found != said) {
        return str_cat("the record's checksum is ", found, ", and ", said, " stands behind it");
      }
    }
    if (inner_) return inner_->pick(record, into);
    if (!record.empty()) std::memcpy(into.data(), record.data(), record.size());
    into = into.first(record.size());
    return std::nullopt;
  }
  std::string what() const override {
    if (!verifies_) return inner_ ? inner_->what() : "unverified";
    return inner_ ? str_cat("verified ", inner_->what()) : "verified";
  }

 private:
  std::shared_ptr<const value_picker> inner_;
  bool verifies_;
};

// Checksums are read along with their records, which they follow. Beside the decoding of a picture they cost 1 to 2 %: those are verified
// always. The fields of a table share its records.
void verify_records(record_table& table, bool all) {
  const auto is_verified = [&](const record_field& field) { return all || field.kind == field_kind::picture; };
  if (std::none_of(table.fields.begin(), table.fields.end(), is_verified)) return;
  for (value_place& each : table.records) each.bytes += tail_bytes;
  for (record_field& field : table.fields) {
    for (value_place& each : field.places) each.bytes += tail_bytes;
    field.picker = std::make_shared<checked_picker>(std::move(field.picker), is_verified(field));
  }
}

void note_what_is_not_verified(record_table& table, bool all) {
  if (all) return;
  std::string names;
  for (const record_field& each : table.fields) {
    if (each.kind != field_kind::picture) str_append(names, names.empty() ? "'" : ", '", each.name, "'");
  }
  if (names.empty()) return;
  table.notes.push_back(str_cat("checksums present, not verified where ", names, " is read; ",
                                spelled(option_id::table_checksums), " verifies them"));
}

/// What a feature is in the records that were looked at, of all files.
///   bytes, whole, real   whether some have a list of these
///   frames     of bytes, in a SequenceExample
///   values     of its lists that have any, where they are all as long
struct seen_feature {
  bool bytes = false;
  bool whole = false;
  bool real = false;
  bool frames_of_bytes = false;
  bool is_first = true;
  bool differ = false;
  std::size_t values = 0;
  std::optional<value_kind> kind;  ///< of the first value of bytes
  std::uint64_t records = 0;

  void add(const example_feature& found) {
    ++records;
    if (found.values == 0) return;
    using list = example_feature::list;
    bytes = bytes || found.holds == list::bytes;
    frames_of_bytes = frames_of_bytes || (found.are_frames && found.holds == list::bytes);
    whole = whole || found.holds == list::integers;
    real = real || found.holds == list::floats;
    if (found.holds == list::bytes && !kind) kind = kind_of_bytes_or_text(found.first, true);
    differ = differ || (!is_first && found.values != values);
    is_first = false;
    values = found.values;
  }
  void merge(const seen_feature& more) {
    records += more.records;
    bytes = bytes || more.bytes;
    frames_of_bytes = frames_of_bytes || more.frames_of_bytes;
    whole = whole || more.whole;
    real = real || more.real;
    if (!kind) kind = more.kind;
    differ = differ || more.differ || (!is_first && !more.is_first && values != more.values);
    if (is_first) values = more.values;
    is_first = is_first && more.is_first;
  }
  // Lists of numbers whose lengths differ, and what is bytes here and numbers there, are bytes: the numbers as text.
  void set_kind(record_field& field) const {
    if (kind && !whole && !real) {
      field.kind = kind->kind;
      field.extension = kind->extension;
    } else if (!bytes && !differ) {
      field.kind = field_kind::label;
      field.type = !real ? dtype::i64 : whole ? dtype::f64 : dtype::f32;
    }
  }
};
using seen_features = std::map<std::string, seen_feature, std::less<>>;

struct example_file {
  bool are_examples = false;
  seen_features features;
  std::uint64_t records = 0;  ///< that were looked at
};

// A feature may be missing in the first records.
//   bytes_max   how much is read; the first record is, whatever it has
example_file look_at_examples(const file_bytes& file, std::span<const value_place> records, std::uint64_t bytes_max) {
  constexpr std::size_t records_max = 1000;
  example_file found;
  std::uint64_t bytes = 0;
  buffered_file buffer(file, std::min<std::uint64_t>(bytes_max, std::uint64_t{256} << 10));
  for (const value_place& each : records.first(std::min(records_max, records.size()))) {
    bytes += each.bytes;
    if (found.records != 0 && bytes > bytes_max) break;
    const std::vector<std::byte> first = found.records == 0 ? first_record(file, records) : std::vector<std::byte>();
    const auto features =
        read_example(found.records == 0 ? std::span<const std::byte>(first) : buffer.view(each.offset, each.bytes));
    if (++found.records == 1) found.are_examples = features.has_value();
    if (!found.are_examples) break;
    if (!features) continue;
    for (const example_feature& one : *features) found.features[std::string(one.name)].add(one);
  }
  return found;
}

void add_value(const file_bytes& file, record_table& table) {
  const std::vector<std::byte> first = first_record(file, table.records);
  const value_kind kind = kind_of_bytes_or_text(first, true);
  table.fields.push_back({.name = "value",
                          .kind = kind.kind,
                          .extension = std::string(kind.extension),
                          .places = std::move(table.records)});
  table.records.clear();
}

// What each of the files has, with the kinds that it has in all of them.
void add_features(std::span<record_table> tables, std::span<const example_file> files) {
  seen_features all;
  std::uint64_t records = 0;
  for (const example_file& file : files) {
    if (file.are_examples) records += file.records;
    for (const auto& [name, seen] : file.features) all[name].merge(seen);
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (const auto& [name, unused] : files[i].features) {
      const seen_feature& seen = all.find(name)->second;
      if (seen.frames_of_bytes) continue;
      record_field field{.name = name};
      seen.set_kind(field);
      field.picker = pick_feature(name);
      tables[i].fields.push_back(std::move(field));
    }
  }
  for (const auto& [name, seen] : all) {
    if (seen.frames_of_bytes) {
      tables.front().notes.push_back(str_cat("the frames '", name,
                                             "' of a SequenceExample are bytes, and are left out: lists of bytes are "
                                             "not read; write each frame as an Example"));
    }
    if (seen.records < records) {
      tables.front().notes.push_back(str_cat("the feature '", name, "' is missing in ", records - seen.records,
                                             " of the ", records, " records that were looked at"));
    }
    if (seen.bytes && (seen.whole || seen.real)) {
      tables.front().notes.push_back(
          str_cat("the feature '", name, "' is a list of bytes in some records, and of numbers in others"));
    }
  }
}

}  // namespace

bool is_tfrecord(std::span<const std::byte> start) noexcept {
  return start.size() >= head_bytes && is_head(start.first(head_bytes));
}

std::vector<value_place> find_records(const file_bytes& file) {
  std::vector<value_place> records;
  buffered_file buffer(file, head_bytes);
  constexpr std::uint64_t near_bytes = 2048;
  constexpr std::uint64_t buffer_bytes = std::uint64_t{64} << 10;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::span<const std::byte> head = buffer.view(at, head_bytes);
    if (!is_head(head)) fail_at(file.path(), at, "the checksum of a record's length is another one");
    const auto bytes = number_at<std::uint64_t>(head, 0);
    if (bytes > file.size() - at - head_bytes || tail_bytes > file.size() - at - head_bytes - bytes) {
      fail_at(file.path(), at, str_cat("a record of ", bytes, " bytes, behind the end of the file at ", file.size()));
    }
    records.push_back({.offset = at + head_bytes, .bytes = bytes});
    at += head_bytes + bytes + tail_bytes;
    // Short records' heads are read together.
    buffer.read_ahead(at / records.size() < near_bytes ? buffer_bytes : head_bytes);
  }
  return records;
}

dataset open_tfrecord_files(const input_files& from, const table_options& options) {
  const std::vector<std::string>& paths = from.names();
  std::vector<record_table> tables(paths.size());
  std::vector<example_file> files(paths.size());
  std::vector<sized_file> sized(paths.size());
  for_each_parallel(paths.size(), threads_for_walking(options.threads), [&](std::size_t i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    tables[i] = {.format = "tfrecord", .title = file->path()};
    if (file->size() == 0) tables[i].notes.push_back(note_of_empty_file(paths[i]));
    tables[i].records = find_records(*file);
    tables[i].samples = tables[i].records.size();
    // Of many shards not much is read of each.
    const std::uint64_t bytes_max = i == 0 ? std::uint64_t{8} << 20 : std::uint64_t{256} << 10;
    files[i] = look_at_examples(*file, tables[i].records, bytes_max);
    if (!files[i].are_examples && tables[i].samples != 0) add_value(*file, tables[i]);
  });
  add_features(tables, files);
  for (record_table& table : tables) verify_records(table, options.checksums);
  keep_what_was_asked(tables, from, options);
  note_what_is_not_verified(tables.front(), options.checksums);
  return join_tables(std::move(tables), from, sized);
}

}  // namespace leat::datasets
