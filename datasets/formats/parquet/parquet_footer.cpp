#include "datasets/formats/parquet/parquet_footer.hpp"

#include "base/text.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/wire/thrift_compact.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t footer_bytes_max = std::uint64_t{1} << 28;
constexpr std::size_t leaves_max = 65'535;
constexpr int schema_depth_max = 64;
// Columns within columns repeat the names above them.
constexpr std::uint64_t path_bytes_max = std::uint64_t{64} << 20;

using type = thrift_reader::type;

struct schema_element {
  std::string name;
  std::optional<parquet_type> stored;
  std::uint32_t type_bytes = 0;
  enum class repetition : std::uint8_t { required, optional, repeated } repeats = repetition::required;
  std::uint64_t children = 0;
  bool is_text = false;
  bool is_unsigned = false;
  std::uint32_t bits = 0;
  bool is_half = false;
  bool is_number = true;
  bool is_decimal = false;
  bool is_list = false;
  std::string unit = {};
  std::int32_t scale = 0;
};

/// Where an element of the schema stands.
struct schema_place {
  std::string path = {};
  std::string shown = {};
  std::uint32_t levels = 0;
  std::uint32_t repeated = 0;
  std::uint32_t list_level = 0;
  std::uint32_t outer_level = 0;
  int depth = 1;
  bool unnamed = false;
  enum class within : std::uint8_t { other, list, element } of = within::other;
};

class footer_reader {
 public:
  footer_reader(const file_bytes& file, std::span<const std::byte> bytes, std::uint64_t offset)
      : file_(file), at_(file.path(), bytes, offset), thrift_(at_) {}

  parquet_footer read() {
    thrift_.structure([&](int field, type found) {
      switch (field) {
        case 2:
          return thrift_.list(found, [&](type element) { read_element(element); });
        case 3:
          out_.rows = count(found);
          return;
        case 4:
          return thrift_.list(found, [&](type element) { read_group(element); });
        case 5:
          return thrift_.list(found, [&](type element) { read_key(element); });
        case 6:
          written_by_ = std::string(thrift_.text(found));
          return;
        case 8:
          refuse("is encrypted; decrypt it with the program that wrote it");
        default:
          thrift_.skip(found);
      }
    });
    make_leaves();
    check();
    allow_for_writer();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw error(errc::unsupported, str_cat(file_.path(), ": the file ", why));
  }

  std::uint64_t count(type found) {
    const std::int64_t value = thrift_.integer(found);
    if (value < 0) thrift_.fail("a count or an offset below zero");
    return static_cast<std::uint64_t>(value);
  }
  template <class Enum>
  Enum one_of(type found, unsigned last) {
    const std::int64_t value = thrift_.integer(found);
    if (value < 0 || value > last) thrift_.fail(str_cat("the number ", value, ", which Parquet does not have here"));
    return static_cast<Enum>(value);
  }

  void read_logical_type(schema_element& element, type found) {
    thrift_.structure(found, [&](int field, type inner) {
      enum {
        string = 1,
        list = 3,
        enumeration = 4,
        decimal = 5,
        date = 6,
        time = 7,
        timestamp = 8,
        integer = 10,
        json = 12,
        half = 15
      };
      switch (field) {
        case string:
        case enumeration:
        case json:
          element.is_text = true;
          break;
        case integer:
          return thrift_.structure(inner, [&](int number, type value) {
            if (number == 1) {
              element.bits = static_cast<std::uint32_t>(std::clamp<std::int64_t>(thrift_.integer(value), 0, 64));
            } else if (number == 2) {
              element.is_unsigned = !thrift_.boolean(value);
            } else {
              thrift_.skip(value);
            }
          });
        case half:
          element.is_half = true;
          break;
        case list:
          element.is_list = true;
          break;
        case decimal:
          element.is_decimal = true;
          element.is_number = false;
          return thrift_.structure(inner, [&](int number, type value) {
            if (number != 1) return thrift_.skip(value);
            element.scale = scale_of(thrift_.integer(value));
          });
        case date:
          note_unit(element, "days", after_epoch);
          break;
        case time:
          return read_time(element, inner, of_day);
        case timestamp:
          return read_time(element, inner, after_epoch);
        default:  // of what is no number
          element.is_number = false;
      }
      thrift_.skip(inner);
    });
  }

  static constexpr std::string_view after_epoch = "since 1970-01-01";
  static constexpr std::string_view of_day = "since midnight";

