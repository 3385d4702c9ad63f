#include "datasets/parquet_pages.hpp"

#include "base/text.hpp"
#include "datasets/codecs/deflate.hpp"
#include "datasets/codecs/lz4.hpp"
#include "datasets/codecs/snappy.hpp"
#include "datasets/codecs/zstd.hpp"
#include "datasets/thrift_compact.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t page_bytes_max = std::uint64_t{1} << 29;

using type = thrift_reader::type;

class header_reader {
 public:
  explicit header_reader(cursor at) : at_(at), thrift_(at_) {}

  parquet_page read() {
    bool has_header = false;
    std::int64_t kind = -1;
    thrift_.structure([&](int field, type found) {
      switch (field) {
        case 1:
          kind = thrift_.integer(found);
          return;
        case 2:
          page_.decoded_bytes = size(found);
          return;
        case 3:
          page_.bytes = size(found);
          return;
        case 5:
        case 7:
          has_header = true;
          return read_data(found);
        case 8:
          has_header = true;
          return read_data_v2(found);
        default:
          thrift_.skip(found);
      }
    });
    constexpr parquet_page::page_kind kinds[] = {parquet_page::page_kind::data, parquet_page::page_kind::other,
                                                 parquet_page::page_kind::dictionary, parquet_page::page_kind::data_v2};
    if (kind < 0 || kind >= static_cast<std::int64_t>(std::size(kinds)))
      at_.fail("a page of a kind that Parquet does not have");
    page_.kind = kinds[kind];
    if (page_.kind != parquet_page::page_kind::other && !has_header)
      at_.fail("a page that does not say how it is encoded");
    if (page_.repetition_bytes > page_.bytes || page_.definition_bytes > page_.bytes - page_.repetition_bytes ||
        page_.repetition_bytes + page_.definition_bytes > page_.decoded_bytes) {
      at_.fail("a page with more levels than bytes");
    }
    page_.offset = at_.offset();
    return page_;
  }

 private:
  std::uint64_t size(type found) {
    const std::int64_t value = thrift_.integer(found);
    if (value < 0 || static_cast<std::uint64_t>(value) > page_bytes_max)
      at_.fail(str_cat("a page of ", value, " bytes"));
    return static_cast<std::uint64_t>(value);
  }
  std::uint32_t count(type found) {
    const std::int64_t value = thrift_.integer(found);
    if (value < 0 || value > std::numeric_limits<std::int32_t>::max())
      at_.fail(str_cat("a page of ", value, " values"));
    return static_cast<std::uint32_t>(value);
  }
  parquet_encoding encoding(type found) {
    const std::int64_t value = thrift_.integer(found);
    if (value < 0 || value > static_cast<std::int64_t>(parquet_encoding::byte_stream_split) || value == 1) {
      at_.fail(str_cat("the encoding ", value, ", which Parquet does not have"));
    }
    return static_cast<parquet_encoding>(value);
  }
  // Of data, and of a dictionary.
  void read_data(type found) {
    thrift_.structure(found, [&](int field, type inner) {
      if (field == 1) {
        page_.values = count(inner);
      } else if (field == 2) {
        page_.encoding = encoding(inner);
      } else if (field == 3 && inner != type::yes && inner != type::no) {
        page_.level_encoding = encoding(inner);
      } else {
        thrift_.skip(inner);
      }
    });
  }
  void read_data_v2(type found) {
    thrift_.structure(found, [&](int field, type inner) {
      switch (field) {
        case 1:
          page_.values = count(inner);
          return;
        case 4:
          page_.encoding = encoding(inner);
          return;
        case 5:
          page_.definition_bytes = size(inner);
          return;
        case 6:
          page_.repetition_bytes = size(inner);
          return;
        case 7:
          page_.compressed = thrift_.boolean(inner);
          return;
        default:
          thrift_.skip(inner);
      }
    });
  }

  cursor at_;
  thrift_reader thrift_;
  parquet_page page_;
};

// Headers are some 50 bytes, or, with the least and the greatest value in them, some KiB.
parquet_page read_header(file_window& file, std::uint64_t offset, std::uint64_t end) {
  constexpr std::uint64_t usual_bytes = 512;
  constexpr std::uint64_t bytes_max = std::uint64_t{16} << 20;
  for (std::uint64_t bytes = usual_bytes;; bytes *= 16) {
    const bool is_last = bytes >= end - offset || bytes >= bytes_max;
    try {
      return header_reader(file.at(offset, std::min(bytes, end - offset))).read();
    } catch (const error&) {
      if (is_last) throw;
    }
  }
}

