#include "datasets/formats/parquet/parquet_values.hpp"

#include "base/text.hpp"
#include "datasets/formats/parquet/parquet_encodings.hpp"
#include "datasets/formats/parquet/parquet_pages.hpp"
#include "datasets/tables/decimals.hpp"
#include "datasets/tables/value_list_json.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace leat::datasets {
namespace {

std::string_view name_of(parquet_encoding encoding) {
  constexpr std::string_view names[] = {
      "plain",    "",           "dictionary", "run lengths", "packed bits", "differences", "differences of lengths",
      "prefixes", "dictionary", "split bytes"};
  return names[static_cast<std::size_t>(encoding)];
}

class bare_values {
 public:
  bare_values(const file_bytes& file, const parquet_leaf& leaf, std::span<value_place> places)
      : headers_(file), lengths_(file), leaf_(leaf), places_(places) {}

  bare_pages read(const parquet_chunk& chunk) {
    for_each_page(headers_, chunk, [&](const parquet_page& page) {
      if (found_.all_bare) read_page(page);
    });
    return found_;
  }

 private:
  void read_page(const parquet_page& page) {
    if (!page.has_values()) return;
    found_.with_checksum += page.crc32.has_value();
    found_.all_bare = page.encoding == parquet_encoding::plain;
    if (!found_.all_bare) return;
    values_ = page.offset + page.repetition_bytes + page.definition_bytes;
    end_ = page.offset + page.bytes;
    const std::uint64_t body = end_ - values_;
    // Lengths that lie close together are read together.
    constexpr std::uint64_t near_bytes = 2048;
    constexpr std::uint64_t buffer_bytes = std::uint64_t{64} << 10;
    lengths_.read_ahead(page.values != 0 && body / page.values < near_bytes ? std::min(buffer_bytes, body) : 4);
    if (leaf_.levels == 0) return take_values(page.values);
    std::uint64_t levels = page.repetition_bytes + page.offset;
    std::uint64_t levels_bytes = page.definition_bytes;
    if (page.kind == parquet_page::page_kind::data) {
      if (page.level_encoding != parquet_encoding::rle)
        fail(page.offset, "levels in an encoding that was given up in 2013");
      if (body < 4) fail(page.offset, "a page that ends within its levels");
      levels_bytes = lengths_.at(values_, 4).number<std::uint32_t>();
      levels = values_ + 4;
      if (levels_bytes > end_ - levels) fail(page.offset, "a page that ends within its levels");
      values_ = levels + levels_bytes;
    }
    // Levels are run-length encoded: a single run where no value is null.
    const std::vector<std::byte> bytes = headers_.file().read(levels, levels_bytes);
    packed_numbers definitions({headers_.file().path(), bytes, levels}, bits_of(leaf_.levels));
    for (std::uint64_t left = page.values; left > 0;) {
      const packed_numbers::run run = definitions.take_run(left);
      if (run.value > leaf_.levels) fail(levels, "a level that the column does not have");
      if (run.value == leaf_.levels) {
        take_values(run.count);
      } else {
        skip_rows(run.count);
      }
      left -= run.count;
    }
  }

  void skip_rows(std::uint64_t count) {
    if (count > places_.size() - row_) fail(values_, "more values than rows");
    for (std::uint64_t i = 0; i < count; ++i) places_[row_++] = {.offset = value_place::missing};
  }

  void take_values(std::uint64_t count) {
    if (count > places_.size() - row_) fail(values_, "more values than rows");
    for (std::uint64_t i = 0; i < count; ++i) {
      std::uint64_t bytes = leaf_.type_bytes;
      if (leaf_.type == parquet_type::byte_array) {
        if (end_ - values_ < 4) fail(values_, "a page that ends before its values do");
        bytes = lengths_.at(values_, 4).number<std::uint32_t>();
        values_ += 4;
      }
      if (bytes > end_ - values_) fail(values_, str_cat("a value of ", bytes, " bytes, beyond its page"));
      places_[row_++] = {.offset = values_, .bytes = bytes};
      values_ += bytes;
    }
  }

  [[noreturn]] void fail(std::uint64_t offset, std::string_view what) const {
    fail_at(headers_.file().path(), offset, str_cat("the column '", leaf_.path, "': ", what));
  }

