// Arrow IPC files and streams: each a table of its own, one after another.
#include "base/near_miss.hpp"
#include "base/text.hpp"
#include "datasets/arrow_file.hpp"
#include "datasets/cursor.hpp"
#include "datasets/hub_features.hpp"
#include "datasets/input_files.hpp"
#include "datasets/integers.hpp"
#include "datasets/parallel.hpp"
#include "datasets/patterns.hpp"
#include "datasets/record_columns.hpp"
#include "datasets/record_rows.hpp"

#include <leat/dataset.hpp>
#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace leat {
namespace datasets {
namespace {

using kind = arrow_column::kind;

bool is_in(std::span<const std::string> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Reads a file's columns, batch after batch.
class table_reader {
 public:
  table_reader(const file_bytes& file, const table_options& options)
      : file_(file),
        options_(options),
        contents_(read_arrow(file)),
        features_(read_hub_features(contents_.hub_features)) {}

  record_table read() {
    table_.format = "arrow";
    table_.title = file_.path();
    table_.samples = contents_.rows;
    for (const arrow_column& column : contents_.columns) add(column);
    for (const auto* asked : {&options_.fields, &options_.columns}) {
      for (const std::string& name : *asked) check_is_there(name);
    }
    if (!numbers_.empty()) {
      note(str_cat("numbers that are not kept, as nobody asked for them: ", numbers_, "; name them as columns"));
    }
    if (table_.fields.empty() && table_.numbers.empty() && classes_.empty() && !contents_.columns.empty()) {
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
    if (!column.not_read.empty()) {
      if (asked)
        throw error(errc::unsupported, str_cat(file_.path(), ": the column '", column.path, "' ", column.not_read));
      return note(str_cat("left out: the column '", column.path, "' ", column.not_read));
    }
    const hub_features::class_names* const labels = features_.labels_of(column.path);
    if (column.what == kind::number || column.what == kind::truth) {
      const bool is_label = name == "label" || name == "cls" || name == "class";
      if (!asked && !((is_label || labels != nullptr) && options_.fields.empty())) {
        str_append(numbers_, numbers_.empty() ? "" : ", ", name);
        return;
      }
      add_numbers(column, name);
      if (labels != nullptr) name_classes(name, labels->names);
      return;
    }
    if (as_column) return add_classes(column, name);
    const bool is_path = column.path.ends_with(".path") &&
                         features_.is_picture(std::string_view(column.path).substr(0, column.path.size() - 5));
    if (!asked && (!options_.fields.empty() || is_path)) return;
    add_field(column, name, is_picture);
  }

  void name_classes(const std::string& name, std::vector<std::string> names) {
    const bool is_usual = name == "label" || name == "cls" || name == "class";
    if (!table_.class_column.empty() && !is_usual) {
      return note(
          str_cat("classes() has the names of '", table_.class_column, "'; those of '", name, "' are left out"));
    }
    table_.class_column = name;
    table_.classes = std::move(names);
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

  std::vector<std::byte> read_buffer(const arrow_buffer& buffer, std::uint64_t bytes,
                                     const arrow_column& column) const {
    if (buffer.bytes < bytes)
      fail(buffer.offset, column, str_cat("a buffer of ", buffer.bytes, " bytes where ", bytes, " are needed"));
    std::vector<std::byte> read = file_.read(buffer.offset, bytes);
    if (read.size() != bytes) fail(buffer.offset, column, "the file ends within a buffer");
    return read;
  }

  // Validity bits of a column and of the structs that it is in; empty where nothing is null.
  std::vector<std::vector<std::byte>> validity_of(const arrow_batch& batch, const arrow_column& column) const {
    std::vector<std::vector<std::byte>> all;
    std::vector<std::size_t> buffers = column.validities;
    buffers.push_back(column.buffer);
    for (const std::size_t each : buffers) {
      const arrow_buffer& buffer = batch.buffers[each];
      if (buffer.bytes != 0) all.push_back(read_buffer(buffer, (batch.rows + 7) / 8, column));
    }
    return all;
  }
  static bool is_there(const std::vector<std::vector<std::byte>>& validity, std::uint64_t row) {
    return std::all_of(validity.begin(), validity.end(), [&](const std::vector<std::byte>& bits) {
      return (std::to_integer<unsigned>(bits[row / 8]) >> (row % 8) & 1U) != 0;
    });
  }

  // Calls each(row, begin, end), of values of variable length, in units of the values' buffer; end < begin: a null.
  template <class Each>
  void for_each_range(const arrow_batch& batch, const arrow_column& column, const Each& each) const {
    if (batch.rows == 0) return;
    const auto validity = validity_of(batch, column);
    const arrow_buffer& where = batch.buffers[column.buffer + 1];
    const std::vector<std::byte> offsets = read_buffer(where, (batch.rows + 1) * column.offset_bytes, column);
    const auto offset = [&](std::uint64_t row) {
      return column.offset_bytes == 4 ? std::int64_t{number_at<std::int32_t>(offsets, row * 4)}
                                      : number_at<std::int64_t>(offsets, row * 8);
    };
    std::int64_t begin = offset(0);
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      const std::int64_t end = offset(row + 1);
      if (begin < 0 || end < begin)
        fail(where.offset, column, str_cat("offsets that go back, in row ", row, " of a batch"));
      if (is_there(validity, row)) each(row, static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end));
      begin = end;
    }
  }

  // Validity bits of a list's elements; empty where no element is null.
  std::vector<std::byte> validity_of_elements(const arrow_batch& batch, const arrow_column& column) const {
    const arrow_buffer& buffer = batch.buffers[column.element_buffer - 1];
    return buffer.bytes == 0 ? std::vector<std::byte>() : read_buffer(buffer, buffer.bytes, column);
  }
  // A null element has no value: the bytes in its place may be anything.
  void check_elements(std::span<const std::byte> validity, std::uint64_t begin, std::uint64_t end,
                      const arrow_column& column, std::uint64_t row) const {
    if (validity.empty()) return;
    for (std::uint64_t i = begin; i < end; ++i) {
      if (i / 8 < validity.size() && (std::to_integer<unsigned>(validity[i / 8]) >> (i % 8) & 1U) != 0) continue;
      throw error(errc::unsupported,
                  str_cat(file_.path(), ": the column '", column.path, "' has a list with a null in it, in row ", row,
                          "; fill it, or leave the column out of the fields"));
    }
  }

  void place(const arrow_batch& batch, const arrow_column& column, std::span<value_place> places) const {
    if (column.what == kind::bytes || column.what == kind::text || column.what == kind::list) {
      const bool is_list = column.what == kind::list;
      const arrow_buffer& values = batch.buffers[is_list ? column.element_buffer : column.buffer + 2];
      const std::uint64_t each_bytes = is_list ? size_bytes(column.type) : 1;
      const std::vector<std::byte> elements = is_list ? validity_of_elements(batch, column) : std::vector<std::byte>();
      return for_each_range(batch, column, [&](std::uint64_t row, std::uint64_t begin, std::uint64_t end) {
        if (end > values.bytes / each_bytes)
          fail(values.offset, column, str_cat("a value that ends behind its buffer, in row ", row, " of a batch"));
        places[row] = {.offset = values.offset + begin * each_bytes, .bytes = (end - begin) * each_bytes};
        if (is_list) check_elements(elements, begin, end, column, batch.first_row + row);
      });
    }
    const bool is_list = column.what == kind::fixed_list;
    const arrow_buffer& values = batch.buffers[is_list ? column.element_buffer : column.buffer + 1];
    const std::uint64_t each_bytes = column.size * (is_list ? size_bytes(column.type) : 1);
    if (each_bytes != 0 && batch.rows > values.bytes / each_bytes)
      fail(values.offset, column, "a buffer with fewer values than rows");
    const auto validity = validity_of(batch, column);
    const std::vector<std::byte> elements = is_list ? validity_of_elements(batch, column) : std::vector<std::byte>();
    for (std::uint64_t row = 0; row < batch.rows; ++row) {
      if (!is_there(validity, row)) continue;
      places[row] = {.offset = values.offset + row * each_bytes, .bytes = each_bytes};
      if (is_list) check_elements(elements, row * column.size, (row + 1) * column.size, column, batch.first_row + row);
    }
  }

  void add_field(const arrow_column& column, const std::string& name, bool is_picture) {
    record_field field{.name = name};
    field.kind = is_picture ? field_kind::picture : column.what == kind::text ? field_kind::text : field_kind::bytes;
    if (column.what == kind::fixed_list) {
      field.kind = field_kind::tensor;
      field.shape.push_back(static_cast<std::int64_t>(column.size));
    }
    if (column.what == kind::fixed_list || column.what == kind::list) field.type = column.type;
    field.places.resize(contents_.rows, {.offset = value_place::missing});
    for_each_batch([&](const arrow_batch& batch) {
      place(batch, column, std::span(field.places).subspan(batch.first_row, batch.rows));
    });
    if (column.what == kind::bytes || column.what == kind::fixed) find_kind(field);
    table_.fields.push_back(std::move(field));
  }

  void find_kind(record_field& field) const {
    const auto first = std::find_if(field.places.begin(), field.places.end(),
                                    [](const value_place& each) { return each.is_there() && each.bytes != 0; });
    if (first == field.places.end()) return;
    constexpr std::uint64_t looked_at = 512;
    const value_kind found = kind_of_value(file_.read(first->offset, std::min(first->bytes, looked_at)));
    field.extension = found.extension;
    if (found.kind == field_kind::picture) field.kind = field_kind::picture;
  }

  template <class Each>
  void for_each_batch(const Each& each) const {
    for (const arrow_batch& batch : contents_.batches) each(batch);
  }

  void add_numbers(const arrow_column& column, const std::string& name) {
    record_numbers numbers{.name = name};
    const bool is_real = column.what == kind::number && !is_integer(column.type);
    if (is_real) numbers.type = column.type;
    for_each_batch([&](const arrow_batch& batch) {
      const auto validity = validity_of(batch, column);
      for (std::uint64_t row = 0; row < batch.rows; ++row) {
        if (!is_there(validity, row)) numbers.missing.push_back(batch.first_row + row);
      }
      const arrow_buffer& values = batch.buffers[column.buffer + 1];
      if (column.what == kind::truth) {
        const std::vector<std::byte> bits = read_buffer(values, (batch.rows + 7) / 8, column);
        for (std::uint64_t row = 0; row < batch.rows; ++row) {
          numbers.whole.push_back(std::to_integer<unsigned>(bits[row / 8]) >> (row % 8) & 1U);
        }
        return;
      }
      const std::vector<std::byte> bytes = read_buffer(values, batch.rows * size_bytes(column.type), column);
      if (is_real) {
        numbers.bytes.insert(numbers.bytes.end(), bytes.begin(), bytes.end());
      } else {
        append_integers(bytes, column.type, str_cat(file_.path(), ": the column '", column.path, "'"), numbers.whole);
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
    for_each_batch([&](const arrow_batch& batch) {
      const arrow_buffer& values = batch.buffers[column.buffer + 2];
      const std::vector<std::byte> bytes = read_buffer(values, values.bytes, column);
      std::uint64_t next = 0;
      const auto skip_to = [&](std::uint64_t row) {
        for (; next < row; ++next) texts.add_missing();
      };
      for_each_range(batch, column, [&](std::uint64_t row, std::uint64_t begin, std::uint64_t end) {
        if (end > bytes.size()) fail(values.offset, column, "a value that ends behind its buffer");
        skip_to(row);
        ++next;
        if (!texts.add({reinterpret_cast<const char*>(bytes.data()) + begin, end - begin}))
          refuse_texts(name, file_.path());
      });
      skip_to(batch.rows);
    });
    classes_.emplace_back(name, std::move(texts));
  }

 public:
  /// Columns of texts, to be numbered over all files.
  std::vector<std::pair<std::string, few_texts>> classes_;

 private:
  const file_bytes& file_;
  const table_options& options_;
  arrow_contents contents_;
  hub_features features_;
  record_table table_;
  std::vector<std::string> names_;
  std::string numbers_;
};

}  // namespace

dataset open_arrow_files(const input_files& from, const table_options& options) {
  const std::vector<std::string>& paths = from.names();
  std::vector<record_table> tables(paths.size());
  std::vector<std::vector<std::pair<std::string, few_texts>>> classes(paths.size());
  std::vector<sized_file> sized(paths.size());
  for_each_parallel(paths.size(), threads_for_walking(options.threads), [&](std::size_t i) {
    const std::unique_ptr<file_bytes> file = from.open(paths[i]);
    sized[i] = {paths[i], file->size(), file->version()};
    table_reader reader(*file, options);
    tables[i] = reader.read();
    classes[i] = std::move(reader.classes_);
  });
  add_class_columns(tables, classes);
  return join_tables(std::move(tables), from, sized);
}

}  // namespace datasets

dataset open_arrow(std::span<const std::string> files, const table_options& options) {
  if (files.empty()) throw error(errc::usage, "open_arrow: no file was given; name one, as train.arrow");
  return datasets::open_arrow_files(*datasets::files_on_disk_of(files), options);
}

dataset open_arrow(std::initializer_list<std::string_view> files, const table_options& options) {
  return open_arrow(datasets::as_strings(files), options);
}

dataset open_arrow(const std::string& files, const table_options& options) {
  return open_arrow(std::span(&files, 1), options);
}

}  // namespace leat