// More of them than these would take memory that no file has room for.
void check_count(const std::string& path, const parquet_page& page) {
  constexpr std::uint64_t always = std::uint64_t{1} << 22;
  constexpr std::uint64_t values_per_byte = 64;
  if (page.values > always && page.values / values_per_byte > page.bytes) {
    fail_at(path, page.offset, str_cat("a page of ", page.values, " values in ", page.bytes, " bytes"));
  }
}

std::optional<std::string> expand_page(parquet_codec codec, std::span<const std::byte> stored,
                                       std::span<std::byte> decoded) {
  switch (codec) {
    case parquet_codec::snappy:
      return expand_snappy(stored, decoded);
    case parquet_codec::gzip:
      return inflate(deflate_wrapper::gzip, stored, decoded);
    case parquet_codec::zstd:
      return expand_zstd(stored, decoded);
    case parquet_codec::lz4_raw:
      return expand_lz4_block(stored, decoded);
    default:
      return "a codec that leat does not have";
  }
}

/// Bytes of a chunk as a file's, so that its pages are found the same way.
class chunk_bytes final : public file_bytes {
 public:
  chunk_bytes(const std::string& path, std::span<const std::byte> bytes, std::uint64_t offset)
      : file_bytes(path), bytes_(bytes), offset_(offset) {
    set_size(offset + bytes.size());
  }
  using file_bytes::read;
  std::size_t read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset < offset_ || offset - offset_ >= bytes_.size()) return 0;
    const std::span<const std::byte> from = bytes_.subspan(offset - offset_);
    const std::size_t count = std::min(from.size(), into.size());
    if (count != 0) std::memcpy(into.data(), from.data(), count);
    return count;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t offset_;
};

/// Integers as differences, packed ("DELTA_BINARY_PACKED").
class delta_numbers {
 public:
  explicit delta_numbers(cursor& at) : at_(at) {
    const std::uint64_t block = at_.varint();
    const std::uint64_t pieces = at_.varint();
    count_ = at_.varint();
    last_ = static_cast<std::uint64_t>(at_.zigzag());
    constexpr std::uint64_t block_max = std::uint64_t{1} << 20;
    if (block == 0 || block % 128 != 0 || block > block_max || pieces == 0 || block % pieces != 0 ||
        (block / pieces) % 32 != 0) {
      at_.fail("differences in blocks of no size that Parquet has");
    }
    pieces_ = pieces;
    in_piece_ = block / pieces;
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  [[nodiscard]] std::uint64_t next() {
    if (given_++ == 0) return last_;
    if (left_ == 0) begin_piece();
    --left_;
    last_ += least_ + unpack();
    return last_;
  }

 private:
  void begin_piece() {
    if (piece_ == widths_.size()) {
      least_ = static_cast<std::uint64_t>(at_.zigzag());
      widths_ = at_.take(pieces_);
      piece_ = 0;
    }
    bits_ = std::to_integer<unsigned>(widths_[piece_++]);
    if (bits_ > 64) at_.fail("a difference of more than 64 bits");
    packed_ = at_.take(in_piece_ * bits_ / 8);
    left_ = in_piece_;
    bit_ = 0;
  }
  std::uint64_t unpack() noexcept {
    std::uint64_t value = 0;
    for (unsigned done = 0; done < bits_;) {
      const std::uint64_t byte = std::to_integer<std::uint64_t>(packed_[bit_ / 8]) >> (bit_ % 8);
      const auto here = std::min<unsigned>(8 - bit_ % 8, bits_ - done);
      value |= (byte & ((1U << here) - 1)) << done;
      done += here;
      bit_ += here;
    }
    return value;
  }

  cursor& at_;
  std::uint64_t count_ = 0;
  std::uint64_t given_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t least_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t in_piece_ = 0;
  std::uint64_t left_ = 0;
  std::span<const std::byte> widths_;
  std::size_t piece_ = 0;
  unsigned bits_ = 0;
  std::span<const std::byte> packed_;
  unsigned bit_ = 0;
};

unsigned bytes_of_type(const parquet_leaf& leaf) noexcept {
  switch (leaf.type) {
    case parquet_type::boolean:
      return 1;
    case parquet_type::int32:
    case parquet_type::real:
      return 4;
    case parquet_type::int64:
    case parquet_type::real64:
      return 8;
    case parquet_type::int96:
      return 12;
    case parquet_type::fixed_byte_array:
      return leaf.type_bytes;
    case parquet_type::byte_array:
      break;
  }
  return 0;
}

/// Values of a page, without those that are null.
class value_reader {
 public:
  virtual ~value_reader() = default;
  /// Valid until the next call.
  virtual std::span<const std::byte> next() = 0;
};

class plain_values final : public value_reader {
 public:
  plain_values(cursor at, unsigned bytes) : at_(at), bytes_(bytes) {}
  std::span<const std::byte> next() override { return at_.take(bytes_); }