  buffered_file headers_;
  buffered_file lengths_;
  const parquet_leaf& leaf_;
  std::span<value_place> places_;
  bare_pages found_;
  std::size_t row_ = 0;
  std::uint64_t values_ = 0;  // of the page, from here
  std::uint64_t end_ = 0;
};

std::vector<std::byte> read_chunk(const file_bytes& file, const parquet_chunk& chunk) {
  std::vector<std::byte> stored = file.read(chunk.offset, chunk.bytes);
  if (stored.size() != chunk.bytes) fail_at(file.path(), chunk.offset, "the file ends within a chunk of a column");
  return stored;
}

class number_sink final : public parquet_sink {
 public:
  number_sink(const file_bytes& file, const parquet_leaf& leaf, const parquet_group& group, record_numbers& into)
      : file_(file), leaf_(leaf), row_(group.first_row), end_(group.first_row + group.rows), into_(into) {}

  void add(std::uint32_t, std::uint32_t definition, std::span<const std::byte> value) override {
    if (row_ == end_) fail_at(file_.path(), 0, str_cat("more values than rows in the column '", leaf_.path, "'"));
    if (definition < leaf_.levels) {
      missing.push_back(row_++);
      return;
    }
    if (into_.type == dtype::i64) {
      into_.whole[row_] = leaf_.is_decimal                    ? in_64_bits(unscaled_of(value))
                          : leaf_.type == parquet_type::int96 ? nanoseconds(value)
                                                              : whole(value);
      ++row_;
      return;
    }
    if (leaf_.is_decimal) {
      const double real = real_of_decimal(unscaled_of(value), leaf_.scale);
      std::memcpy(into_.bytes.data() + row_++ * sizeof real, &real, sizeof real);
      return;
    }
    std::memcpy(into_.bytes.data() + row_++ * size_bytes(into_.type), value.data(), size_bytes(into_.type));
  }

  std::vector<std::uint64_t> missing;

 private:
  template <class T>
  static T as(std::span<const std::byte> value) {
    T number;
    std::memcpy(&number, value.data(), sizeof number);
    return number;
  }
  [[nodiscard]] unscaled_decimal unscaled_of(std::span<const std::byte> value) const {
    if (leaf_.type == parquet_type::int32 || leaf_.type == parquet_type::int64) return unscaled_of_little_endian(value);
    if (value.size() <= decimal_bytes_max) return unscaled_of_big_endian(value);
    throw error(errc::unsupported,
                str_cat(file_.path(), ": the column '", leaf_.path, "' has a decimal of ", value.size(),
                        " bytes in row ", row_, ", and ", decimal_bytes_max, " are the most; leave it out"));
  }
  [[nodiscard]] std::int64_t in_64_bits(unscaled_decimal number) const {
    if (number >= std::numeric_limits<std::int64_t>::min() && number <= std::numeric_limits<std::int64_t>::max()) {
      return static_cast<std::int64_t>(number);
    }
    throw error(errc::unsupported, str_cat(file_.path(), ": the column '", leaf_.path,
                                           "' has a number that does not fit 64 bits in row ", row_, "; leave it out"));
  }
  // Of the day, and the day's Julian number.
  [[nodiscard]] std::int64_t nanoseconds(std::span<const std::byte> value) const {
    constexpr std::int64_t day_of_epoch = 2'440'588;
    constexpr unscaled_decimal of_day = 86'400'000'000'000;
    return in_64_bits((as<std::uint32_t>(value.subspan(8)) - day_of_epoch) * of_day + as<std::int64_t>(value));
  }
  [[nodiscard]] std::int64_t whole(std::span<const std::byte> value) const {
    if (value.size() == 1) return as<std::uint8_t>(value);
    if (value.size() == 4) return leaf_.is_unsigned ? std::int64_t{as<std::uint32_t>(value)} : as<std::int32_t>(value);
    const auto number = as<std::int64_t>(value);
    if (leaf_.is_unsigned && number < 0) {
      throw error(errc::unsupported, str_cat(file_.path(), ": the column '", leaf_.path,
                                             "' has a number beyond 2^63 - 1 in row ", row_, "; leave it out"));
    }
    return number;
  }

