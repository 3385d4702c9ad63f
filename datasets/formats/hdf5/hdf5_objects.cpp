#include "datasets/formats/hdf5/hdf5_objects.hpp"

#include "base/text.hpp"
#include "datasets/formats/hdf5/hdf5_attributes.hpp"
#include "datasets/formats/hdf5/hdf5_tree.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t header_bytes_max = std::uint64_t{1} << 20;
constexpr std::uint64_t usual_header_bytes = 512;  // of a dataset's; what is longer is read when it is come to
constexpr std::size_t headers_at_once = 1024;

struct continued_block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// A part of `from`, with its own offset.
hdf5_block part_of(const hdf5_bytes& file, hdf5_cursor& from, std::uint64_t bytes) {
  const std::uint64_t offset = from.offset();
  const std::span<const std::byte> taken = from.take(bytes);
  return {&file, {taken.begin(), taken.end()}, offset};
}

void keep_message(hdf5_message message, std::vector<hdf5_message>& messages, std::vector<continued_block>& more) {
  if (message.type == hdf5_message::continuation) {
    hdf5_cursor at = message.cursor();
    const std::uint64_t address = at.address();
    more.push_back({address, at.length()});
  } else if (message.type != 0) {
    messages.push_back(std::move(message));
  }
}

void take_old_messages(const hdf5_bytes& file, hdf5_cursor at, std::uint64_t& left, std::vector<hdf5_message>& messages,
                       std::vector<continued_block>& more) {
  constexpr std::uint64_t prefix_bytes = 8;
  for (; left != 0 && at.left() >= prefix_bytes; --left) {
    hdf5_message message;
    message.type = static_cast<std::uint16_t>(at.number(2));
    const std::uint64_t bytes = at.number(2);
    message.flags = static_cast<std::uint8_t>(at.number(1));
    at.skip(3);
    message.body = part_of(file, at, bytes);
    keep_message(std::move(message), messages, more);
  }
}

void take_new_messages(const hdf5_bytes& file, hdf5_cursor at, bool ordered, std::vector<hdf5_message>& messages,
                       std::vector<continued_block>& more) {
  const std::uint64_t prefix_bytes = ordered ? 6 : 4;
  while (at.left() >= prefix_bytes) {  // what is left over is a gap
    hdf5_message message;
    message.type = static_cast<std::uint16_t>(at.number(1));
    const std::uint64_t bytes = at.number(2);
    message.flags = static_cast<std::uint8_t>(at.number(1));
    if (ordered) at.skip(2);
    message.body = part_of(file, at, bytes);
    keep_message(std::move(message), messages, more);
  }
}

std::vector<hdf5_message> read_own_messages(hdf5_bytes& file, std::uint64_t address) {
  constexpr std::uint64_t prefix_bytes_max = 64;
  constexpr std::uint64_t checksum_bytes = 4;
  file.count_node(address);
  const hdf5_block prefix = file.read_up_to(address, prefix_bytes_max);
  hdf5_cursor at = prefix.cursor();
  std::vector<hdf5_message> messages;
  std::vector<continued_block> more;
  const bool is_new = at.begins_with("OHDR");
  bool ordered = false;
  std::uint64_t left = 0;  // messages, of the old form
  if (is_new) {
    at.skip(4);
    if (at.number(1) != 2) at.fail("an object header of a version that is not known");
    const std::uint64_t flags = at.number(1);
    ordered = (flags & 4) != 0;
    if ((flags & 32) != 0) at.skip(16);
    if ((flags & 16) != 0) at.skip(4);
    const std::uint64_t bytes = at.number(std::size_t{1} << (flags & 3));
    if (bytes > header_bytes_max) at.fail(str_cat("an object header of ", bytes, " bytes"));
    const std::uint64_t before = at.offset() - prefix.offset;
    const hdf5_block first = file.read_checked(address, before + bytes);
    hdf5_cursor inside = first.cursor();
    inside.skip(before);
    take_new_messages(file, inside, ordered, messages, more);
  } else {
    if (at.number(1) != 1) at.fail("no object header where one is expected");
    at.skip(1);
    left = at.number(2);
    at.skip(4);
    const std::uint64_t bytes = at.number(4);
    if (bytes > header_bytes_max) at.fail(str_cat("an object header of ", bytes, " bytes"));
    const hdf5_block first = file.read(address + 16, bytes);
    take_old_messages(file, first.cursor(), left, messages, more);
  }
  for (std::size_t i = 0; i < more.size(); ++i) {
    const continued_block next = more[i];
    file.count_node(next.address);
    if (next.bytes > header_bytes_max || (is_new && next.bytes < 8)) {
      file.fail(next.address, str_cat("an object header's block of ", next.bytes, " bytes"));
    }
    if (!is_new) {
      const hdf5_block block = file.read(next.address, next.bytes);
      take_old_messages(file, block.cursor(), left, messages, more);
      continue;
    }
    const hdf5_block block = file.read_checked(next.address, next.bytes - checksum_bytes);
    hdf5_cursor inside = block.cursor();
    inside.expect("OCHK");
    take_new_messages(file, inside, ordered, messages, more);
  }
  return messages;
}