 private:
  cursor at_;
  unsigned bytes_;
};

class plain_texts final : public value_reader {
 public:
  explicit plain_texts(cursor at) : at_(at) {}
  std::span<const std::byte> next() override { return at_.take(at_.number<std::uint32_t>()); }

 private:
  cursor at_;
};

class bits_as_bytes final : public value_reader {
 public:
  explicit bits_as_bytes(packed_numbers from) : from_(from) {}
  std::span<const std::byte> next() override {
    value_ = static_cast<std::byte>(from_.next());
    return {&value_, 1};
  }

 private:
  packed_numbers from_;
  std::byte value_{};
};

class plain_bits final : public value_reader {
 public:
  explicit plain_bits(cursor at) : at_(at) {}
  std::span<const std::byte> next() override {
    if (bit_ == 0) byte_ = at_.number<std::uint8_t>();
    value_ = static_cast<std::byte>(byte_ >> bit_ & 1U);
    bit_ = (bit_ + 1) % 8;
    return {&value_, 1};
  }

 private:
  cursor at_;
  unsigned bit_ = 0;
  unsigned byte_ = 0;
  std::byte value_{};
};

class dictionary_values final : public value_reader {
 public:
  dictionary_values(cursor at, std::span<const std::span<const std::byte>> dictionary)
      : at_(at), dictionary_(dictionary), numbers_(begin(at_)) {}
  std::span<const std::byte> next() override {
    const std::uint32_t number = numbers_.next();
    if (number >= dictionary_.size()) {
      at_.fail(str_cat("value ", number, " of a dictionary of ", dictionary_.size()));
    }
    return dictionary_[number];
  }

 private:
  static packed_numbers begin(cursor& at) {
    // A page of nulls may have nothing here.
    const unsigned bits = at.left() == 0 ? 0 : at.number<std::uint8_t>();
    return {at, bits};
  }
  cursor at_;
  std::span<const std::span<const std::byte>> dictionary_;
  packed_numbers numbers_;
};

class delta_values final : public value_reader {
 public:
  delta_values(cursor at, unsigned bytes) : at_(at), numbers_(at_), bytes_(bytes) {}
  std::span<const std::byte> next() override {
    value_ = numbers_.next();
    return std::as_bytes(std::span(&value_, 1)).first(bytes_);
  }

 private:
  cursor at_;
  delta_numbers numbers_;
  unsigned bytes_;
  std::uint64_t value_ = 0;
};

std::vector<std::uint32_t> delta_lengths(cursor& at, std::uint64_t values) {
  delta_numbers numbers(at);
  if (numbers.count() > values) at.fail("more lengths than values");
  std::vector<std::uint32_t> lengths;
  for (std::uint64_t i = 0; i < numbers.count(); ++i) {
    const std::uint64_t length = numbers.next();
    if (length > page_bytes_max) at.fail("a value longer than its page");
    lengths.push_back(static_cast<std::uint32_t>(length));
  }
  return lengths;
}

class delta_length_texts final : public value_reader {
 public:
  delta_length_texts(cursor at, std::uint64_t values) : at_(at), lengths_(delta_lengths(at_, values)) {}
  std::span<const std::byte> next() override {
    if (next_ == lengths_.size()) at_.fail("fewer lengths than values");
    return at_.take(lengths_[next_++]);
  }

