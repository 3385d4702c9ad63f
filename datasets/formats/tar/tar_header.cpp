#include "datasets/formats/tar/tar_header.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace leat::datasets {
namespace {

std::string_view field(std::span<const std::byte> block, std::size_t offset, std::size_t bytes) {
  return {reinterpret_cast<const char*>(block.data()) + offset, bytes};
}

std::string_view until_nul(std::string_view text) { return text.substr(0, text.find('\0')); }

// Octal with blanks or NULs around it, or, where the top bit is set, GNU's base-256.
std::optional<std::uint64_t> read_number(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(text[i])); };
  if (byte(0) & 0x80U) {
    if (byte(0) != 0x80U) return std::nullopt;  // 0xFF: negative, which no size is.
    std::uint64_t value = 0;
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | byte(i);
    }
    return value;
  }
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return 0;
  std::uint64_t value = 0;
  std::size_t i = begin;
  for (; i < text.size() && text[i] >= '0' && text[i] <= '7'; ++i) value = value << 3 | (byte(i) - '0');
  for (; i < text.size(); ++i) {
    if (text[i] == '\0') break;  // What stands behind the NUL is left over from something else.
    if (text[i] != ' ') return std::nullopt;
  }
  return value;
}

bool checksum_matches(std::span<const std::byte> block, std::uint64_t stored) {
  constexpr std::size_t checksum_offset = 148;
  constexpr std::size_t checksum_bytes = 8;
  std::uint64_t as_unsigned = 0;
  std::int64_t as_signed = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_checksum = i >= checksum_offset && i < checksum_offset + checksum_bytes;
    const auto value = is_checksum ? static_cast<unsigned char>(' ') : std::to_integer<unsigned char>(block[i]);
    as_unsigned += value;
    as_signed += static_cast<signed char>(value);
  }
  return stored == as_unsigned || (as_signed >= 0 && stored == static_cast<std::uint64_t>(as_signed));
}

}  // namespace

tar_block read_tar_block(std::span<const std::byte> block, tar_header& header, std::string& reason) {
  if (std::all_of(block.begin(), block.end(), [](std::byte value) { return value == std::byte{0}; })) {
    return tar_block::zeros;
  }
  const std::optional<std::uint64_t> checksum = read_number(field(block, 148, 8));
  if (!checksum || !checksum_matches(block, *checksum)) {
    reason = "its checksum is wrong: no tar header, or a damaged one";
    return tar_block::damaged;
  }
  const std::optional<std::uint64_t> size = read_number(field(block, 124, 12));
  if (!size) {
    reason = "its size is no number";
    return tar_block::damaged;
  }
  header.type = field(block, 156, 1)[0];
  header.name = until_nul(field(block, 0, 100));
  header.link_name = until_nul(field(block, 157, 100));
  // GNU's own magic ("ustar  ") keeps times where POSIX keeps the prefix.
  if (field(block, 257, 6) == std::string_view("ustar\0", 6)) {
    const std::string_view prefix = until_nul(field(block, 345, 155));
    if (!prefix.empty()) header.name = str_cat(prefix, "/", header.name);
  }
  // Before there was '5', a directory was a file whose name ends in a slash.
  if (header.type == '\0' && header.name.ends_with('/')) header.type = '5';
  const bool has_content = header.type < '1' || header.type > '6';
  header.size_bytes = has_content ? *size : 0;
  return tar_block::header;
}

void pax_records::update(const pax_records& other) {
  if (other.path) path = other.path;
  if (other.link_path) link_path = other.link_path;
  if (other.size_bytes) size_bytes = other.size_bytes;
  sparse = sparse || other.sparse;
}

bool read_pax_records(std::string_view text, pax_records& records, std::string& reason) {
  while (!text.empty()) {
    if (text[0] == '\0') return true;  // Some writers pad within the size.
    std::size_t length = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
    const std::size_t digits = static_cast<std::size_t>(end - text.data());
    // At least the digits, the blank, "=" and the line's end.
    if (failure != std::errc{} || digits >= text.size() || text[digits] != ' ' || length > text.size() ||
        length < digits + 3 || text[length - 1] != '\n') {
      reason = "a record of its pax header is damaged";
      return false;
    }
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) {
      reason = "a record of its pax header has no '='";
      return false;
    }
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      records.path = value;
    } else if (key == "linkpath") {
      records.link_path = value;
    } else if (key == "size") {
      std::uint64_t size = 0;
      const auto [size_end, size_failure] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (size_failure != std::errc{} || size_end != value.data() + value.size()) {
        reason = str_cat("its pax header gives the size '", value, "'");
        return false;
      }
      records.size_bytes = size;
    } else if (key.starts_with("GNU.sparse.") || key == "SCHILY.realsize") {
      records.sparse = true;
    }
  }
  return true;
}

}  // namespace leat::datasets