  const file_bytes& file_;
  const parquet_leaf& leaf_;
  std::uint64_t row_;
  std::uint64_t end_;
  record_numbers& into_;
};

class text_sink final : public parquet_sink {
 public:
  text_sink(const file_bytes& file, const parquet_leaf& leaf, std::uint64_t rows, few_texts& into)
      : file_(file), leaf_(leaf), rows_(rows), into_(into) {}

  void add(std::uint32_t, std::uint32_t definition, std::span<const std::byte> value) override {
    if (into_.rows() == rows_) {
      fail_at(file_.path(), 0, str_cat("more values than rows in the column '", leaf_.path, "'"));
    }
    if (definition < leaf_.levels) return into_.add_missing();
    const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
    if (!into_.add(text)) refuse_texts(leaf_.path, file_.path());
  }

 private:
  const file_bytes& file_;
  const parquet_leaf& leaf_;
  std::uint64_t rows_;
  few_texts& into_;
};

class length_sink final : public parquet_sink {
 public:
  length_sink(const file_bytes& file, const parquet_leaf& leaf, std::uint64_t rows, packed_group& into)
      : file_(file), leaf_(leaf), rows_(rows), into_(into) {}

  static constexpr std::size_t start_bytes = 512;

  void add(std::uint32_t, std::uint32_t definition, std::span<const std::byte> value) override {
    add_value(definition == leaf_.levels, value.size(), value);
  }
  ///   start   its first bytes: so many of them, or all
  void add_value(bool is_there, std::uint64_t bytes, std::span<const std::byte> start) {
    if (into_.ends.size() == rows_) {
      fail_at(file_.path(), 0, str_cat("more values than rows in the column '", leaf_.path, "'"));
    }
    if (!is_there) {
      into_.ends.push_back(static_cast<std::uint32_t>(end_) | value_blocks::missing);
      return;
    }
    end_ += bytes;
    if (end_ > value_blocks::decoded_bytes_max) {
      throw error(errc::limit, str_cat(file_.path(), ": values of the column '", leaf_.path,
                                       "' take 2 GiB or more in one row group; write it with smaller row groups, or "
                                       "without compression and dictionary"));
    }
    into_.ends.push_back(static_cast<std::uint32_t>(end_));
    if (into_.start.empty()) {
      into_.start.assign(start.begin(),
                         start.begin() + static_cast<std::ptrdiff_t>(std::min(start.size(), start_bytes)));
    }
  }

 private:
  const file_bytes& file_;
  const parquet_leaf& leaf_;
  std::uint64_t rows_;
  packed_group& into_;
  std::uint64_t end_ = 0;
};

/// Makes one value of the elements of each list. Numbers with a null among them are none: no number stands for the null. Texts and
/// bytes are a list of JSON, which has nulls. An array of another shape is none.
class list_joiner : public parquet_sink {
 public:
  ///   first_row   of the file, for messages
  ///   held_max    bytes of a list that are held for who is given them
  list_joiner(const std::string& path, const parquet_leaf& leaf, std::uint64_t first_row, std::uint64_t held_max)
      : path_(path),
        leaf_(leaf),
        are_values_(has_lists_of_values(leaf)),
        element_bytes_(leaf.array.empty() ? 0 : size_bytes(element_type(leaf).value_or(dtype::u8))),
        row_(first_row),
        held_max_(held_max) {
    list_.reserve(held_max_);
  }

  void add(std::uint32_t repetition, std::uint32_t definition, std::span<const std::byte> value) override {
    if (repetition == 0) {
      finish();
      is_open_ = true;
      bytes_ = 0;
      is_there_ = definition + 1 >= leaf_.outer_level;
      has_null_ = false;
      elements_ = 0;
      is_misshapen_ = false;
      if (are_values_ && is_there_) hold("[");
    } else if (!is_open_) {
      fail_at(path_, 0, str_cat("the column '", leaf_.path, "' begins within a list"));
    }
    if (definition < leaf_.list_level) return;
    const bool is_null = definition < leaf_.levels;
    if (are_values_) return add_value(is_null, value);
    if (!leaf_.array.empty()) {
      is_misshapen_ = is_misshapen_ || repetition != repetition_of_next();
      ++elements_;
      if (!is_null) value = value.first(element_bytes_);
    }
    has_null_ = has_null_ || is_null;
    if (!has_null_) hold(value);
  }
  /// Gives the last list.
  void finish() {
    if (!is_open_) return;
    if (are_values_ && is_there_) hold("]");
    if (has_null_ && with_nulls++ == 0) first_with_null = row_;
    if (!leaf_.array.empty() && is_there_ && !has_null_) {
      is_misshapen_ = is_misshapen_ || elements_ != elements_of_array();
      if (is_misshapen_ && misshapen++ == 0) first_misshapen = row_;
    }
    if (has_null_ || is_misshapen_) {
      give(false, 0, {});
    } else {
      give(is_there_, bytes_, list_);
    }
    longest_ = std::max(longest_, bytes_);
    list_.clear();
    is_open_ = false;
    ++row_;
  }
  [[nodiscard]] std::uint64_t longest() const noexcept { return longest_; }