  static void note_unit(schema_element& element, std::string_view unit, std::string_view since) {
    element.unit = str_cat(unit, " ", since);
    element.is_number = true;
  }
  static std::int32_t scale_of(std::int64_t scale) noexcept {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(scale, std::numeric_limits<std::int32_t>::min(),
                                                              std::numeric_limits<std::int32_t>::max()));
  }
  // Whether it is UTC, and its unit: a union of empty structures.
  void read_time(schema_element& element, type found, std::string_view since) {
    constexpr std::string_view units[] = {"", "milliseconds", "microseconds", "nanoseconds"};
    element.is_number = false;  // of a unit that is not known
    element.unit.clear();
    bool is_utc = false;
    int unit = 0;
    thrift_.structure(found, [&](int field, type inner) {
      if (field == 1) {
        is_utc = thrift_.boolean(inner);
      } else if (field == 2) {
        thrift_.structure(inner, [&](int number, type value) {
          unit = number;
          thrift_.skip(value);
        });
      } else {
        thrift_.skip(inner);
      }
    });
    if (unit < 1 || unit > 3) return;
    note_unit(element, units[unit], is_utc && since == after_epoch ? str_cat(since, " UTC") : std::string(since));
  }

  static void note_converted_type(schema_element& element, std::int64_t converted) {
    enum {
      utf8 = 0,
      list = 3,
      enumeration = 4,
      decimal = 5,
      date = 6,
      time_millis = 7,
      time_micros = 8,
      timestamp_millis = 9,
      timestamp_micros = 10,
      u8 = 11,
      u64 = 14,
      i8 = 15,
      i64 = 18,
      json = 19
    };
    if (converted == utf8 || converted == enumeration || converted == json) element.is_text = true;
    if (converted == list) element.is_list = true;
    if (converted == decimal) element.is_decimal = true;
    if (converted == decimal) element.is_number = false;
    if (converted == date) note_unit(element, "days", after_epoch);
    if (converted == time_millis) note_unit(element, "milliseconds", of_day);
    if (converted == time_micros) note_unit(element, "microseconds", of_day);
    if (converted == timestamp_millis) note_unit(element, "milliseconds", str_cat(after_epoch, " UTC"));
    if (converted == timestamp_micros) note_unit(element, "microseconds", str_cat(after_epoch, " UTC"));
    if (converted >= u8 && converted <= u64) element.is_unsigned = true;
    if (converted >= u8 && converted <= i64) element.bits = 8U << ((converted - u8) % 4);
  }

  void read_element(type found) {
    schema_element element;
    thrift_.structure(found, [&](int field, type inner) {
      switch (field) {
        case 1:
          element.stored = one_of<parquet_type>(inner, static_cast<unsigned>(parquet_type::fixed_byte_array));
          return;
        case 2:
          element.type_bytes = static_cast<std::uint32_t>(
              std::min<std::uint64_t>(count(inner), std::numeric_limits<std::uint32_t>::max()));
          return;
        case 3:
          element.repeats = one_of<schema_element::repetition>(inner, 2);
          return;
        case 4:
          element.name = std::string(thrift_.text(inner));
          return;
        case 5:
          element.children = count(inner);
          return;
        case 6:
          return note_converted_type(element, thrift_.integer(inner));
        case 7:
          element.scale = scale_of(thrift_.integer(inner));
          return;
        case 10:
          return read_logical_type(element, inner);
        default:
          thrift_.skip(inner);
      }
    });
    elements_.push_back(std::move(element));
  }

  void read_chunk_metadata(parquet_chunk& chunk, type found) {
    std::optional<std::uint64_t> pages;
    std::optional<std::uint64_t> dictionary;
    thrift_.structure(found, [&](int field, type inner) {
      switch (field) {
        case 2:
          return thrift_.list(inner, [&](type element) {
            chunk.encodings |=
                1U << one_of<unsigned>(element, static_cast<unsigned>(parquet_encoding::byte_stream_split));
          });
        case 4:
          chunk.codec = one_of<parquet_codec>(inner, static_cast<unsigned>(parquet_codec::lz4_raw));
          return;
        case 5:
          chunk.values = count(inner);
          return;
        case 7:
          chunk.bytes = count(inner);
          return;
        case 9:
          pages = count(inner);
          return;
        case 11:
          dictionary = count(inner);
          return;
        default:
          thrift_.skip(inner);
      }
    });
    if (!pages) thrift_.fail("a chunk of a column without the offset of its pages");
    // Some writers say 0 where there is none.
    chunk.has_dictionary = dictionary && *dictionary != 0;
    chunk.offset = chunk.has_dictionary ? std::min(*pages, *dictionary) : *pages;
    if (chunk.offset > file_.size() || chunk.bytes > file_.size() - chunk.offset) {
      fail_at(file_.path(), chunk.offset, str_cat("a chunk of ", chunk.bytes, " bytes, in a file of ", file_.size()));
    }
  }

  void read_chunk(parquet_group& group, type found) {
    parquet_chunk chunk;
    bool has_metadata = false;
    thrift_.structure(found, [&](int field, type inner) {
      switch (field) {
        case 1:
          if (!thrift_.text(inner).empty()) refuse("names other files for its columns; give those");
          return;
        case 3:
          has_metadata = true;
          return read_chunk_metadata(chunk, inner);
        case 8:
        case 9:
          refuse("has encrypted columns; decrypt it with the program that wrote it");
        default:
          thrift_.skip(inner);
      }
    });
    if (!has_metadata) thrift_.fail("a chunk of a column that says nothing of itself");
    group.chunks.push_back(chunk);
  }

  void read_group(type found) {
    parquet_group group;
    thrift_.structure(found, [&](int field, type inner) {
      switch (field) {
        case 1:
          return thrift_.list(inner, [&](type element) { read_chunk(group, element); });
        case 3:
          group.rows = count(inner);
          return;
        default:
          thrift_.skip(inner);
      }
    });
    out_.groups.push_back(std::move(group));
  }

  void read_key(type found) {
    std::string_view key;
    std::string_view value;
    thrift_.structure(found, [&](int field, type inner) {
      if (field == 1) {
        key = thrift_.text(inner);
      } else if (field == 2) {
        value = thrift_.text(inner);
      } else {
        thrift_.skip(inner);
      }
    });
    if (key == "huggingface") out_.hub_features = std::string(value);
  }

  // The schema is a tree, written down depth first: each element is followed by its children.
  void make_leaves() {
    if (elements_.empty()) fail_at(file_.path(), at_.offset(), "a footer without a schema");
    std::size_t next = 1;
    for (std::uint64_t child = 0; child < elements_.front().children; ++child) add_leaves(next, {});
    if (next != elements_.size()) fail_at(file_.path(), at_.offset(), "a schema whose columns do not add up");
  }

  // A list is a group which repeats a group of one element, or the element itself: `ids.list.element` is shown as `ids`.
  void add_leaves(std::size_t& next, const schema_place& above) {
    if (next >= elements_.size()) fail_at(file_.path(), at_.offset(), "a schema whose columns do not add up");
    if (above.depth > schema_depth_max) fail_at(file_.path(), at_.offset(), "columns within columns, more than 64");
    const schema_element& element = elements_[next++];
    const auto below = [&](const std::string& path) {
      return path.empty() ? element.name : str_cat(path, ".", element.name);
    };
    using within = schema_place::within;
    schema_place here = above;
    ++here.depth;
    here.path = below(above.path);
    here.unnamed = above.unnamed || element.name.empty();
    if (above.of == within::other) here.shown = below(above.shown);
    here.of = element.is_list ? within::list : within::other;
    if (element.repeats != schema_element::repetition::required) ++here.levels;
    if (element.repeats == schema_element::repetition::repeated) {
      ++here.repeated;
      here.list_level = here.levels;
      if (here.repeated == 1) here.outer_level = here.levels;
      if (above.of == within::list && element.children == 1) here.of = within::element;
    }
    path_bytes_ += here.path.size() + here.shown.size();
    if (path_bytes_ > path_bytes_max) fail_at(file_.path(), at_.offset(), "names of columns without end");
    if (!element.stored || element.children != 0) {
      for (std::uint64_t child = 0; child < element.children; ++child) add_leaves(next, here);
      return;
    }
    if (out_.leaves.size() == leaves_max) {
      throw error(errc::limit, str_cat(file_.path(), ": more than ", leaves_max, " columns; write it with fewer"));
    }
    out_.leaves.push_back({.path = here.path,
                           .shown = here.shown,
                           .type = *element.stored,
                           .type_bytes = element.type_bytes,
                           .levels = here.levels,
                           .repeated = here.repeated,
                           .list_level = here.list_level,
                           .outer_level = here.outer_level,
                           .bits = bits_of(element),
                           .unnamed = here.unnamed,
                           .is_text = element.is_text,
                           .is_unsigned = element.is_unsigned,
                           .is_half = element.is_half,
                           .is_decimal = element.is_decimal,
                           .is_number = element.is_number && !element.is_text,
                           .unit = element.unit,
                           .scale = element.scale});
  }

  void check() {
    std::uint64_t rows = 0;
    for (parquet_group& group : out_.groups) {
      if (group.chunks.size() != out_.leaves.size()) {
        fail_at(file_.path(), at_.offset(),
                str_cat("a row group of ", group.chunks.size(), " columns where the schema has ", out_.leaves.size()));
      }
      group.first_row = rows;
      if (group.rows > out_.rows - rows)
        fail_at(file_.path(), at_.offset(), "row groups with more rows than there are");
      rows += group.rows;
    }
    if (rows != out_.rows) {
      fail_at(file_.path(), at_.offset(), str_cat(out_.rows, " rows, of which the row groups have ", rows));
    }
  }

  // Of integers that their type has more bits for.
  static std::uint32_t bits_of(const schema_element& element) {
    const std::uint32_t whole = element.stored == parquet_type::int32 ? 32 : 64;
    const bool is_integer = element.stored == parquet_type::int32 || element.stored == parquet_type::int64;
    return is_integer && element.bits < whole ? element.bits : 0;
  }

  // Known faults of writers, as Arrow's ApplicationVersion has them.
  void allow_for_writer() {
    constexpr std::string_view cpp = "parquet-cpp version ";
    constexpr std::string_view java = "parquet-mr version ";
    const auto is_before = [&](std::string_view program, std::array<std::uint32_t, 3> version) {
      return written_by_.starts_with(program) &&
             version_in(std::string_view(written_by_).substr(program.size())) < version;
    };
    // ARROW-10353: pages of version 2 are compressed, and said that they are not.
    const bool always_packed = is_before(cpp, {2, 0, 0});
    // PARQUET-816: the header of a dictionary's page is not counted.
    constexpr std::uint64_t header_bytes_max = 100;
    const std::uint64_t not_counted = is_before(java, {1, 2, 9}) ? header_bytes_max : 0;
    for (parquet_group& group : out_.groups) {
      for (parquet_chunk& chunk : group.chunks) {
        chunk.always_packed = always_packed;
        chunk.bytes += std::min(not_counted, file_.size() - chunk.offset - chunk.bytes);
      }
    }
  }
  // "1.5.1-SNAPSHOT (build ...)"; what has no number is 0.
  static std::array<std::uint32_t, 3> version_in(std::string_view text) {
    std::array<std::uint32_t, 3> version{};
    for (std::uint32_t& each : version) {
      const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), each);
      if (failure != std::errc()) break;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      if (!text.starts_with('.')) break;
      text.remove_prefix(1);
    }
    return version;
  }

  const file_bytes& file_;
  cursor at_;
  thrift_reader thrift_;
  std::vector<schema_element> elements_;
  std::uint64_t path_bytes_ = 0;
  std::string written_by_;
  parquet_footer out_;
};

}  // namespace

