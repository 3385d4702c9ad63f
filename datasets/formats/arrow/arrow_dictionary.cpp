#include "datasets/formats/arrow/arrow_dictionary.hpp"

#include "base/text.hpp"
#include "datasets/files/file_bytes.hpp"

#include <algorithm>

namespace leat::datasets {

void arrow_values::add(std::optional<std::string_view> value, std::uint64_t offset) {
  if (value) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(*value));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  ends_.push_back(bytes_.size());
  offsets_.push_back(offset);
  is_there_.push_back(value.has_value());
}

std::int64_t arrow_index(std::span<const std::byte> indices, dtype type, std::uint64_t row) {
  const std::uint64_t at = row * size_bytes(type);
  switch (type) {
    case dtype::i8:
      return number_at<std::int8_t>(indices, at);
    case dtype::u8:
      return number_at<std::uint8_t>(indices, at);
    case dtype::i16:
      return number_at<std::int16_t>(indices, at);
    case dtype::u16:
      return number_at<std::uint16_t>(indices, at);
    case dtype::i32:
      return number_at<std::int32_t>(indices, at);
    case dtype::u32:
      return number_at<std::uint32_t>(indices, at);
    default:
      // No dictionary has so many values that a number without a sign would be one below zero.
      return number_at<std::int64_t>(indices, at);
  }
}

std::optional<std::string> arrow_dictionary_expander::expand(std::size_t block, std::span<const std::byte> stored,
                                                             std::span<const std::uint32_t> ends,
                                                             std::span<std::byte> decoded) const {
  const numbers& of = blocks_[block];
  std::vector<std::byte> indices(of.bytes);
  if (std::optional<std::string> reason = expand_arrow_buffer(of.codec, stored, indices)) return reason;
  if (indices.size() / size_bytes(type_) < ends.size()) return "fewer numbers than rows";
  std::uint64_t begin = 0;
  for (std::size_t row = 0; row < ends.size(); ++row) {
    const std::uint64_t end = ends[row] & ~value_blocks::missing;
    if ((ends[row] & value_blocks::missing) == 0) {
      const std::int64_t number = arrow_index(indices, type_, row);
      const bool is_one = number >= 0 && static_cast<std::uint64_t>(number) < of.values->size();
      const std::span<const std::byte> value =
          is_one ? (*of.values)[static_cast<std::size_t>(number)] : std::span<const std::byte>();
      if (!is_one || value.size() != end - begin)
        return str_cat("the number ", number, " in row ", row, " of a batch, which is another than it was");
      std::copy(value.begin(), value.end(), decoded.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    begin = end;
  }
  return std::nullopt;
}

}  // namespace leat::datasets