  std::uint64_t with_nulls = 0;
  std::uint64_t first_with_null = 0;
  std::uint64_t misshapen = 0;
  std::uint64_t first_misshapen = 0;

 protected:
  ///   list   its bytes, or the first of them
  virtual void give(bool is_there, std::uint64_t bytes, std::span<const std::byte> list) = 0;

 private:
  void add_value(bool is_null, std::span<const std::byte> value) {
    for_each_piece_of_json(bytes_ == 1, leaf_.is_text, is_null ? std::nullopt : std::optional(value),
                           [&](std::string_view piece) { hold(piece); });
  }
  // Where the next element of an array stands: the innermost axes that are full begin anew.
  [[nodiscard]] std::uint32_t repetition_of_next() const noexcept {
    if (elements_ == 0) return 0;
    std::uint32_t repetition = leaf_.repeated;
    std::uint64_t full = 1;
    for (std::size_t axis = leaf_.array.size() - 1; axis > 0; --axis) {
      full *= static_cast<std::uint64_t>(leaf_.array[axis]);
      if (elements_ % full != 0) break;
      --repetition;
    }
    return repetition;
  }
  [[nodiscard]] std::uint64_t elements_of_array() const noexcept {
    std::uint64_t all = 1;
    for (const std::int64_t extent : leaf_.array) all *= static_cast<std::uint64_t>(extent);
    return all;
  }
  void hold(std::string_view text) { hold(std::as_bytes(std::span(text))); }
  void hold(std::span<const std::byte> value) {
    if (bytes_ > value_blocks::decoded_bytes_max) {
      throw error(errc::limit,
                  str_cat(path_, ": the column '", leaf_.path, "' has a list of 2 GiB or more, in row ", row_));
    }
    bytes_ += value.size();
    const std::span<const std::byte> held =
        value.first(std::min<std::uint64_t>(value.size(), held_max_ - list_.size()));
    list_.insert(list_.end(), held.begin(), held.end());
  }

  const std::string& path_;
  const parquet_leaf& leaf_;
  const bool are_values_;
  const std::size_t element_bytes_;  // of arrays
  std::uint64_t row_;
  const std::uint64_t held_max_;
  std::vector<std::byte> list_;
  std::uint64_t bytes_ = 0;
  std::uint64_t longest_ = 0;
  bool is_open_ = false;
  bool is_there_ = false;
  bool has_null_ = false;
  std::uint64_t elements_ = 0;  // of an array
  bool is_misshapen_ = false;
};

// However long they are, none is held whole.
class list_lengths final : public list_joiner {
 public:
  list_lengths(const std::string& path, const parquet_leaf& leaf, std::uint64_t first_row, length_sink& lists)
      : list_joiner(path, leaf, first_row, length_sink::start_bytes), lists_(lists) {}

 private:
  void give(bool is_there, std::uint64_t bytes, std::span<const std::byte> list) override {
    lists_.add_value(is_there, bytes, list);
  }
  length_sink& lists_;
};

class copy_sink final : public parquet_sink {
 public:
  copy_sink(const parquet_leaf& leaf, std::span<const std::uint32_t> ends, std::span<std::byte> into)
      : leaf_(leaf), ends_(ends), into_(into) {}

  void add(std::uint32_t, std::uint32_t definition, std::span<const std::byte> value) override {
    const bool is_missing = definition < leaf_.levels;
    const std::uint64_t end = end_ + value.size();
    is_same_ = is_same_ && row_ < ends_.size() &&
               ends_[row_] == (is_missing ? static_cast<std::uint32_t>(end_) | value_blocks::missing : end);
    if (!is_same_) return;
    if (!value.empty()) std::memcpy(into_.data() + end_, value.data(), value.size());
    end_ = end;
    ++row_;
  }
  [[nodiscard]] bool is_whole() const noexcept { return is_same_ && row_ == ends_.size(); }

