#include "datasets/integers.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <limits>

namespace leat::datasets {
namespace {

constexpr std::uint64_t window_bytes = std::uint64_t{1} << 20;

template <class T>
void append(std::span<const std::byte> from, std::vector<std::int64_t>& to) {
  for (std::size_t at = 0; at < from.size(); at += sizeof(T)) {
    to.push_back(static_cast<std::int64_t>(number_at<T>(from, at)));
  }
}

void append_as(dtype type, std::span<const std::byte> from, std::vector<std::int64_t>& to) {
  switch (type) {
    case dtype::u8:
    case dtype::boolean:
      return append<std::uint8_t>(from, to);
    case dtype::i8:
      return append<std::int8_t>(from, to);
    case dtype::u16:
      return append<std::uint16_t>(from, to);
    case dtype::i16:
      return append<std::int16_t>(from, to);
    case dtype::u32:
      return append<std::uint32_t>(from, to);
    case dtype::i32:
      return append<std::int32_t>(from, to);
    case dtype::u64:
    case dtype::i64:
      return append<std::int64_t>(from, to);
    default:
      assert(false && "only integers are asked for");
  }
}

void check_range(dtype type, const std::string& where, std::span<const std::int64_t> values) {
  if (type != dtype::u64) return;
  if (std::any_of(values.begin(), values.end(), [](std::int64_t value) { return value < 0; })) {
    throw error(errc::unsupported,
                str_cat(where, ": an integer beyond 2^63 - 1, which no label holds; save a.astype('<i8')"));
  }
}

}  // namespace

std::optional<dtype> dtype_named(std::string_view wanted) noexcept {
  for (unsigned code = 0; code <= static_cast<unsigned>(dtype::boolean); ++code) {
    if (name(static_cast<dtype>(code)) == wanted) return static_cast<dtype>(code);
  }
  return std::nullopt;
}

void append_integers(const file_bytes& file, std::uint64_t offset, dtype type, std::uint64_t count,
                     std::vector<std::int64_t>& to) {
  const std::size_t first = to.size();
  const std::uint64_t end = offset + count * size_bytes(type);
  to.reserve(to.size() + count);
  while (offset < end) {
    const std::vector<std::byte> window = file.read(offset, std::min(window_bytes, end - offset));
    if (window.empty() || window.size() % size_bytes(type) != 0) {
      throw error(errc::format, str_cat(file.path(), ": ends at ", offset + window.size(), ", where integers up to ",
                                        end, " were expected; did it change while it was opened?"));
    }
    append_as(type, window, to);
    offset += window.size();
  }
  check_range(type, file.path(), std::span(to).subspan(first));
}

void append_integers(std::span<const std::byte> bytes, dtype type, const std::string& where,
                     std::vector<std::int64_t>& to) {
  const std::size_t first = to.size();
  append_as(type, bytes, to);
  check_range(type, where, std::span(to).subspan(first));
}

}  // namespace leat::datasets
