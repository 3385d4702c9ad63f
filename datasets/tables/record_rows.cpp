#include "datasets/tables/record_rows.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/content.hpp"
#include "datasets/files/file_staleness.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/model/member_key.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

namespace leat::datasets {
namespace {

class record_model final : public dataset_model, expanding_facet, blocks_facet, staleness_facet, packing_facet {
 public:
  record_model(record_table table, std::vector<column_values> columns, std::vector<std::vector<std::uint64_t>> missing)
      : table_(std::move(table)), columns_(std::move(columns), table_.samples, std::move(missing)) {
    notes_ = std::move(table_.notes);
    if (table_.classes) classes_ = std::move(table_.classes);
    facets_.columns = &columns_;
    facets_.expanding = this;
    facets_.blocks = this;
    facets_.packing = this;
    facets_.staleness = table_.changed ? this : static_cast<const staleness_facet*>(table_.watch.get());
    sources_.push_back(std::move(table_.source));
    if (table_.source_elsewhere) sources_.push_back(std::move(table_.source_elsewhere));
    for (const record_field& field : table_.fields) {
      add_field(field);
      forms_.push_back(form_of(field));
    }
  }

  std::uint64_t size() const noexcept override { return table_.samples; }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    const std::size_t before = out.size();
    for (const need& wanted : needs) add_part(sample, wanted.field, out);
    sort(out, before);
  }
  // Where writers change the file in place.
  staleness_check staleness_checks() const noexcept override { return staleness_check::every_batch; }
  std::optional<std::string> changed(staleness_check at) const override {
    if (std::optional<std::string> what = table_.changed()) return what;
    return table_.watch == nullptr ? std::nullopt : table_.watch->changed(at);
  }

  std::optional<value_fault> expand(std::uint64_t sample, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    static_cast<void>(sample);
    const record_field& field = table_.fields[of.field];
    if (is_in_coded(field)) return table_.coded->expand(of.block, stored, decoded);
    if (field.packed == nullptr) return field.picker->pick(stored, decoded);
    return field.packed->expander->expand(of.block, stored, field.packed->ends_of(of.block), decoded);
  }
  void copy_box(std::uint64_t sample, const part& of, const box*, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const override {
    const value_blocks& packed = *table_.fields[of.field].packed;
    const value_blocks::value value = packed.value_of(sample, packed.block_of(sample)).value_or(value_blocks::value());
    assert(value.bytes == bytes.size() && value.begin + value.bytes <= decoded.size());
    if (value.bytes != 0) std::memcpy(bytes.data(), decoded.data() + value.begin, value.bytes);
  }

  std::optional<value_fault> take_value(std::uint64_t sample, const part& of, std::span<const std::byte> decoded,
                                        std::span<std::byte>& bytes) const override {
    const record_field& field = table_.fields[of.field];
    if (!is_in_coded(field)) return expanding_facet::take_value(sample, of, decoded, bytes);
    const value_place& record = table_.records[sample];
    return field.picker->pick(decoded.subspan(table_.coded->offset_in(of.block, record.offset), record.bytes), bytes);
  }

  // Those of the columns of a table are of the same rows.
  sample_blocks blocks() const override {
    if (std::any_of(table_.fields.begin(), table_.fields.end(), [&](const auto& each) { return is_in_coded(each); })) {
      return blocks_of_coded();
    }
    for (const record_field& field : table_.fields) {
      if (field.packed == nullptr) continue;
      sample_blocks groups(size());
      for (const value_blocks::block& each : field.packed->blocks) groups.begin_block(each.first_row);
      return groups;
    }
    return {};
  }

  std::string name(std::uint64_t sample) const override {
    for (const record_field& field : table_.fields) {
      if (!field.files.empty()) return files_text(field.files[sample]);
    }
    if (table_.names.empty()) return str_cat(table_.title, "[", sample, "]");
    blocking_sources sources;
    return str_cat(table_.title, "/", key_of(sample, sources));
  }
  std::vector<member_path> members(std::uint64_t sample, std::span<const std::uint16_t> wanted,
                                   blocking_sources& from) const override {
    const std::string stem = table_.names.empty() ? name(sample) : key_of(sample, from);
    std::vector<member_path> paths;
    for (const std::uint16_t field : wanted) paths.push_back({stem, encode_field_name(fields_[field].name), false});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const record_field& field = table_.fields[wanted[i]];
      if (field.extension.empty()) continue;
      // Two pictures of a sample have different names.
      const auto alike = std::count_if(table_.fields.begin(), table_.fields.end(), [&](const record_field& each) {
        return each.extension == field.extension || each.name == field.extension;
      });
      paths[i].extension = alike == 1 ? field.extension : str_cat(encode_field_name(field.name), ".", field.extension);
    }
    return paths;
  }

