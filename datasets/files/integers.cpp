#include "datasets/files/integers.hpp"

#include "base/half.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t buffer_bytes = std::uint64_t{1} << 20;

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

template <class Stored, class Convert>
void append_converted(std::span<const std::byte> from, std::vector<double>& to, const Convert& convert) {
  for (std::size_t at = 0; at < from.size(); at += sizeof(Stored)) {
    to.push_back(static_cast<double>(convert(number_at<Stored>(from, at))));
  }
}

// Calls each(bytes) with the file's numbers, some at a time.
template <class Each>
void for_each_buffer(const file_bytes& file, std::uint64_t offset, dtype type, std::uint64_t count, const Each& each) {
  const std::uint64_t end = offset + count * size_bytes(type);
  while (offset < end) {
    const std::vector<std::byte> buffer = file.read(offset, std::min(buffer_bytes, end - offset));
    if (buffer.empty() || buffer.size() % size_bytes(type) != 0) {
      throw error(errc::format, str_cat(file.path(), ": ends at ", offset + buffer.size(), ", where ",
                                        is_integer(type) ? "integers" : "numbers", " up to ", end,
                                        " were expected; did it change while it was opened?"));
    }
    each(std::span<const std::byte>(buffer));
    offset += buffer.size();
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
  to.reserve(to.size() + count);
  for_each_buffer(file, offset, type, count, [&](std::span<const std::byte> bytes) { append_as(type, bytes, to); });
  check_range(type, file.path(), std::span(to).subspan(first));
}

void append_integers(std::span<const std::byte> bytes, dtype type, const std::string& where,
                     std::vector<std::int64_t>& to) {
  const std::size_t first = to.size();
  append_as(type, bytes, to);
  check_range(type, where, std::span(to).subspan(first));
}

void append_reals(std::span<const std::byte> bytes, dtype type, std::vector<double>& to) {
  switch (type) {
    case dtype::f64:
      return append_converted<std::uint64_t>(bytes, to, [](std::uint64_t bits) { return std::bit_cast<double>(bits); });
    case dtype::f32:
      return append_converted<std::uint32_t>(bytes, to, [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
    case dtype::f16:
      return append_converted<std::uint16_t>(bytes, to, f16_value);
    case dtype::bf16:
      return append_converted<std::uint16_t>(bytes, to, bf16_value);
    default:
      assert(false && "only floats are asked for");
  }
}

bool is_too_large_for_column(std::span<const std::byte> bytes, dtype type) {
  if (type != dtype::u64) return false;
  constexpr std::byte sign_bit{0x80};
  for (std::size_t at = 7; at < bytes.size(); at += 8) {
    if ((bytes[at] & sign_bit) != std::byte{}) return true;
  }
  return false;
}

column_values column_of(std::string name, dtype type, std::span<const std::byte> bytes, const std::string& where) {
  column_values column{.name = std::move(name)};
  if (is_integer(type)) {
    append_integers(bytes, type, where, column.values);
  } else {
    column.type = type;
    append_reals(bytes, type, column.reals);
  }
  return column;
}

void append_to_column(const file_bytes& file, std::uint64_t offset, dtype type, std::uint64_t count,
                      column_values& to) {
  if (is_integer(type)) return append_integers(file, offset, type, count, to.values);
  to.type = type;
  to.reals.reserve(to.reals.size() + count);
  for_each_buffer(file, offset, type, count,
                  [&](std::span<const std::byte> bytes) { append_reals(bytes, type, to.reals); });
}

}  // namespace leat::datasets