 private:
  cursor at_;
  std::vector<std::uint32_t> lengths_;
  std::size_t next_ = 0;
};

class delta_texts final : public value_reader {
 public:
  delta_texts(cursor at, std::uint64_t values)
      : at_(at), prefixes_(delta_lengths(at_, values)), suffixes_(at_, values) {}
  std::span<const std::byte> next() override {
    if (next_ == prefixes_.size()) at_.fail("fewer lengths than values");
    const std::uint32_t prefix = prefixes_[next_++];
    if (prefix > value_.size()) at_.fail("a value that begins as one which is shorter");
    const std::span<const std::byte> suffix = suffixes_.next();
    if (suffix.size() > page_bytes_max - prefix) at_.fail("a value longer than its page");
    value_.resize(prefix);
    value_.insert(value_.end(), suffix.begin(), suffix.end());
    return value_;
  }

 private:
  cursor at_;
  std::vector<std::uint32_t> prefixes_;
  delta_length_texts suffixes_;
  std::vector<std::byte> value_;
  std::size_t next_ = 0;
};

class split_values final : public value_reader {
 public:
  split_values(cursor at, unsigned bytes) : bytes_(bytes), values_(bytes == 0 ? 0 : at.left() / bytes), at_(at) {
    all_ = at.take(at.left());
    value_.resize(bytes);
  }
  std::span<const std::byte> next() override {
    if (next_ == values_) at_.fail("fewer values than are expected");
    for (unsigned i = 0; i < bytes_; ++i) value_[i] = all_[i * values_ + next_];
    ++next_;
    return value_;
  }

 private:
  unsigned bytes_;
  std::uint64_t values_;
  cursor at_;
  std::span<const std::byte> all_;
  std::vector<std::byte> value_;
  std::uint64_t next_ = 0;
};

class chunk_decoder {
 public:
  chunk_decoder(const std::string& path, const parquet_leaf& leaf, const parquet_chunk& chunk,
                std::span<const std::byte> stored, parquet_sink& sink)
      : path_(path), leaf_(leaf), chunk_(chunk), stored_(stored), sink_(sink) {}

  void page(const parquet_page& page) {
    if (page.kind == parquet_page::page_kind::other) return;
    check_count(path_, page);
    const std::span<const std::byte> whole = stored_.subspan(page.offset - chunk_.offset, page.bytes);
    const std::uint64_t levels_bytes = page.repetition_bytes + page.definition_bytes;
    const std::span<const std::byte> packed = whole.subspan(levels_bytes);
    std::span<const std::byte> values = packed;
    if (chunk_.codec != parquet_codec::none && (page.kind != parquet_page::page_kind::data_v2 || page.compressed)) {
      values = expand(page, packed, page.decoded_bytes - levels_bytes);
    }
    if (page.kind == parquet_page::page_kind::dictionary) return read_dictionary(page, values);
    cursor at(path_, values, page.offset);
    if (page.kind == parquet_page::page_kind::data) {
      const std::optional<packed_numbers> repetitions = levels_before(page, at, leaf_.repeated);
      const std::optional<packed_numbers> definitions = levels_before(page, at, leaf_.levels);
      return give(page, at, repetitions, definitions);
    }
    const auto levels = [&](std::uint64_t begin, std::uint64_t bytes, std::uint32_t most) {
      std::optional<packed_numbers> numbers;
      if (most != 0) {
        numbers.emplace(cursor(path_, whole.subspan(begin, bytes), page.offset + begin), bits_of(most));
      }
      return numbers;
    };
    give(page, at, levels(0, page.repetition_bytes, leaf_.repeated),
         levels(page.repetition_bytes, page.definition_bytes, leaf_.levels));
  }

 private:
  std::span<const std::byte> expand(const parquet_page& page, std::span<const std::byte> packed, std::uint64_t bytes) {
    std::unique_ptr<std::byte[]>& room =
        page.kind == parquet_page::page_kind::dictionary ? dictionary_bytes_ : page_bytes_;
    std::uint64_t& has = page.kind == parquet_page::page_kind::dictionary ? dictionary_room_ : page_room_;
    if (has < bytes || !room) {
      room = std::make_unique_for_overwrite<std::byte[]>(bytes);
      has = bytes;
    }
    const std::span<std::byte> decoded(room.get(), bytes);
    if (bytes == 0 && packed.empty()) return decoded;
    if (const auto reason = expand_page(chunk_.codec, packed, decoded)) fail_at(path_, page.offset, *reason);
    return decoded;
  }