  void describe(description& out) const override {
    describe_model(out, table_.format, *this);
    describe_files(out, *table_.files);
    if (table_.files_elsewhere) describe_files(out, *table_.files_elsewhere);
    hasher hash;
    hash.add(std::uint64_t{table_.file});
    hash.add(std::as_bytes(std::span(table_.records)));
    for (const record_field& field : table_.fields) {
      hash.add(std::as_bytes(std::span(field.places)));
      hash.add(std::as_bytes(std::span(field.files)));
      if (field.picker) hash.add(std::string_view(field.picker->what()));
      if (!field.packed) continue;
      hash.add(std::as_bytes(std::span(field.packed->ends)));
      for (const value_blocks::block& each : field.packed->blocks) {
        for (const std::uint64_t number : {each.first_row, each.offset, each.bytes}) hash.add(number);
      }
    }
    for (std::size_t i = 0; i < columns_.column_names().size(); ++i) hash.add(std::as_bytes(columns_.missing(i)));
    out.add("values", hash.finish());
    columns_.describe(out);
  }

  dataset_memory memory() const override {
    dataset_memory held;
    held.files = table_.files->memory_bytes() + (table_.watch == nullptr ? 0 : table_.watch->memory_bytes());
    if (table_.files_elsewhere) held.files += table_.files_elsewhere->memory_bytes();
    held.columns = columns_.memory_bytes();
    held.extents = table_.names.capacity() * sizeof(std::uint64_t) + table_.records.capacity() * sizeof(value_place);
    if (table_.coded) held.extents += table_.coded->memory_bytes() + table_.coded->file().memory_bytes();
    for (const record_field& field : table_.fields) {
      held.extents += field.places.capacity() * sizeof(value_place) + field.files.capacity() * sizeof(std::uint32_t);
      if (!field.packed) continue;
      held.extents += field.packed->ends.capacity() * sizeof(std::uint32_t) +
                      field.packed->blocks.capacity() * sizeof(value_blocks::block);
    }
    return held;
  }

 private:
  [[nodiscard]] part_form form_of(const record_field& field) const noexcept {
    if (is_in_coded(field)) return part_form::value;
    if (field.packed) return part_form::value;
    return field.picker ? part_form::coded : part_form::stored;
  }
  // Whether it is picked out of records that lie in blocks.
  [[nodiscard]] bool is_in_coded(const record_field& field) const noexcept {
    return table_.coded && field.picker && field.places.empty();
  }
  [[nodiscard]] sample_blocks blocks_of_coded() const {
    sample_blocks all(size());
    std::size_t before = 0;
    for (std::uint64_t sample = 0; sample < size(); ++sample) {
      const std::size_t block = table_.coded->block_of(table_.records[sample].offset);
      if (sample == 0 || block != before) all.begin_block(sample);
      before = block;
    }
    return all;
  }

  [[nodiscard]] const std::vector<value_place>& places_of(const record_field& field) const noexcept {
    return field.picker && field.places.empty() ? table_.records : field.places;
  }

  [[nodiscard]] std::string files_text(std::uint32_t file) const {
    return (table_.files_elsewhere ? table_.files_elsewhere : table_.files)->path(file);
  }

  // As text, or as digits of its bytes.
  [[nodiscard]] std::string key_of(std::uint64_t sample, blocking_sources& from) const {
    const std::uint64_t place = table_.names[sample];
    std::vector<std::byte> key(place >> 48);
    const blocking_source::request all{table_.file, place & ((std::uint64_t{1} << 48) - 1), key};
    from.of(*sources_.front()).read({&all, 1});
    const bool is_text = !first_invalid_utf8(key) && std::none_of(key.begin(), key.end(), [](std::byte each) {
      return each < std::byte{0x20} || each == std::byte{0x7F};
    });
    if (is_text) return {reinterpret_cast<const char*>(key.data()), key.size()};
    std::string digits = "0x";
    for (const std::byte each : key) {
      constexpr std::string_view all_digits = "0123456789abcdef";
      digits += all_digits[std::to_integer<std::size_t>(each >> 4)];
      digits += all_digits[std::to_integer<std::size_t>(each & std::byte{15})];
    }
    return digits;
  }

