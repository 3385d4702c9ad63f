#include "datasets/formats/parquet/parquet_encodings.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

namespace leat::datasets {
namespace {

// A page is at most as long, so that a value is.
constexpr std::uint64_t value_bytes_max = std::uint64_t{1} << 29;

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

class plain_values final : public parquet_value_reader {
 public:
  plain_values(cursor at, unsigned bytes) : at_(at), bytes_(bytes) {}
  std::span<const std::byte> next() override { return at_.take(bytes_); }

 private:
  cursor at_;
  unsigned bytes_;
};

class plain_texts final : public parquet_value_reader {
 public:
  explicit plain_texts(cursor at) : at_(at) {}
  std::span<const std::byte> next() override { return at_.take(at_.number<std::uint32_t>()); }

 private:
  cursor at_;
};

class bits_as_bytes final : public parquet_value_reader {
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

class plain_bits final : public parquet_value_reader {
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

class dictionary_values final : public parquet_value_reader {
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

class delta_values final : public parquet_value_reader {
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
  // Lengths that are all alike take next to no bytes of the file, and these of memory.
  constexpr std::uint64_t lengths_max = std::uint64_t{1} << 27;
  if (numbers.count() > lengths_max) {
    throw error(errc::limit, str_cat(at.path(), ": a page of ", numbers.count(), " texts takes more than ",
                                     bytes_text(lengths_max * sizeof(std::uint32_t)),
                                     " of memory for their lengths; write it with smaller pages"));
  }
  std::vector<std::uint32_t> lengths;
  for (std::uint64_t i = 0; i < numbers.count(); ++i) {
    const std::uint64_t length = numbers.next();
    if (length > value_bytes_max) at.fail("a value longer than its page");
    lengths.push_back(static_cast<std::uint32_t>(length));
  }
  return lengths;
}

class delta_length_texts final : public parquet_value_reader {
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

class delta_texts final : public parquet_value_reader {
 public:
  ///   bytes   of each value; 0: they differ
  delta_texts(cursor at, std::uint64_t values, std::size_t bytes)
      : at_(at), prefixes_(delta_lengths(at_, values)), suffixes_(at_, values), bytes_(bytes) {}
  std::span<const std::byte> next() override {
    if (next_ == prefixes_.size()) at_.fail("fewer lengths than values");
    const std::uint32_t prefix = prefixes_[next_++];
    if (prefix > value_.size()) at_.fail("a value that begins as one which is shorter");
    const std::span<const std::byte> suffix = suffixes_.next();
    if (suffix.size() > value_bytes_max - prefix) at_.fail("a value longer than its page");
    value_.resize(prefix);
    value_.insert(value_.end(), suffix.begin(), suffix.end());
    if (bytes_ != 0 && value_.size() != bytes_) at_.fail(str_cat("a value of ", value_.size(), " bytes, not ", bytes_));
    return value_;
  }

 private:
  cursor at_;
  std::vector<std::uint32_t> prefixes_;
  delta_length_texts suffixes_;
  std::size_t bytes_;
  std::vector<std::byte> value_;
  std::size_t next_ = 0;
};

class split_values final : public parquet_value_reader {
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

}  // namespace

unsigned bits_of(std::uint32_t most) noexcept { return static_cast<unsigned>(std::bit_width(most)); }

unsigned value_bytes(const parquet_leaf& leaf) noexcept {
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

std::unique_ptr<parquet_value_reader> read_values(const parquet_leaf& leaf, parquet_encoding encoding,
                                                  std::uint32_t values,
                                                  std::span<const std::span<const std::byte>> dictionary, cursor at) {
  const unsigned bytes = value_bytes(leaf);
  const bool is_text = leaf.type == parquet_type::byte_array;
  const bool is_integer = leaf.type == parquet_type::int32 || leaf.type == parquet_type::int64;
  switch (encoding) {
    case parquet_encoding::plain:
      if (leaf.type == parquet_type::boolean) return std::make_unique<plain_bits>(at);
      if (is_text) return std::make_unique<plain_texts>(at);
      return std::make_unique<plain_values>(at, bytes);
    case parquet_encoding::plain_dictionary:
    case parquet_encoding::rle_dictionary:
      return std::make_unique<dictionary_values>(at, dictionary);
    case parquet_encoding::rle:
      if (leaf.type != parquet_type::boolean) break;
      {
        const auto length = at.number<std::uint32_t>();
        const std::uint64_t offset = at.offset();
        return std::make_unique<bits_as_bytes>(packed_numbers({at.path(), at.take(length), offset}, 1));
      }
    case parquet_encoding::delta_binary_packed:
      if (!is_integer) break;
      return std::make_unique<delta_values>(at, bytes);
    case parquet_encoding::delta_length_byte_array:
      if (!is_text) break;
      return std::make_unique<delta_length_texts>(at, values);
    case parquet_encoding::delta_byte_array:
      if (!is_text && leaf.type != parquet_type::fixed_byte_array) break;
      return std::make_unique<delta_texts>(at, values, bytes);
    case parquet_encoding::byte_stream_split:
      if (is_text || leaf.type == parquet_type::boolean) break;
      return std::make_unique<split_values>(at, bytes);
    case parquet_encoding::bit_packed:
      break;
  }
  at.fail(str_cat("the encoding ", static_cast<int>(encoding), " of values that it is not for"));
}

}  // namespace leat::datasets