  std::optional<packed_numbers> levels_before(const parquet_page& page, cursor& at, std::uint32_t most) const {
    if (most == 0) return std::nullopt;
    if (page.level_encoding != parquet_encoding::rle) {
      throw error(errc::unsupported, str_cat(path_, ": at offset ", page.offset,
                                             ": levels in an encoding that was given up in 2013; write the file anew"));
    }
    const auto bytes = at.number<std::uint32_t>();
    const std::uint64_t offset = at.offset();
    return packed_numbers({path_, at.take(bytes), offset}, bits_of(most));
  }

  void read_dictionary(const parquet_page& page, std::span<const std::byte> values) {
    if (!dictionary_.empty()) fail_at(path_, page.offset, "a second dictionary");
    if (page.values > values.size()) fail_at(path_, page.offset, "a dictionary of more values than bytes");
    cursor at(path_, values, page.offset);
    const unsigned bytes = bytes_of_type(leaf_);
    for (std::uint32_t i = 0; i < page.values; ++i) {
      dictionary_.push_back(leaf_.type == parquet_type::byte_array ? at.take(at.number<std::uint32_t>())
                                                                   : at.take(bytes));
    }
  }

  std::unique_ptr<value_reader> values_of(const parquet_page& page, cursor at) const {
    const unsigned bytes = bytes_of_type(leaf_);
    const bool is_text = leaf_.type == parquet_type::byte_array;
    const bool is_integer = leaf_.type == parquet_type::int32 || leaf_.type == parquet_type::int64;
    switch (page.encoding) {
      case parquet_encoding::plain:
        if (leaf_.type == parquet_type::boolean) return std::make_unique<plain_bits>(at);
        if (is_text) return std::make_unique<plain_texts>(at);
        return std::make_unique<plain_values>(at, bytes);
      case parquet_encoding::plain_dictionary:
      case parquet_encoding::rle_dictionary:
        return std::make_unique<dictionary_values>(at, dictionary_);
      case parquet_encoding::rle:
        if (leaf_.type != parquet_type::boolean) break;
        {
          const auto length = at.number<std::uint32_t>();
          const std::uint64_t offset = at.offset();
          return std::make_unique<bits_as_bytes>(packed_numbers({path_, at.take(length), offset}, 1));
        }
      case parquet_encoding::delta_binary_packed:
        if (!is_integer) break;
        return std::make_unique<delta_values>(at, bytes);
      case parquet_encoding::delta_length_byte_array:
        if (!is_text) break;
        return std::make_unique<delta_length_texts>(at, page.values);
      case parquet_encoding::delta_byte_array:
        if (!is_text) break;
        return std::make_unique<delta_texts>(at, page.values);
      case parquet_encoding::byte_stream_split:
        if (is_text || leaf_.type == parquet_type::boolean) break;
        return std::make_unique<split_values>(at, bytes);
      case parquet_encoding::bit_packed:
        break;
    }
    fail_at(path_, page.offset,
            str_cat("the encoding ", static_cast<int>(page.encoding), " of values that it is not for"));
  }

  void give(const parquet_page& page, cursor at, std::optional<packed_numbers> repetitions,
            std::optional<packed_numbers> definitions) {
    std::unique_ptr<value_reader> values;  // where there is one at all
    for (std::uint32_t i = 0; i < page.values; ++i) {
      const std::uint32_t repetition = repetitions ? repetitions->next() : 0;
      const std::uint32_t definition = definitions ? definitions->next() : 0;
      if (definition > leaf_.levels || repetition > leaf_.repeated)
        fail_at(path_, page.offset, "a level that the column does not have");
      if (definition < leaf_.levels) {
        sink_.add(repetition, definition, {});
        continue;
      }
      if (!values) values = values_of(page, at);
      sink_.add(repetition, definition, values->next());
    }
  }

  const std::string& path_;
  const parquet_leaf& leaf_;
  const parquet_chunk& chunk_;
  std::span<const std::byte> stored_;
  parquet_sink& sink_;
  std::vector<std::span<const std::byte>> dictionary_;
  std::unique_ptr<std::byte[]> dictionary_bytes_;
  std::uint64_t dictionary_room_ = 0;
  std::unique_ptr<std::byte[]> page_bytes_;
  std::uint64_t page_room_ = 0;
};

}  // namespace

