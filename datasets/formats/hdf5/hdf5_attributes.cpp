#include "datasets/formats/hdf5/hdf5_attributes.hpp"

#include "base/text.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/formats/hdf5/hdf5_types.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <numeric>
#include <optional>

namespace leat::datasets {
namespace {

constexpr std::uint64_t text_bytes_max = std::uint64_t{64} << 10;

/// An attribute message in its parts.
///   source   HDF5 File Format Specification 3.0, IV.A.2.m
struct attribute_parts {
  std::string name;
  hdf5_message type{.type = hdf5_message::datatype, .flags = 0, .body = {}};
  hdf5_message space{.type = hdf5_message::dataspace, .flags = 0, .body = {}};
  hdf5_cursor data;
};

hdf5_block block_of(const hdf5_bytes& file, hdf5_cursor& at, std::uint64_t bytes, std::uint64_t padded) {
  const std::uint64_t offset = at.offset();
  const std::span<const std::byte> taken = at.take(bytes);
  at.skip(padded - bytes);
  return {&file, {taken.begin(), taken.end()}, offset};
}

attribute_parts parts_of(const hdf5_bytes& file, const hdf5_message& message) {
  constexpr std::uint8_t shared = 2;  // of a message
  hdf5_cursor at = message.cursor();
  const std::uint64_t version = at.number(1);
  if (version == 0 || version > 3) at.fail("an attribute of a version that is not known");
  const std::uint64_t flags = at.number(1);
  const std::uint64_t name_bytes = at.number(2);
  const std::uint64_t type_bytes = at.number(2);
  const std::uint64_t space_bytes = at.number(2);
  if (version == 3) at.skip(1);
  const auto padded = [&](std::uint64_t bytes) { return version == 1 ? (bytes + 7) / 8 * 8 : bytes; };
  attribute_parts parts{.name = at.text(name_bytes), .data = at};
  at.skip(padded(name_bytes) - name_bytes);
  parts.type.body = block_of(file, at, type_bytes, padded(type_bytes));
  parts.space.body = block_of(file, at, space_bytes, padded(space_bytes));
  if (version > 1 && (flags & 1) != 0) parts.type.flags = shared;
  if (version > 1 && (flags & 2) != 0) parts.space.flags = shared;
  parts.data = at;
  return parts;
}

std::uint64_t elements_of(hdf5_cursor at) {
  const std::uint64_t version = at.number(1);
  const std::uint64_t rank = at.number(1);
  at.skip(1);
  const std::uint64_t kind = at.number(1);
  if (version == 2 && kind == 2) return 0;
  if (version == 1) at.skip(4);
  std::uint64_t elements = 1;
  for (std::uint64_t axis = 0; axis < rank; ++axis) {
    // More than one is more than one.
    elements = std::min<std::uint64_t>(elements * std::min<std::uint64_t>(at.length(), 2), 2);
  }
  return elements;
}

attribute_value number_of(std::span<const std::byte> data, const hdf5_type& type, const std::string& where) {
  std::vector<std::byte> bytes(data.begin(), data.end());
  if (type.big_endian) std::reverse(bytes.begin(), bytes.end());
  if (is_integer(type.type)) {
    std::vector<std::int64_t> value;
    append_integers(bytes, type.type, where, value);
    return value.front();
  }
  std::vector<double> value;
  append_reals(bytes, type.type, value);
  return value.front();
}

}  // namespace

void hdf5_attributes::take(hdf5_bytes& file, const std::string& path, const hdf5_message& message,
                           const std::function<hdf5_message(const hdf5_message&)>& fetch) {
  attribute_parts parts = parts_of(file, message);
  const auto wanted = std::find(names_.begin(), names_.end(), parts.name);
  if (wanted == names_.end()) return;
  if (parts.type.flags != 0) parts.type = fetch(parts.type);
  if (parts.space.flags != 0) parts.space = fetch(parts.space);
  hdf5_cursor type_at = parts.type.cursor();
  const hdf5_type type = read_type(type_at);
  const std::string where = str_cat(file.path(), "/", path, ": the attribute '", parts.name, "'");
  const auto name = static_cast<std::size_t>(wanted - names_.begin());
  const bool is_number = type.what == hdf5_type::kind::number;
  const bool is_fixed_text = is_number && type.characters && type.axes.size() == 1;
  const bool is_one = elements_of(parts.space.cursor()) == 1;
  if (is_one && is_fixed_text) {
    keep(path, name, parts.data.text(type.bytes));
  } else if (is_one && is_number && type.not_read.empty() && type.axes.empty()) {
    keep(path, name, number_of(parts.data.take(type.bytes), type, where));
  } else if (is_one && type.what == hdf5_type::kind::variable_text) {
    texts_.emplace_back(path, name);
    places_.push_back(read_reference(parts.data));
  } else {
    throw error(errc::unsupported,
                str_cat(where, " is no single number and no single text; a column has one of each sample"));
  }
}

void hdf5_attributes::keep(const std::string& path, std::size_t name, attribute_value value) {
  values_.insert_or_assign(std::pair(path, name), std::move(value));
}

void hdf5_attributes::finish(hdf5_bytes& file) {
  constexpr std::uint64_t buffer_bytes = std::uint64_t{64} << 10;
  const std::vector<value_place> found = find_values(file, places_, "an attribute");
  std::vector<std::size_t> order(found.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return found[a].offset < found[b].offset; });
  std::vector<std::byte> buffer;
  std::uint64_t buffer_at = 0;
  for (const std::size_t i : order) {
    const value_place& place = found[i];
    if (place.bytes > text_bytes_max) {
      file.refuse(place.offset, str_cat("an attribute '", names_[texts_[i].second], "' of ", place.bytes,
                                        " bytes, which is no label"));
    }
    const bool is_here = place.offset >= buffer_at && place.offset + place.bytes <= buffer_at + buffer.size();
    if (!is_here) {
      const std::uint64_t left = file.size() - std::min(file.size(), place.offset);
      buffer = file.bytes_at(place.offset, std::max(place.bytes, std::min(left, buffer_bytes)));
      buffer_at = place.offset;
    }
    hdf5_cursor at(file, buffer, buffer_at);
    at.skip(place.offset - buffer_at);
    keep(texts_[i].first, texts_[i].second, at.text(place.bytes));
  }
  texts_ = {};
  places_ = {};
}

const attribute_value* hdf5_attributes::find(const std::string& path, const std::string& name) const {
  const auto wanted = std::find(names_.begin(), names_.end(), name);
  if (wanted == names_.end()) return nullptr;
  const auto found = values_.find(std::pair(path, static_cast<std::size_t>(wanted - names_.begin())));
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace leat::datasets
