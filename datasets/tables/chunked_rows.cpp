#include "datasets/tables/chunked_rows.hpp"

#include "base/hasher.hpp"
#include "base/option_words.hpp"
#include "base/text.hpp"
#include "datasets/files/blocking_source.hpp"
#include "datasets/files/file_staleness.hpp"
#include "datasets/files/integers.hpp"
#include "datasets/model/model.hpp"
#include "datasets/tables/chunk_grid.hpp"
#include "datasets/tables/column_table.hpp"
#include "datasets/tables/describe.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace leat::datasets {
namespace {

// A column takes up to 8 bytes a row: 2 GiB.
constexpr std::uint64_t column_rows_max = std::uint64_t{1} << 28;

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

std::optional<std::string> expand_chunk(const chunked_array& array, const chunk_place& place, std::uint64_t least_bytes,
                                        std::span<const std::byte> stored, std::span<std::byte> decoded) {
  if (place.offset == chunk_place::absent) {
    fill_with(array.fill, decoded.subspan(array.lead_bytes));
    return std::nullopt;
  }
  if (place.file == chunk_place::held) stored = std::span(array.held).subspan(place.offset, place.bytes);
  const bool keeps_bytes = std::all_of(array.filters.begin(), array.filters.end(),
                                       [](const filter& each) { return each.kind == filter_kind::swap; });
  if (keeps_bytes && stored.size() == least_bytes && least_bytes < decoded.size()) {
    const std::span<std::byte> rows = decoded.first(least_bytes);
    std::fill(decoded.begin() + static_cast<std::ptrdiff_t>(least_bytes), decoded.end(), std::byte{});
    return undo_filters(array.filters, place.skipped, stored, rows);
  }
  if (!array.filters.empty()) return undo_filters(array.filters, place.skipped, stored, decoded);
  if (stored.size() != decoded.size()) {
    return str_cat("a chunk of ", stored.size(), " bytes where ", decoded.size(), " were expected");
  }
  std::memcpy(decoded.data(), stored.data(), stored.size());
  return std::nullopt;
}

/// The stored bytes of one chunk after the other; many chunks are read at a time.
template <typename BytesOf>
class chunks_read_together {
 public:
  ///   bytes_of   bytes to read of a chunk
  chunks_read_together(const io::source_description& source, const chunked_array& array, BytesOf bytes_of,
                       blocking_sources& sources)
      : source_(source), array_(array), bytes_of_(std::move(bytes_of)), sources_(sources) {}

  /// The bytes of `chunk`, the next one; valid until the next call.
  [[nodiscard]] std::span<const std::byte> stored(std::uint64_t chunk) {
    if (chunk == end_) read_on();
    const std::span<const std::byte> bytes = std::span(memory_).subspan(at_, bytes_of_(chunk));
    at_ += bytes.size();
    return bytes;
  }

 private:
  void read_on() {
    constexpr std::uint64_t bytes_max = std::uint64_t{8} << 20;
    constexpr std::uint64_t chunks_max = 4096;
    const std::uint64_t first = end_;
    std::uint64_t bytes = 0;
    for (; end_ < array_.places.size() && end_ - first < chunks_max; ++end_) {
      if (end_ != first && bytes + bytes_of_(end_) > bytes_max) break;
      bytes += bytes_of_(end_);
    }
    memory_.resize(bytes);
    at_ = 0;
    std::vector<blocking_source::request> requests;
    for (std::uint64_t chunk = first, at = 0; chunk < end_; ++chunk) {
      const std::uint64_t of_chunk = bytes_of_(chunk);
      if (of_chunk == 0) continue;
      requests.push_back(
          {array_.places[chunk].file, array_.places[chunk].offset, std::span(memory_).subspan(at, of_chunk)});
      at += of_chunk;
    }
    if (!requests.empty()) sources_.of(source_).read(requests);
  }

