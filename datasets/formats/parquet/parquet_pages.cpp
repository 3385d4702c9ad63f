#include "datasets/formats/parquet/parquet_pages.hpp"

#include "base/text.hpp"
#include "datasets/codecs/deflate.hpp"
#include "datasets/codecs/lz4.hpp"
#include "datasets/codecs/snappy.hpp"
#include "datasets/codecs/zstd.hpp"
#include "datasets/formats/parquet/parquet_encodings.hpp"
#include "datasets/wire/thrift_compact.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
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
        case 4:
          page_.crc32 = static_cast<std::uint32_t>(thrift_.integer(found));
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
parquet_page read_header(buffered_file& file, std::uint64_t offset, std::uint64_t end) {
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

class chunk_decoder {
 public:
  chunk_decoder(const std::string& path, const parquet_leaf& leaf, const parquet_chunk& chunk,
                std::span<const std::byte> stored, parquet_sink& sink)
      : path_(path), leaf_(leaf), chunk_(chunk), stored_(stored), sink_(sink) {}

  /// That were taken at once.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return dictionary_room_ + dictionary_.capacity() * sizeof dictionary_[0] + page_room_ + lengths_bytes_;
  }

  void page(const parquet_page& page) {
    if (page.kind == parquet_page::page_kind::other) return;
    if (page.encoding == parquet_encoding::delta_length_byte_array ||
        page.encoding == parquet_encoding::delta_byte_array) {
      // Of each value its length, and how much of the one before it begins with; and one value.
      const std::uint64_t of_lengths = page.values * 2 * sizeof(std::uint32_t) + page.decoded_bytes;
      lengths_bytes_ = std::max(lengths_bytes_, of_lengths);
    }
    const std::span<const std::byte> whole = stored_.subspan(page.offset - chunk_.offset, page.bytes);
    if (page.crc32 && crc32(whole) != *page.crc32) {
      fail_at(path_, page.offset,
              str_cat("the column '", leaf_.path, "': the CRC-32 of a page of ", page.bytes, " bytes is another one"));
    }
    const std::uint64_t levels_bytes = page.repetition_bytes + page.definition_bytes;
    const std::span<const std::byte> packed = whole.subspan(levels_bytes);
    std::span<const std::byte> values = packed;
    const bool is_packed = page.kind != parquet_page::page_kind::data_v2 || page.compressed || chunk_.always_packed;
    if (chunk_.codec != parquet_codec::none && is_packed) {
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
    const unsigned bytes = value_bytes(leaf_);
    for (std::uint32_t i = 0; i < page.values; ++i) {
      dictionary_.push_back(leaf_.type == parquet_type::byte_array ? at.take(at.number<std::uint32_t>())
                                                                   : at.take(bytes));
    }
  }

  void give(const parquet_page& page, cursor at, std::optional<packed_numbers> repetitions,
            std::optional<packed_numbers> definitions) {
    std::unique_ptr<parquet_value_reader> values;  // where there is one at all
    for (std::uint32_t i = 0; i < page.values; ++i) {
      const std::uint32_t repetition = repetitions ? repetitions->next() : 0;
      const std::uint32_t definition = definitions ? definitions->next() : 0;
      if (definition > leaf_.levels || repetition > leaf_.repeated)
        fail_at(path_, page.offset, "a level that the column does not have");
      if (definition < leaf_.levels) {
        sink_.add(repetition, definition, {});
        continue;
      }
      if (!values) values = read_values(leaf_, page.encoding, page.values, dictionary_, at);
      const std::span<const std::byte> value = values->next();
      if (leaf_.bits != 0) check_width(page, value);
      sink_.add(repetition, definition, value);
    }
  }

  void check_width(const parquet_page& page, std::span<const std::byte> value) const {
    std::int32_t narrow = 0;
    std::int64_t number = 0;
    if (value.size() == sizeof narrow) {
      std::memcpy(&narrow, value.data(), sizeof narrow);
      number = narrow;
    } else {
      std::memcpy(&number, value.data(), sizeof number);
    }
    const std::int64_t end = std::int64_t{1} << (leaf_.is_unsigned ? leaf_.bits : leaf_.bits - 1);
    if (number < end && number >= (leaf_.is_unsigned ? 0 : -end)) return;
    fail_at(path_, page.offset,
            str_cat("the column '", leaf_.path, "' has ", number, ", which no ", leaf_.is_unsigned ? "unsigned " : "",
                    "integer of ", leaf_.bits, " bits is"));
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
  std::uint64_t lengths_bytes_ = 0;
};

}  // namespace

void for_each_page(buffered_file& file, const parquet_chunk& chunk,
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

std::string why_not_decoded(const parquet_chunk& chunk) {
  const auto codec = chunk.codec;
  if (codec == parquet_codec::lzo || codec == parquet_codec::brotli || codec == parquet_codec::lz4) {
    return str_cat("is compressed by ", name(codec),
                   ", which leat does not have; write it with zstd, snappy, gzip or none");
  }
  return {};
}

std::uint64_t decode_chunk(const std::string& path, const parquet_leaf& leaf, const parquet_chunk& chunk,
                           std::span<const std::byte> stored, parquet_sink& sink) {
  if (const std::string why = why_not_decoded(chunk); !why.empty()) {
    throw error(errc::unsupported, str_cat(path, ": the column '", leaf.path, "' ", why));
  }
  const chunk_bytes bytes(path, stored, chunk.offset);
  buffered_file buffer(bytes);
  chunk_decoder decoder(path, leaf, chunk, stored, sink);
  for_each_page(buffer, chunk, [&](const parquet_page& page) { decoder.page(page); });
  return decoder.memory_bytes();
}

}  // namespace leat::datasets