constexpr std::uint8_t shared = 2;

// Messages that are kept once for several objects: in the header of an object of their own (a committed datatype), or in heaps that
// the file has for them.
class shared_messages {
 public:
  explicit shared_messages(hdf5_bytes& file) : file_(file) {}

  /// What a message stands for.
  [[nodiscard]] hdf5_message fetch(const hdf5_message& reference) {
    hdf5_cursor at = reference.cursor();
    const std::uint64_t version = at.number(1);
    const std::uint64_t kind = at.number(1);
    // The first version has a whole entry of a symbol table, which begins with the offset of a name.
    if (version == 1) at.skip(6 + file_.length_bytes());
    if (version >= 3 && kind == 1) {
      return {.type = reference.type, .flags = 0, .body = heap_of(reference.type, at).object(at)};
    }
    for (hdf5_message& each : read_own_messages(file_, at.address())) {
      if (each.type == reference.type && (each.flags & shared) == 0) return std::move(each);
    }
    at.fail("a shared message that is not where it should be");
  }

 private:
  /// Has the messages of these types, a bit of each.
  struct type_heap {
    std::uint64_t types = 0;
    hdf5_heap heap;
  };

  const hdf5_heap& heap_of(std::uint16_t type, const hdf5_cursor& reference) {
    if (!looked_) find_heaps();
    looked_ = true;
    for (const type_heap& each : heaps_) {
      if ((each.types >> type & 1) != 0) return each.heap;
    }
    reference.fail("a shared message of a kind for which the file has no heap");
  }

  // source: HDF5 File Format Specification 3.0, III.H and IV.A.2.p
  void find_heaps() {
    if (file_.extension() == hdf5_cursor::undefined) return;
    for (const hdf5_message& each : read_own_messages(file_, file_.extension())) {
      if (each.type != hdf5_message::shared_messages) continue;
      hdf5_cursor at = each.cursor();
      at.skip(1);
      const std::uint64_t table = at.address();
      const std::uint64_t count = at.number(1);
      file_.count_node(table);
      const std::uint64_t index_bytes = 14 + 2 * file_.address_bytes();
      const hdf5_block block = file_.read_checked(table, 4 + count * index_bytes);
      hdf5_cursor indexes = block.cursor();
      indexes.expect("SMTB");
      for (std::uint64_t i = 0; i < count; ++i) {
        indexes.skip(2);
        const std::uint64_t types = indexes.number(2);
        indexes.skip(10 + file_.address_bytes());  // sizes, and an index that only writers search
        const std::uint64_t heap = indexes.address();
        if (heap != hdf5_cursor::undefined) heaps_.push_back({types, hdf5_heap(file_, heap)});
      }
    }
  }

  hdf5_bytes& file_;
  std::vector<type_heap> heaps_;
  bool looked_ = false;
};

// All of an object.
std::vector<hdf5_message> read_messages(hdf5_bytes& file, shared_messages& elsewhere, std::uint64_t address) {
  std::vector<hdf5_message> messages = read_own_messages(file, address);
  for (hdf5_message& each : messages) {
    if ((each.flags & shared) == 0) continue;
    if (each.type == hdf5_message::dataspace || each.type == hdf5_message::datatype ||
        each.type == hdf5_message::fill_value || each.type == hdf5_message::filters) {
      each = elsewhere.fetch(each);
    }
  }
  return messages;
}

// Of a group: names and addresses of what it links to.
struct hard_link {
  std::string name;
  std::uint64_t address = 0;
};

///   named    soft and external ones
///   others   of kinds that programs define for themselves
struct group_links {
  std::vector<hard_link> hard;
  std::vector<hdf5_link> named;
  std::vector<std::string> others;
};