  const io::source_description& source_;
  const chunked_array& array_;
  const BytesOf bytes_of_;
  blocking_sources& sources_;
  std::vector<std::byte> memory_;
  std::uint64_t end_ = 0;  // of the chunks in memory_
  std::size_t at_ = 0;     // of the next one
};

// All values of one-dimensional arrays, dense. The arrays share their chunks.
std::vector<std::vector<std::byte>> read_values(std::span<const chunked_array> arrays, const chunked_table& table,
                                                blocking_sources& sources) {
  const chunked_array& array = arrays.front();
  const std::string where = at(table.title, array);
  const std::uint64_t rows = array.shape.front();
  if (rows > column_rows_max) {
    throw error(errc::limit, str_cat(where, ": ", rows, " values; leat keeps up to ", column_rows_max,
                                     " of a one-dimensional array: leave it out, or give it a second axis"));
  }
  std::vector<chunk_grid> grids;
  for (const chunked_array& each : arrays) grids.emplace_back(each, at(table.title, each));
  const chunk_grid& grid = grids.front();
  std::vector<std::vector<std::byte>> values(arrays.size());
  const auto bytes_held = [&](std::uint64_t chunk) {
    return grid.region_of(chunk).count.front() * grid.element_bytes();
  };
  const auto bytes_stored = [&](std::uint64_t chunk) {
    const chunk_place& place = array.places[chunk];
    return !place.is_in_file() ? 0 : grid.rows_as_stored() ? bytes_held(chunk) : place.bytes;
  };
  chunks_read_together together(*table.source, array, bytes_stored, sources);
  std::vector<std::byte> decoded;
  for (std::uint64_t chunk = 0; chunk < array.places.size() && rows > 0; ++chunk) {
    const chunk_place& place = array.places[chunk];
    const array_region held = grid.region_of(chunk);
    decoded.resize(grid.rows_as_stored() ? bytes_held(chunk) : grid.chunk_bytes());
    const std::span<const std::byte> stored = together.stored(chunk);
    if (const auto reason = expand_chunk(array, place, grid.bytes_within(chunk), stored, decoded)) {
      const std::string what =
          place.is_in_file() ? str_cat("the chunk at offset ", place.offset, " of ", table.files->path(place.file))
                             : str_cat("chunk ", chunk);
      throw error(errc::format, str_cat(where, ": ", what, ": ", *reason));
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const std::uint64_t bytes = held.count.front() * grids[i].element_bytes();
      values[i].resize(values[i].size() + bytes);
      const std::span<std::byte> to = std::span(values[i]).last(bytes);
      if (grids[i].rows_as_stored()) {
        std::memcpy(to.data(), decoded.data(), decoded.size());
      } else {
        grids[i].copy(chunk, decoded, held, to);
      }
    }
  }
  return values;
}

// A one-dimensional array that is no column, since a sample has a window of it or since its numbers are too large: it is kept in memory.
struct kept_values {
  std::string name;
  dtype type = dtype::u8;
  std::vector<std::byte> bytes;
};

bool has_one_axis(const chunked_array& array) { return array.shape.size() == 1; }

class chunked_model final : public dataset_model, expanding_facet, making_facet, blocks_facet {
 public:
  ///   columns, kept   that were taken out of the table
  chunked_model(chunked_table table, std::vector<column_values> columns, std::vector<kept_values> kept,
                std::uint64_t samples)
      : title_(std::move(table.title)),
        format_(std::move(table.format)),
        files_(std::move(table.files)),
        watch_(std::move(table.watch)),
        rows_(table.rows),
        columns_(std::move(columns), samples),
        kept_(std::move(kept)),
        values_(std::move(table.values)) {
    notes_ = std::move(table.notes);
    if (table.classes) classes_ = std::move(table.classes);
    facets_.columns = &columns_;
    facets_.staleness = watch_.get();
    facets_.expanding = this;
    facets_.making = this;
    facets_.blocks = this;
    sources_.push_back(std::move(table.source));
    for (chunked_array& array : table.arrays) add_field(std::move(array));
    for (const kept_values& each : kept_) add_kept(each);
    for (const placed_values& each : values_) add_values(each);
    for (std::uint16_t field = 0; field < fields_.size(); ++field) forms_.push_back(forms_of(field));
  }

