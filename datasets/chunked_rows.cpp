#include "datasets/chunked_rows.hpp"

#include "base/hasher.hpp"
#include "base/text.hpp"
#include "datasets/blocking_source.hpp"
#include "datasets/column_table.hpp"
#include "datasets/describe.hpp"
#include "datasets/integers.hpp"
#include "datasets/model.hpp"

#include <leat/error.hpp>

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace leat::datasets {
namespace {

using axes = absl::InlinedVector<std::uint64_t, dimensions::rank_max>;

constexpr std::uint64_t bytes_max = std::uint64_t{1} << 40;
// A sample counts what it waits for.
constexpr std::uint64_t chunks_in_row_max = 8192;

// What arithmetic needs of an array. Axes are those behind the first, which counts the rows.
struct geometry {
  axes shape;
  axes chunk;
  axes cells;                         // chunks along each axis
  std::uint64_t cells_in_row = 1;     // chunks that a row lies in
  std::uint64_t rows_in_chunk = 1;    // along the first axis
  std::uint64_t chunk_row_bytes = 0;  // of one row of a chunk
  std::uint64_t row_bytes = 0;        // of a row of the array
  std::uint64_t chunk_bytes = 0;      // of a chunk when its filters are undone
  std::size_t element_bytes = 1;
  bool as_stored = false;  // rows lie in the file as they are: no filter, and no chunk has only a part of one
};

std::uint64_t product(std::uint64_t a, std::uint64_t b, const std::string& where) {
  if (b != 0 && a > bytes_max / b) {
    throw error(errc::limit, str_cat(where, ": a row or a chunk has more than 1 TiB; leat has no room for it"));
  }
  return a * b;
}

geometry geometry_of(const chunked_array& array, const std::string& where) {
  assert(!array.shape.empty() && array.shape.size() == array.chunk.size());
  geometry it;
  it.element_bytes = size_bytes(array.type);
  it.row_bytes = it.element_bytes;
  it.chunk_row_bytes = it.element_bytes;
  it.as_stored = array.filters.empty();
  for (std::size_t axis = 1; axis < array.shape.size(); ++axis) {
    const std::uint64_t extent = array.shape[axis];
    const std::uint64_t chunk = array.chunk[axis];
    if (extent == 0) throw error(errc::usage, str_cat(where, ": an axis has no elements: there is nothing to load"));
    it.shape.push_back(extent);
    it.chunk.push_back(chunk);
    it.cells.push_back(extent / chunk + (extent % chunk != 0));
    it.cells_in_row = product(it.cells_in_row, it.cells.back(), where);
    it.row_bytes = product(it.row_bytes, extent, where);
    it.chunk_row_bytes = product(it.chunk_row_bytes, chunk, where);
    it.as_stored = it.as_stored && extent == chunk;
  }
  if (it.cells_in_row > chunks_in_row_max) {
    throw error(errc::limit, str_cat(where, ": a row lies in ", it.cells_in_row, " chunks; leat has up to ",
                                     chunks_in_row_max, ": write it anew with larger ones"));
  }
  it.rows_in_chunk = array.chunk.front();
  // The only chunk of an array in one piece may be of any size: no row needs all of it.
  it.chunk_bytes = it.as_stored ? it.chunk_row_bytes : product(it.rows_in_chunk, it.chunk_row_bytes, where);
  return it;
}

std::string at(const std::string& title, const chunked_array& array) { return str_cat(title, "/", array.name); }

// Bytes of whole rows of a chunk, or of a chunk that was never written.
void fill_with(std::span<const std::byte> element, std::span<std::byte> bytes) {
  const bool zeros = std::all_of(element.begin(), element.end(), [](std::byte each) { return each == std::byte{}; });
  if (zeros) {
    std::fill(bytes.begin(), bytes.end(), std::byte{});
    return;
  }
  std::size_t filled = std::min(element.size(), bytes.size());
  std::memcpy(bytes.data(), element.data(), filled);
  while (filled < bytes.size()) {
    const std::size_t next = std::min(filled, bytes.size() - filled);
    std::memcpy(bytes.data() + filled, bytes.data(), next);
    filled += next;
  }
}

std::optional<std::string> expand_chunk(const chunked_array& array, const chunk_place& place,
                                        std::span<const std::byte> stored, std::span<std::byte> decoded) {
  if (place.offset == chunk_place::absent) {
    fill_with(array.fill, decoded);
    return std::nullopt;
  }
  if (!array.filters.empty()) return undo_filters(array.filters, place.skipped, stored, decoded);
  if (stored.size() != decoded.size()) {
    return str_cat("a chunk of ", stored.size(), " bytes where ", decoded.size(), " were expected");
  }
  std::memcpy(decoded.data(), stored.data(), stored.size());
  return std::nullopt;
}

// All values of a one-dimensional array.
column_values read_column(const chunked_array& array, const chunked_table& table, blocking_sources& sources) {
  column_values column{array.name, {}};
  const std::uint64_t rows = array.shape.front();
  const std::size_t element = size_bytes(array.type);
  std::vector<std::byte> stored;
  std::vector<std::byte> decoded;
  std::uint64_t row = 0;
  for (const chunk_place& place : array.places) {
    const std::uint64_t count = std::min(array.chunk.front(), rows - row);
    const bool whole = !array.filters.empty() || place.offset == chunk_place::absent;
    decoded.resize(static_cast<std::size_t>((whole ? array.chunk.front() : count) * element));
    stored.resize(
        place.offset == chunk_place::absent ? 0 : static_cast<std::size_t>(whole ? place.bytes : count * element));
    if (!stored.empty()) {
      const blocking_source::request request{place.file, place.offset, stored};
      sources.of(*table.source).read({&request, 1});
    }
    if (const auto reason = expand_chunk(array, place, stored, decoded)) {
      throw error(errc::format, str_cat(at(table.title, array), ": the chunk at offset ", place.offset, " of ",
                                        table.files->path(place.file), ": ", *reason));
    }
    append_integers(std::span(decoded).first(static_cast<std::size_t>(count * element)), array.type,
                    at(table.title, array), column.values);
    row += count;
  }
  return column;
}

bool is_column(const chunked_array& array) { return array.shape.size() == 1 && is_integer(array.type); }

std::vector<column_values> take_columns(chunked_table& table) {
  std::vector<column_values> columns;
  blocking_sources sources;
  for (const chunked_array& array : table.arrays) {
    if (is_column(array)) columns.push_back(read_column(array, table, sources));
  }
  std::erase_if(table.arrays, is_column);
  return columns;
}

class chunked_model final : public dataset_model {
 public:
  ///   columns   that were taken out of the table
  chunked_model(chunked_table table, std::vector<column_values> columns, std::uint64_t rows)
      : title_(std::move(table.title)),
        format_(std::move(table.format)),
        files_(std::move(table.files)),
        columns_(std::move(columns), rows),
        notes_(std::move(table.notes)) {
    sources_.push_back(std::move(table.source));
    for (chunked_array& array : table.arrays) add_field(std::move(array));
  }

  std::uint64_t size() const noexcept override { return columns_.samples(); }
  std::span<const field_info> fields() const noexcept override { return fields_; }
  std::span<const std::shared_ptr<const io::source_description>> sources() const noexcept override { return sources_; }
  std::span<const std::string> columns() const noexcept override { return columns_.names(); }
  std::optional<std::int64_t> column(std::uint64_t sample, std::size_t column) const override {
    return columns_.value(sample, column);
  }
  const std::vector<std::string>& notes() const noexcept override { return notes_; }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    const std::size_t before = out.size();
    for (const need& wanted : needs) add_parts(sample, wanted.field, out);
    sort(out, before);
  }
  void parts(std::uint64_t sample, part_list& out) const override {
    const std::size_t before = out.size();
    for (std::uint16_t field = 0; field < fields_.size(); ++field) add_parts(sample, field, out);
    sort(out, before);
  }

  std::optional<std::string> expand(std::uint64_t, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte> decoded) const override {
    const chunked_array& array = arrays_[of.field];
    return expand_chunk(array, array.places[of.block], stored, decoded);
  }

  void copy_box(std::uint64_t sample, const part& of, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const override;

  std::vector<std::uint64_t> blocks() const override {
    std::uint64_t rows = 1;
    for (std::size_t field = 0; field < fields_.size(); ++field) {
      if (fields_[field].chunked) rows = std::max(rows, geometries_[field].rows_in_chunk);
    }
    std::vector<std::uint64_t> firsts;
    for (std::uint64_t first = 0; rows > 1 && first < size(); first += rows) firsts.push_back(first);
    return firsts;
  }

  std::string name(std::uint64_t sample) const override { return str_cat(title_, "[", sample, "]"); }

  void describe(description& out) const override {
    describe_model(out, format_, *this);
    describe_files(out, *files_);
    hasher hash;
    for (const chunked_array& array : arrays_) {
      hash.add(std::as_bytes(std::span(array.chunk)));
      hash.add(std::as_bytes(std::span(array.fill)));
      for (const filter& each : array.filters) {
        hash.add(static_cast<std::uint64_t>(each.kind));
        hash.add(each.element_bytes);
      }
      for (const chunk_place& each : array.places) {
        hash.add(each.offset);
        hash.add(each.bytes);
        hash.add(each.file);
        hash.add(each.skipped);
      }
    }
    out.add("chunks", hash.finish());
    columns_.describe(out);
  }

  dataset_memory memory() const override {
    dataset_memory held;
    for (const chunked_array& array : arrays_) held.extents += array.places.capacity() * sizeof(chunk_place);
    held.files = files_->memory_bytes();
    held.columns = columns_.memory_bytes();
    return held;
  }

 private:
  void add_field(chunked_array array) {
    const std::string where = at(title_, array);
    const geometry it = geometry_of(array, where);
    field_info info;
    info.name = array.name;
    info.kind = field_kind::tensor;
    info.type = array.type;
    if (it.shape.size() >= dimensions::rank_max) {
      throw error(errc::unsupported,
                  str_cat(where, ": rows of ", it.shape.size(), " axes, and a batch has one more; leat has up to ",
                          dimensions::rank_max, ": reshape them"));
    }
    for (const std::uint64_t extent : it.shape) info.shape.push_back(static_cast<std::int64_t>(extent));
    info.samples = array.shape.front();
    info.bytes_max = it.row_bytes;
    std::uint64_t offsets = it.row_bytes;
    for (std::size_t number = 0; number < array.places.size(); ++number) {
      const chunk_place& place = array.places[number];
      if (place.offset != chunk_place::absent) {
        // As stored, the last chunk along the first axis may end with the array.
        const std::uint64_t rows = std::min(it.rows_in_chunk, array.shape.front() - number * it.rows_in_chunk);
        check(place, it.as_stored ? it.row_bytes * rows : 0, where);
        info.bytes_total += place.bytes;
        offsets |= place.offset;
        if (it.as_stored) continue;
      }
      info.chunked = true;
      info.stored_block_bytes_max =
          std::max({info.stored_block_bytes_max, place.bytes, it.as_stored ? it.row_bytes : 0});
      info.decoded_block_bytes_max = it.chunk_bytes;
    }
    if (it.as_stored) info.alignment = io::alignment_of(offsets);
    fields_.push_back(std::move(info));
    arrays_.push_back(std::move(array));
    geometries_.push_back(it);
  }

  void check(const chunk_place& place, std::uint64_t least_bytes, const std::string& where) const {
    const std::uint64_t end = files_->size_bytes(place.file);
    if (place.offset > end || place.bytes > end - place.offset) {
      throw error(errc::format,
                  str_cat(where, ": ", files_->path(place.file), " ends at ", end, ", before the chunk of ",
                          place.bytes, " bytes at offset ", place.offset, " does"));
    }
    if (place.bytes < least_bytes) {
      throw error(errc::format, str_cat(where, ": a chunk of ", place.bytes, " bytes at offset ", place.offset, " of ",
                                        files_->path(place.file), ", where its rows take ", least_bytes));
    }
  }

  void add_parts(std::uint64_t sample, std::uint16_t field, part_list& out) const {
    const chunked_array& array = arrays_[field];
    const geometry& it = geometries_[field];
    const std::uint64_t first = sample / it.rows_in_chunk * it.cells_in_row;
    for (std::uint64_t block = first; block < first + it.cells_in_row; ++block) {
      const chunk_place& place = array.places[block];
      part one{.field = field, .where = {.file = place.file}, .block = block};
      if (it.as_stored && place.offset != chunk_place::absent) {
        one.where.offset = place.offset + sample % it.rows_in_chunk * it.row_bytes;
        one.where.stored_bytes = it.row_bytes;
        one.where.decoded_bytes = it.row_bytes;
      } else {
        one.decode = 1;
        one.where.offset = place.offset;
        one.where.stored_bytes = place.bytes;
        one.where.decoded_bytes = it.chunk_bytes;
      }
      out.push_back(one);
    }
  }

  // In the order in which they lie in their files.
  static void sort(part_list& out, std::size_t from) {
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(), [](const part& a, const part& b) {
      return std::tie(a.where.file, a.where.offset, a.field, a.block) <
             std::tie(b.where.file, b.where.offset, b.field, b.block);
    });
  }

  std::string title_;
  std::string format_;
  std::shared_ptr<const io::file_table> files_;
  column_table columns_;
  std::vector<std::string> notes_;
  std::vector<std::shared_ptr<const io::source_description>> sources_;
  std::vector<field_info> fields_;
  std::vector<chunked_array> arrays_;  // of the fields
  std::vector<geometry> geometries_;   // of the fields
};

// Trailing axes that the box has whole, in the chunk as in the array, are one run of bytes with the axis before them.
void chunked_model::copy_box(std::uint64_t sample, const part& of, std::span<const std::byte> decoded,
                             std::span<std::byte> bytes) const {
  const geometry& it = geometries_[of.field];
  const std::size_t rank = it.shape.size();
  assert(bytes.size() == it.row_bytes && decoded.size() == it.chunk_bytes);
  axes first(rank);  // of the box in the array
  axes count(rank);
  std::uint64_t cell = of.block % it.cells_in_row;
  for (std::size_t axis = rank; axis-- > 0;) {
    first[axis] = cell % it.cells[axis] * it.chunk[axis];
    count[axis] = std::min(it.chunk[axis], it.shape[axis] - first[axis]);
    cell /= it.cells[axis];
  }
  const std::uint64_t row = it.as_stored ? 0 : sample % it.rows_in_chunk;
  const std::byte* from = decoded.data() + row * it.chunk_row_bytes;

  // Bytes from one element of an axis to the next.
  axes from_stride(rank);
  axes to_stride(rank);
  std::uint64_t from_bytes = it.element_bytes;
  std::uint64_t to_bytes = it.element_bytes;
  for (std::size_t axis = rank; axis-- > 0;) {
    from_stride[axis] = from_bytes;
    to_stride[axis] = to_bytes;
    from_bytes *= it.chunk[axis];
    to_bytes *= it.shape[axis];
  }
  std::byte* to = bytes.data();
  for (std::size_t axis = 0; axis < rank; ++axis) to += first[axis] * to_stride[axis];
  std::uint64_t run = it.element_bytes;
  std::size_t outer = rank;
  while (outer > 0) {
    --outer;
    run *= count[outer];
    if (count[outer] != it.chunk[outer] || count[outer] != it.shape[outer]) break;
  }
  axes at_axis(outer, 0);
  for (;;) {
    std::memcpy(to, from, run);
    std::size_t axis = outer;
    while (axis > 0) {
      --axis;
      from += from_stride[axis];
      to += to_stride[axis];
      if (++at_axis[axis] < count[axis]) break;
      from -= count[axis] * from_stride[axis];
      to -= count[axis] * to_stride[axis];
      at_axis[axis] = 0;
      if (axis == 0) return;
    }
    if (outer == 0) return;
  }
}

std::string names_of(const std::vector<chunked_array>& arrays) {
  constexpr std::size_t named_max = 12;
  std::string names;
  for (std::size_t i = 0; i < std::min(arrays.size(), named_max); ++i) {
    str_append(names, i == 0 ? "" : ", ", arrays[i].name);
  }
  if (arrays.size() > named_max) str_append(names, " and ", arrays.size() - named_max, " more");
  return names;
}

}  // namespace

