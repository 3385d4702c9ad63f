#include "datasets/files/flat_buffer.hpp"

namespace leat::datasets {

flat_table::flat_table(const std::string& path, std::span<const std::byte> buffer, std::uint64_t offset, std::size_t at)
    : path_(&path), buffer_(buffer), offset_(offset), at_(at) {
  // The table begins with the distance back to the list of its fields.
  const auto back = static_cast<std::int64_t>(read<std::int32_t>(at));
  const std::int64_t fields = static_cast<std::int64_t>(at) - back;
  if (fields < 0) fail("a table whose list of fields lies outside its FlatBuffer");
  fields_at_ = static_cast<std::size_t>(fields);
  fields_bytes_ = read<std::uint16_t>(fields_at_);
  if (fields_bytes_ < 4 || fields_bytes_ > buffer_.size() - fields_at_)
    fail("a table whose list of fields ends outside its FlatBuffer");
}

flat_table flat_table::root(const std::string& path, std::span<const std::byte> buffer, std::uint64_t offset) {
  if (buffer.size() < 8) fail_at(path, offset, "a FlatBuffer of less than 8 bytes");
  std::uint32_t at = 0;
  std::memcpy(&at, buffer.data(), sizeof at);
  return {path, buffer, offset, at};
}

void flat_table::fail(std::string_view what) const { fail_at(*path_, offset_ + at_, what); }

std::size_t flat_table::place_of(unsigned field) const {
  const std::size_t slot = 4 + std::size_t{2} * field;
  if (slot + 2 > fields_bytes_) return 0;
  const auto distance = read<std::uint16_t>(fields_at_ + slot);
  return distance == 0 ? 0 : at_ + distance;
}

std::size_t flat_table::follow(std::size_t at) const { return at + read<std::uint32_t>(at); }

std::optional<flat_table> flat_table::table(unsigned field) const {
  const std::size_t at = place_of(field);
  if (at == 0) return std::nullopt;
  return flat_table(*path_, buffer_, offset_, follow(at));
}

std::string_view flat_table::text(unsigned field) const {
  const elements letters = vector(field, 1);
  return {reinterpret_cast<const char*>(buffer_.data()) + letters.at, letters.count};
}

flat_table::elements flat_table::vector(unsigned field, std::size_t element_bytes) const {
  const std::size_t place = place_of(field);
  if (place == 0) return {};
  const std::size_t at = follow(place);
  const auto count = read<std::uint32_t>(at);
  if (count > (buffer_.size() - at - 4) / element_bytes) fail("a vector of more elements than there are bytes");
  return {.count = count, .at = at + 4};
}

flat_table flat_table::table_at(const elements& of, std::size_t i) const {
  return {*path_, buffer_, offset_, follow(of.at + 4 * i)};
}

}  // namespace leat::datasets