void take_link(hdf5_cursor at, group_links& links) {
  if (at.number(1) != 1) at.fail("a link of a version that is not known");
  const std::uint64_t flags = at.number(1);
  const std::uint64_t kind = (flags & 8) != 0 ? at.number(1) : 0;
  if ((flags & 4) != 0) at.skip(8);
  if ((flags & 16) != 0) at.skip(1);
  const std::uint64_t bytes = at.number(std::size_t{1} << (flags & 3));
  std::string name = at.text(bytes);
  constexpr std::uint64_t hard = 0;
  constexpr std::uint64_t soft = 1;
  constexpr std::uint64_t external = 64;
  if (kind == hard) {
    links.hard.push_back({std::move(name), at.address()});
  } else if (kind == soft) {
    const std::uint64_t target_bytes = at.number(2);
    links.named.push_back({std::move(name), at.text(target_bytes)});
  } else if (kind == external) {
    at.skip(2 + 1);
    std::string file = at.text_to_zero();
    links.named.push_back({std::move(name), at.text_to_zero(), std::move(file)});
  } else {
    links.others.push_back(std::move(name));
  }
}

// The old form: names in a local heap, and a tree of nodes that refer to them.
void take_symbols(hdf5_bytes& file, hdf5_cursor at, group_links& links) {
  constexpr std::uint64_t cached_soft_link = 2;
  const std::uint64_t tree = at.address();
  const hdf5_block heap = file.read(at.address(), 8 + 2 * file.length_bytes() + file.address_bytes());
  hdf5_cursor in_heap = heap.cursor();
  in_heap.expect("HEAP");
  in_heap.skip(4);
  const std::uint64_t names_bytes = in_heap.length();
  static_cast<void>(in_heap.length());
  const hdf5_block names = file.read(in_heap.address(), names_bytes);

  const std::uint64_t entry_bytes = 2 * file.address_bytes() + 24;
  std::deque<std::uint64_t> nodes{tree};
  while (!nodes.empty()) {
    const std::uint64_t address = nodes.front();
    nodes.pop_front();
    file.count_node(address);
    const hdf5_block prefix = file.read_up_to(address, 8 + 2 * file.address_bytes());
    hdf5_cursor node = prefix.cursor();
    if (node.begins_with("TREE")) {
      node.skip(4);
      if (node.number(1) != 0) node.fail("a node that is of no group");
      node.skip(1);
      const std::uint64_t entries = node.number(2);
      const hdf5_block all =
          file.read(address + prefix.bytes.size(), entries * (file.length_bytes() + file.address_bytes()));
      hdf5_cursor children = all.cursor();
      constexpr std::uint64_t usual_symbols = 8;
      std::vector<hdf5_bytes::range> below;
      for (std::uint64_t i = 0; i < entries; ++i) {
        children.skip(file.length_bytes());
        nodes.push_back(children.address());
        below.push_back({nodes.back(), 8 + usual_symbols * entry_bytes});
      }
      file.read_ahead(below);
      continue;
    }
    node.expect("SNOD");
    node.skip(2);
    const std::uint64_t entries = node.number(2);
    const hdf5_block all = file.read(address + 8, entries * entry_bytes);
    hdf5_cursor symbols = all.cursor();
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::uint64_t name_at = symbols.number(file.address_bytes());
      const std::uint64_t object = symbols.address();
      const std::uint64_t cached = symbols.number(4);
      symbols.skip(4);
      const std::uint64_t target_at = symbols.number(4);
      symbols.skip(12);
      const auto text_at = [&](std::uint64_t place) {
        if (place >= names.bytes.size()) symbols.fail("a name outside its heap");
        hdf5_cursor name(file, std::span(names.bytes).subspan(place), names.offset + place);
        std::string text = name.text_to_zero();
        file.count_path(text.size());
        return text;
      };
      if (cached == cached_soft_link) {
        links.named.push_back({text_at(name_at), text_at(target_at)});
      } else {
        links.hard.push_back({text_at(name_at), object});
      }
    }
  }
}

// Many links: a tree of hashes, whose records name objects of a heap.
void take_dense_links(hdf5_bytes& file, hdf5_cursor at, group_links& links) {
  constexpr std::uint64_t by_name = 5;
  at.skip(1);
  const std::uint64_t flags = at.number(1);
  if ((flags & 1) != 0) at.skip(8);
  const std::uint64_t heap_address = at.address();
  const std::uint64_t tree = at.address();
  if (heap_address == hdf5_cursor::undefined || tree == hdf5_cursor::undefined) return;
  const hdf5_heap heap(file, heap_address);
  for_each_record(file, tree, [&](std::uint64_t kind, hdf5_cursor record) {
    if (kind != by_name) record.fail("an index that is of no names");
    record.skip(4);
    const hdf5_block link = heap.object(record);
    file.count_path(link.bytes.size());
    take_link(link.cursor(), links);
  });
}

