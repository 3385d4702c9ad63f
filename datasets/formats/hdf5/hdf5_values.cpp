#include "datasets/formats/hdf5/hdf5_values.hpp"

#include "base/hash_map.hpp"
#include "base/text.hpp"
#include "datasets/tables/chunk_grid.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace leat::datasets {
namespace {

std::vector<std::byte> read_chunk(const hdf5_bytes& file, const chunked_array& array, const chunk_place& place,
                                  std::uint64_t bytes) {
  std::vector<std::byte> chunk(bytes);
  if (place.offset == chunk_place::absent) return chunk;
  const std::vector<std::byte> stored = file.bytes_at(place.offset, array.filters.empty() ? bytes : place.bytes);
  if (array.filters.empty()) return stored;
  if (const auto reason = undo_filters(array.filters, place.skipped, stored, chunk)) {
    file.fail(place.offset, str_cat("a chunk of ", array.name, ": ", *reason));
  }
  return chunk;
}

std::vector<hdf5_reference> read_references(const hdf5_bytes& file, const chunked_array& array) {
  const std::uint64_t rows = array.shape.front();
  const std::uint64_t each_bytes = array.shape.back();
  const std::uint64_t rows_in_chunk = array.chunk.front();
  const std::uint64_t rows_max = std::max<std::uint64_t>(std::uint64_t{1} << 20, file.size());
  if (rows > rows_max) file.fail(0, str_cat(array.name, " has ", rows, " values, for which the file has no room"));
  // All of a chunk is expanded, whatever the array has of it.
  constexpr std::uint64_t rows_in_chunk_max = std::uint64_t{1} << 24;
  if (!array.filters.empty() && rows_in_chunk > std::max(rows_in_chunk_max, rows_max)) {
    file.fail(0, str_cat(array.name, " has chunks of ", rows_in_chunk, " values, for which the file has no room"));
  }
  if (each_bytes != 8 + file.address_bytes()) {
    file.fail(0, str_cat(array.name, " has references of ", each_bytes, " bytes to its values"));
  }
  std::vector<hdf5_reference> found;
  for (std::uint64_t chunk = 0; chunk < array.places.size(); ++chunk) {
    const std::uint64_t first = chunk * rows_in_chunk;
    const std::uint64_t here = std::min(rows_in_chunk, rows - first);
    const std::uint64_t bytes = (array.filters.empty() ? here : rows_in_chunk) * each_bytes;
    const chunk_place& place = array.places[chunk];
    const std::vector<std::byte> expanded = read_chunk(file, array, place, bytes);
    hdf5_cursor at(file, expanded, place.offset);
    for (std::uint64_t row = 0; row < here; ++row) found.push_back(read_reference(at));
  }
  return found;
}

/// Objects of one heap after another.
class heap_walker {
 public:
  explicit heap_walker(hdf5_bytes& file) : file_(file), objects_left_(file.size() / 16 + 1) {}

  using places = hash_map<std::uint64_t, value_place>;

  /// Objects of the heap, by their numbers.
  [[nodiscard]] places read(std::uint64_t address) {
    file_.count_node(address);
    const std::uint64_t prefix_bytes = 8 + file_.length_bytes();
    const hdf5_block prefix = file_.read(address, prefix_bytes);
    hdf5_cursor at = prefix.cursor();
    at.expect("GCOL");
    at.skip(4);
    const std::uint64_t bytes = at.length();
    if (prefix.offset > file_.size() || bytes > file_.size() - prefix.offset) {
      file_.fail(prefix.offset, str_cat("a heap of ", bytes, " bytes, behind the end of the file"));
    }
    places found;
    const std::uint64_t end = prefix.offset + bytes;
    std::uint64_t offset = prefix.offset + prefix_bytes;
    while (end - offset >= prefix_bytes) {
      if (objects_left_-- == 0) file_.fail(offset, "heaps with more objects than the file has room for");
      hdf5_cursor object = header_at(offset, prefix_bytes);
      const std::uint64_t number = object.number(2);
      object.skip(6);
      const std::uint64_t object_bytes = object.length();
      if (number == 0) break;  // the rest is free
      offset += prefix_bytes;
      if (object_bytes > end - offset) file_.fail(offset, "a heap object outside its heap");
      found[number] = {.offset = offset, .bytes = object_bytes};
      const std::uint64_t padded = (object_bytes + 7) / 8 * 8;
      if (padded > end - offset) break;
      offset += padded;
    }
    return found;
  }

 private:
  // Objects are small or large: what lies behind a header is read along with it, as far as it is worth it.
  hdf5_cursor header_at(std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::uint64_t read_bytes = 4096;
    if (offset < window_offset_ || offset + bytes > window_offset_ + window_.size()) {
      window_ = file_.bytes_at(offset, std::min(read_bytes, file_.size() - offset));
      window_offset_ = offset;
    }
    return {file_, std::span(window_).subspan(offset - window_offset_), offset};
  }

  hdf5_bytes& file_;
  std::uint64_t objects_left_;
  std::vector<std::byte> window_;
  std::uint64_t window_offset_ = 0;
};

}  // namespace

hdf5_reference read_reference(hdf5_cursor& at) {
  hdf5_reference one;
  one.bytes = at.number(4);
  one.heap = at.address();
  one.object = at.number(4);
  return one;
}

std::vector<value_place> find_values(hdf5_bytes& file, const chunked_array& references) {
  return find_values(file, read_references(file, references), references.name);
}

std::vector<value_place> find_values(hdf5_bytes& file, std::span<const hdf5_reference> wanted,
                                     const std::string& name) {
  std::vector<std::size_t> order;
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    if (wanted[row].bytes != 0) order.push_back(row);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a].heap < wanted[b].heap; });

  std::vector<value_place> found(wanted.size());
  heap_walker walker(file);
  heap_walker::places objects;
  std::optional<std::uint64_t> heap;
  for (const std::size_t row : order) {
    const hdf5_reference& one = wanted[row];
    if (heap != one.heap) {
      objects = walker.read(one.heap);
      heap = one.heap;
    }
    const auto object = objects.find(one.object);
    if (object == objects.end() || object->second.bytes < one.bytes) {
      file.fail(file.offset_of(one.heap), str_cat("value ", row, " of ", name, " is object ", one.object,
                                                  " of this heap, of ", one.bytes, " bytes, which it does not have"));
    }
    found[row] = {.offset = object->second.offset, .bytes = one.bytes};
  }
  return found;
}

}  // namespace leat::datasets
