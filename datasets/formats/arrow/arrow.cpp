// Arrow IPC files and streams: each a table of its own, one after another.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/files/parallel.hpp"
#include "datasets/files/patterns.hpp"
#include "datasets/formats/arrow/arrow_dictionary.hpp"
#include "datasets/formats/arrow/arrow_file.hpp"
#include "datasets/formats/arrow/arrow_lists.hpp"
#include "datasets/formats/format_openers.hpp"
#include "datasets/tables/column_units.hpp"
#include "datasets/tables/decimals.hpp"
#include "datasets/tables/hub_features.hpp"
#include "datasets/tables/record_columns.hpp"
#include "datasets/tables/record_rows.hpp"

#include <leat/error.hpp>
#include <leat/open_tables.hpp>
#include <leat/samples.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

using kind = arrow_column::kind;

constexpr std::uint64_t padding_max = 64;
constexpr std::uint64_t kind_bytes = 512;  // of a value, which tell its kind
constexpr std::size_t no_buffer = ~std::size_t{0};

bool is_in(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Expands the values of a column, whose blocks are batches.
class arrow_expander final : public block_expander {
 public:
  ///   bytes   that the batch's buffer becomes
  ///   begin   of the first row's value in them
  struct values {
    arrow_codec codec = arrow_codec::none;
    std::uint64_t bytes = 0;
    std::uint64_t begin = 0;
  };
  explicit arrow_expander(std::vector<values> blocks) : blocks_(std::move(blocks)) {}

  std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                    std::span<const std::uint32_t>, std::span<std::byte> decoded) const override {
    const values& of = blocks_[block];
    if (of.bytes == decoded.size()) return expand_arrow_buffer(of.codec, stored, decoded);
    // A slice of a larger table, or padding.
    std::vector<std::byte> whole(of.bytes);
    if (std::optional<std::string> reason = expand_arrow_buffer(of.codec, stored, whole)) return reason;
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(of.begin), decoded.size(), decoded.begin());
    return std::nullopt;
  }

  /// Of a value that begins there in the block: its first bytes.
  [[nodiscard]] std::optional<std::string> expand_start(std::size_t block, std::span<const std::byte> stored,
                                                        std::uint64_t begin, std::span<std::byte> start) const {
    const values& of = blocks_[block];
    return expand_part_of_arrow_buffer(of.codec, stored, of.begin + begin, start);
  }

  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return blocks_.capacity() * sizeof(values); }

 private:
  std::vector<values> blocks_;
};

/// Reads a file's columns, batch after batch.
class table_reader {
 public:
  table_reader(const file_bytes& file, const table_options& options)
      : file_(file),
        options_(options),
        contents_(read_arrow(file)),
        features_(read_hub_features(contents_.hub_features)) {
    for (const arrow_batch& batch : contents_.batches) {
      if (batch.codec != arrow_codec::none) packed_by_ = batch.codec == arrow_codec::lz4 ? "lz4" : "zstd";
    }
  }

  record_table read() {
    table_.format = "arrow";
    table_.title = file_.path();
    table_.samples = contents_.rows;
    for (const arrow_column& column : contents_.columns) add(column);
    for (const auto* asked : {&options_.fields, &options_.columns}) {
      for (const std::string& name : *asked) check_is_there(name);
    }
    if (!packed_by_.empty() && !table_.fields.empty()) {
      note(str_cat("its batches are packed (", packed_by_,
                   "), and expanded whole; shuffle blocks of them, or write it without compression"));
    }
    if (!numbers_.empty()) {
      note(str_cat("numbers that are not kept, as nobody asked for them: ", numbers_, "; name them as columns"));
    }
    if (table_.fields.empty() && table_.numbers.empty() && classes_.empty() && !contents_.columns.empty()) {
      if (contents_.columns.size() == 1 && contents_.columns.front().path == "indices") {
        throw error(errc::unsupported,
                    str_cat(file_.path(),
                            ": this has numbers of rows of another file, as the Hub's datasets keeps of "
                            "filter(), select() and shuffle(); flatten_indices() before save_to_disk() "
                            "writes the rows themselves"));
      }
      throw error(errc::unsupported, str_cat(file_.path(), ": no column of it can be read: ",
                                             table_.notes.empty() ? std::string("it has none") : table_.notes.front()));
    }
    return std::move(table_);
  }

 private:
  void note(std::string_view text) { table_.notes.push_back(str_cat(file_.path(), ": ", text)); }
  [[noreturn]] void fail(std::uint64_t offset, const arrow_column& column, std::string_view what) const {
    fail_at(file_.path(), offset, str_cat("the column '", column.path, "': ", what));
  }

  std::string name_of(const arrow_column& column, bool& is_picture) const {
    constexpr std::string_view bytes = ".bytes";
    const std::string_view path = column.path;
    is_picture = path.ends_with(bytes) && features_.is_picture(path.substr(0, path.size() - bytes.size()));
    return std::string(is_picture ? path.substr(0, path.size() - bytes.size()) : path);
  }