// Many attributes: as many links are kept.
//   source   HDF5 File Format Specification 3.0, IV.A.2.v
void take_dense_attributes(hdf5_bytes& file, hdf5_cursor at, const std::function<void(hdf5_message)>& take) {
  constexpr std::uint64_t by_name = 8;
  constexpr std::uint64_t id_bytes = 8;
  at.skip(1);
  const std::uint64_t flags = at.number(1);
  if ((flags & 1) != 0) at.skip(2);
  const std::uint64_t heap_address = at.address();
  const std::uint64_t tree = at.address();
  if (heap_address == hdf5_cursor::undefined || tree == hdf5_cursor::undefined) return;
  const hdf5_heap heap(file, heap_address);
  for_each_record(file, tree, [&](std::uint64_t kind, hdf5_cursor record) {
    if (kind != by_name) record.fail("an index that is of no names of attributes");
    hdf5_cursor behind = record;
    behind.skip(id_bytes);
    const auto message_flags = static_cast<std::uint8_t>(behind.number(1));
    if ((message_flags & shared) != 0) record.fail("an attribute that is kept for several objects");
    take({.type = hdf5_message::attribute, .flags = 0, .body = heap.object(record)});
  });
}

void take_attributes(hdf5_bytes& file, shared_messages& elsewhere, const std::string& path,
                     const std::vector<hdf5_message>& messages, hdf5_attributes& attributes) {
  if (!attributes.wants_any()) return;
  const auto fetch = [&](const hdf5_message& reference) { return elsewhere.fetch(reference); };
  for (const hdf5_message& each : messages) {
    if (each.type == hdf5_message::attribute) {
      attributes.take(file, path, (each.flags & shared) != 0 ? elsewhere.fetch(each) : each, fetch);
    } else if (each.type == hdf5_message::attribute_info) {
      take_dense_attributes(file, each.cursor(),
                            [&](const hdf5_message& message) { attributes.take(file, path, message, fetch); });
    }
  }
}

}  // namespace

void for_each_dataset(hdf5_bytes& file, std::vector<hdf5_link>& links, std::vector<std::string>& notes,
                      hdf5_attributes& attributes,
                      const std::function<void(const std::string&, const std::vector<hdf5_message>&)>& found) {
  struct object {
    std::string path;
    std::uint64_t address = 0;
  };
  std::deque<object> objects{{"", file.root()}};
  std::map<std::uint64_t, std::string> first_paths;
  shared_messages elsewhere(file);
  std::size_t seen_ahead = 0;  // of those in front
  while (!objects.empty()) {
    if (seen_ahead == 0) {
      seen_ahead = std::min(objects.size(), headers_at_once);
      std::vector<hdf5_bytes::range> headers;
      for (std::size_t i = 0; i < seen_ahead; ++i) headers.push_back({objects[i].address, usual_header_bytes});
      file.read_ahead(headers);
    }
    --seen_ahead;
    const object here = std::move(objects.front());
    objects.pop_front();
    if (const auto [first, is_new] = first_paths.emplace(here.address, here.path); !is_new) {
      // Another hard link to it is followed as a soft one is.
      if (!first->second.empty()) links.push_back({here.path, "/" + first->second});
      continue;
    }
    const std::vector<hdf5_message> messages = read_messages(file, elsewhere, here.address);
    take_attributes(file, elsewhere, here.path, messages, attributes);
    const bool has_data = std::any_of(messages.begin(), messages.end(),
                                      [](const hdf5_message& each) { return each.type == hdf5_message::layout; });
    if (has_data) {
      found(here.path, messages);
      continue;
    }
    group_links here_links;
    for (const hdf5_message& each : messages) {
      if (each.type == hdf5_message::link) take_link(each.cursor(), here_links);
      if (each.type == hdf5_message::link_info) take_dense_links(file, each.cursor(), here_links);
      if (each.type == hdf5_message::symbol_table) take_symbols(file, each.cursor(), here_links);
    }
    // As h5py lists them, however the file keeps them.
    std::sort(here_links.hard.begin(), here_links.hard.end(),
              [](const hard_link& a, const hard_link& b) { return a.name < b.name; });
    const std::string prefix = here.path.empty() ? "" : here.path + "/";
    for (hard_link& each : here_links.hard) {
      file.count_path(prefix.size() + each.name.size());
      objects.push_back({prefix + each.name, each.address});
    }
    for (hdf5_link& each : here_links.named) {
      file.count_path(prefix.size() + each.path.size() + each.target.size() + each.file.size());
      links.push_back({prefix + each.path, std::move(each.target), std::move(each.file)});
    }
    for (const std::string& name : here_links.others) {
      notes.push_back(str_cat(file.path(), ": left out: '", prefix, name,
                              "', a link of a kind that programs define for themselves; write a soft or external one"));
    }
  }
}

}  // namespace leat::datasets
