#include "datasets/arrow_file.hpp"

#include "base/text.hpp"
#include "datasets/file_bytes.hpp"
#include "datasets/file_window.hpp"
#include "datasets/flat_buffer.hpp"

#include <leat/error.hpp>

#include <cstring>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::string_view magic("ARROW1\0\0", 8);
constexpr std::uint32_t continuation = 0xFFFFFFFF;
constexpr std::uint64_t metadata_bytes_max = std::uint64_t{256} << 20;
constexpr int depth_max = 64;
constexpr std::size_t columns_max = 65'535;

// Numbers of Schema.fbs.
enum class type_id : std::uint8_t {
  none,
  null,
  integer,
  real,
  binary,
  text,
  truth,
  decimal,
  date,
  time,
  timestamp,
  interval,
  list,
  structure,
  one_of,
  fixed_binary,
  fixed_list,
  map,
  duration,
  large_binary,
  large_text,
  large_list,
  runs,
  binary_view,
  text_view,
  list_view,
  large_list_view
};

std::optional<dtype> number_of(type_id id, const std::optional<flat_table>& type, bool& is_signed) {
  if (!type) return std::nullopt;
  if (id == type_id::integer) {
    const auto bits = type->number<std::int32_t>(0);
    is_signed = type->number<std::uint8_t>(1) != 0;
    switch (bits) {
      case 8:
        return is_signed ? dtype::i8 : dtype::u8;
      case 16:
        return is_signed ? dtype::i16 : dtype::u16;
      case 32:
        return is_signed ? dtype::i32 : dtype::u32;
      case 64:
        return is_signed ? dtype::i64 : dtype::u64;
      default:
        return std::nullopt;
    }
  }
  if (id != type_id::real) return std::nullopt;
  switch (type->number<std::int16_t>(0)) {
    case 0:
      return dtype::f16;
    case 1:
      return dtype::f32;
    case 2:
      return dtype::f64;
    default:
      return std::nullopt;
  }
}

/// Lays the buffers of a batch out by the schema: depth first.
class schema_reader {
 public:
  explicit schema_reader(arrow_contents& out) : out_(out) {}

  void read(const flat_table& schema, const std::string& path) {
    if (schema.number<std::int16_t>(0) != 0) {
      throw error(errc::unsupported,
                  str_cat(path, ": its numbers are big-endian; read it where it was written, and write it anew"));
    }
    const flat_table::elements fields = schema.vector(1, 4);
    for (std::size_t i = 0; i < fields.count; ++i) read_field(schema.table_at(fields, i), "", {}, true, 1);
    const flat_table::elements keys = schema.vector(2, 4);
    for (std::size_t i = 0; i < keys.count; ++i) {
      const flat_table pair = schema.table_at(keys, i);
      if (pair.text(0) == "huggingface") out_.hub_features = std::string(pair.text(1));
    }
  }
  [[nodiscard]] std::size_t buffers() const noexcept { return buffers_; }

