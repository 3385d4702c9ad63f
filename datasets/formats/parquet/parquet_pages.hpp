// Pages of a column of a Parquet file: their headers, levels and values.
#pragma once

#include "datasets/files/buffered_file.hpp"
#include "datasets/files/cursor.hpp"
#include "datasets/formats/parquet/parquet_footer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// What a page's header says.
///   offset, bytes     of what follows the header, as it is stored
///   decoded_bytes     of the same, decompressed
///   crc32             of the same as it is stored, where the page has one
///   repetition_bytes, definition_bytes   of pages of version 2, whose levels lie before the values, never compressed
struct parquet_page {
  enum class page_kind : std::uint8_t { data, data_v2, dictionary, other } kind = page_kind::other;
  parquet_encoding encoding = parquet_encoding::plain;
  parquet_encoding level_encoding = parquet_encoding::rle;
  bool compressed = true;
  std::uint32_t values = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t decoded_bytes = 0;
  std::uint64_t repetition_bytes = 0;
  std::uint64_t definition_bytes = 0;
  std::optional<std::uint32_t> crc32;

  [[nodiscard]] bool has_values() const noexcept { return kind == page_kind::data || kind == page_kind::data_v2; }
};

/// Calls page(header) for the pages of a chunk, in their order, until they have all of its values.
///   throws   error{errc::format}: a damaged header, a page that reaches beyond its chunk, values that do not add up
void for_each_page(buffered_file& file, const parquet_chunk& chunk,
                   const std::function<void(const parquet_page&)>& page);

/// Who is given values.
class parquet_sink {
 public:
  parquet_sink() = default;
  parquet_sink(const parquet_sink&) = delete;
  parquet_sink& operator=(const parquet_sink&) = delete;
  virtual ~parquet_sink() = default;

  ///   repetition   0: a row begins
  ///   definition   as many as the leaf has levels: there is a value
  ///   value        its bytes, valid during the call
  virtual void add(std::uint32_t repetition, std::uint32_t definition, std::span<const std::byte> value) = 0;
};

/// The values of a whole chunk.
///   stored    its bytes, as chunk.offset and chunk.bytes place them
///   returns   bytes of memory that were taken at once, for a dictionary and the largest page
///   throws    error{errc::format} what is damaged; error{errc::unsupported} a codec or an encoding that is not read
///   source    github.com/apache/parquet-format: Encodings.md, Compression.md
std::uint64_t decode_chunk(const std::string& path, const parquet_leaf& leaf, const parquet_chunk& chunk,
                           std::span<const std::byte> stored, parquet_sink& sink);

/// Why a chunk is not decoded; empty where it is.
[[nodiscard]] std::string why_not_decoded(const parquet_chunk& chunk);

}  // namespace leat::datasets
