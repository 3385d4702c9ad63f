#include "datasets/formats/hdf5/hdf5_file.hpp"

#include "base/text.hpp"
#include "datasets/files/content.hpp"
#include "datasets/formats/hdf5/hdf5_chunks.hpp"
#include "datasets/formats/hdf5/hdf5_filters.hpp"
#include "datasets/formats/hdf5/hdf5_objects.hpp"
#include "datasets/formats/hdf5/hdf5_types.hpp"
#include "datasets/formats/hdf5/hdf5_values.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::size_t rank_max = 32;
constexpr std::uint64_t chunk_bytes_max = std::uint64_t{1} << 32;

using not_read = hdf5_not_read;

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
    const std::string name = at.text(name_bytes);
    std::vector<std::uint32_t> values;
    for (std::uint64_t v = 0; v < values_count; ++v) values.push_back(static_cast<std::uint32_t>(at.number(4)));
    if (version == 1 && values_count % 2 != 0) at.skip(4);
    filters.push_back(hdf5_filter_of(id, name, values, element_bytes));
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

void reverse_each(std::span<std::byte> numbers, std::size_t number_bytes) {
  for (; numbers.size() >= number_bytes; numbers = numbers.subspan(number_bytes)) {
    std::reverse(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(number_bytes));
  }
}

// Rows of so many bytes are one chunk of an array in one piece, where a row cannot be read as it is.
constexpr std::uint64_t piece_bytes = std::uint64_t{64} << 10;

/// What the messages of one dataset say.
class dataset_reader {
 public:
  dataset_reader(hdf5_bytes& file, const std::string& path) : file_(file) { array_.name = path; }

  void read(const std::vector<hdf5_message>& messages, hdf5_contents& out) {
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
          type_ = read_type(at);
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
    if (layout == nullptr || type_.bytes == 0) throw not_read{"no type or no layout is given"};
    if (!type_.not_read.empty()) throw not_read{type_.not_read};
    const bool is_number = type_.what == hdf5_type::kind::number;
    array_.type = type_.type;
    const auto number_bytes = static_cast<std::uint32_t>(size_bytes(type_.type));
    const bool swaps = is_number && type_.big_endian && number_bytes > 1;
    if (swaps) array_.filters.push_back({filter_kind::swap, number_bytes});
    if (filters != nullptr) {
      for (const filter& each : read_filters(filters->cursor(), type_.bytes)) array_.filters.push_back(each);
    }
    if (fill != nullptr) array_.fill = read_fill(*fill);
    if (array_.fill.size() != type_.bytes) array_.fill.clear();
    if (swaps) reverse_each(array_.fill, number_bytes);
    read_layout(layout->cursor());
    // A chunk's mask counts the file's filters, of which ours for the order of bytes is none.
    for (chunk_place& each : array_.places) each.skipped <<= swaps ? 1 : 0;
    const bool as_it_is = array_.filters.empty() || (swaps && array_.filters.size() == 1);
    if (is_one_piece_ && (swaps || type_.what == hdf5_type::kind::compound) && as_it_is) cut_in_pieces();
    switch (type_.what) {
      case hdf5_type::kind::number:
        add_axes(type_.axes);
        array_.characters = type_.characters;
        if (!type_.axes.empty()) fill_elements();
        out.arrays.push_back(std::move(array_));
        break;
      case hdf5_type::kind::compound:
        add_members(type_, array_.name, 0, out);
        break;
      default:
        add_values(out);
    }
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
    std::uint64_t bytes = type_.bytes;
    for (const std::uint64_t extent : array_.shape) {
      if (extent != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / 2 / extent)
        at.fail("a shape of too many elements");
      bytes *= extent;
    }
    return bytes;
  }

  // Axes that an element has of its own.
  void add_axes(const std::vector<std::uint64_t>& axes) {
    array_.is_single = array_.shape.empty() && !axes.empty();
    if (array_.shape.size() + axes.size() > rank_max) throw not_read{"more axes than an array may have; flatten some"};
    array_.shape.insert(array_.shape.end(), axes.begin(), axes.end());
    array_.chunk.insert(array_.chunk.end(), axes.begin(), axes.end());
  }

