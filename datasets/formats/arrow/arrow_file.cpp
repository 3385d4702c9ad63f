#include "datasets/formats/arrow/arrow_file.hpp"

#include "base/text.hpp"
#include "datasets/codecs/lz4.hpp"
#include "datasets/codecs/zstd.hpp"
#include "datasets/files/buffered_file.hpp"
#include "datasets/files/file_bytes.hpp"
#include "datasets/files/flat_buffer.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
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

// Dates and times are whole numbers of a unit.
std::optional<dtype> time_of(type_id id, const flat_table& type, std::string& unit) {
  constexpr std::string_view units[] = {"seconds", "milliseconds", "microseconds", "nanoseconds"};
  constexpr std::string_view after_epoch = "since 1970-01-01";
  constexpr std::int16_t milliseconds = 1;  // where nothing is said
  const std::int16_t of_table = type.number<std::int16_t>(0, id == type_id::timestamp ? 0 : milliseconds);
  if (id == type_id::date) {
    const bool are_days = of_table == 0;
    unit = str_cat(are_days ? "days" : units[milliseconds], " ", after_epoch);
    return are_days ? dtype::i32 : dtype::i64;
  }
  if (of_table < 0 || of_table > 3) return std::nullopt;
  unit = units[of_table];
  switch (id) {
    case type_id::timestamp:
      str_append(unit, " ", after_epoch, type.text(1).empty() ? "" : " UTC");
      return dtype::i64;
    case type_id::duration:
      return dtype::i64;
    default:
      unit += " since midnight";
      return type.number<std::int32_t>(1, 32) == 32 ? dtype::i32 : dtype::i64;
  }
}