  std::uint64_t size() const noexcept override { return columns_.samples(); }

  void parts(std::uint64_t sample, std::span<const need> needs, part_list& out) const override {
    const std::size_t before = out.size();
    for (const need& wanted : needs) add_parts(sample, wanted.field, wanted.within, out);
    sort(out, before);
    for (const need& wanted : needs) {
      if (is_kept(wanted.field)) out.push_back({.field = wanted.field, .form = part_form::produced});
    }
  }

  std::span<const std::byte> produce(std::uint64_t sample, std::uint16_t field,
                                     std::vector<std::byte>&) const override {
    const kept_values& from = kept_[field - arrays_.size()];
    const std::size_t element = size_bytes(from.type);
    return std::span(from.bytes).subspan(rows_.first_of(sample) * element, rows_.count() * element);
  }

  std::optional<value_fault> expand(std::uint64_t, const part& of, std::span<const std::byte> stored,
                                    std::span<std::byte>& decoded) const override {
    const chunked_array& array = arrays_[of.field];
    const std::uint64_t chunk = chunk_of(of);
    return expand_chunk(array, array.places[chunk], grids_[of.field].bytes_within(chunk), stored, decoded);
  }

  void copy_box(std::uint64_t sample, const part& of, const box* within, std::span<const std::byte> decoded,
                std::span<std::byte> bytes) const override {
    const chunk_grid& grid = grids_[of.field];
    const array_region region = region_of(sample, of.field, within);
    if (grid.rows_as_stored()) {
      grid.copy(rows_held(region, of.field, chunk_of(of)), decoded, region, bytes);
    } else {
      grid.copy(of.block, decoded, region, bytes);
    }
  }

  sample_blocks blocks() const override {
    std::uint64_t rows = 1;
    for (std::size_t field = 0; field < arrays_.size(); ++field) {
      if (fields_[field].chunked) rows = std::max(rows, grids_[field].rows_in_chunk());
    }
    if (rows <= rows_.stride) return {};
    if (rows % rows_.stride == 0) return {size(), rows / rows_.stride};
    sample_blocks chunks(size());
    for (std::uint64_t row = 0; row < rows_.first_of(size()); row += rows) {
      const std::uint64_t first = row / rows_.stride + (row % rows_.stride != 0);
      if (first < size()) chunks.begin_block(first);
    }
    return chunks;
  }

  std::string name(std::uint64_t sample) const override { return str_cat(title_, "[", sample, "]"); }

  void describe(description& out) const override {
    describe_model(out, format_, *this);
    describe_files(out, *files_);
    hasher hash;
    for (const chunked_array& array : arrays_) {
      hash.add(std::as_bytes(std::span(array.chunk)));
      hash.add(std::as_bytes(std::span(array.fill)));
      if (!array.held.empty()) hash.add(std::as_bytes(std::span(array.held)));
      for (const filter& each : array.filters) {
        hash.add(static_cast<std::uint64_t>(each.kind));
        hash.add(each.element_bytes);
        if (each.kind == filter_kind::deflate) hash.add(each.crc32);
      }
      static_assert(std::has_unique_object_representations_v<chunk_place>);
      hash.add(std::as_bytes(std::span(array.places)));
    }
    for (const kept_values& each : kept_) hash.add(std::as_bytes(std::span(each.bytes)));
    for (const placed_values& each : values_) hash.add(std::as_bytes(std::span(each.rows)));
    out.add("chunks", hash.finish());
    if (rows_.window != 0) out.add("window", rows_.window);
    if (rows_.stride != 1) out.add("stride", rows_.stride);
    columns_.describe(out);
  }