 private:
  const parquet_leaf& leaf_;
  std::span<const std::uint32_t> ends_;
  std::span<std::byte> into_;
  std::size_t row_ = 0;
  std::uint64_t end_ = 0;
  bool is_same_ = true;
};

class whole_lists final : public list_joiner {
 public:
  whole_lists(const std::string& path, const parquet_leaf& leaf, std::span<const std::uint32_t> ends, copy_sink& lists)
      : list_joiner(path, leaf, row_not_named, longest_of(ends)), leaf_(leaf), lists_(lists) {}

 private:
  static constexpr std::uint64_t row_not_named = 0;
  static std::uint64_t longest_of(std::span<const std::uint32_t> ends) noexcept {
    std::uint32_t begin = 0;
    std::uint32_t longest = 0;
    for (const std::uint32_t each : ends) {
      const std::uint32_t end = each & ~value_blocks::missing;
      longest = std::max(longest, end - std::exchange(begin, end));
    }
    return longest;
  }
  void give(bool is_there, std::uint64_t bytes, std::span<const std::byte> list) override {
    // One that is longer than it was is not held, and is seen as another one by its length.
    lists_.add(0, is_there ? leaf_.levels : 0, list.size() == bytes ? list : std::span<const std::byte>());
  }
  const parquet_leaf& leaf_;
  copy_sink& lists_;
};

class parquet_expander final : public block_expander {
 public:
  parquet_expander(std::string path, parquet_leaf leaf, std::vector<parquet_chunk> chunks)
      : path_(std::move(path)), leaf_(std::move(leaf)), chunks_(std::move(chunks)) {}

  std::optional<std::string> expand(std::size_t block, std::span<const std::byte> stored,
                                    std::span<const std::uint32_t> ends, std::span<std::byte> decoded) const override {
    copy_sink sink(leaf_, ends, decoded);
    try {
      if (leaf_.repeated == 0) {
        decode_chunk(path_, leaf_, chunks_[block], stored, sink);
      } else {
        whole_lists lists(path_, leaf_, ends, sink);
        decode_chunk(path_, leaf_, chunks_[block], stored, lists);
        lists.finish();
      }
    } catch (const error& damage) {
      return damage.what();
    }
    if (!sink.is_whole()) return "a row group whose values are no more those that it had when it was opened";
    return std::nullopt;
  }

 private:
  std::string path_;
  parquet_leaf leaf_;
  std::vector<parquet_chunk> chunks_;
};

}  // namespace

void check_rows(const std::string& path, const parquet_leaf& leaf, const parquet_group& group,
                const parquet_chunk& chunk) {
  if (leaf.repeated != 0 || chunk.values == group.rows) return;
  fail_at(path, chunk.offset,
          str_cat("the column '", leaf.path, "' has ", chunk.values, " values for ", group.rows, " rows"));
}

std::string why_not_bare(const parquet_leaf& leaf, const parquet_chunk& chunk) {
  std::string why = leaf.repeated == 0 ? "" : "lists";
  if (chunk.codec != parquet_codec::none) str_append(why, why.empty() ? "" : ", ", name(chunk.codec));
  constexpr parquet_encoding packed[] = {
      parquet_encoding::rle_dictionary,      parquet_encoding::plain_dictionary,
      parquet_encoding::delta_binary_packed, parquet_encoding::delta_length_byte_array,
      parquet_encoding::delta_byte_array,    parquet_encoding::byte_stream_split};
  for (const parquet_encoding each : packed) {
    const bool is_dictionary = each == parquet_encoding::rle_dictionary && chunk.has_dictionary;
    if (!is_dictionary && !chunk.uses(each)) continue;
    str_append(why, why.empty() ? "" : ", ", name_of(each));
    break;
  }
  return why;
}

bare_pages find_bare_values(const file_bytes& file, const parquet_leaf& leaf, const parquet_chunk& chunk,
                            std::span<value_place> places) {
  return bare_values(file, leaf, places).read(chunk);
}