std::string_view name(parquet_codec codec) noexcept {
  constexpr std::string_view names[] = {"none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw"};
  return names[static_cast<std::size_t>(codec)];
}

parquet_footer read_parquet_footer(const file_bytes& file) {
  constexpr std::uint64_t tail_bytes = 8;
  constexpr std::uint64_t read_bytes = std::uint64_t{64} << 10;  // most footers are whole in it
  const std::uint64_t begin = file.size() - std::min(file.size(), read_bytes);
  std::vector<std::byte> tail = file.read(begin, file.size() - begin);
  if (tail.size() < tail_bytes + 4) fail_at(file.path(), 0, "too short for a Parquet file");
  cursor at(file.path(), std::span(tail).last(tail_bytes), begin + tail.size() - tail_bytes);
  const std::uint64_t bytes = at.number<std::uint32_t>();
  const std::string_view magic = at.text(4);
  if (magic == "PARE") {
    throw error(errc::unsupported,
                str_cat(file.path(), ": its footer is encrypted; decrypt it with the program that wrote it"));
  }
  if (magic != "PAR1") fail_at(file.path(), file.size() - 4, "no 'PAR1' at the end of a Parquet file");
  if (bytes > file.size() - tail_bytes || bytes > footer_bytes_max) {
    fail_at(file.path(), file.size() - tail_bytes, str_cat("a footer of ", bytes, " bytes"));
  }
  const std::uint64_t offset = file.size() - tail_bytes - bytes;
  if (bytes + tail_bytes > tail.size()) {
    tail = file.read(offset, bytes + tail_bytes);
    if (tail.size() != bytes + tail_bytes) fail_at(file.path(), offset, "the file ends within its footer");
  }
  const std::span<const std::byte> footer = std::span(tail).last(bytes + tail_bytes).first(bytes);
  return footer_reader(file, footer, offset).read();
}

}  // namespace leat::datasets