 private:
  // `wanted`: it is a column, and not within a list.
  void read_field(const flat_table& field, const std::string& above, const std::vector<std::size_t>& validities,
                  bool wanted, int depth) {
    if (depth > depth_max) field.fail("columns within columns, more than 64");
    if (++seen_ > columns_max)
      throw error(errc::limit, str_cat("an Arrow file of more than ", columns_max, " columns; write it with fewer"));
    arrow_column column;
    column.path = above.empty() ? std::string(field.text(0)) : str_cat(above, ".", field.text(0));
    path_bytes_ += column.path.size();
    if (path_bytes_ > (std::size_t{64} << 20)) field.fail("names of columns without end");
    column.validities = validities;
    column.buffer = buffers_;
    const auto id = static_cast<type_id>(field.number<std::uint8_t>(2));
    const std::optional<flat_table> type = field.table(3);
    const flat_table::elements children = field.vector(5, 4);
    if (field.table(4)) {  // Its values are numbers of a dictionary's.
      buffers_ += 2;
      column.not_read = "is a dictionary's; write it as plain values";
      return add(std::move(column), wanted);
    }
    const auto descend = [&](bool as_columns, std::vector<std::size_t> within) {
      for (std::size_t i = 0; i < children.count; ++i) {
        read_field(field.table_at(children, i), column.path, within, as_columns && wanted, depth + 1);
      }
    };
    switch (id) {
      case type_id::null:
        column.not_read = "has nothing but nulls";
        return add(std::move(column), wanted);
      case type_id::integer:
      case type_id::real: {
        buffers_ += 2;
        const std::optional<dtype> number = number_of(id, type, column.is_signed);
        if (number) {
          column.what = arrow_column::kind::number;
          column.type = *number;
        } else {
          column.not_read = "has numbers of another width than 8 to 64 bits";
        }
        return add(std::move(column), wanted);
      }
      case type_id::truth:
        buffers_ += 2;
        column.what = arrow_column::kind::truth;
        return add(std::move(column), wanted);
      case type_id::binary:
      case type_id::text:
      case type_id::large_binary:
      case type_id::large_text: {
        buffers_ += 3;
        const bool is_large = id == type_id::large_binary || id == type_id::large_text;
        const bool is_text = id == type_id::text || id == type_id::large_text;
        column.what = is_text ? arrow_column::kind::text : arrow_column::kind::bytes;
        column.offset_bytes = is_large ? 8 : 4;
        return add(std::move(column), wanted);
      }
      case type_id::fixed_binary: {
        buffers_ += 2;
        const std::int32_t size = type ? type->number<std::int32_t>(0) : 0;
        if (size < 0) field.fail("values of a size below zero");
        column.what = arrow_column::kind::fixed;
        column.size = static_cast<std::uint64_t>(size);
        return add(std::move(column), wanted);
      }
      case type_id::structure:
        buffers_ += 1;
        {
          std::vector<std::size_t> within = validities;
          within.push_back(column.buffer);
          descend(true, std::move(within));
        }
        return;
      case type_id::list:
      case type_id::large_list:
      case type_id::fixed_list:
      case type_id::map: {
        const bool is_fixed = id == type_id::fixed_list;
        buffers_ += is_fixed ? 1 : 2;
        column.not_read = "is a list of other things than numbers";
        if (children.count == 1 && id != type_id::map) {
          const flat_table child = field.table_at(children, 0);
          const std::optional<dtype> number =
              number_of(static_cast<type_id>(child.number<std::uint8_t>(2)), child.table(3), column.is_signed);
          if (number && !child.table(4)) {
            column.what = is_fixed ? arrow_column::kind::fixed_list : arrow_column::kind::list;
            column.not_read.clear();
            column.type = *number;
            column.offset_bytes = id == type_id::large_list ? 8 : 4;
            column.element_buffer = buffers_ + 1;  // behind their validity
            const std::int32_t size = is_fixed && type ? type->number<std::int32_t>(0) : 0;
            if (size < 0) field.fail("lists of a size below zero");
            column.size = static_cast<std::uint64_t>(size);
          }
        }
        descend(false, {});
        return add(std::move(column), wanted);
      }
      case type_id::one_of:
        buffers_ += type && type->number<std::int16_t>(0) != 0 ? 2 : 1;
        column.not_read = "is a union";
        descend(false, {});
        return add(std::move(column), wanted);
      case type_id::runs:
        column.not_read = "has runs of values";
        descend(false, {});
        return add(std::move(column), wanted);
      case type_id::decimal:
      case type_id::date:
      case type_id::time:
      case type_id::timestamp:
      case type_id::interval:
      case type_id::duration:
        buffers_ += 2;
        column.not_read = "has dates, times or decimals; write them as numbers";
        return add(std::move(column), wanted);
      case type_id::none:
      case type_id::binary_view:
      case type_id::text_view:
      case type_id::list_view:
      case type_id::large_list_view:
        break;
    }
    throw error(
        errc::unsupported,
        str_cat("the column '", column.path,
                "' is of views, or of a type that is not known; cast it to string, binary or list, and write it anew"));
  }

  void add(arrow_column column, bool wanted) {
    if (wanted) out_.columns.push_back(std::move(column));
  }

  arrow_contents& out_;
  std::size_t buffers_ = 0;
  std::size_t seen_ = 0;
  std::size_t path_bytes_ = 0;
};

class message_walker {
 public:
  explicit message_walker(const file_bytes& file) : file_(file), window_(file), schema_(out_) {}