//   unit   set of dates and times
std::optional<dtype> number_of(type_id id, const std::optional<flat_table>& type, bool& is_signed, std::string& unit) {
  if (!type) return std::nullopt;
  if (id == type_id::date || id == type_id::time || id == type_id::timestamp || id == type_id::duration) {
    return time_of(id, *type, unit);
  }
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

  ///   version   of the metadata, as the message or the footer around the schema has it
  void read(const flat_table& schema, std::int16_t version, const std::string& path) {
    version_ = version;
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
  /// The last buffer of each column of views, behind which its values' buffers stand.
  [[nodiscard]] std::span<const std::size_t> views() const noexcept { return views_; }

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
    if (const std::optional<flat_table> encoding = field.table(4)) {
      buffers_ += 2;
      take_dictionary(*encoding, id, column);
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
      case type_id::real:
      case type_id::date:
      case type_id::time:
      case type_id::timestamp:
      case type_id::duration: {
        buffers_ += 2;
        const std::optional<dtype> number = number_of(id, type, column.is_signed, column.unit);
        if (number) {
          column.what = arrow_column::kind::number;
          column.type = *number;
        } else {
          column.not_read = "has numbers of another width than 8 to 64 bits, or times of a unit that is not known";
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
        column.not_read = "is a list of other things than numbers, texts and bytes";
        column.what = is_fixed ? arrow_column::kind::fixed_list : arrow_column::kind::list;
        column.offset_bytes = id == type_id::large_list ? 8 : 4;
        column.size = is_fixed ? size_of_lists(field) : 0;
        if (children.count == 1 && id != type_id::map) take_elements(field.table_at(children, 0), buffers_, column);
        descend(false, {});
        return add(std::move(column), wanted);
      }
      case type_id::one_of:
        buffers_ += type && type->number<std::int16_t>(0) != 0 ? 2 : 1;
        // Up to V4 unions had validity of their own.
        if (version_ < version_5) buffers_ += 1;
        column.not_read = "is a union";
        descend(false, {});
        return add(std::move(column), wanted);
      case type_id::runs:
        column.not_read = "has runs of values";
        descend(false, {});
        return add(std::move(column), wanted);
      case type_id::decimal: {
        buffers_ += 2;
        const std::int32_t bits = type ? type->number<std::int32_t>(2, 128) : 128;
        column.what = arrow_column::kind::decimal;
        column.size = static_cast<std::uint64_t>(bits) / 8;
        column.scale = type ? type->number<std::int32_t>(1) : 0;
        if (bits != 32 && bits != 64 && bits != 128) {
          column.not_read = str_cat("has decimals of ", bits, " bits; cast it to decimal128 or to float64");
        }
        return add(std::move(column), wanted);
      }
      case type_id::interval:
        buffers_ += 2;
        column.not_read = "has intervals of months and days, which are no number; write them as numbers";
        return add(std::move(column), wanted);
      case type_id::binary_view:
      case type_id::text_view:
        buffers_ += 2;
        views_.push_back(column.buffer + 1);
        column.what = id == type_id::text_view ? arrow_column::kind::text : arrow_column::kind::bytes;
        column.view = views_.size();
        return add(std::move(column), wanted);
      case type_id::list_view:
      case type_id::large_list_view:
        buffers_ += 3;
        column.not_read = "is of views of lists; cast it to lists, and write it anew";
        descend(false, {});
        return add(std::move(column), wanted);
      case type_id::none:
        break;
    }
    // How many buffers it has nobody knows, and so where those of the columns behind it lie.
    throw error(errc::unsupported, str_cat("the column '", column.path,
                                           "' is of a type that is not known; cast it to another, and write it anew"));
  }

  static std::uint64_t size_of_lists(const flat_table& field) {
    const std::optional<flat_table> type = field.table(3);
    const std::int32_t size = type ? type->number<std::int32_t>(0) : 0;
    if (size < 0) field.fail("lists of a size below zero");
    return static_cast<std::uint64_t>(size);
  }

  // What the elements of lists are: numbers, also of lists within them, or texts and bytes.
  //   buffer   the first one of the elements
  static void take_elements(flat_table elements, std::size_t buffer, arrow_column& column) {
    for (int depth = 0; depth < depth_max; ++depth) {
      if (elements.table(4)) return;  // of a dictionary
      const auto id = static_cast<type_id>(elements.number<std::uint8_t>(2));
      const flat_table::elements children = elements.vector(5, 4);
      if ((id == type_id::list || id == type_id::large_list || id == type_id::fixed_list) && children.count == 1) {
        const bool is_fixed = id == type_id::fixed_list;
        column.inner.push_back({.buffer = buffer,
                                .offset_bytes = is_fixed                    ? std::size_t{0}
                                                : id == type_id::large_list ? 8
                                                                            : 4,
                                .size = is_fixed ? size_of_lists(elements) : 0});
        buffer += is_fixed ? 1 : 2;
        elements = elements.table_at(children, 0);
        continue;
      }
      const bool is_large = id == type_id::large_binary || id == type_id::large_text;
      const bool is_text = id == type_id::text || id == type_id::large_text;
      if (column.inner.empty() && (is_large || is_text || id == type_id::binary)) {
        column.elements = is_text ? arrow_column::kind::text : arrow_column::kind::bytes;
        column.element_offset_bytes = is_large ? 8 : 4;
        column.element_buffer = buffer;
        column.not_read.clear();
        return;
      }
      const std::optional<dtype> number = number_of(id, elements.table(3), column.is_signed, column.unit);
      if (!number) return;
      column.type = *number;
      column.element_buffer = buffer + 1;  // behind their validity
      column.not_read.clear();
      return;
    }
  }

  // Values are numbers of a dictionary's. Which type the numbers have need not be said.
  static void take_dictionary(const flat_table& encoding, type_id values, arrow_column& column) {
    column.dictionary = encoding.number<std::int64_t>(0);
    if (column.dictionary < 0) {
      column.not_read = "is a dictionary's whose number is below zero; write it anew";
      return;
    }
    bool is_signed = true;
    std::string unit;
    const std::optional<flat_table> indices = encoding.table(1);
    const std::optional<dtype> type = indices ? number_of(type_id::integer, indices, is_signed, unit) : dtype::i32;
    const bool is_large = values == type_id::large_binary || values == type_id::large_text;
    const bool is_text = values == type_id::text || values == type_id::large_text;
    if (!type || (!is_text && !is_large && values != type_id::binary)) {
      column.not_read = "is a dictionary's, of other things than texts and bytes; write it as plain values";
      return;
    }
    column.index_type = *type;
    column.what = is_text ? arrow_column::kind::text : arrow_column::kind::bytes;
    column.offset_bytes = is_large ? 8 : 4;
  }

  void add(arrow_column column, bool wanted) {
    if (wanted) out_.columns.push_back(std::move(column));
  }

  static constexpr std::int16_t version_5 = 4;

  arrow_contents& out_;
  std::int16_t version_ = version_5;
  std::size_t buffers_ = 0;
  std::vector<std::size_t> views_;
  std::size_t seen_ = 0;
  std::size_t path_bytes_ = 0;
};

class message_walker {
 public:
  explicit message_walker(const file_bytes& file) : file_(file), buffer_(file), schema_(out_) {}

  arrow_contents read() {
    if (begins_file()) {
      read_file();
    } else {
      read_stream();
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool begins_file() {
    const std::vector<std::byte> start = file_.read(0, magic.size());
    return start.size() == magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0;
  }

  struct message_bytes {
    std::vector<std::byte> metadata;
    std::uint64_t at = 0;  // of the metadata
    [[nodiscard]] std::uint64_t body() const noexcept { return at + metadata.size(); }
  };
  // Its length, with or without the mark before it, and its metadata. Empty at the end of a stream.
  message_bytes message_at(std::uint64_t begin, std::uint64_t end) {
    std::uint64_t at = begin;
    if (end - at < 8) return {};
    auto bytes = std::uint64_t{buffer_.at(at, 4).number<std::uint32_t>()};
    at += 4;
    if (bytes == continuation) {
      bytes = buffer_.at(at, 4).number<std::uint32_t>();
      at += 4;
    }
    if (bytes > metadata_bytes_max || bytes > end - at)
      fail_at(file_.path(), begin, str_cat("a message of ", bytes, " bytes"));
    const std::span<const std::byte> view = buffer_.view(at, bytes);
    return {.metadata = {view.begin(), view.end()}, .at = at};
  }

  // Takes a schema or a batch; returns where its body ends.
  std::uint64_t take(const message_bytes& from, std::uint64_t end) {
    const flat_table message = flat_table::root(file_.path(), from.metadata, from.at);
    const auto body_bytes = message.number<std::int64_t>(3);
    if (body_bytes < 0 || static_cast<std::uint64_t>(body_bytes) > end - from.body()) {
      fail_at(file_.path(), from.at,
              str_cat("a body of ", body_bytes, " bytes, behind the end of the messages at ", end));
    }
    enum { schema = 1, dictionary_batch = 2, record_batch = 3 };
    const auto kind = message.number<std::uint8_t>(1);
    const std::optional<flat_table> header = message.table(2);
    if (!header) message.fail("a message without a header");
    if (kind == schema && !has_schema_) {
      has_schema_ = true;
      schema_.read(*header, message.number<std::int16_t>(0), file_.path());
    } else if (kind == record_batch || kind == dictionary_batch) {
      if (!has_schema_) message.fail("a batch before the schema");
      refuse_old_compression(message);
      const body where{.offset = from.body(), .bytes = static_cast<std::uint64_t>(body_bytes)};
      if (kind == record_batch) {
        read_batch(*header, where);
      } else {
        read_dictionary(*header, where);
      }
    }
    return from.body() + static_cast<std::uint64_t>(body_bytes);
  }

  void read_stream() {
    for (std::uint64_t at = 0;;) {
      const message_bytes message = message_at(at, file_.size());
      if (message.metadata.empty()) break;
      at = take(message, file_.size());
    }
    if (!has_schema_) fail_at(file_.path(), 0, "no schema in an Arrow file");
  }

  // By its footer, which has the schema and names the batches: what lies before them need not be messages (polars).
  void read_file() {
    const std::uint64_t end = begin_of_footer();
    const std::vector<std::byte> bytes = file_.read(end, file_.size() - end - tail_bytes);
    const flat_table footer = flat_table::root(file_.path(), bytes, end);
    const std::optional<flat_table> schema = footer.table(1);
    if (!schema) footer.fail("a footer without a schema");
    has_schema_ = true;
    constexpr std::size_t block_bytes = 24;
    const flat_table::elements blocks = footer.vector(3, block_bytes);
    // A footer may have another version than the batches, whose buffers are laid out by theirs.
    auto version = footer.number<std::int16_t>(0);
    if (blocks.count != 0) {
      const auto first = footer.number_at<std::uint64_t>(blocks, 0);
      const message_bytes message = first > end ? message_bytes() : message_at(first, end);
      if (!message.metadata.empty())
        version = flat_table::root(file_.path(), message.metadata, message.at).number<std::int16_t>(0);
    }
    schema_.read(*schema, version, file_.path());
    // In any order, each with bytes of its own: else a few bytes of file would be any number of rows.
    std::map<std::uint64_t, std::uint64_t> taken;  // begin, end
    const flat_table::elements dictionaries = footer.vector(2, block_bytes);
    for (std::size_t i = 0; i < dictionaries.count + blocks.count; ++i) {
      const auto offset = i < dictionaries.count
                              ? footer.number_at<std::uint64_t>(dictionaries, i * block_bytes)
                              : footer.number_at<std::uint64_t>(blocks, (i - dictionaries.count) * block_bytes);
      const auto behind = taken.lower_bound(offset);
      const bool is_free = (behind == taken.begin() || std::prev(behind)->second <= offset) &&
                           (behind == taken.end() || behind->first != offset);
      if (!is_free || offset > end)
        footer.fail(str_cat("a batch at ", offset, ", where another one is, or which is behind ", end));
      const std::uint64_t room_end = behind == taken.end() ? end : behind->first;
      const message_bytes message = message_at(offset, room_end);
      if (message.metadata.empty()) footer.fail(str_cat("a batch at ", offset, " that is none"));
      taken.emplace_hint(behind, offset, take(message, room_end));
    }
  }

  // A file ends with its footer, the footer's length and the magic number: one that was cut between two batches lacks them.
  static constexpr std::string_view last = magic.substr(0, 6);
  static constexpr std::uint64_t tail_bytes = 4 + last.size();
  std::uint64_t begin_of_footer() const {
    const std::uint64_t size = file_.size();
    const std::vector<std::byte> tail =
        size < magic.size() + tail_bytes ? std::vector<std::byte>() : file_.read(size - tail_bytes, tail_bytes);
    if (tail.size() != tail_bytes || std::memcmp(tail.data() + 4, last.data(), last.size()) != 0)
      fail_at(file_.path(), size, "an Arrow file that does not end as one");
    const std::uint64_t footer_bytes = number_at<std::uint32_t>(tail, 0);
    if (footer_bytes > size - magic.size() - tail_bytes || footer_bytes > metadata_bytes_max)
      fail_at(file_.path(), size - tail_bytes, str_cat("a footer of ", footer_bytes, " bytes"));
    return size - tail_bytes - footer_bytes;
  }

  /// Where the buffers of a message lie.
  struct body {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  static constexpr std::size_t buffer_bytes = 16;

  static arrow_batch begin_batch(const flat_table& header, const body& where) {
    arrow_batch batch;
    if (const std::optional<flat_table> packed = header.table(3)) batch.codec = codec_of(*packed);
    const auto rows = header.number<std::int64_t>(0);
    // Values take bytes, if they are not null; LZ4 makes a byte of 255 at most.
    const std::uint64_t rows_a_byte = batch.codec == arrow_codec::none ? 8 : 8 * 255;
    if (rows < 0 || (static_cast<std::uint64_t>(rows) > arrow_contents::rows_always &&
                     static_cast<std::uint64_t>(rows) / rows_a_byte > where.bytes)) {
      header.fail(str_cat("a batch of ", rows, " rows in ", where.bytes, " bytes"));
    }
    batch.rows = static_cast<std::uint64_t>(rows);
    return batch;
  }

  static arrow_buffer buffer_of(const flat_table& header, const flat_table::elements& buffers, std::size_t i,
                                const body& where) {
    const auto offset = header.number_at<std::uint64_t>(buffers, i * buffer_bytes);
    const auto bytes = header.number_at<std::uint64_t>(buffers, i * buffer_bytes + 8);
    if (offset > where.bytes || bytes > where.bytes - offset) {
      header.fail(str_cat("a buffer of ", bytes, " bytes at ", offset, " in a body of ", where.bytes));
    }
    return {.offset = where.offset + offset, .bytes = bytes};
  }

  // A dictionary, another one in its place, or more of its values.
  void read_dictionary(const flat_table& header, const body& where) {
    const auto number = header.number<std::int64_t>(0);
    // Of those that no column names nothing is kept.
    const auto names_it = [number](const arrow_column& each) { return each.dictionary == number; };
    if (std::none_of(out_.columns.begin(), out_.columns.end(), names_it)) return;
    const std::optional<flat_table> data = header.table(1);
    if (!data) header.fail("a dictionary without values");
    const bool is_more = header.number<std::uint8_t>(2) != 0;
    arrow_batch piece = begin_batch(*data, where);
    const flat_table::elements buffers = data->vector(2, buffer_bytes);
    for (std::size_t i = 0; i < buffers.count; ++i) piece.buffers.push_back(buffer_of(*data, buffers, i, where));
    auto known = std::find_if(current_.begin(), current_.end(), [&](const auto& each) { return each.first == number; });
    const bool is_new = known == current_.end();
    if (is_new) known = current_.emplace(current_.end(), number, 0);
    if (is_new || !is_more) {
      known->second = out_.dictionaries.size();
      out_.dictionaries.emplace_back();
    }
    const std::size_t place = known->second;
    out_.dictionaries[place].pieces.push_back(std::move(piece));
  }

  void read_batch(const flat_table& header, const body& where) {
    arrow_batch batch = begin_batch(header, where);
    batch.first_row = out_.rows;
    batch.dictionaries = current_;
    const flat_table::elements buffers = header.vector(2, buffer_bytes);
    const flat_table::elements of_views = header.vector(4, sizeof(std::uint64_t));
    if (of_views.count != schema_.views().size()) {
      header.fail(str_cat("buffers of ", of_views.count, " columns of views, of which the schema has ",
                          schema_.views().size()));
    }
    std::uint64_t wanted = schema_.buffers();
    for (std::size_t i = 0; i < of_views.count; ++i) {
      const auto of_view = header.number_at<std::uint64_t>(of_views, i * sizeof(std::uint64_t));
      wanted += std::min<std::uint64_t>(of_view, buffers.count + 1);
    }
    if (buffers.count != wanted) {
      header.fail(str_cat("a batch of ", buffers.count, " buffers where the schema has ", wanted));
    }
    batch.views.resize(of_views.count);
    std::size_t view = 0;
    std::uint64_t of_view_left = 0;
    for (std::size_t i = 0; i < buffers.count; ++i) {
      const arrow_buffer buffer = buffer_of(header, buffers, i, where);
      if (of_view_left != 0) {
        batch.views[view - 1].push_back(buffer);
        --of_view_left;
        continue;
      }
      if (view < of_views.count && batch.buffers.size() == schema_.views()[view]) {
        of_view_left = header.number_at<std::uint64_t>(of_views, view * sizeof(std::uint64_t));
        ++view;
      }
      batch.buffers.push_back(buffer);
    }
    if (batch.rows > (std::uint64_t{1} << 40) - out_.rows) header.fail("more rows than a file has room for");
    out_.rows += batch.rows;
    out_.batches.push_back(std::move(batch));
  }

  // Arrow 0.17 packed buffers before the format had a place for that: pyarrow and Feather's second version.
  void refuse_old_compression(const flat_table& message) const {
    const flat_table::elements keys = message.vector(4, 4);
    for (std::size_t i = 0; i < keys.count; ++i) {
      const flat_table pair = message.table_at(keys, i);
      if (pair.text(0) != "ARROW:experimental_compression") continue;
      throw error(errc::unsupported,
                  str_cat(file_.path(), ": its batches are packed as Arrow 0.17 did (", pair.text(1).substr(0, 20),
                          "), before the format had a place for that; read it with pyarrow and write it anew"));
    }
  }

  static arrow_codec codec_of(const flat_table& packed) {
    const auto codec = packed.number<std::int8_t>(0);
    if (codec > 1 || codec < 0 || packed.number<std::int8_t>(1) != 0) {
      packed.fail(str_cat("batches packed by codec ", codec, ", which leat does not know; write it with lz4 or zstd"));
    }
    return codec == 0 ? arrow_codec::lz4 : arrow_codec::zstd;
  }

  const file_bytes& file_;
  buffered_file buffer_;
  arrow_contents out_;
  schema_reader schema_;
  bool has_schema_ = false;
  std::vector<std::pair<std::int64_t, std::size_t>> current_;  // as arrow_batch::dictionaries, of the batch to come
};

constexpr std::uint64_t length_bytes = sizeof(std::int64_t);
constexpr std::int64_t as_it_was = -1;

}  // namespace

bool is_arrow(std::span<const std::byte> start) noexcept {
  if (start.size() >= magic.size() && std::memcmp(start.data(), magic.data(), magic.size()) == 0) return true;
  // A stream: a continuation, the bytes of a schema, and where its table begins in it.
  if (start.size() < 12 || number_at<std::uint32_t>(start, 0) != continuation) return false;
  const auto bytes = number_at<std::uint32_t>(start, 4);
  const auto root = number_at<std::uint32_t>(start, 8);
  return bytes != 0 && bytes % 8 == 0 && bytes <= metadata_bytes_max && root >= 4 && root < bytes;
}

std::optional<std::uint64_t> expanded_bytes(arrow_codec codec, std::span<const std::byte> start,
                                            std::uint64_t stored_bytes) {
  if (codec == arrow_codec::none || stored_bytes == 0) return stored_bytes;
  if (stored_bytes < length_bytes || start.size() < length_bytes) return std::nullopt;
  const auto bytes = number_at<std::int64_t>(start, 0);
  if (bytes == as_it_was) return stored_bytes - length_bytes;
  // 128 KiB of zeros are 4 bytes of Zstandard: RFC 8878. A byte of an LZ4 length is 255 of a match.
  const std::uint64_t bytes_of_a_byte = codec == arrow_codec::lz4 ? 255 : 32'768;
  if (bytes < 0 || static_cast<std::uint64_t>(bytes) / bytes_of_a_byte > stored_bytes) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

std::optional<std::string> expand_arrow_buffer(arrow_codec codec, std::span<const std::byte> stored,
                                               std::span<std::byte> decoded) {
  const std::optional<std::uint64_t> bytes = expanded_bytes(codec, stored, stored.size());
  if (!bytes) return "a packed buffer that does not begin with its size, or says more than its bytes can become";
  if (*bytes != decoded.size())
    return str_cat("a buffer of ", *bytes, " bytes where ", decoded.size(), " were expected");
  if (stored.empty()) return std::nullopt;
  const bool is_packed = codec != arrow_codec::none && number_at<std::int64_t>(stored, 0) != as_it_was;
  if (codec != arrow_codec::none) stored = stored.subspan(length_bytes);
  if (is_packed) return codec == arrow_codec::lz4 ? expand_lz4_frame(stored, decoded) : expand_zstd(stored, decoded);
  std::copy(stored.begin(), stored.end(), decoded.begin());
  return std::nullopt;
}

std::optional<std::string> expand_part_of_arrow_buffer(arrow_codec codec, std::span<const std::byte> stored,
                                                       std::uint64_t begin, std::span<std::byte> part) {
  const std::optional<std::uint64_t> bytes = expanded_bytes(codec, stored, stored.size());
  if (!bytes || begin > *bytes || part.size() > *bytes - begin) return "a buffer that is shorter than its values";
  if (part.empty()) return std::nullopt;
  const bool is_packed = codec != arrow_codec::none && number_at<std::int64_t>(stored, 0) != as_it_was;
  if (codec != arrow_codec::none) stored = stored.subspan(length_bytes);
  if (is_packed) {
    return codec == arrow_codec::lz4 ? expand_lz4_frame_part(stored, begin, part)
                                     : expand_zstd_part(stored, begin, part);
  }
  const std::span<const std::byte> there = stored.subspan(begin, part.size());
  std::copy(there.begin(), there.end(), part.begin());
  return std::nullopt;
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
