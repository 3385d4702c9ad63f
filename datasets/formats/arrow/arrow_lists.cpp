#include "datasets/formats/arrow/arrow_lists.hpp"

#include "base/text.hpp"
#include "datasets/tables/value_list_json.hpp"

#include <algorithm>
#include <cstring>

namespace leat::datasets {
namespace {

bool is_there(std::span<const std::byte> validity, std::uint64_t row) {
  return validity.empty() ||
         (row / 8 < validity.size() && (std::to_integer<unsigned>(validity[row / 8]) >> (row % 8) & 1U) != 0);
}

template <class T>
std::uint64_t at(std::span<const std::byte> offsets, std::uint64_t number) {
  T value;
  std::memcpy(&value, offsets.data() + number * sizeof value, sizeof value);
  return static_cast<std::uint64_t>(value);  // One below zero is beyond any end.
}
std::uint64_t offset_at(std::span<const std::byte> offsets, std::size_t bytes, std::uint64_t number) {
  return bytes == 4 ? std::uint64_t{static_cast<std::uint64_t>(
                          static_cast<std::int64_t>(static_cast<std::int32_t>(at<std::int32_t>(offsets, number))))}
                    : at<std::int64_t>(offsets, number);
}

}  // namespace

std::optional<std::string> write_lists(const arrow_column& column, std::uint64_t rows, const arrow_list_buffers& from,
                                       const std::function<void(bool)>& row,
                                       const std::function<void(std::string_view)>& piece) {
  using namespace std::string_view_literals;
  if (rows == 0) return std::nullopt;
  const bool is_fixed = column.what == arrow_column::kind::fixed_list;
  const std::uint64_t ends = from.element_offsets.size() / column.element_offset_bytes;
  const std::uint64_t elements = ends == 0 ? 0 : ends - 1;
  if (!is_fixed && from.offsets.size() / column.offset_bytes < rows + 1) return "a batch with fewer offsets than lists";
  if (is_fixed && column.size != 0 && rows > elements / column.size) return "a batch with fewer elements than lists";
  for (std::uint64_t number = 0; number < rows; ++number) {
    const bool there = std::all_of(from.validities.begin(), from.validities.end(),
                                   [&](const std::vector<std::byte>& each) { return is_there(each, number); });
    row(there);
    if (!there) continue;
    const std::uint64_t begin = is_fixed ? number * column.size : offset_at(from.offsets, column.offset_bytes, number);
    const std::uint64_t end = is_fixed ? begin + column.size : offset_at(from.offsets, column.offset_bytes, number + 1);
    if (begin > end || end > elements)
      return str_cat("a list that ends behind its elements, in row ", number, " of a batch");
    piece("["sv);
    for (std::uint64_t i = begin; i < end; ++i) {
      std::optional<std::span<const std::byte>> value;
      if (is_there(from.element_validity, i)) {
        const std::uint64_t first = offset_at(from.element_offsets, column.element_offset_bytes, i);
        const std::uint64_t last = offset_at(from.element_offsets, column.element_offset_bytes, i + 1);
        if (first > last || last > from.values.size()) {
          return str_cat("a value that ends behind its buffer, in row ", number, " of a batch");
        }
        value = std::span(from.values).subspan(first, last - first);
      }
      for_each_piece_of_json(i == begin, column.elements == arrow_column::kind::text, value, piece);
    }
    piece("]"sv);
  }
  return std::nullopt;
}

std::optional<std::string> arrow_list_expander::expand(std::size_t block, std::span<const std::byte> stored,
                                                       std::span<const std::uint32_t> ends,
                                                       std::span<std::byte> decoded) const {
  const lists& of = blocks_[block];
  constexpr std::size_t behind_validities = 4;
  arrow_list_buffers from;
  from.validities.resize(of.buffers.size() - behind_validities);
  std::vector<std::vector<std::byte>*> into;
  for (std::vector<std::byte>& each : from.validities) into.push_back(&each);
  into.insert(into.end(), {&from.offsets, &from.element_validity, &from.element_offsets, &from.values});
  for (std::size_t i = 0; i < into.size(); ++i) {
    const std::span<const std::byte> bytes = stored.subspan(of.buffers[i].offset, of.buffers[i].bytes);
    if (of.codec == arrow_codec::none || bytes.empty()) {
      into[i]->assign(bytes.begin(), bytes.end());
      continue;
    }
    const std::optional<std::uint64_t> expanded = expanded_bytes(of.codec, bytes, bytes.size());
    if (!expanded || *expanded > value_blocks::decoded_bytes_max) return "a packed buffer of another size than it had";
    into[i]->resize(*expanded);
    if (std::optional<std::string> reason = expand_arrow_buffer(of.codec, bytes, *into[i])) return reason;
  }
  // As they were when the file was opened, or nothing is written behind what there is room for.
  std::size_t row = 0;
  std::uint64_t at = 0;
  bool is_same = true;
  const auto finish = [&] {
    if (row != 0) is_same = is_same && (ends[row - 1] & ~value_blocks::missing) == at;
  };
  const std::optional<std::string> damage = write_lists(
      column_, of.rows, from,
      [&](bool there) {
        finish();
        is_same = is_same && row < ends.size() && ((ends[row] & value_blocks::missing) == 0) == there;
        ++row;
      },
      [&](std::string_view piece) {
        is_same = is_same && piece.size() <= decoded.size() - at;
        if (!is_same || piece.empty()) return;
        std::memcpy(decoded.data() + at, piece.data(), piece.size());
        at += piece.size();
      });
  if (damage) return damage;
  finish();
  if (!is_same || row != ends.size() || at != decoded.size()) {
    return "a batch whose lists are no more those that it had when it was opened";
  }
  return std::nullopt;
}

}  // namespace leat::datasets
