#include "datasets/hdf5_file.hpp"

#include "base/text.hpp"
#include "datasets/hdf5_chunks.hpp"
#include "datasets/hdf5_objects.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t rank_max = 32;
constexpr std::uint64_t chunk_bytes_max = std::uint64_t{1} << 32;

/// Not damaged: of a kind that is not read. In words, and what to do.
struct not_read {
  std::string why;
};

struct element {
  dtype type = dtype::u8;
  std::uint32_t bytes = 0;
  bool big_endian = false;
};

std::optional<dtype> integer_of(std::uint64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? dtype::i8 : dtype::u8;
    case 2:
      return is_signed ? dtype::i16 : dtype::u16;
    case 4:
      return is_signed ? dtype::i32 : dtype::u32;
    case 8:
      return is_signed ? dtype::i64 : dtype::u64;
    default:
      return std::nullopt;
  }
}

// What h5py makes of NumPy's bool: an enumeration of FALSE and TRUE.
bool is_boolean(hdf5_cursor& at, std::uint64_t version, std::uint64_t members, std::uint32_t bytes) {
  if (members != 2 || bytes != 1) return false;
  std::string names[2];
  for (std::string& name : names) {
    const std::uint64_t begin = at.offset();
    name = at.text_to_zero();
    if (version < 3) at.skip((8 - (at.offset() - begin) % 8) % 8);
  }
  return names[0] == "FALSE" && names[1] == "TRUE" && at.number(1) == 0 && at.number(1) == 1;
}

element read_element(hdf5_cursor& at) {
  const std::uint64_t first = at.number(1);
  const std::uint64_t version = first >> 4;
  const std::uint64_t bits = at.number(3);
  element found;
  found.bytes = static_cast<std::uint32_t>(at.number(4));
  switch (first & 15) {
    case 0: {
      found.big_endian = (bits & 1) != 0;
      const std::uint64_t shift = at.number(2);
      const std::uint64_t precision = at.number(2);
      const std::optional<dtype> type = integer_of(found.bytes, (bits & 8) != 0);
      if (!type || shift != 0 || precision != std::uint64_t{8} * found.bytes) {
        throw not_read{str_cat("integers of ", precision, " bits; write them as 8, 16, 32 or 64")};
      }
      found.type = *type;
      return found;
    }
    case 1: {
      found.big_endian = (bits & 1) != 0;
      if ((bits & 0x41) > 1) throw not_read{"floats in the order of a VAX; write them as '<f4'"};
      const std::uint64_t shift = at.number(2);
      const std::uint64_t precision = at.number(2);
      at.skip(1);
      const std::uint64_t exponent_bits = at.number(1);
      at.skip(1);
      const std::uint64_t mantissa_bits = at.number(1);
      const auto is = [&](std::uint32_t bytes, std::uint64_t exponent, std::uint64_t mantissa) {
        return found.bytes == bytes && shift == 0 && precision == std::uint64_t{8} * bytes &&
               exponent_bits == exponent && mantissa_bits == mantissa;
      };
      if (is(2, 5, 10))
        found.type = dtype::f16;
      else if (is(2, 8, 7))
        found.type = dtype::bf16;
      else if (is(4, 8, 23))
        found.type = dtype::f32;
      else if (is(8, 11, 52))
        found.type = dtype::f64;
      else
        throw not_read{str_cat("floats of ", precision, " bits; write them as f16, f32 or f64")};
      return found;
    }
    case 8: {
      hdf5_cursor base_class = at;
      if ((base_class.number(1) & 15) != 0)
        throw not_read{"an enumeration of what are no integers; write them as integers"};
      element base = read_element(at);
      if (base.bytes == found.bytes && is_boolean(at, version, bits & 0xFFFF, base.bytes)) base.type = dtype::boolean;
      return base;
    }
    case 3:
      throw not_read{"text; keep it in tar shards (leat pack), or its numbers in an array"};
    case 6:
      throw not_read{"a compound; write each of its members as an array of its own"};
    case 7:
      throw not_read{"references; write what they refer to"};
    case 9:
      throw not_read{"values of variable length; keep them in tar shards (leat pack)"};
    case 10:
      throw not_read{"elements that are arrays; write them as further axes"};
    default:
      throw not_read{"elements of a kind that is no number; write them as integers or floats"};
  }
}