void choose_arrays(std::vector<chunked_array>& arrays, std::span<const std::string> wanted, const std::string& title,
                   std::vector<std::string>& notes) {
  if (arrays.empty()) throw error(errc::usage, str_cat(title, ": it has no array that leat reads"));
  std::vector<chunked_array> chosen;
  for (const std::string& name : wanted) {
    const auto found =
        std::find_if(arrays.begin(), arrays.end(), [&](const chunked_array& each) { return each.name == name; });
    if (found == arrays.end()) {
      throw error(errc::not_found, str_cat(title, ": no array '", name, "'; it has ", names_of(arrays)));
    }
    if (found->shape.empty()) {
      throw error(errc::usage,
                  str_cat(at(title, *found), ": a single number, without an axis of samples; leave it out"));
    }
    chosen.push_back(*found);
  }
  if (wanted.empty()) {
    std::map<std::uint64_t, std::size_t> lengths;
    for (const chunked_array& each : arrays) {
      if (!each.shape.empty()) ++lengths[each.shape.front()];
    }
    std::size_t most = 0;
    std::uint64_t rows = 0;
    for (const chunked_array& each : arrays) {
      if (each.shape.empty() || lengths[each.shape.front()] <= most) continue;
      most = lengths[each.shape.front()];
      rows = each.shape.front();
    }
    std::vector<chunked_array> rest;
    for (chunked_array& each : arrays) {
      const bool fits = !each.shape.empty() && each.shape.front() == rows;
      (fits ? chosen : rest).push_back(std::move(each));
    }
    if (chosen.empty()) {
      throw error(errc::usage, str_cat(title, ": single numbers only, without an axis of samples: ", names_of(rest)));
    }
    if (!rest.empty()) {
      notes.push_back(str_cat(title, ": left out, since their first axis is not ", rows, " long: ", names_of(rest)));
    }
  }
  for (const chunked_array& each : chosen) {
    if (each.shape.front() == chosen.front().shape.front()) continue;
    throw error(errc::usage, str_cat(at(title, each), " has ", each.shape.front(), " rows where ", chosen.front().name,
                                     " has ", chosen.front().shape.front(), "; open them apart"));
  }
  arrays = std::move(chosen);
}

dataset chunked_rows(chunked_table table) {
  assert(!table.arrays.empty());
  const std::uint64_t rows = table.arrays.front().shape.front();
  std::vector<column_values> columns = take_columns(table);
  return dataset(std::make_shared<chunked_model>(std::move(table), std::move(columns), rows));
}

}  // namespace leat::datasets