  // Elements that are arrays or texts: where the numbers of the fill value differ, each element is a record.
  void fill_elements() {
    std::vector<std::byte>& fill = array_.fill;
    const std::size_t number_bytes = size_bytes(array_.type);
    const bool is_used = std::any_of(array_.places.begin(), array_.places.end(),
                                     [](const chunk_place& each) { return each.offset == chunk_place::absent; });
    if (!is_used || std::all_of(fill.begin(), fill.end(), [](std::byte each) { return each == std::byte{0}; })) {
      return fill.clear();
    }
    if (std::equal(fill.begin() + static_cast<std::ptrdiff_t>(number_bytes), fill.end(), fill.begin())) {
      return fill.resize(number_bytes);
    }
    array_.record_bytes = type_.bytes;
    array_.inner_axes = static_cast<std::uint32_t>(type_.axes.size());
    if (is_one_piece_) cut_what_was_never_written();
  }

  void cut_what_was_never_written() {
    constexpr std::uint64_t pieces_max = std::uint64_t{1} << 20;
    const std::uint64_t rows = array_.shape.front();
    const std::uint64_t row_bytes = std::max<std::uint64_t>(array_.fill.size(), 1);
    array_.chunk.front() = std::max<std::uint64_t>(piece_bytes / row_bytes, rows / pieces_max + 1);
    array_.places.assign(rows / array_.chunk.front() + (rows % array_.chunk.front() != 0), {});
  }

  // Each number among the members is an array, whose elements lie apart.
  void add_members(const hdf5_type& compound, const std::string& path, std::uint32_t offset, hdf5_contents& out) const {
    for (const hdf5_type::member& each : compound.members) {
      const std::string name = str_cat(path, "/", each.name);
      if (each.type.what == hdf5_type::kind::compound && each.type.axes.empty()) {
        add_members(each.type, name, offset + each.offset, out);
        continue;
      }
      if (each.type.what != hdf5_type::kind::number) {
        out.notes.push_back(str_cat("left out: ", file_.path(), "/", name,
                                    ": a member of a compound that is no number; write it as an array of its own"));
        continue;
      }
      dataset_reader member(*this);
      member.array_.name = name;
      member.array_.type = each.type.type;
      member.array_.record_bytes = type_.bytes;
      member.array_.record_offset = offset + each.offset;
      member.array_.big_endian = each.type.big_endian;
      member.array_.characters = each.type.characters;
      member.array_.inner_axes = static_cast<std::uint32_t>(each.type.axes.size());
      member.add_axes(each.type.axes);
      out.arrays.push_back(std::move(member.array_));
    }
  }

  void add_values(hdf5_contents& out) {
    const bool is_single = array_.shape.empty();
    if (is_single) array_.shape = array_.chunk = {1};
    if (array_.shape.size() != 1)
      throw not_read{"values of variable length along several axes; write one axis of them"};
    array_.type = dtype::u8;
    add_axes({type_.bytes});
    const bool is_text = type_.what == hdf5_type::kind::variable_text;
    placed_values values{.name = array_.name, .kind = is_text ? field_kind::text : field_kind::bytes, .rows = {}};
    values.rows = find_values(file_, array_);
    values.is_single = is_single;
    const auto first =
        std::find_if(values.rows.begin(), values.rows.end(), [](const value_place& each) { return each.bytes != 0; });
    if (!is_text && first != values.rows.end()) {
      constexpr std::uint64_t looked_at = 512;
      const std::vector<std::byte> start = file_.bytes_at(first->offset, std::min(first->bytes, looked_at));
      if (content_of(start).group == content_group::picture) values.kind = field_kind::picture;
    }
    out.values.push_back(std::move(values));
  }

  void cut_in_pieces() {
    if (array_.shape.empty() || array_.shape.front() == 0) return;
    const chunk_place whole = array_.places.front();
    if (whole.offset == chunk_place::absent) return;
    const std::uint64_t row_bytes = whole.bytes / array_.shape.front();
    if (row_bytes == 0) return;
    const std::uint64_t rows = std::clamp<std::uint64_t>(piece_bytes / row_bytes, 1, array_.shape.front());
    // The table of pieces is only made for data that lie within the file.
    if (whole.offset > file_.size() || whole.bytes > file_.size() - whole.offset) return;
    array_.chunk.front() = rows;
    array_.places.clear();
    for (std::uint64_t row = 0; row < array_.shape.front(); row += rows) {
      const std::uint64_t here = std::min(rows, array_.shape.front() - row);
      array_.places.push_back({.offset = whole.offset + row * row_bytes, .bytes = here * row_bytes});
    }
  }