filter read_filter(std::uint64_t id, const std::vector<std::uint32_t>& values, std::uint32_t element_bytes) {
  const std::uint32_t shuffled_bytes = values.empty() ? element_bytes : values.front();
  switch (id) {
    case 1:
      return {filter_kind::zlib, element_bytes};
    case 2:
      return {filter_kind::shuffle, shuffled_bytes};
    case 3:
      return {filter_kind::fletcher32, element_bytes};
    case 32000:
      return {filter_kind::lzf, element_bytes};
    case 32001:
      return {filter_kind::blosc, element_bytes};
    case 32004:
      return {filter_kind::lz4_hdf5, element_bytes};
    case 32008: {
      constexpr std::uint32_t with_lz4 = 2;
      const std::uint32_t compression = values.size() > 4 ? values[4] : 0;
      if (compression != 0 && compression != with_lz4)
        throw not_read{"bitshuffle with zstd; `h5repack -f GZIP=4` writes it anew"};
      return {compression == 0 ? filter_kind::bitshuffle : filter_kind::bitshuffle_lz4, element_bytes};
    }
    case 32015:
      return {filter_kind::zstd, element_bytes};
    case 4:
      throw not_read{"the filter szip; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    case 5:
      throw not_read{"the filter n-bit; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    case 6:
      throw not_read{"the filter scale-offset; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    case 32026:
      throw not_read{"the filter blosc2; `h5repack -f SHUF -f GZIP=4` writes it anew"};
    default:
      throw not_read{
          str_cat("the filter ", id, ", which leat does not have; `h5repack -f SHUF -f GZIP=4` writes it anew")};
  }
}

std::vector<filter> read_filters(hdf5_cursor at, std::uint32_t element_bytes) {
  constexpr std::uint64_t named_from = 256;
  std::vector<filter> filters;
  const std::uint64_t version = at.number(1);
  if (version != 1 && version != 2) at.fail("filters of a version that is not known");
  const std::uint64_t count = at.number(1);
  if (version == 1) at.skip(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t id = at.number(2);
    std::uint64_t name_bytes = version == 1 || id >= named_from ? at.number(2) : 0;
    at.skip(2);
    const std::uint64_t values_count = at.number(2);
    if (version == 1) name_bytes = (name_bytes + 7) / 8 * 8;
    at.skip(name_bytes);
    std::vector<std::uint32_t> values;
    for (std::uint64_t v = 0; v < values_count; ++v) values.push_back(static_cast<std::uint32_t>(at.number(4)));
    if (version == 1 && values_count % 2 != 0) at.skip(4);
    filters.push_back(read_filter(id, values, element_bytes));
  }
  return filters;
}

std::vector<std::byte> read_fill(const hdf5_message& message) {
  hdf5_cursor at = message.cursor();
  if (message.type != hdf5_message::old_fill_value) {
    const std::uint64_t version = at.number(1);
    if (version <= 2) {
      at.skip(2);
      const bool defined = at.number(1) != 0;
      if (version == 2 && !defined) return {};
    } else {
      constexpr std::uint64_t is_defined = 0x20;
      if ((at.number(1) & is_defined) == 0) return {};
    }
  }
  if (at.left() < 4) return {};
  const std::uint64_t bytes = at.number(4);
  const std::span<const std::byte> value = at.take(std::min(bytes, at.left()));
  return {value.begin(), value.end()};
}

/// What the messages of one dataset say.
class dataset_reader {
 public:
  dataset_reader(hdf5_bytes& file, const std::string& path) : file_(file) { array_.name = path; }

  chunked_array read(const std::vector<hdf5_message>& messages) {
    const hdf5_message* layout = nullptr;
    const hdf5_message* filters = nullptr;
    const hdf5_message* fill = nullptr;
    for (const hdf5_message& each : messages) {
      switch (each.type) {
        case hdf5_message::dataspace:
          read_space(each.cursor());
          break;
        case hdf5_message::datatype: {
          hdf5_cursor at = each.cursor();
          element_ = read_element(at);
          break;
        }
        case hdf5_message::old_fill_value:
          if (fill == nullptr) fill = &each;
          break;
        case hdf5_message::fill_value:
          fill = &each;
          break;
        case hdf5_message::external_files:
          throw not_read{"bytes in other files (external storage); `h5repack -l CONTI` writes it anew"};
        case hdf5_message::layout:
          layout = &each;
          break;
        case hdf5_message::filters:
          filters = &each;
          break;
        default:
          break;
      }
    }
    if (layout == nullptr || element_.bytes == 0) throw not_read{"no type or no layout is given"};
    array_.type = element_.type;
    if (element_.big_endian && element_.bytes > 1) array_.filters.push_back({filter_kind::swap, element_.bytes});
    const std::size_t own = array_.filters.size();
    if (filters != nullptr) {
      for (const filter& each : read_filters(filters->cursor(), element_.bytes)) array_.filters.push_back(each);
    }
    if (fill != nullptr) array_.fill = read_fill(*fill);
    if (array_.fill.size() != element_.bytes) array_.fill.clear();
    if (element_.big_endian) std::reverse(array_.fill.begin(), array_.fill.end());
    read_layout(layout->cursor());
    // A chunk's mask counts the file's filters, of which ours for the order of bytes is none.
    for (chunk_place& each : array_.places) each.skipped <<= own;
    return std::move(array_);
  }

 private:
  void read_space(hdf5_cursor at) {
    const std::uint64_t version = at.number(1);
    const std::uint64_t rank = at.number(1);
    const std::uint64_t flags = at.number(1);
    if (version == 2 && at.number(1) == 2) throw not_read{"it holds nothing (a null dataspace)"};
    if (version == 1) at.skip(5);
    if (rank > rank_max) at.fail(str_cat("a dataset of ", rank, " axes"));
    array_.shape.clear();
    shape_max_.clear();
    for (std::uint64_t axis = 0; axis < rank; ++axis) array_.shape.push_back(at.length());
    for (std::uint64_t axis = 0; (flags & 1) != 0 && axis < rank; ++axis) {
      std::uint64_t most = at.length();
      if (file_.length_bytes() < 8 && most == (std::uint64_t{1} << (8 * file_.length_bytes())) - 1) {
        most = hdf5_cursor::undefined;
      }
      shape_max_.push_back(most);
    }
    if (shape_max_.empty()) shape_max_ = array_.shape;
  }

  std::uint64_t data_bytes(hdf5_cursor& at) const {
    std::uint64_t bytes = element_.bytes;
    for (const std::uint64_t extent : array_.shape) {
      if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / 2 / extent)
        at.fail("a shape of too many elements");
      bytes *= extent;
    }
    return bytes;
  }

  void in_one_piece(std::uint64_t offset, std::uint64_t bytes) {
    array_.chunk = array_.shape;
    for (std::uint64_t& each : array_.chunk) each = std::max<std::uint64_t>(each, 1);
    array_.places.push_back({.offset = offset, .bytes = bytes});
  }
  void contiguous(hdf5_cursor& at, std::uint64_t address) {
    const std::uint64_t bytes = data_bytes(at);
    in_one_piece(address == hdf5_cursor::undefined ? chunk_place::absent : file_.offset_of(address), bytes);
  }
  void compact(hdf5_cursor& at, std::uint64_t stored) {
    const std::uint64_t bytes = data_bytes(at);
    if (stored < bytes || at.left() < bytes)
      at.fail(str_cat("a dataset of ", bytes, " bytes in a header that has fewer"));
    in_one_piece(at.offset(), bytes);
  }

  static hdf5_chunking in_old_tree(std::uint64_t address) {
    hdf5_chunking how;
    how.address = address;
    return how;
  }

  void read_layout(hdf5_cursor at) {
    enum layout : std::uint8_t { is_compact, is_contiguous, is_chunked, is_virtual };
    const std::uint64_t version = at.number(1);
    if (version == 0 || version > 5) at.fail("a layout of a version that is not known");
    if (version <= 2) {
      const std::uint64_t axes = at.number(1);
      const std::uint64_t kind = at.number(1);
      at.skip(5);
      const std::uint64_t address = kind == is_compact ? 0 : at.address();
      std::vector<std::uint64_t> extents;
      for (std::uint64_t axis = 0; axis < axes; ++axis) extents.push_back(at.number(4));
      if (kind == is_chunked) return chunked(at, in_old_tree(address), extents);
      if (kind == is_contiguous) return contiguous(at, address);
      const std::uint64_t stored = at.number(4);
      return compact(at, stored);
    }
    const std::uint64_t kind = at.number(1);
    switch (kind) {
      case is_compact: {
        const std::uint64_t stored = at.number(2);
        return compact(at, stored);
      }
      case is_contiguous:
        return contiguous(at, at.address());
      case is_virtual:
        throw not_read{
            "parts of other files (a virtual dataset); `h5repack -l CONTI` writes it anew, or open those files"};
      case is_chunked:
        break;
      default:
        at.fail("a layout that is not known");
    }
    std::vector<std::uint64_t> extents;
    if (version == 3) {
      const std::uint64_t axes = at.number(1);
      const std::uint64_t address = at.address();
      for (std::uint64_t axis = 0; axis < axes; ++axis) extents.push_back(at.number(4));
      return chunked(at, in_old_tree(address), extents);
    }
    const std::uint64_t flags = at.number(1);
    const std::uint64_t axes = at.number(1);
    const std::uint64_t extent_bytes = at.number(1);
    for (std::uint64_t axis = 0; axis < axes; ++axis) extents.push_back(at.number(extent_bytes));
    hdf5_chunking how;
    constexpr std::uint64_t single_is_filtered = 2;
    switch (at.number(1)) {
      case 1:
        how.index = hdf5_index::single;
        if ((flags & single_is_filtered) != 0) {
          how.single_bytes = at.length();
          how.single_skipped = static_cast<std::uint32_t>(at.number(4));
        }
        break;
      case 2:
        how.index = hdf5_index::implicit;
        break;
      case 3:
        how.index = hdf5_index::fixed_array;
        at.skip(1);
        break;
      case 4:
        how.index = hdf5_index::extensible_array;
        at.skip(5);
        break;
      case 5:
        how.index = hdf5_index::tree;
        at.skip(6);
        break;
      default:
        at.fail("a chunk index that is not known");
    }
    how.address = at.address();
    chunked(at, std::move(how), extents);
  }

  // The last extent is an element's bytes.
  void chunked(hdf5_cursor& at, hdf5_chunking how, std::vector<std::uint64_t> extents) {
    if (extents.size() != array_.shape.size() + 1 || shape_max_.size() != array_.shape.size()) {
      at.fail(str_cat("chunks of ", extents.size(), " extents in a dataset of ", array_.shape.size(), " axes"));
    }
    extents.pop_back();
    how.chunk_bytes = element_.bytes;
    for (const std::uint64_t extent : extents) {
      if (extent == 0 || how.chunk_bytes > chunk_bytes_max / extent)
        at.fail("chunks of no size, or of more than 4 GiB");
      how.chunk_bytes *= extent;
    }
    if (how.index == hdf5_index::single && how.single_bytes == 0) how.single_bytes = how.chunk_bytes;
    how.shape = array_.shape;
    how.shape_max = shape_max_;
    how.chunk = extents;
    array_.chunk = std::move(extents);
    array_.places = read_chunk_index(file_, how);
  }

  hdf5_bytes& file_;
  chunked_array array_;
  std::vector<std::uint64_t> shape_max_;
  element element_;
};

}  // namespace

hdf5_contents read_hdf5(const file_bytes& from, std::span<const std::string> wanted) {
  hdf5_bytes file(from);
  hdf5_contents contents;
  std::vector<std::string> there;
  for_each_dataset(file, contents.notes, [&](const std::string& path, const std::vector<hdf5_message>& messages) {
    there.push_back(path);
    const bool is_wanted = std::find(wanted.begin(), wanted.end(), path) != wanted.end();
    if (!wanted.empty() && !is_wanted) return;
    try {
      contents.arrays.push_back(dataset_reader(file, path).read(messages));
    } catch (const not_read& refused) {
      const std::string said = str_cat(file.path(), "/", path, ": ", refused.why);
      if (is_wanted) throw error(errc::unsupported, said);
      contents.notes.push_back(str_cat("left out: ", said));
    }
  });
  for (const std::string& name : wanted) {
    if (std::find(there.begin(), there.end(), name) != there.end()) continue;
    std::string names;
    for (const std::string& each : there) str_append(names, names.empty() ? "" : ", ", each);
    throw error(errc::not_found,
                str_cat(file.path(), ": no dataset '", name, "'; it has ", names.empty() ? "none" : names));
  }
  return contents;
}

}  // namespace leat::datasets