  void add(const arrow_column& column) {
    bool is_picture = false;
    const std::string name = name_of(column, is_picture);
    names_.push_back(name);
    const bool as_column = is_in(options_.columns, name) || is_in(options_.columns, column.path);
    const bool asked = as_column || is_in(options_.fields, name) || is_in(options_.fields, column.path);
    std::string_view not_read = column.not_read;
    if (column.view != 0 && !packed_by_.empty())
      not_read = "has views in packed batches; write it without compression, or as string or binary";
    const hub_features::array* const array = array_of(column);
    if (!column.inner.empty() && not_read.empty() && array == nullptr) not_read = "has lists in lists; write them flat";
    if (column.view != 0 && as_column) not_read = "has views, which are no classes; write it as string or binary";
    if (!not_read.empty()) {
      if (asked) throw error(errc::unsupported, str_cat(file_.path(), ": the column '", column.path, "' ", not_read));
      return note(str_cat("left out: the column '", column.path, "' ", not_read));
    }
    const hub_features::class_names* const labels = features_.labels_of(column.path);
    if (column.what == kind::number || column.what == kind::decimal || column.what == kind::truth) {
      const bool is_label = name == "label" || name == "cls" || name == "class";
      if (!asked && !((is_label || labels != nullptr) && options_.fields.empty())) {
        str_append(numbers_, numbers_.empty() ? "" : ", ", name);
        return;
      }
      add_numbers(column, name);
      note_unit(column, name);
      if (labels != nullptr) name_classes(name, labels->names);
      return;
    }
    if (as_column) return add_classes(column, name);
    const bool is_path = column.path.ends_with(".path") &&
                         features_.is_picture(std::string_view(column.path).substr(0, column.path.size() - 5));
    if (!asked && (!options_.fields.empty() || is_path)) return;
    add_field(column, name, is_picture);
  }

  void note_unit(const arrow_column& column, const std::string& name) {
    if (column.unit.empty()) return;
    units_.emplace_back(name, column.unit);
    note(str_cat("the column '", column.path, "' is in ", column.unit));
  }

  void name_classes(const std::string& name, std::vector<std::string> names) {
    const bool is_usual = name == "label" || name == "cls" || name == "class";
    if (table_.classes && !is_usual) {
      return note(
          str_cat("classes() has the names of '", table_.classes->column, "'; those of '", name, "' are left out"));
    }
    table_.classes = std::make_shared<class_names>(class_names{std::move(names), name});
  }

  void check_is_there(const std::string& name) const {
    if (is_in(names_, name)) return;
    for (const arrow_column& column : contents_.columns) {
      if (column.path == name) return;
    }
    std::string all;
    for (const std::string& each : names_) str_append(all, all.empty() ? "" : ", ", each);
    throw error(errc::not_found,
                str_cat(file_.path(), ": it has no column '", name, "'; it has ", all, did_you_mean(name, names_)));
  }

  // What a buffer of packed batches becomes: no more than a block may have.
  //   start   its first 8 bytes
  std::uint64_t expanded_bytes_of(const arrow_batch& batch, const arrow_buffer& buffer,
                                  std::span<const std::byte> start, const arrow_column& column) const {
    const std::optional<std::uint64_t> bytes = expanded_bytes(batch.codec, start, buffer.bytes);
    if (!bytes)
      fail(buffer.offset, column,
           "a packed buffer that does not begin with its size, or says more than its bytes can become");
    if (*bytes > value_blocks::decoded_bytes_max) {
      throw error(errc::limit, str_cat(file_.path(), ": at offset ", buffer.offset, ": the column '", column.path,
                                       "' has a batch of ", *bytes, " bytes, packed, and ",
                                       value_blocks::decoded_bytes_max, " are the most; write smaller batches"));
    }
    return *bytes;
  }
  std::uint64_t expanded_bytes_of(const arrow_batch& batch, const arrow_buffer& buffer,
                                  const arrow_column& column) const {
    return expanded_bytes_of(batch, buffer, file_.read(buffer.offset, sizeof(std::int64_t)), column);
  }

  // All of a buffer.
  //   least, most   bytes that a packed one may become
  std::vector<std::byte> read_buffer(const arrow_batch& batch, const arrow_buffer& buffer, const arrow_column& column,
                                     std::uint64_t least = 0,
                                     std::uint64_t most = value_blocks::decoded_bytes_max) const {
    const std::vector<std::byte> stored = file_.read(buffer.offset, buffer.bytes);
    if (stored.size() != buffer.bytes) fail(buffer.offset, column, "the file ends within a buffer");
    if (batch.codec == arrow_codec::none) return stored;
    const std::uint64_t all = expanded_bytes_of(batch, buffer, stored, column);
    if (all < least || all > most) fail_size(buffer, column, all, least);
    std::vector<std::byte> expanded(all);
    if (const std::optional<std::string> reason = expand_arrow_buffer(batch.codec, stored, expanded))
      fail(buffer.offset, column, *reason);
    return expanded;
  }

  // The bytes of it that are needed. A packed one, which is expanded whole, is no longer but for padding.
  std::vector<std::byte> read_buffer(const arrow_batch& batch, const arrow_buffer& buffer, std::uint64_t bytes,
                                     const arrow_column& column) const {
    if (batch.codec != arrow_codec::none) {
      std::vector<std::byte> all = read_buffer(batch, buffer, column, bytes, bytes + padding_max);
      all.resize(bytes);
      return all;
    }
    if (buffer.bytes < bytes) fail_size(buffer, column, buffer.bytes, bytes);
    std::vector<std::byte> read = file_.read(buffer.offset, bytes);
    if (read.size() != bytes) fail(buffer.offset, column, "the file ends within a buffer");
    return read;
  }
  [[noreturn]] void fail_size(const arrow_buffer& buffer, const arrow_column& column, std::uint64_t bytes,
                              std::uint64_t needed) const {
    fail(buffer.offset, column, str_cat("a buffer of ", bytes, " bytes where ", needed, " are needed"));
  }

  // Validity bits of a column and of the structs that it is in; empty where nothing is null.
  std::vector<std::vector<std::byte>> validity_of(const arrow_batch& batch, const arrow_column& column) const {
    std::vector<std::vector<std::byte>> all;
    std::vector<std::size_t> buffers = column.validities;
    buffers.push_back(column.buffer);
    for (const std::size_t each : buffers) {
      const arrow_buffer& buffer = batch.buffers[each];
      if (buffer.bytes != 0) all.push_back(read_buffer(batch, buffer, (batch.rows + 7) / 8, column));
    }
    return all;
  }
  static bool is_there(const std::vector<std::vector<std::byte>>& validity, std::uint64_t row) {
    return std::all_of(validity.begin(), validity.end(), [&](const std::vector<std::byte>& bits) {
      return (std::to_integer<unsigned>(bits[row / 8]) >> (row % 8) & 1U) != 0;
    });
  }