unsigned bits_of(std::uint32_t most) noexcept { return static_cast<unsigned>(std::bit_width(most)); }

void for_each_page(file_window& file, const parquet_chunk& chunk,
                   const std::function<void(const parquet_page&)>& page) {
  const std::string& path = file.file().path();
  const std::uint64_t end = chunk.offset + chunk.bytes;
  std::uint64_t at = chunk.offset;
  std::uint64_t values = 0;
  while (values < chunk.values) {
    if (at >= end) fail_at(path, at, str_cat("a chunk of ", chunk.values, " values ends after ", values));
    const parquet_page found = read_header(file, at, end);
    if (found.bytes > end - found.offset)
      fail_at(path, at, str_cat("a page of ", found.bytes, " bytes, beyond its chunk"));
    if (found.has_values()) {
      if (found.values > chunk.values - values) fail_at(path, at, "a page with more values than its chunk has left");
      values += found.values;
    }
    page(found);
    at = found.offset + found.bytes;
  }
}

packed_numbers::packed_numbers(cursor at, unsigned bits) : at_(at), bits_(bits) {
  if (bits > 32) at_.fail(str_cat("numbers of ", bits, " bits"));
}

void packed_numbers::begin_run() {
  if (bits_ == 0 && at_.left() == 0) {  // all of them are 0, and take no bytes
    packed_ = false;
    value_ = 0;
    count_ = std::numeric_limits<std::uint64_t>::max();
    return;
  }
  const std::uint64_t head = at_.varint();
  packed_ = (head & 1) != 0;
  count_ = head >> 1;
  if (count_ == 0) at_.fail("a run of no numbers");
  if (!packed_) {
    value_ = 0;
    for (unsigned byte = 0; byte < (bits_ + 7) / 8; ++byte)
      value_ |= std::uint32_t{at_.number<std::uint8_t>()} << (8 * byte);
    return;
  }
  if (count_ > (std::uint64_t{1} << 32)) at_.fail("a run of more numbers than there are bytes");
  // The last run of a page may be cut where its numbers end.
  run_ = at_.take(std::min<std::uint64_t>(count_ * bits_, at_.left()));
  count_ *= 8;
  if (bits_ != 0) count_ = std::min<std::uint64_t>(count_, run_.size() * 8 / bits_);
  if (count_ == 0) at_.fail("a run that ends before its first number");
  run_at_ = 0;
  held_ = 0;
  held_bits_ = 0;
}

std::uint32_t packed_numbers::next_packed() {
  while (held_bits_ < bits_) {
    held_ |= std::to_integer<std::uint64_t>(run_[run_at_++]) << held_bits_;
    held_bits_ += 8;
  }
  const auto value = static_cast<std::uint32_t>(held_ & ((std::uint64_t{1} << bits_) - 1));
  held_ >>= bits_;
  held_bits_ -= bits_;
  return value;
}

packed_numbers::run packed_numbers::take_run(std::uint64_t most) {
  if (count_ == 0) begin_run();
  if (packed_) return {next(), 1};
  const std::uint64_t taken = std::min(most, count_);
  count_ -= taken;
  return {value_, taken};
}

std::string why_not_decoded(const parquet_leaf& leaf, const parquet_chunk& chunk) {
  const auto codec = chunk.codec;
  if (codec == parquet_codec::lzo || codec == parquet_codec::brotli || codec == parquet_codec::lz4) {
    return str_cat("is compressed by ", name(codec),
                   ", which leat does not have; write it with zstd, snappy, gzip or none");
  }
  if (leaf.type == parquet_type::int96) return "has times of 96 bits; write them as int64";
  return {};
}

void decode_chunk(const std::string& path, const parquet_leaf& leaf, const parquet_chunk& chunk,
                  std::span<const std::byte> stored, parquet_sink& sink) {
  if (const std::string why = why_not_decoded(leaf, chunk); !why.empty()) {
    throw error(errc::unsupported, str_cat(path, ": the column '", leaf.path, "' ", why));
  }
  const chunk_bytes bytes(path, stored, chunk.offset);
  file_window window(bytes);
  chunk_decoder decoder(path, leaf, chunk, stored, sink);
  for_each_page(window, chunk, [&](const parquet_page& page) { decoder.page(page); });
}

}  // namespace leat::datasets
