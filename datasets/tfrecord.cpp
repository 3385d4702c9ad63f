// TFRecord files: each a chain of records, one file after another.
#include "datasets/tfrecord.hpp"

#include "base/crc32c.hpp"
#include "base/text.hpp"
#include "datasets/file_window.hpp"
#include "datasets/input_files.hpp"
#include "datasets/parallel.hpp"
#include "datasets/patterns.hpp"
#include "datasets/proto_value.hpp"
#include "datasets/record_columns.hpp"
#include "datasets/record_rows.hpp"
#include "datasets/remote_files.hpp"
#include "datasets/source_options.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace leat {
namespace datasets {
namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t head_bytes = 12;  // a length and its checksum
constexpr std::uint64_t tail_bytes = 4;   // the checksum of the record

// Masked, so that a checksum over bytes that hold checksums stays a good one.
std::uint32_t checksum_of(std::span<const std::byte> bytes) noexcept {
  const std::uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

bool is_head(std::span<const std::byte> head) noexcept {
  return checksum_of(head.first(length_bytes)) == number_at<std::uint32_t>(head, length_bytes);
}

/// Picks out of a record that its checksum follows, once that is verified.
class verified_picker final : public value_picker {
 public:
  ///   inner   null: the value is the record
  explicit verified_picker(std::shared_ptr<const value_picker> inner) : inner_(std::move(inner)) {}

  std::uint64_t room(std::uint64_t record_bytes) const noexcept override {
    const std::uint64_t bytes = record_bytes - std::min(record_bytes, tail_bytes);
    return inner_ ? inner_->room(bytes) : bytes;
  }
  std::optional<value_fault> pick(std::span<const std::byte> stored, std::span<std::byte>& into) const override {
    if (stored.size() < tail_bytes) return "a record that ends before its checksum does";
    const std::span<const std::byte> record = stored.first(stored.size() - tail_bytes);
    const std::uint32_t said = number_at<std::uint32_t>(stored, record.size());
    if (const std::uint32_t found = checksum_of(record); found != said) {
      return str_cat("the record's checksum is ", found, ", and ", said, " stands behind it");
    }
    if (inner_) return inner_->pick(record, into);
    if (!record.empty()) std::memcpy(into.data(), record.data(), record.size());
    into = into.first(record.size());
    return std::nullopt;
  }
  std::string what() const override { return inner_ ? str_cat("verified ", inner_->what()) : "verified"; }

 private:
  std::shared_ptr<const value_picker> inner_;
};

// Checksums are read along with their records, which they follow.
void verify_records(record_table& table) {
  for (value_place& each : table.records) each.bytes += tail_bytes;
  for (record_field& field : table.fields) {
    for (value_place& each : field.places) each.bytes += tail_bytes;
    field.picker = std::make_shared<verified_picker>(std::move(field.picker));
  }
}

record_table table_of(std::vector<value_place> records, const file_bytes& file) {
  record_table table{.format = "tfrecord", .title = file.path()};
  table.samples = records.size();
  const std::vector<std::byte> first = first_record(file, records);
  const auto features = read_example(first);
  if (!features) {
    const value_kind kind = kind_of_bytes_or_text(first, true);
    table.fields.push_back(
        {.name = "value", .kind = kind.kind, .extension = std::string(kind.extension), .places = std::move(records)});
    return table;
  }
  table.records = std::move(records);
  for (const example_feature& each : *features) {
    record_field field{.name = std::string(each.name)};
    field.picker = pick_feature(field.name);
    if (each.holds == example_feature::list::bytes) {
      const value_kind kind = kind_of_bytes_or_text(each.first, true);
      field.kind = kind.kind;
      field.extension = kind.extension;
    } else {
      field.kind = field_kind::label;
    }
    table.fields.push_back(std::move(field));
  }
  std::sort(table.fields.begin(), table.fields.end(),
            [](const record_field& a, const record_field& b) { return a.name < b.name; });
  return table;
}

}  // namespace

bool is_tfrecord(std::span<const std::byte> start) noexcept {
  return start.size() >= head_bytes && is_head(start.first(head_bytes));
}

std::vector<value_place> find_records(const file_bytes& file) {
  std::vector<value_place> records;
  file_window window(file, head_bytes);
  constexpr std::uint64_t near_bytes = 2048;
  constexpr std::uint64_t window_bytes = std::uint64_t{64} << 10;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::span<const std::byte> head = window.view(at, head_bytes);
    if (!is_head(head)) fail_at(file.path(), at, "the checksum of a record's length is another one");
    const auto bytes = number_at<std::uint64_t>(head, 0);
    if (bytes > file.size() - at - head_bytes || tail_bytes > file.size() - at - head_bytes - bytes) {
      fail_at(file.path(), at, str_cat("a record of ", bytes, " bytes, behind the end of the file at ", file.size()));
    }
    records.push_back({.offset = at + head_bytes, .bytes = bytes});
    at += head_bytes + bytes + tail_bytes;
    // Short records' heads are read together.
    window.read_ahead(at / records.size() < near_bytes ? window_bytes : head_bytes);
  }
  return records;
}

dataset open_tfrecord_files(const input_files& from, const table_options& options) {
  const std::vector<std::string>& paths = from.names();
  refuse_options(source_format::tfrecord, options, paths.front());
  std::vector<record_table> tables(paths.size());
  std::vector<sized_file> sized(paths.size());
  for_each_parallel(paths.size(), threads_for_walking(options.threads), [&](std::size_t i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    tables[i] = table_of(find_records(*file), *file);
    if (options.checksums) verify_records(tables[i]);
  });
  keep_what_was_asked(tables, from, options);
  return join_tables(std::move(tables), from, sized);
}

}  // namespace datasets

dataset open_tfrecord(std::span<const std::string> files, const table_options& options) {
  if (files.empty()) throw error(errc::usage, "open_tfrecord: no file was given; name one, as train.tfrecord");
  return datasets::open_tfrecord_files(*datasets::files_at(files, options.remote), options);
}

dataset open_tfrecord(std::initializer_list<std::string_view> files, const table_options& options) {
  return open_tfrecord(datasets::as_strings(files), options);
}

dataset open_tfrecord(const std::string& files, const table_options& options) {
  return open_tfrecord(std::span(&files, 1), options);
}

}  // namespace leat