  struct place_sums {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_max = 0;
  };
  [[nodiscard]] static place_sums sums_of(std::span<const value_place> places) noexcept {
    place_sums sums;
    for (const value_place& place : places) {
      if (!place.is_there()) continue;
      ++sums.count;
      sums.bytes += place.bytes;
      sums.bytes_max = std::max(sums.bytes_max, place.bytes);
    }
    return sums;
  }

  void add_field(const record_field& field) {
    field_info info;
    info.name = field.name;
    info.kind = field.kind;
    info.type = field.type;
    info.shape = field.shape;
    if (field.packed) {
      add_packed(*field.packed, info);
      return fields_.push_back(std::move(info));
    }
    // Fields that are picked out of the records have all of them.
    const bool is_of_records = &places_of(field) == &table_.records;
    const place_sums sums = is_of_records && of_records_ ? *of_records_ : sums_of(places_of(field));
    if (is_of_records) of_records_ = sums;
    info.samples = sums.count;
    info.bytes_max = sums.bytes_max;
    info.bytes_total = sums.bytes;
    if (field.picker) {
      info.stored_block_bytes_max = std::max<std::uint64_t>(info.bytes_max, 1);
      info.bytes_max = std::max<std::uint64_t>(field.picker->room(info.bytes_max), 1);
      info.decoded_block_bytes_max = info.bytes_max;
    }
    if (is_in_coded(field)) add_coded(info);
    fields_.push_back(std::move(info));
  }
  void add_coded(field_info& info) const {
    const coded_blocks& blocks = *table_.coded;
    info.chunked = true;
    info.blocks_max = 1;
    info.chunk = {static_cast<std::int64_t>(std::max<std::uint64_t>(blocks.samples_max(), 1))};
    info.filters = name_of(blocks.file().coding());
    info.bytes_total = blocks.file().stored_bytes();
    info.stored_block_bytes_max = std::max<std::uint64_t>(blocks.stored_bytes_max(), 1);
    info.decoded_block_bytes_max = std::max<std::uint64_t>(blocks.decoded_bytes_max(), 1);
    info.expand_bytes_max = blocks.expand_bytes();
  }
  void add_packed(const value_blocks& packed, field_info& info) const {
    info.chunked = true;
    info.blocks_max = 1;
    info.filters = packed.packed_by;
    info.decoded_block_bytes_max = 1;
    info.expand_bytes_max = packed.expand_bytes_max;
    std::uint64_t rows = 1;
    for (std::size_t number = 0; number < packed.blocks.size(); ++number) {
      const value_blocks::block& block = packed.blocks[number];
      rows = std::max(rows, block.rows);
      info.bytes_total += block.bytes;
      info.stored_block_bytes_max = std::max(info.stored_block_bytes_max, block.bytes);
      info.decoded_block_bytes_max = std::max(info.decoded_block_bytes_max, packed.decoded_bytes(number));
      for (std::uint64_t row = block.first_row; row < block.first_row + block.rows; ++row) {
        const std::optional<value_blocks::value> value = packed.value_of(row, number);
        if (!value) continue;
        ++info.samples;
        info.bytes_max = std::max(info.bytes_max, value->bytes);
      }
    }
    info.chunk.push_back(static_cast<std::int64_t>(rows));
  }
  void add_part(std::uint64_t sample, std::uint16_t field, part_list& out) const {
    const record_field& of = table_.fields[field];
    if (of.packed) return add_packed_part(sample, field, *of.packed, out);
    const value_place& place = places_of(of)[sample];
    if (!place.is_there()) return;
    if (is_in_coded(of)) return add_coded_part(field, *of.picker, place, out);
    const bool has_own_file = !of.files.empty();
    part one{.field = field,
             .where = {.source = has_own_file && table_.files_elsewhere ? 1U : 0U,
                       .file = has_own_file ? of.files[sample] : table_.file,
                       .offset = place.offset}};
    one.where.stored_bytes = place.bytes;
    one.where.decoded_bytes = of.picker ? of.picker->room(place.bytes) : place.bytes;
    one.form = of.picker ? part_form::coded : part_form::stored;
    out.push_back(one);
  }
  void add_coded_part(std::uint16_t field, const value_picker& picker, const value_place& record,
                      part_list& out) const {
    part one{.field = field, .picked = true, .where = {.file = table_.file}};
    table_.coded->place(table_.coded->block_of(record.offset), one);
    one.value_bytes = picker.room(record.bytes);
    out.push_back(one);
  }
  void add_packed_part(std::uint64_t sample, std::uint16_t field, const value_blocks& packed, part_list& out) const {
    const std::size_t number = packed.block_of(sample);
    const std::optional<value_blocks::value> value = packed.value_of(sample, number);
    if (!value) return;
    const value_blocks::block& block = packed.blocks[number];
    // A column's own: where one of them is empty, two may begin at one offset.
    part one{.field = field,
             .form = form_of(table_.fields[field]),
             .codec = field,
             .where = {.file = table_.file, .offset = block.offset},
             .block = number};
    one.where.stored_bytes = block.bytes;
    one.where.decoded_bytes = packed.decoded_bytes(number);
    one.value_bytes = value->bytes;
    out.push_back(one);
  }
  // In the order in which they lie in the file.
  static void sort(part_list& out, std::size_t from) {
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(), [](const part& a, const part& b) {
      return std::tie(a.where.source, a.where.file, a.where.offset, a.field) <
             std::tie(b.where.source, b.where.file, b.where.offset, b.field);
    });
  }