packed_group find_packed_values(const file_bytes& file, const parquet_leaf& leaf, const parquet_group& group,
                                const parquet_chunk& chunk) {
  packed_group found;
  length_sink sink(file, leaf, group.rows, found);
  const std::vector<std::byte> stored = read_chunk(file, chunk);
  if (leaf.repeated == 0) {
    found.expand_bytes = decode_chunk(file.path(), leaf, chunk, stored, sink);
  } else {
    list_lengths lists(file.path(), leaf, group.first_row, sink);
    found.expand_bytes = decode_chunk(file.path(), leaf, chunk, stored, lists);
    lists.finish();
    found.expand_bytes += lists.longest();
    found.with_nulls = lists.with_nulls;
    found.first_with_null = lists.first_with_null;
    found.misshapen = lists.misshapen;
    found.first_misshapen = lists.first_misshapen;
  }
  if (found.ends.size() != group.rows) {
    fail_at(file.path(), chunk.offset,
            str_cat("the column '", leaf.path, "' has ", found.ends.size(), " lists for ", group.rows, " rows"));
  }
  return found;
}

std::shared_ptr<const block_expander> expand_parquet(std::string path, parquet_leaf leaf,
                                                     std::vector<parquet_chunk> chunks) {
  return std::make_shared<parquet_expander>(std::move(path), std::move(leaf), std::move(chunks));
}

std::optional<dtype> number_type(const parquet_leaf& leaf) noexcept {
  if (leaf.is_decimal) {
    const bool has_digits = leaf.type == parquet_type::int32 || leaf.type == parquet_type::int64 ||
                            leaf.type == parquet_type::byte_array ||
                            (leaf.type == parquet_type::fixed_byte_array && leaf.type_bytes <= decimal_bytes_max);
    if (!has_digits) return std::nullopt;
    return leaf.scale == 0 ? dtype::i64 : dtype::f64;
  }
  switch (leaf.type) {
    case parquet_type::int96:
    case parquet_type::boolean:
      return dtype::i64;
    case parquet_type::int32:
    case parquet_type::int64:
      return leaf.is_number ? std::optional(dtype::i64) : std::nullopt;
    case parquet_type::real:
      return dtype::f32;
    case parquet_type::real64:
      return dtype::f64;
    case parquet_type::fixed_byte_array:
      return leaf.is_half && leaf.type_bytes == 2 ? std::optional(dtype::f16) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<dtype> element_type(const parquet_leaf& leaf) noexcept {
  if (leaf.repeated == 0 || !leaf.is_number) return std::nullopt;
  if (!leaf.array.empty() && leaf.bits == 8) return leaf.is_unsigned ? dtype::u8 : dtype::i8;
  if (!leaf.array.empty() && leaf.bits == 16) return leaf.is_unsigned ? dtype::u16 : dtype::i16;
  switch (leaf.type) {
    case parquet_type::boolean:
      return dtype::u8;
    case parquet_type::int32:
      return leaf.is_unsigned ? dtype::u32 : dtype::i32;
    case parquet_type::int64:
      return leaf.is_unsigned ? dtype::u64 : dtype::i64;
    case parquet_type::real:
      return dtype::f32;
    case parquet_type::real64:
      return dtype::f64;
    default:
      return std::nullopt;
  }
}

bool has_lists_of_values(const parquet_leaf& leaf) noexcept {
  const bool is_bytes = leaf.type == parquet_type::byte_array || leaf.type == parquet_type::fixed_byte_array;
  return leaf.repeated == 1 && is_bytes && !leaf.is_half && !leaf.is_decimal;
}

std::vector<std::uint64_t> read_numbers(const file_bytes& file, const parquet_leaf& leaf, const parquet_group& group,
                                        const parquet_chunk& chunk, record_numbers& into) {
  number_sink sink(file, leaf, group, into);
  decode_chunk(file.path(), leaf, chunk, read_chunk(file, chunk), sink);
  return std::move(sink.missing);
}

few_texts read_few_texts(const file_bytes& file, const parquet_leaf& leaf, const parquet_group& group,
                         const parquet_chunk& chunk) {
  few_texts found;
  text_sink sink(file, leaf, group.rows, found);
  decode_chunk(file.path(), leaf, chunk, read_chunk(file, chunk), sink);
  return found;
}

}  // namespace leat::datasets