  void in_one_piece(std::uint64_t offset, std::uint64_t bytes) {
    is_one_piece_ = true;
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
    how.chunk_bytes = type_.bytes;
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
  hdf5_type type_;
  bool is_one_piece_ = false;
};

// What a path stands for when its links are followed; itself where it has none.
///   file   as an external link calls it; empty: the same one
struct hdf5_target {
  std::string path;
  std::string file = {};
};

hdf5_target follow(std::string path, const std::vector<hdf5_link>& links) {
  constexpr int links_max = 32;
  for (int followed = 0; followed < links_max; ++followed) {
    const auto link = std::find_if(links.begin(), links.end(), [&](const hdf5_link& each) {
      return path == each.path || path.starts_with(each.path + "/");
    });
    if (link == links.end()) break;
    const std::string group = link->path.substr(0, link->path.rfind('/') + 1);
    const bool is_from_root = link->target.starts_with('/') || !link->file.empty();
    path = (is_from_root ? "" : group) + link->target + path.substr(link->path.size());
    path.erase(0, path.find_first_not_of('/'));
    if (!link->file.empty()) return {std::move(path), link->file};
  }
  return {std::move(path)};
}

bool is_or_has(const std::string& name, const std::string& wanted) {
  return name == wanted || name.starts_with(wanted + "/");
}

hdf5_contents read_arrays(hdf5_bytes& file, std::span<const std::string> wanted, std::vector<std::string>& there,
                          std::vector<hdf5_link>& links, hdf5_attributes& attributes) {
  hdf5_contents contents;
  for_each_dataset(
      file, links, contents.notes, attributes, [&](const std::string& path, const std::vector<hdf5_message>& messages) {
        there.push_back(path);
        // A member of a compound is named behind it.
        const bool is_wanted =
            std::any_of(wanted.begin(), wanted.end(), [&](const std::string& name) { return is_or_has(name, path); });
        if (!wanted.empty() && !is_wanted) return;
        try {
          dataset_reader(file, path).read(messages, contents);
        } catch (const not_read& refused) {
          const std::string said = str_cat(file.path(), "/", path, ": ", refused.why);
          if (is_wanted) throw error(errc::unsupported, said);
          contents.notes.push_back(str_cat("left out: ", said));
        }
      });
  return contents;
}

// The same under the name by which it was asked for.
void rename(hdf5_contents& contents, const std::string& from, const std::string& to) {
  const auto renamed = [&](std::string& name) {
    if (is_or_has(name, from)) name = to + name.substr(from.size());
  };
  for (chunked_array& each : contents.arrays) renamed(each.name);
  for (placed_values& each : contents.values) renamed(each.name);
}

// Adds what another file has.
void append(hdf5_contents& contents, hdf5_contents linked, sized_file file) {
  const auto first = static_cast<std::uint32_t>(contents.linked.size() + 1);
  for (chunked_array& each : linked.arrays) {
    each.held_from += first;
    for (chunk_place& place : each.places) place.file += first;
  }
  for (placed_values& each : linked.values) each.file += first;
  contents.linked.push_back(std::move(file));
  const auto move_to = [](auto& from, auto& to) { std::move(from.begin(), from.end(), std::back_inserter(to)); };
  move_to(linked.linked, contents.linked);
  move_to(linked.notes, contents.notes);
  move_to(linked.arrays, contents.arrays);
  move_to(linked.values, contents.values);
}

hdf5_contents read_linked(const file_bytes& from, std::span<const std::string> wanted, const input_files* beside,
                          int links_left, std::span<const std::string> wanted_attributes = {});

// Adds what `name` stands for, in another file.
void append_external(hdf5_contents& contents, const std::string& name, const hdf5_target& target,
                     const file_bytes& from, const input_files* beside, int links_left) {
  const std::string said = str_cat(from.path(), "/", name, ": a link to '", target.path, "' of ", target.file);
  if (beside == nullptr) throw error(errc::unsupported, said + "; open that file");
  if (links_left == 0) throw error(errc::format, said + ": links to links to links; does one lead back?");
  // From the folder of the file that has the link.
  const std::string folder = target.file.starts_with('/') ? "" : from.path().substr(0, from.path().rfind('/') + 1);
  const std::string path = folder + target.file;
  if (!beside->has(path)) throw error(errc::not_found, str_cat(said, ", and there is no ", path, "; copy it there"));
  const std::unique_ptr<file_bytes> file = beside->open(path);
  sized_file sized{path, file->size(), file->version()};
  hdf5_contents linked = read_linked(*file, {&target.path, 1}, beside, links_left - 1);
  rename(linked, target.path, name);
  append(contents, std::move(linked), std::move(sized));
}

hdf5_contents read_linked(const file_bytes& from, std::span<const std::string> wanted, const input_files* beside,
                          int links_left, std::span<const std::string> wanted_attributes) {
  hdf5_bytes file(from);
  hdf5_attributes attributes({wanted_attributes.begin(), wanted_attributes.end()});
  std::vector<std::string> there;
  std::vector<hdf5_link> links;
  hdf5_contents contents = read_arrays(file, wanted, there, links, attributes);
  attributes.finish(file);
  contents.attributes = std::make_shared<const hdf5_attributes>(std::move(attributes));
  const auto has = [&](const std::string& name) {
    const auto is_it = [&](const auto& each) { return is_or_has(each.name, name); };
    return std::any_of(contents.arrays.begin(), contents.arrays.end(), is_it) ||
           std::any_of(contents.values.begin(), contents.values.end(), is_it);
  };
  for (const std::string& name : wanted) {
    if (has(name)) continue;
    const hdf5_target followed = follow(name, links);
    if (!followed.file.empty()) {
      append_external(contents, name, followed, from, beside, links_left);
      continue;
    }
    const std::string& target = followed.path;
    if (target != name) {
      std::vector<std::string> again;
      std::vector<hdf5_link> links_again;
      hdf5_bytes once_more(from);
      hdf5_attributes none({});
      hdf5_contents linked = read_arrays(once_more, {&target, 1}, again, links_again, none);
      rename(linked, target, name);
      std::move(linked.notes.begin(), linked.notes.end(), std::back_inserter(contents.notes));
      std::move(linked.arrays.begin(), linked.arrays.end(), std::back_inserter(contents.arrays));
      std::move(linked.values.begin(), linked.values.end(), std::back_inserter(contents.values));
      if (has(name)) continue;
    }
    if (std::find(there.begin(), there.end(), target) != there.end()) {
      // A compound, of which no member is read.
      const auto why = std::find_if(contents.notes.begin(), contents.notes.end(), [&](const std::string& note) {
        return note.find(str_cat("/", target, "/")) != std::string::npos;
      });
      throw error(errc::unsupported, why != contents.notes.end()
                                         ? *why
                                         : str_cat(file.path(), "/", target, ": a compound without members"));
    }
    std::string names;
    for (const std::string& each : there) str_append(names, names.empty() ? "" : ", ", each);
    throw error(errc::not_found, str_cat(file.path(), ": no dataset '", name, "'",
                                         target != name ? str_cat(" (a link to '", target, "')") : std::string(),
                                         "; it has ", names.empty() ? "none" : names));
  }
  if (wanted.empty() && !links.empty()) {
    constexpr std::size_t named_max = 8;
    std::string names;
    for (std::size_t i = 0; i < std::min(links.size(), named_max); ++i) {
      str_append(names, i == 0 ? "'" : ", '", links[i].path, "'");
    }
    contents.notes.push_back(str_cat(file.path(), ": links are other names, which fields may give: ", names,
                                     links.size() > named_max ? " and more" : ""));
  }
  return contents;
}

}  // namespace

hdf5_contents read_hdf5(const file_bytes& from, std::span<const std::string> wanted, const input_files* beside,
                        std::span<const std::string> attributes) {
  constexpr int links_max = 8;  // from file to file
  return read_linked(from, wanted, beside, links_max, attributes);
}

}  // namespace leat::datasets