  arrow_contents read() {
    std::uint64_t at = begins_file() ? magic.size() : 0;
    const bool is_file = at != 0;
    const std::uint64_t end = is_file ? begin_of_footer() : file_.size();
    bool has_schema = false;
    while (end - at >= 8) {
      const std::uint64_t begin = at;
      auto bytes = std::uint64_t{window_.at(at, 4).number<std::uint32_t>()};
      at += 4;
      if (bytes == continuation) {
        bytes = window_.at(at, 4).number<std::uint32_t>();
        at += 4;
      }
      if (bytes == 0) break;  // the end of the stream
      if (bytes > metadata_bytes_max || bytes > end - at)
        fail_at(file_.path(), begin, str_cat("a message of ", bytes, " bytes"));
      const std::span<const std::byte> view = window_.view(at, bytes);
      const std::vector<std::byte> metadata(view.begin(), view.end());
      const flat_table message = flat_table::root(file_.path(), metadata, at);
      const std::uint64_t body = at + bytes;
      const auto body_bytes = message.number<std::int64_t>(3);
      if (body_bytes < 0 || static_cast<std::uint64_t>(body_bytes) > end - body) {
        fail_at(file_.path(), begin,
                str_cat("a body of ", body_bytes, " bytes, behind the end of the messages at ", end));
      }
      enum { schema = 1, record_batch = 3 };
      const auto kind = message.number<std::uint8_t>(1);
      const std::optional<flat_table> header = message.table(2);
      if (!header) message.fail("a message without a header");
      if (kind == schema && !has_schema) {
        has_schema = true;
        schema_.read(*header, file_.path());
      } else if (kind == record_batch) {
        if (!has_schema) message.fail("a batch before the schema");
        read_batch(*header, body, static_cast<std::uint64_t>(body_bytes));
      }
      at = body + static_cast<std::uint64_t>(body_bytes);
    }
    if (!has_schema) fail_at(file_.path(), 0, "no schema in an Arrow file");
    constexpr std::uint64_t padding_max = 16;
    if (is_file && end - at > padding_max) fail_at(file_.path(), at, "the batches end before the footer of the file");
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool begins_file() {
    const std::vector<std::byte> start = file_.read(0, magic.size());
    return start.size() == magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
  }

  // A file ends with its footer, the footer's length and the magic number: one that was cut between two batches lacks them.
  std::uint64_t begin_of_footer() const {
    constexpr std::string_view last = magic.substr(0, 6);
    constexpr std::uint64_t tail_bytes = 4 + last.size();
    const std::uint64_t size = file_.size();
    const std::vector<std::byte> tail =
        size < magic.size() + tail_bytes ? std::vector<std::byte>() : file_.read(size - tail_bytes, tail_bytes);
    if (tail.size() != tail_bytes || std::memcmp(tail.data() + 4, last.data(), last.size()) != 0)
      fail_at(file_.path(), size, "an Arrow file that does not end as one");
    const std::uint64_t footer_bytes = number_at<std::uint32_t>(tail, 0);
    if (footer_bytes > size - magic.size() - tail_bytes)
      fail_at(file_.path(), size - tail_bytes, str_cat("a footer of ", footer_bytes, " bytes"));
    return size - tail_bytes - footer_bytes;
  }

  void read_batch(const flat_table& header, std::uint64_t body, std::uint64_t body_bytes) {
    arrow_batch batch;
    const auto rows = header.number<std::int64_t>(0);
    // Values take bytes, if they are not null.
    constexpr std::uint64_t rows_always = std::uint64_t{1} << 20;
    if (rows < 0 ||
        (static_cast<std::uint64_t>(rows) > rows_always && static_cast<std::uint64_t>(rows) / 8 > body_bytes)) {
      header.fail(str_cat("a batch of ", rows, " rows in ", body_bytes, " bytes"));
    }
    if (header.table(3)) {
      throw error(errc::unsupported,
                  str_cat(file_.path(),
                          ": its batches are compressed, which leat does not read yet; write it without compression, "
                          "or as Parquet with compression none"));
    }
    batch.first_row = out_.rows;
    batch.rows = static_cast<std::uint64_t>(rows);
    constexpr std::size_t buffer_bytes = 16;
    const flat_table::elements buffers = header.vector(2, buffer_bytes);
    if (buffers.count != schema_.buffers()) {
      header.fail(str_cat("a batch of ", buffers.count, " buffers where the schema has ", schema_.buffers()));
    }
    for (std::size_t i = 0; i < buffers.count; ++i) {
      const auto offset = header.number_at<std::uint64_t>(buffers, i * buffer_bytes);
      const auto bytes = header.number_at<std::uint64_t>(buffers, i * buffer_bytes + 8);
      if (offset > body_bytes || bytes > body_bytes - offset) {
        header.fail(str_cat("a buffer of ", bytes, " bytes at ", offset, " in a body of ", body_bytes));
      }
      batch.buffers.push_back({.offset = body + offset, .bytes = bytes});
    }
    if (batch.rows > (std::uint64_t{1} << 40) - out_.rows) header.fail("more rows than a file has room for");
    out_.rows += batch.rows;
    out_.batches.push_back(std::move(batch));
  }

  const file_bytes& file_;
  file_window window_;
  arrow_contents out_;
  schema_reader schema_;
};

}  // namespace

bool is_arrow(std::span<const std::byte> start) noexcept {
  if (start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0) return true;
  // A stream: a continuation, the bytes of a schema, and where its table begins in it.
  if (start.size() < 12 || number_at<std::uint32_t>(start, 0) != continuation) return false;
  const auto bytes = number_at<std::uint32_t>(start, 4);
  const auto root = number_at<std::uint32_t>(start, 8);
  return bytes != 0 && bytes % 8 == 0 && bytes <= metadata_bytes_max && root >= 4 && root < bytes;
}

arrow_contents read_arrow(const file_bytes& file) {
  try {
    return message_walker(file).read();
  } catch (const error& said) {
    // Errors of the schema's reader do not name the file.
    if (std::string_view(said.what()).starts_with(file.path())) throw;
    throw error(said.code(), str_cat(file.path(), ": ", said.what()));
  }
}

}  // namespace leat::datasets