  dataset_memory memory() const override {
    dataset_memory held;
    for (const chunked_array& array : arrays_) {
      held.extents += array.places.capacity() * sizeof(chunk_place);
      held.data += array.held.capacity();
    }
    held.files = files_->memory_bytes() + (watch_ == nullptr ? 0 : watch_->memory_bytes());
    held.columns = columns_.memory_bytes();
    for (const kept_values& each : kept_) held.columns += each.bytes.capacity();
    for (const placed_values& each : values_) held.extents += each.rows.capacity() * sizeof(value_place);
    return held;
  }

 private:
  [[nodiscard]] part_forms forms_of(std::uint16_t field) const noexcept {
    if (is_kept(field)) return part_form::produced;
    if (field >= arrays_.size() || !fields_[field].chunked) return part_form::stored;
    return grids_[field].rows_as_stored() ? part_form::box | part_form::stored : part_forms(part_form::box);
  }
  [[nodiscard]] bool is_kept(std::uint16_t field) const noexcept {
    return field >= arrays_.size() && field < arrays_.size() + kept_.size();
  }

  // Whether a sample's rows, stored as they are, may lie in several chunks.
  [[nodiscard]] bool crosses_places(const chunked_array& array) const {
    return rows_.count() > 1 && array.places.size() > 1;
  }

  void add_field(chunked_array array) {
    const std::string where = at(title_, array);
    const chunk_grid grid(array, where);
    field_info info;
    info.name = array.name;
    info.kind = field_kind::tensor;
    info.type = array.type;
    info.characters = array.characters;
    const std::size_t axes_count = array.shape.size() - (rows_.window == 0 ? 1 : 0);
    if (axes_count >= dimensions::rank_max) {
      throw error(errc::unsupported,
                  str_cat(where, ": rows of ", axes_count, " axes, and a batch has one more; leat has up to ",
                          dimensions::rank_max, ": reshape them"));
    }
    if (rows_.window != 0) info.shape.push_back(static_cast<std::int64_t>(rows_.window));
    for (std::size_t axis = 1; axis < array.shape.size(); ++axis) {
      info.shape.push_back(static_cast<std::int64_t>(array.shape[axis]));
    }
    info.samples = size();
    info.bytes_max = grid.row_bytes() * rows_.count();
    info.chunked = !grid.rows_as_stored() || crosses_places(array);
    std::uint64_t offsets = info.bytes_max;
    std::uint64_t stored_max = 0;
    const bool as_stored = grid.rows_as_stored();
    std::uint32_t file = chunk_place::held;
    std::uint64_t file_bytes = 0;
    for (std::size_t number = 0; number < array.places.size(); ++number) {
      const chunk_place& place = array.places[number];
      if (!place.is_in_file()) {
        info.chunked = true;
        if (place.offset != chunk_place::absent) info.bytes_total += place.bytes;
        continue;
      }
      if (place.file != file) {
        file = place.file;
        file_bytes = files_->size_bytes(file);
      }
      check(place, as_stored ? grid.bytes_within(number) : 0, file_bytes, where);
      info.bytes_total += place.bytes;
      offsets |= place.offset | (rows_.stride * grid.row_bytes());
      stored_max = std::max(stored_max, place.bytes);
    }
    if (info.chunked) {
      // A window may begin anywhere in a chunk.
      const std::uint64_t rows = rows_.count();
      info.blocks_max = grid.chunks_in_row() * std::min(rows, (rows - 1) / grid.rows_in_chunk() + (rows > 1 ? 2 : 1));
      for (const std::uint64_t extent : array.chunk) info.chunk.push_back(static_cast<std::int64_t>(extent));
      info.filters = filters_text(array.filters);
      info.stored_block_bytes_max = grid.rows_as_stored() ? info.bytes_max : stored_max;
      info.decoded_block_bytes_max = grid.rows_as_stored() ? info.bytes_max : grid.chunk_bytes();
    }
    if (grid.rows_as_stored()) info.alignment = io::alignment_of(offsets);
    const auto other = std::find_if(arrays_.begin(), arrays_.end(),
                                    [&](const chunked_array& each) { return share_chunks(each, array); });
    expanded_from_.push_back(static_cast<std::uint32_t>(other - arrays_.begin()));
    fields_.push_back(std::move(info));
    arrays_.push_back(std::move(array));
    grids_.push_back(grid);
  }

