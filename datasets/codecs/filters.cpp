#include "datasets/codecs/filters.hpp"

#include "base/crc32c.hpp"
#include "base/text.hpp"
#include "datasets/codecs/bitshuffle.hpp"
#include "datasets/codecs/blosc.hpp"
#include "datasets/codecs/checksums.hpp"
#include "datasets/codecs/deflate.hpp"
#include "datasets/codecs/element_bytes.hpp"
#include "datasets/codecs/lz4.hpp"
#include "datasets/codecs/lzf.hpp"
#include "datasets/codecs/zstd.hpp"

#include <array>
#include <cstring>
#include <string_view>

namespace leat::datasets {
namespace {

constexpr std::size_t checksum_bytes = 4;

bool is_checksum(filter_kind kind) { return kind == filter_kind::fletcher32 || kind == filter_kind::crc32c; }

// The bytes without the checksum behind them, or why not.
std::optional<std::string> check_sum(filter_kind kind, std::span<const std::byte>& bytes) {
  const char* const name = kind == filter_kind::crc32c ? "CRC-32C" : "Fletcher-32";
  if (bytes.size() < checksum_bytes) return str_cat(bytes.size(), " bytes, too few for a checksum (", name, ")");
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - checksum_bytes, checksum_bytes);
  bytes = bytes.first(bytes.size() - checksum_bytes);
  const bool right = kind == filter_kind::crc32c ? crc32c(bytes) == stored : is_fletcher32(bytes, stored);
  if (right) return std::nullopt;
  return str_cat("the checksum (", name, ") of ", bytes.size(), " bytes is another one");
}

std::optional<std::string> undo(const filter& what, std::span<const std::byte> from, std::span<std::byte> to) {
  switch (what.kind) {
    case filter_kind::gzip:
      return inflate(deflate_wrapper::gzip, from, to);
    case filter_kind::zlib:
      return inflate(deflate_wrapper::zlib, from, to);
    case filter_kind::shuffle:
      return unshuffle(what.element_bytes, from, to);
    case filter_kind::zstd:
      return expand_zstd(from, to);
    case filter_kind::lz4:
      return expand_lz4(from, to);
    case filter_kind::lz4_hdf5:
      return expand_lz4_hdf5(from, to);
    case filter_kind::lzf:
      return expand_lzf(from, to);
    case filter_kind::blosc:
      return expand_blosc(from, to);
    case filter_kind::bitshuffle:
      return bitunshuffle(what.element_bytes, what.block_elements, from, to);
    case filter_kind::bitshuffle_lz4:
      return expand_bitshuffle_lz4(what.element_bytes, from, to);
    case filter_kind::swap:
      return swap_elements(what.element_bytes, from, to);
    case filter_kind::deflate: {
      auto reason = inflate(deflate_wrapper::bare, from, to);
      if (!reason && crc32(to) != what.crc32) reason = str_cat("the CRC-32 of ", to.size(), " bytes is another one");
      return reason;
    }
    case filter_kind::fletcher32:
    case filter_kind::crc32c:
      break;
  }
  return "a checksum is no codec";
}

bool keeps_size(filter_kind kind) {
  return kind == filter_kind::shuffle || kind == filter_kind::swap || kind == filter_kind::bitshuffle;
}

}  // namespace

std::string filters_text(std::span<const filter> filters) {
  constexpr std::string_view names[] = {"gzip",       "zlib",       "zstd",           "lz4",     "lz4",        "lzf",
                                        "blosc",      "bitshuffle", "bitshuffle lz4", "shuffle", "fletcher32", "crc32c",
                                        "big-endian", "deflate"};
  std::string text;
  for (const filter& each : filters) {
    str_append(text, text.empty() ? "" : ", ", names[static_cast<std::size_t>(each.kind)]);
  }
  return text;
}

std::optional<std::string> undo_filters(std::span<const filter> filters, std::uint32_t skipped,
                                        std::span<const std::byte> stored, std::span<std::byte> decoded) {
  // What lies between two steps: one is read while the other is written. Kept from chunk to chunk, since chunks of a dataset are alike.
  thread_local std::array<std::vector<std::byte>, 2> between;
  const auto is_used = [&](std::size_t number) {
    // Elements of a byte are shuffled as they are.
    const bool changes = filters[number].kind != filter_kind::shuffle || filters[number].element_bytes != 1;
    return changes && (number >= 32 || ((skipped >> number) & 1) == 0);
  };
  std::size_t checksums = 0;  // that are still to be checked
  std::size_t first = filters.size();
  for (std::size_t i = filters.size(); i-- > 0;) {
    if (!is_used(i)) continue;
    first = i;
    checksums += is_checksum(filters[i].kind);
  }

  std::span<const std::byte> bytes = stored;
  bool done = false;  // `decoded` is written
  std::size_t next = 0;
  for (std::size_t i = filters.size(); i-- > 0;) {
    if (!is_used(i)) continue;
    if (is_checksum(filters[i].kind)) {
      --checksums;
      if (auto reason = check_sum(filters[i].kind, bytes)) return reason;
      continue;
    }
    const std::size_t size = keeps_size(filters[i].kind) ? bytes.size() : decoded.size() + checksums * checksum_bytes;
    done = i == first;
    std::span<std::byte> to = decoded;
    if (done) {
      if (size != decoded.size()) {
        return str_cat("a chunk of ", size, " bytes where ", decoded.size(), " were expected");
      }
    } else {
      std::vector<std::byte>& buffer = between[next];
      next = 1 - next;
      if (buffer.size() < size) buffer.resize(size);
      to = std::span(buffer).first(size);
    }
    if (auto reason = undo(filters[i], bytes, to)) return reason;
    bytes = to;
  }
  if (done) return std::nullopt;
  if (bytes.size() != decoded.size()) {
    return str_cat("a chunk of ", bytes.size(), " bytes where ", decoded.size(), " were expected");
  }
  if (!bytes.empty()) std::memcpy(decoded.data(), bytes.data(), bytes.size());
  return std::nullopt;
}

}  // namespace leat::datasets