  record_table table_;
  column_table columns_;
  std::optional<place_sums> of_records_;
};

}  // namespace

std::vector<std::byte> first_record(const file_bytes& file, std::span<const value_place> places) {
  constexpr std::uint64_t bytes_max = std::uint64_t{64} << 20;
  if (places.empty() || places.front().bytes > bytes_max) return {};
  return file.read(places.front().offset, places.front().bytes);
}

value_kind kind_of_value(std::span<const std::byte> start) {
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"a JPEG", "jpg"}, {"a PNG", "png"}, {"a WebP picture", "webp"}, {"a GIF", "gif"}, {"a TIFF", "tif"}};
  const content_kind found = content_of(start);
  if (found.group != content_group::picture) return {};
  for (const auto& [what, extension] : known) {
    if (found.name == what) return {field_kind::picture, extension};
  }
  return {field_kind::picture, {}};
}

value_kind kind_of_bytes_or_text(std::span<const std::byte> start, bool is_whole) {
  value_kind found = kind_of_value(start);
  if (found.kind == field_kind::picture || start.empty()) return found;
  constexpr std::size_t character_bytes_max = 4;
  const std::optional<std::size_t> bad = first_invalid_utf8(start);
  const bool is_utf8 = !bad || (!is_whole && *bad + character_bytes_max > start.size());
  const bool is_plain = std::all_of(start.begin(), start.end(), [](std::byte each) {
    return each >= std::byte{0x20} || each == std::byte{'\n'} || each == std::byte{'\t'} || each == std::byte{'\r'};
  });
  if (is_utf8 && is_plain) found.kind = field_kind::text;
  return found;
}

void find_kind_of_values(const file_bytes& file, record_field& field) {
  const auto first = std::find_if(field.places.begin(), field.places.end(),
                                  [](const value_place& each) { return each.is_there() && each.bytes != 0; });
  if (first == field.places.end()) return;
  constexpr std::uint64_t looked_at = 512;
  const std::vector<std::byte> start = file.read(first->offset, std::min(first->bytes, looked_at));
  const value_kind found = kind_of_bytes_or_text(start, start.size() == first->bytes);
  field.kind = found.kind;
  field.extension = found.extension;
}

dataset record_rows(record_table table) {
  for (record_field& field : table.fields) field.places.shrink_to_fit();
  // A copy of it is dearer than a little room that is never touched.
  if (table.records.capacity() > table.records.size() + table.records.size() / 4) table.records.shrink_to_fit();
  table.names.shrink_to_fit();
  std::vector<column_values> columns;
  std::vector<std::vector<std::uint64_t>> missing;
  for (record_numbers& numbers : table.numbers) {
    missing.push_back(std::move(numbers.missing));
    column_values& column = columns.emplace_back(
        column_values{.name = numbers.name, .values = std::move(numbers.whole), .reals = std::move(numbers.reals)});
    if (!column.reals.empty() && numbers.type == dtype::f32) column.type = dtype::f32;
    if (numbers.bytes.empty()) continue;
    column.type = numbers.type;
    append_reals(numbers.bytes, numbers.type, column.reals);
    numbers.bytes = {};
  }
  table.numbers.clear();
  return dataset(std::make_shared<record_model>(std::move(table), std::move(columns), std::move(missing)));
}

}  // namespace leat::datasets