  void add_kept(const kept_values& values) {
    field_info info;
    info.name = values.name;
    info.kind = field_kind::tensor;
    info.type = values.type;
    if (rows_.window != 0) info.shape.push_back(static_cast<std::int64_t>(rows_.window));
    info.samples = size();
    info.bytes_max = rows_.count() * size_bytes(values.type);
    info.bytes_total = values.bytes.size();
    fields_.push_back(std::move(info));
  }

  void add_values(const placed_values& values) {
    field_info info;
    info.name = values.name;
    info.kind = values.kind;
    info.type = values.type;
    info.samples = size();
    for (std::uint64_t sample = 0; sample < size(); ++sample) {
      const value_place& place = values.rows[rows_.first_of(sample)];
      info.bytes_max = std::max(info.bytes_max, place.bytes);
      info.bytes_total += place.bytes;
    }
    fields_.push_back(std::move(info));
  }

  //   end   of its file
  void check(const chunk_place& place, std::uint64_t least_bytes, std::uint64_t end, const std::string& where) const {
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

  [[nodiscard]] array_region region_of(std::uint64_t sample, std::uint16_t field, const box* within) const {
    array_region region = grids_[field].rows(rows_.first_of(sample), rows_.count());
    if (within == nullptr || !fields_[field].chunked) return region;
    const std::size_t before = rows_.window == 0 ? 1 : 0;  // axes of the array that are none of the row
    assert(within->first.size() + before == region.first.size());
    for (std::size_t axis = 0; axis < within->first.size(); ++axis) {
      region.first[axis + before] += static_cast<std::uint64_t>(within->first[axis]);
      region.count[axis + before] = static_cast<std::uint64_t>(within->count[axis]);
    }
    return region;
  }

  // For rows that are stored as they are: the region's rows that the chunk has, whole.
  [[nodiscard]] array_region rows_held(const array_region& region, std::uint16_t field, std::uint64_t chunk) const {
    const chunk_grid& grid = grids_[field];
    const std::uint64_t first = std::max(region.first.front(), chunk * grid.rows_in_chunk());
    const std::uint64_t end = std::min(region.first.front() + region.count.front(), (chunk + 1) * grid.rows_in_chunk());
    return grid.rows(first, end - first);
  }

  // If rows are stored as they are, samples may take different numbers of rows from the same row on: different blocks.
  [[nodiscard]] std::uint64_t chunk_of(const part& of) const { return of.block % arrays_[of.field].places.size(); }

  void add_parts(std::uint64_t sample, std::uint16_t field, const box* within, part_list& out) const {
    if (is_kept(field)) return;
    if (field >= arrays_.size()) {
      const placed_values& values = values_[field - arrays_.size() - kept_.size()];
      const value_place& place = values.rows[rows_.first_of(sample)];
      part one{.field = field, .where = {.file = values.file, .offset = place.offset}};
      one.where.stored_bytes = place.bytes;
      one.where.decoded_bytes = place.bytes;
      out.push_back(one);
      return;
    }
    const chunked_array& array = arrays_[field];
    const chunk_grid& grid = grids_[field];
    const array_region region = region_of(sample, field, within);
    grid.for_each_chunk(region, [&](std::uint64_t chunk) {
      const chunk_place& place = array.places[chunk];
      part one{.field = field, .where = {}, .block = chunk};
      one.where.file = place.is_in_file() ? place.file : array.held_from;
      one.where.offset = place.is_in_file() ? place.offset : 0;
      one.codec = expanded_from_[field];
      if (!grid.rows_as_stored()) {
        one.form = part_form::box;
        one.whole = grid.is_whole(chunk, region);
        one.where.stored_bytes = place.is_in_file() ? place.bytes : 0;
        one.where.decoded_bytes = grid.chunk_bytes();
        out.push_back(one);
        return;
      }
      const array_region held = rows_held(region, field, chunk);
      one.whole = held.first == region.first && held.count == region.count;
      if (!place.is_in_file() || !one.whole) one.form = part_form::box;
      one.where.decoded_bytes = held.count.front() * grid.row_bytes();
      one.block += array.places.size() * held.count.front();
      if (place.is_in_file()) {
        one.where.offset += (held.first.front() - chunk * grid.rows_in_chunk()) * grid.row_bytes();
        one.where.stored_bytes = one.where.decoded_bytes;
      }
      out.push_back(one);
    });
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
  std::shared_ptr<const file_staleness> watch_;
  row_windows rows_;
  column_table columns_;
  std::vector<kept_values> kept_;      // the fields behind those of arrays_
  std::vector<placed_values> values_;  // the fields behind those
  std::vector<chunked_array> arrays_;  // of the first fields
  std::vector<chunk_grid> grids_;      // likewise
  // part::codec of each: the first array of those that share their chunks.
  std::vector<std::uint32_t> expanded_from_;
};

}  // namespace

bool share_chunks(const chunked_array& a, const chunked_array& b) {
  return a.record_bytes != 0 && a.record_bytes == b.record_bytes && a.filters == b.filters && a.fill == b.fill &&
         a.held_from == b.held_from && a.places == b.places && a.held == b.held;
}

dataset chunked_rows(chunked_table table) {
  assert(!table.arrays.empty() || !table.values.empty());
  const std::uint64_t rows =
      table.arrays.empty() ? table.values.front().rows.size() : table.arrays.front().shape.front();
  const row_windows& windows = table.rows;
  const std::uint64_t samples = windows.samples_of(rows, table.title);
  constexpr std::size_t fields_max = std::numeric_limits<std::uint16_t>::max();
  if (table.arrays.size() + table.values.size() > fields_max) {
    throw error(
        errc::limit,
        str_cat(table.title, ": ", table.arrays.size() + table.values.size(), " arrays, of which up to ", fields_max,
                " can be fields; name those that are wanted (", spelled(option_id::array_fields), ")"),
        option_id::array_fields);
  }
  std::vector<column_values> columns;
  std::vector<kept_values> kept;
  blocking_sources sources;
  std::vector<std::vector<std::byte>> read;  // of arrays that share their chunks
  std::size_t read_from = 0;
  for (std::size_t i = 0; i < table.arrays.size(); ++i) {
    const chunked_array& array = table.arrays[i];
    if (!has_one_axis(array)) continue;
    if (i >= read_from + read.size()) {
      std::size_t end = i + 1;
      while (end < table.arrays.size() && has_one_axis(table.arrays[end]) && share_chunks(array, table.arrays[end])) {
        ++end;
      }
      read = read_values(std::span(table.arrays).subspan(i, end - i), table, sources);
      read_from = i;
    }
    std::vector<std::byte> values = std::move(read[i - read_from]);
    if (windows.window != 0 || is_too_large_for_column(values, array.type)) {
      kept.push_back({array.name, array.type, std::move(values)});
      continue;
    }
    column_values& column = columns.emplace_back(column_of(array.name, array.type, values, at(table.title, array)));
    if (is_integer(array.type)) {
      windows.take_strided(column.values, 0, samples);
    } else {
      windows.take_strided(column.reals, 0, samples);
    }
  }
  std::erase_if(table.arrays, has_one_axis);
  return dataset(std::make_shared<chunked_model>(std::move(table), std::move(columns), std::move(kept), samples));
}

}  // namespace leat::datasets