  // Calls each(row, begin, end, whether it is there), of values of variable length, in units of the values' buffer. They follow one another.
  template <class Each>
  void for_each_range(const arrow_batch& batch, const arrow_column& column, const Each& each) const {
    if (batch.rows == 0) return;
    const auto validity = validity_of(batch, column);
    const arrow_buffer& where = batch.buffers[column.buffer + 1];
    const std::vector<std::byte> offsets = read_buffer(batch, where, (batch.rows + 1) * column.offset_bytes, column);
    const auto offset = [&](std::uint64_t row) {
      return column.offset_bytes == 4 ? std::int64_t{number_at<std::int32_t>(offsets, row * 4)}
                                      : number_at<std::int64_t>(offsets, row * 8);
    };
    std::int64_t begin = offset(0);
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      const std::int64_t end = offset(row + 1);
      if (begin < 0 || end < begin)
        fail(where.offset, column, str_cat("offsets that go back, in row ", row, " of a batch"));
      each(row, static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end), is_there(validity, row));
      begin = end;
    }
  }

  // Validity bits of a list's elements; empty where no element is null.
  std::vector<std::byte> validity_of_elements(const arrow_batch& batch, const arrow_column& column) const {
    const arrow_buffer& buffer = batch.buffers[column.element_buffer - 1];
    if (buffer.bytes == 0) return {};
    if (batch.codec == arrow_codec::none) return read_buffer(batch, buffer, column);
    const std::uint64_t elements =
        expanded_bytes_of(batch, batch.buffers[column.element_buffer], column) / size_bytes(column.type);
    return read_buffer(batch, buffer, column, 0, (elements + 7) / 8 + padding_max);
  }
  /// Lists of a column that have a null in them, and arrays of another shape, which are none.
  struct lists_with_nulls {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
    std::uint64_t misshapen = 0;
    std::uint64_t first_misshapen = 0;
  };

  const hub_features::array* array_of(const arrow_column& column) const {
    const hub_features::array* const array = features_.array_of(column.path);
    return array != nullptr && array->axes == column.inner.size() + 1 ? array : nullptr;
  }
  static bool is_list(const arrow_column& column) {
    return column.what == kind::list || column.what == kind::fixed_list;
  }

  // Calls each(row, begin, end, whether it is there) of lists, in elements.
  template <class Each>
  void for_each_outer_list(const arrow_batch& batch, const arrow_column& column, const Each& each) const {
    if (column.what == kind::list) return for_each_range(batch, column, each);
    if (column.size != 0 && batch.rows > elements_max / column.size)
      fail(batch.buffers[column.buffer].offset, column, "more elements than any file has");
    const auto validity = validity_of(batch, column);
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      each(row, row * column.size, (row + 1) * column.size, is_there(validity, row));
    }
  }

  /// Lists within lists, of a batch.
  struct inner_lists {
    std::uint64_t size = 0;  // of each, where there are no offsets
    std::size_t offset_bytes = 0;
    std::vector<std::byte> offsets;
    std::vector<std::byte> validity;

    [[nodiscard]] std::uint64_t count() const noexcept {
      const std::uint64_t offsets_count = offset_bytes == 0 ? 0 : offsets.size() / offset_bytes;
      return offsets_count == 0 ? 0 : offsets_count - 1;
    }
    // Where a list begins; of an offset below zero, beyond any end.
    [[nodiscard]] std::uint64_t begin_of(std::uint64_t list) const {
      if (offset_bytes == 0) return list * size;
      return offset_bytes == 4 ? static_cast<std::uint64_t>(std::int64_t{number_at<std::int32_t>(offsets, list * 4)})
                               : static_cast<std::uint64_t>(number_at<std::int64_t>(offsets, list * 8));
    }
    [[nodiscard]] bool is_there(std::uint64_t list) const {
      return validity.empty() ||
             (list / 8 < validity.size() && (std::to_integer<unsigned>(validity[list / 8]) >> (list % 8) & 1U) != 0);
    }
  };
  std::vector<inner_lists> read_inner_lists(const arrow_batch& batch, const arrow_column& column) const {
    std::vector<inner_lists> all;
    for (const arrow_column::level& level : column.inner) {
      inner_lists& of = all.emplace_back();
      of.size = level.size;
      of.offset_bytes = level.offset_bytes;
      if (batch.buffers[level.buffer].bytes != 0) of.validity = read_buffer(batch, batch.buffers[level.buffer], column);
      if (level.offset_bytes == 0) continue;
      const arrow_buffer& where = batch.buffers[level.buffer + 1];
      of.offsets = read_buffer(batch, where, column);
      // Then lists follow one another, and each is looked at once.
      for (std::uint64_t list = 0; list < of.count(); ++list) {
        if (of.begin_of(list + 1) < of.begin_of(list))
          fail(where.offset, column, str_cat("offsets that go back, in list ", list, " of a batch"));
      }
    }
    return all;
  }

  // As above, in elements of the innermost lists. An array of another shape than the Hub's metadata say is none.
  template <class Each>
  void for_each_list(const arrow_batch& batch, const arrow_column& column, lists_with_nulls& found,
                     const Each& each) const {
    if (column.inner.empty() || batch.rows == 0) return for_each_outer_list(batch, column, each);
    const std::vector<inner_lists> inner = read_inner_lists(batch, column);
    const std::vector<std::int64_t>& extents = array_of(column)->extents;
    const auto has_extent = [&](std::size_t axis, std::uint64_t lists) {
      return extents.empty() || lists == static_cast<std::uint64_t>(extents[axis]);
    };
    for_each_outer_list(batch, column, [&](std::uint64_t row, std::uint64_t begin, std::uint64_t end, bool there) {
      bool is_shaped = has_extent(0, end - begin);
      for (std::size_t i = 0; i < inner.size(); ++i) {
        const inner_lists& lists = inner[i];
        const bool has_room =
            lists.offset_bytes != 0 ? end <= lists.count() : lists.size == 0 || end <= elements_max / lists.size;
        if (!has_room)
          fail(batch.buffers[column.inner[i].buffer].offset, column,
               str_cat("a list that ends behind its elements, in row ", row, " of a batch"));
        for (std::uint64_t list = begin; there && is_shaped && list < end; ++list) {
          is_shaped = lists.is_there(list) && has_extent(i + 1, lists.begin_of(list + 1) - lists.begin_of(list));
        }
        begin = lists.begin_of(begin);
        end = lists.begin_of(end);
        if (begin > end || end > elements_max)
          fail(batch.buffers[column.inner[i].buffer].offset, column,
               str_cat("offsets that go back, in row ", row, " of a batch"));
      }
      if (there && !is_shaped && found.misshapen++ == 0) found.first_misshapen = batch.first_row + row;
      each(row, begin, end, there && is_shaped);
    });
  }
  static constexpr std::uint64_t elements_max = std::uint64_t{1} << 48;
  // Whether a list has none. A null element has no value: the bytes in its place may be anything.
  static bool is_without_nulls(std::span<const std::byte> validity, std::uint64_t begin, std::uint64_t end,
                               std::uint64_t row, lists_with_nulls& found) {
    if (validity.empty()) return true;
    for (std::uint64_t i = begin; i < end; ++i) {
      if (i / 8 < validity.size() && (std::to_integer<unsigned>(validity[i / 8]) >> (i % 8) & 1U) != 0) continue;
      if (found.count++ == 0) found.first = row;
      return false;
    }
    return true;
  }

  // A view is 16 bytes: its value's length, and the value itself or, of more than 12 bytes, its first four, the buffer and the place in it.
  void place_views(const arrow_batch& batch, const arrow_column& column, std::span<value_place> places) const {
    constexpr std::uint64_t view_bytes = 16;
    constexpr std::uint64_t within_max = 12;
    const arrow_buffer& where = batch.buffers[column.buffer + 1];
    const std::vector<arrow_buffer>& data = batch.views[column.view - 1];
    const auto validity = validity_of(batch, column);
    const std::vector<std::byte> views = read_buffer(batch, where, batch.rows * view_bytes, column);
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      if (!is_there(validity, row)) continue;
      const std::uint64_t at = row * view_bytes;
      const std::uint64_t bytes = number_at<std::uint32_t>(views, at);
      places[row] = {.offset = where.offset + at + 4, .bytes = bytes};
      if (bytes <= within_max) continue;
      const auto buffer = number_at<std::uint32_t>(views, at + 8);
      const std::uint64_t begin = number_at<std::uint32_t>(views, at + 12);
      if (buffer >= data.size() || begin > data[buffer].bytes || bytes > data[buffer].bytes - begin)
        fail(where.offset, column, str_cat("a view of what its buffers do not have, in row ", row, " of a batch"));
      places[row].offset = data[buffer].offset + begin;
    }
  }

  void place(const arrow_batch& batch, const arrow_column& column, std::span<value_place> places,
             lists_with_nulls& nulls) const {
    if (column.view != 0) return place_views(batch, column, places);
    if (is_list(column)) {
      const arrow_buffer& values = batch.buffers[column.element_buffer];
      const std::uint64_t each_bytes = size_bytes(column.type);
      const std::vector<std::byte> elements = validity_of_elements(batch, column);
      return for_each_list(
          batch, column, nulls, [&](std::uint64_t row, std::uint64_t begin, std::uint64_t end, bool there) {
            if (!there) return;
            if (end > values.bytes / each_bytes)
              fail(values.offset, column, str_cat("a value that ends behind its buffer, in row ", row, " of a batch"));
            if (!is_without_nulls(elements, begin, end, batch.first_row + row, nulls)) return;
            places[row] = {.offset = values.offset + begin * each_bytes, .bytes = (end - begin) * each_bytes};
          });
    }
    if (column.what == kind::bytes || column.what == kind::text) {
      const arrow_buffer& values = batch.buffers[column.buffer + 2];
      return for_each_range(batch, column, [&](std::uint64_t row, std::uint64_t begin, std::uint64_t end, bool there) {
        if (!there) return;
        if (end > values.bytes)
          fail(values.offset, column, str_cat("a value that ends behind its buffer, in row ", row, " of a batch"));
        places[row] = {.offset = values.offset + begin, .bytes = end - begin};
      });
    }
    const arrow_buffer& values = batch.buffers[column.buffer + 1];
    if (column.size != 0 && batch.rows > values.bytes / column.size)
      fail(values.offset, column, "a buffer with fewer values than rows");
    const auto validity = validity_of(batch, column);
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      if (!is_there(validity, row)) continue;
      places[row] = {.offset = values.offset + row * column.size, .bytes = column.size};
    }
  }

  // Values of no bytes: nothing in the file but its length speaks for their number.
  void check_rows(const arrow_column& column) const {
    const bool has_no_bytes = (column.what == kind::fixed || column.what == kind::fixed_list) && column.size == 0;
    if (!has_no_bytes || contents_.rows <= arrow_contents::rows_always || contents_.rows / 8 <= file_.size()) return;
    fail(contents_.batches.front().buffers[column.buffer].offset, column,
         str_cat(contents_.rows, " values of no bytes in a file of ", file_.size()));
  }

  void add_field(const arrow_column& column, const std::string& name, bool is_picture) {
    record_field field{.name = name};
    field.kind = is_picture ? field_kind::picture : column.what == kind::text ? field_kind::text : field_kind::bytes;
    note_unit(column, name);
    check_rows(column);
    if (is_list(column) && column.elements != kind::number) {
      add_lists_of_values(column, field);
      return table_.fields.push_back(std::move(field));
    }
    if (is_list(column)) set_type_of_lists(column, field);
    if (column.dictionary >= 0) {
      if (is_dictionary_packed(column)) {
        add_packed_dictionary_values(column, field);
      } else {
        place_dictionary_values(column, field);
      }
      return table_.fields.push_back(std::move(field));
    }
    lists_with_nulls nulls;
    if (!packed_by_.empty()) {
      add_packed_values(column, field, nulls);
      note_nulls(column, nulls);
      return table_.fields.push_back(std::move(field));
    }
    field.places.resize(contents_.rows, {.offset = value_place::missing});
    for_each_batch([&](const arrow_batch& batch) {
      place(batch, column, std::span(field.places).subspan(batch.first_row, batch.rows), nulls);
    });
    note_nulls(column, nulls);
    if (column.what == kind::bytes || column.what == kind::fixed) find_kind(field);
    table_.fields.push_back(std::move(field));
  }

  // Lists of one length are rows, and so are arrays of one shape.
  void set_type_of_lists(const arrow_column& column, record_field& field) {
    field.type = column.type;
    if (column.inner.empty() && column.what == kind::fixed_list) {
      field.kind = field_kind::tensor;
      field.shape.push_back(static_cast<std::int64_t>(column.size));
    }
    if (column.inner.empty()) return;
    const hub_features::array& array = *array_of(column);
    if (array.extents.empty()) {
      return note(str_cat("the column '", column.path, "' has arrays of ", array.shape,
                          ": each is the list of its numbers, row after row, for a sequence"));
    }
    field.kind = field_kind::tensor;
    for (const std::int64_t extent : array.extents) field.shape.push_back(extent);
  }

  // Each batch is a block of all the buffers of its lists, which lie side by side.
  void add_lists_of_values(const arrow_column& column, record_field& field) {
    auto packed = std::make_shared<value_blocks>();
    packed->packed_by = packed_by_.empty() ? "lists" : str_cat("lists, ", packed_by_);
    std::vector<arrow_list_expander::lists> blocks;
    for_each_batch([&](const arrow_batch& batch) {
      if (batch.rows == 0) return;
      std::vector<std::size_t> numbers = column.validities;
      numbers.push_back(column.buffer);
      const std::size_t validities = numbers.size();
      numbers.push_back(column.what == kind::list ? column.buffer + 1 : no_buffer);
      for (const std::size_t i : {0U, 1U, 2U}) numbers.push_back(column.element_buffer + i);
      arrow_list_expander::lists lists{.codec = batch.codec, .rows = batch.rows, .buffers = {}};
      arrow_list_buffers read;
      read.validities.resize(validities);
      std::vector<std::vector<std::byte>*> into;
      for (std::vector<std::byte>& each : read.validities) into.push_back(&each);
      into.insert(into.end(), {&read.offsets, &read.element_validity, &read.element_offsets, &read.values});
      std::uint64_t begin = file_.size();
      std::uint64_t end = 0;
      std::uint64_t expanded = 0;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const arrow_buffer buffer = numbers[i] == no_buffer ? arrow_buffer() : batch.buffers[numbers[i]];
        lists.buffers.push_back(buffer);
        if (buffer.bytes == 0) continue;
        begin = std::min(begin, buffer.offset);
        end = std::max(end, buffer.offset + buffer.bytes);
        *into[i] = read_buffer(batch, buffer, column);
        expanded += into[i]->size();
      }
      begin = std::min(begin, end);
      for (arrow_buffer& each : lists.buffers) each.offset = each.bytes == 0 ? 0 : each.offset - begin;
      packed->expand_bytes_max = std::max(packed->expand_bytes_max, expanded);
      add_ends_of_values(batch, column, read, begin, packed->ends);
      packed->blocks.push_back(
          {.first_row = batch.first_row, .rows = batch.rows, .offset = begin, .bytes = end - begin});
      blocks.push_back(std::move(lists));
    });
    note(str_cat("the column '", column.path, "' has lists of ", column.elements == kind::text ? "texts" : "bytes",
                 ", each a list of JSON", column.elements == kind::text ? "" : " in base64",
                 ": it was read once for their lengths, and its batches are expanded; shuffle blocks of them"));
    packed->expander = std::make_shared<arrow_list_expander>(std::move(blocks), column);
    field.kind = field_kind::bytes;
    field.packed = std::move(packed);
  }

  void add_ends_of_values(const arrow_batch& batch, const arrow_column& column, const arrow_list_buffers& read,
                          std::uint64_t offset, std::vector<std::uint32_t>& ends) const {
    const std::size_t before = ends.size();
    std::uint64_t end = 0;
    const auto damage = write_lists(
        column, batch.rows, read,
        [&](bool there) { ends.push_back(static_cast<std::uint32_t>(end) | (there ? 0 : value_blocks::missing)); },
        [&](std::string_view piece) {
          end += piece.size();
          if (end > value_blocks::decoded_bytes_max) {
            throw error(errc::limit, str_cat(file_.path(), ": the column '", column.path,
                                             "' has a batch of 2 GiB or more of lists; write smaller batches"));
          }
          ends.back() = static_cast<std::uint32_t>(end);
        });
    if (damage) fail(offset, column, *damage);
    assert(ends.size() == before + batch.rows);
    static_cast<void>(before);
  }

  void note_nulls(const arrow_column& column, const lists_with_nulls& nulls) {
    if (nulls.misshapen != 0) {
      table_.notes.push_back(note_of_misshapen_arrays(file_.path(), column.path, array_of(column)->shape,
                                                      nulls.misshapen, nulls.first_misshapen));
    }
    if (nulls.count == 0) return;
    table_.notes.push_back(note_of_lists_with_nulls(file_.path(), column.path, nulls.count, nulls.first));
  }

  // Values of batches that are packed: each batch is a block. Where they end is known from the offsets, which are expanded here.
  void add_packed_values(const arrow_column& column, record_field& field, lists_with_nulls& nulls) const {
    auto packed = std::make_shared<value_blocks>();
    packed->packed_by = packed_by_;
    std::vector<arrow_expander::values> blocks;
    for_each_batch([&](const arrow_batch& batch) {
      if (batch.rows == 0) return;
      const arrow_buffer& values = values_of(batch, column);
      const std::uint64_t all = expanded_bytes_of(batch, values, column);
      blocks.push_back({.codec = batch.codec, .bytes = all});
      add_ends(batch, column, all, blocks.back().begin, packed->ends, nulls);
      const std::uint64_t wanted = packed->ends.back() & ~value_blocks::missing;
      if (wanted != all) packed->expand_bytes_max = std::max(packed->expand_bytes_max, all);
      packed->blocks.push_back(
          {.first_row = batch.first_row, .rows = batch.rows, .offset = values.offset, .bytes = values.bytes});
    });
    const auto expander = std::make_shared<arrow_expander>(std::move(blocks));
    packed->expander = expander;
    if (column.what == kind::bytes || column.what == kind::fixed) find_kind(*packed, *expander, column, field);
    field.packed = std::move(packed);
  }

  // Those that a batch has numbers of.
  std::shared_ptr<const arrow_values> dictionary_of(const arrow_batch& batch, const arrow_column& column) {
    const auto found = std::find_if(batch.dictionaries.begin(), batch.dictionaries.end(),
                                    [&](const auto& each) { return each.first == column.dictionary; });
    if (found == batch.dictionaries.end())
      fail(batch.buffers[column.buffer].offset, column, "a batch before the dictionary that it has numbers of");
    std::shared_ptr<const arrow_values>& known = dictionaries_[found->second];
    if (!known) known = read_dictionary(contents_.dictionaries[found->second], column);
    return known;
  }
  std::shared_ptr<const arrow_values> read_dictionary(const arrow_dictionary& from, const arrow_column& column) const {
    constexpr std::size_t buffers_of_texts = 3;
    arrow_column values = column;
    values.buffer = 0;
    values.validities.clear();
    auto read = std::make_shared<arrow_values>();
    for (const arrow_batch& piece : from.pieces) {
      if (piece.buffers.size() != buffers_of_texts) {
        fail(piece.buffers.empty() ? 0 : piece.buffers.front().offset, column,
             str_cat("a dictionary of ", piece.buffers.size(), " buffers where texts have ", buffers_of_texts));
      }
      const arrow_buffer& where = piece.buffers.back();
      const std::vector<std::byte> bytes = read_buffer(piece, where, values);
      for_each_range(piece, values, [&](std::uint64_t, std::uint64_t begin, std::uint64_t end, bool there) {
        if (end > bytes.size()) fail(where.offset, column, "a value that ends behind its buffer");
        const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + begin, end - begin);
        read->add(there ? std::optional(text) : std::nullopt, where.offset + begin);
      });
    }
    return read;
  }

  bool is_dictionary_packed(const arrow_column& column) const {
    const auto is_packed = [](const arrow_batch& each) { return each.codec != arrow_codec::none; };
    return std::any_of(contents_.batches.begin(), contents_.batches.end(), [&](const arrow_batch& batch) {
      return is_packed(batch) ||
             std::any_of(batch.dictionaries.begin(), batch.dictionaries.end(), [&](const auto& each) {
               const std::vector<arrow_batch>& pieces = contents_.dictionaries[each.second].pieces;
               return each.first == column.dictionary && std::any_of(pieces.begin(), pieces.end(), is_packed);
             });
    });
  }

  // Calls each(row, number of its value, or nothing of a null), of a batch.
  template <class Each>
  void for_each_of_dictionary(const arrow_batch& batch, const arrow_column& column, const arrow_values& values,
                              const Each& each) const {
    const arrow_buffer& where = batch.buffers[column.buffer + 1];
    const std::vector<std::byte> indices =
        read_buffer(batch, where, batch.rows * size_bytes(column.index_type), column);
    const auto validity = validity_of(batch, column);
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      std::optional<std::size_t> found;
      if (is_there(validity, row)) {
        const std::int64_t number = arrow_index(indices, column.index_type, row);
        if (number < 0 || static_cast<std::uint64_t>(number) >= values.size()) {
          fail(where.offset, column,
               str_cat("the number ", number, " in row ", row, " of a batch, where its dictionary has ", values.size(),
                       " values"));
        }
        if (values.is_there(static_cast<std::size_t>(number))) found = static_cast<std::size_t>(number);
      }
      each(row, found);
    }
  }

  // A row's value lies where its dictionary has it.
  void place_dictionary_values(const arrow_column& column, record_field& field) {
    field.places.resize(contents_.rows, {.offset = value_place::missing});
    for (const arrow_batch& batch : contents_.batches) {
      if (batch.rows == 0) continue;
      const std::shared_ptr<const arrow_values> values = dictionary_of(batch, column);
      for_each_of_dictionary(batch, column, *values, [&](std::uint64_t row, std::optional<std::size_t> number) {
        if (!number) return;
        field.places[batch.first_row + row] = {.offset = values->offset(*number), .bytes = (*values)[*number].size()};
      });
    }
    if (column.what != kind::text) find_kind(field);
  }

  // Each batch is a block of numbers.
  void add_packed_dictionary_values(const arrow_column& column, record_field& field) {
    auto packed = std::make_shared<value_blocks>();
    packed->packed_by = packed_by_.empty() ? "dictionary" : str_cat(packed_by_, ", dictionary");
    std::vector<arrow_dictionary_expander::numbers> blocks;
    bool is_kind_known = column.what == kind::text;
    for (const arrow_batch& batch : contents_.batches) {
      if (batch.rows == 0) continue;
      const std::shared_ptr<const arrow_values> values = dictionary_of(batch, column);
      const arrow_buffer& where = batch.buffers[column.buffer + 1];
      std::uint64_t end = 0;
      for_each_of_dictionary(batch, column, *values, [&](std::uint64_t, std::optional<std::size_t> number) {
        const std::span<const std::byte> value = number ? (*values)[*number] : std::span<const std::byte>();
        end += value.size();
        if (end > value_blocks::decoded_bytes_max) {
          throw error(errc::limit, str_cat(file_.path(), ": the column '", column.path, "' has a batch of more than ",
                                           value_blocks::decoded_bytes_max,
                                           " bytes, as its dictionary's values; write smaller batches"));
        }
        packed->ends.push_back(static_cast<std::uint32_t>(end) | (number ? 0 : value_blocks::missing));
        if (is_kind_known || value.empty()) return;
        take_kind(value.first(std::min<std::size_t>(value.size(), kind_bytes)), field);
        is_kind_known = true;
      });
      blocks.push_back({batch.codec, expanded_bytes_of(batch, where, column), values});
      packed->expand_bytes_max = std::max(packed->expand_bytes_max, blocks.back().bytes);
      packed->blocks.push_back(
          {.first_row = batch.first_row, .rows = batch.rows, .offset = where.offset, .bytes = where.bytes});
    }
    packed->expander = std::make_shared<arrow_dictionary_expander>(std::move(blocks), column.index_type);
    field.packed = std::move(packed);
  }

  static const arrow_buffer& values_of(const arrow_batch& batch, const arrow_column& column) {
    const bool has_offsets = column.what == kind::bytes || column.what == kind::text;
    return batch.buffers[is_list(column) ? column.element_buffer : column.buffer + (has_offsets ? 2 : 1)];
  }

  //   all     bytes that the batch's values become, value_blocks::decoded_bytes_max at most
  //   begin   set to where the first row's value begins in them
  void add_ends(const arrow_batch& batch, const arrow_column& column, std::uint64_t all, std::uint64_t& begin,
                std::vector<std::uint32_t>& ends, lists_with_nulls& nulls) const {
    const bool of_lists = is_list(column);
    const std::uint64_t element_bytes = of_lists ? size_bytes(column.type) : 1;
    const std::vector<std::byte> elements = of_lists ? validity_of_elements(batch, column) : std::vector<std::byte>();
    const auto add = [&](std::uint64_t row, std::uint64_t from, std::uint64_t to, bool there) {
      if (to > all / element_bytes)
        fail(values_of(batch, column).offset, column,
             str_cat("a value that ends behind its buffer, in row ", row, " of a batch"));
      if (row == 0) begin = from * element_bytes;
      const std::uint64_t end = to * element_bytes - begin;
      const bool is_value = there && (!of_lists || is_without_nulls(elements, from, to, batch.first_row + row, nulls));
      ends.push_back(static_cast<std::uint32_t>(end) | (is_value ? 0 : value_blocks::missing));
    };
    if (of_lists) return for_each_list(batch, column, nulls, add);
    if (column.what == kind::bytes || column.what == kind::text) return for_each_range(batch, column, add);
    const auto validity = validity_of(batch, column);
    for (std::uint64_t row = 0; row < batch.rows; ++row)
      add(row, row * column.size, (row + 1) * column.size, is_there(validity, row));
  }

  // Of a batch that becomes large no more is expanded than that takes.
  void find_kind(const value_blocks& packed, const arrow_expander& expander, const arrow_column& column,
                 record_field& field) const {
    for (std::size_t i = 0; i < packed.blocks.size(); ++i) {
      const value_blocks::block& block = packed.blocks[i];
      if (packed.decoded_bytes(i) == 0) continue;
      for (std::uint64_t row = block.first_row; row < block.first_row + block.rows; ++row) {
        const std::optional<value_blocks::value> first = packed.value_of(row, i);
        if (!first || first->bytes == 0) continue;
        std::vector<std::byte> start(std::min<std::uint64_t>(first->bytes, kind_bytes));
        if (const std::optional<std::string> reason =
                expander.expand_start(i, file_.read(block.offset, block.bytes), first->begin, start))
          fail(block.offset, column, *reason);
        return take_kind(start, field);
      }
    }
  }

  static void take_kind(std::span<const std::byte> value, record_field& field) {
    const value_kind found = kind_of_value(value);
    field.extension = found.extension;
    if (found.kind == field_kind::picture) field.kind = field_kind::picture;
  }

  void find_kind(record_field& field) const {
    const auto first = std::find_if(field.places.begin(), field.places.end(),
                                    [](const value_place& each) { return each.is_there() && each.bytes != 0; });
    if (first == field.places.end()) return;
    take_kind(file_.read(first->offset, std::min(first->bytes, kind_bytes)), field);
  }

  template <class Each>
  void for_each_batch(const Each& each) const {
    for (const arrow_batch& batch : contents_.batches) each(batch);
  }

  void add_numbers(const arrow_column& column, const std::string& name) {
    record_numbers numbers{.name = name};
    if (column.what == kind::decimal) return add_decimals(column, std::move(numbers));
    const bool is_real = column.what == kind::number && !is_integer(column.type);
    if (is_real) numbers.type = column.type;
    for_each_batch([&](const arrow_batch& batch) {
      const auto validity = validity_of(batch, column);
      note_missing(batch, validity, numbers);
      const arrow_buffer& values = batch.buffers[column.buffer + 1];
      if (column.what == kind::truth) {
        const std::vector<std::byte> bits = read_buffer(batch, values, (batch.rows + 7) / 8, column);
        for (std::uint64_t row = 0; row < batch.rows; ++row) {
          numbers.whole.push_back(std::to_integer<unsigned>(bits[row / 8]) >> (row % 8) & 1U);
        }
        return;
      }
      const std::vector<std::byte> bytes = read_buffer(batch, values, batch.rows * size_bytes(column.type), column);
      if (is_real) {
        numbers.bytes.insert(numbers.bytes.end(), bytes.begin(), bytes.end());
      } else {
        append_integers(bytes, column.type, str_cat(file_.path(), ": the column '", column.path, "'"), numbers.whole);
      }
    });
    table_.numbers.push_back(std::move(numbers));
  }

  static void note_missing(const arrow_batch& batch, const std::vector<std::vector<std::byte>>& validity,
                           record_numbers& numbers) {
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      if (!is_there(validity, row)) numbers.missing.push_back(batch.first_row + row);
    }
  }

  // Whole where there is no place behind the point. What stands in the place of a null is no number.
  void add_decimals(const arrow_column& column, record_numbers numbers) {
    const bool is_real = column.scale != 0;
    if (is_real) numbers.type = dtype::f64;
    for_each_batch([&](const arrow_batch& batch) {
      const auto validity = validity_of(batch, column);
      note_missing(batch, validity, numbers);
      const std::vector<std::byte> bytes =
          read_buffer(batch, batch.buffers[column.buffer + 1], batch.rows * column.size, column);
      for (std::uint64_t row = 0; row < batch.rows; ++row) {
        const unscaled_decimal unscaled =
            is_there(validity, row)
                ? unscaled_of_little_endian(std::span(bytes).subspan(row * column.size, column.size))
                : 0;
        if (is_real) {
          const double real = real_of_decimal(unscaled, column.scale);
          const auto of_real = std::as_bytes(std::span(&real, 1));
          numbers.bytes.insert(numbers.bytes.end(), of_real.begin(), of_real.end());
        } else if (unscaled < std::numeric_limits<std::int64_t>::min() ||
                   unscaled > std::numeric_limits<std::int64_t>::max()) {
          throw error(errc::unsupported, str_cat(file_.path(), ": the column '", column.path,
                                                 "' has a number that does not fit 64 bits in row ",
                                                 batch.first_row + row, "; leave it out"));
        } else {
          numbers.whole.push_back(static_cast<std::int64_t>(unscaled));
        }
      }
    });
    table_.numbers.push_back(std::move(numbers));
  }

  void add_classes(const arrow_column& column, const std::string& name) {
    if (column.what != kind::text && column.what != kind::bytes) {
      throw error(errc::unsupported, str_cat(file_.path(), ": the column '", column.path,
                                             "' has lists, or values of a fixed size, which are no classes"));
    }
    few_texts texts;
    const auto add = [&](std::optional<std::string_view> text) {
      if (!text) return texts.add_missing();
      if (!texts.add(*text)) refuse_texts(name, file_.path());
    };
    if (column.dictionary >= 0) {
      for (const arrow_batch& batch : contents_.batches) {
        if (batch.rows == 0) continue;
        const std::shared_ptr<const arrow_values> values = dictionary_of(batch, column);
        for_each_of_dictionary(batch, column, *values, [&](std::uint64_t, std::optional<std::size_t> number) {
          add(number ? std::optional(values->text(*number)) : std::nullopt);
        });
      }
      classes_.emplace_back(name, std::move(texts));
      return;
    }
    for_each_batch([&](const arrow_batch& batch) {
      const arrow_buffer& values = batch.buffers[column.buffer + 2];
      const std::vector<std::byte> bytes = read_buffer(batch, values, column);
      for_each_range(batch, column, [&](std::uint64_t, std::uint64_t begin, std::uint64_t end, bool there) {
        if (there && end > bytes.size()) fail(values.offset, column, "a value that ends behind its buffer");
        add(there ? std::optional(std::string_view(reinterpret_cast<const char*>(bytes.data()) + begin, end - begin))
                  : std::nullopt);
      });
    });
    classes_.emplace_back(name, std::move(texts));
  }

 public:
  /// Columns of texts, to be numbered over all files.
  std::vector<std::pair<std::string, few_texts>> classes_;
  units_of_file units_;

 private:
  const file_bytes& file_;
  const table_options& options_;
  arrow_contents contents_;
  hub_features features_;
  record_table table_;
  std::vector<std::string> names_;
  std::string numbers_;
  std::string packed_by_;                                                    // of the batches, where any is
  std::map<std::size_t, std::shared_ptr<const arrow_values>> dictionaries_;  // by place in arrow_contents::dictionaries
};

}  // namespace

dataset open_arrow_files(const input_files& from, const table_options& options) {
  const std::vector<std::string>& paths = from.names();
  std::vector<record_table> tables(paths.size());
  std::vector<std::vector<std::pair<std::string, few_texts>>> classes(paths.size());
  std::vector<units_of_file> units(paths.size());
  std::vector<sized_file> sized(paths.size());
  for_each_parallel(paths.size(), threads_for_walking(options.threads), [&](std::size_t i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    table_reader reader(*file, options);
    tables[i] = reader.read();
    classes[i] = std::move(reader.classes_);
    units[i] = std::move(reader.units_);
  });
  column_units of_all;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (tables[i].samples != 0) of_all.add(paths[i], units[i]);
  }
  add_class_columns(tables, classes);
  return join_tables(std::move(tables), from, sized);
}

}  // namespace leat::datasets
