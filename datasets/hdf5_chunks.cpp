#include "datasets/hdf5_chunks.hpp"

#include "base/text.hpp"
#include "datasets/hdf5_tree.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <functional>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t undefined = hdf5_cursor::undefined;

std::uint64_t chunks_along(std::uint64_t extent, std::uint64_t chunk) { return extent / chunk + (extent % chunk != 0); }

class index_reader {
 public:
  index_reader(hdf5_bytes& file, const hdf5_chunking& what) : file_(file), what_(what) {
    std::uint64_t total = 1;
    const std::uint64_t most = std::max<std::uint64_t>(std::uint64_t{1} << 20, file.size() / 8);
    for (std::size_t axis = 0; axis < what.shape.size(); ++axis) {
      grid_.push_back(chunks_along(what.shape[axis], what.chunk[axis]));
      if (grid_.back() != 0 && total > most / grid_.back()) {
        file.fail(what.address, str_cat("a dataset of more than ", most, " chunks, for which the file has no room"));
      }
      total *= grid_.back();
    }
    places_.resize(total);
  }

  std::vector<chunk_place> read() {
    if (what_.address == undefined || places_.empty()) return std::move(places_);
    switch (what_.index) {
      case hdf5_index::old_tree:
        read_old_tree();
        break;
      case hdf5_index::single:
        put({0, what_.address, what_.single_bytes, what_.single_skipped});
        break;
      case hdf5_index::implicit:
        for (std::uint64_t i = 0; i < places_.size(); ++i) {
          put({i, what_.address + i * what_.chunk_bytes, what_.chunk_bytes, 0});
        }
        break;
      case hdf5_index::fixed_array:
        read_fixed_array();
        break;
      case hdf5_index::extensible_array:
        read_extensible_array();
        break;
      case hdf5_index::tree:
        read_tree();
        break;
    }
    return std::move(places_);
  }

 private:
  struct entry {
    std::uint64_t number = 0;  // in the grid
    std::uint64_t address = undefined;
    std::uint64_t bytes = 0;
    std::uint32_t skipped = 0;
  };

  void put(const entry& one) {
    if (one.address == undefined || one.number >= places_.size()) return;
    places_[one.number] = {.offset = file_.offset_of(one.address), .bytes = one.bytes, .skipped = one.skipped};
  }

  // A chunk that lies beyond the shape, which has been made smaller, is none of ours.
  void put_at(std::span<const std::uint64_t> coordinates, entry one) {
    one.number = 0;
    for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
      if (coordinates[axis] >= grid_[axis]) return;
      one.number = one.number * grid_[axis] + coordinates[axis];
    }
    put(one);
  }

  void read_old_tree() {
    const std::size_t rank = grid_.size();
    const std::uint64_t entry_bytes = 8 + 8 * (rank + 1) + file_.address_bytes();
    const std::uint64_t prefix_bytes = 8 + 2 * file_.address_bytes();
    constexpr std::uint64_t usual_entries = 64;
    std::deque<std::uint64_t> nodes{what_.address};
    std::vector<std::uint64_t> coordinates(rank);
    while (!nodes.empty()) {
      const std::uint64_t address = nodes.front();
      nodes.pop_front();
      file_.count_node(address);
      hdf5_block block = file_.read_up_to(address, prefix_bytes + usual_entries * entry_bytes);
      hdf5_cursor at = block.cursor();
      at.expect("TREE");
      if (at.number(1) != 1) at.fail("a node that is of no chunks");
      const std::uint64_t level = at.number(1);
      const std::uint64_t entries = at.number(2);
      at.skip(2 * file_.address_bytes());
      if (at.left() < entries * entry_bytes) {
        block = file_.read(address + prefix_bytes, entries * entry_bytes);
        at = block.cursor();
      }
      for (std::uint64_t i = 0; i < entries; ++i) {
        entry one;
        one.bytes = at.number(4);
        one.skipped = static_cast<std::uint32_t>(at.number(4));
        for (std::size_t axis = 0; axis < rank; ++axis) {
          const std::uint64_t first = at.number(8);
          if (level == 0 && first % what_.chunk[axis] != 0) at.fail("a chunk that does not begin where one does");
          coordinates[axis] = first / what_.chunk[axis];
        }
        at.skip(8);
        one.address = at.address();
        if (level != 0) {
          nodes.push_back(one.address);
        } else {
          put_at(coordinates, one);
        }
      }
    }
  }

  // An entry of an array: its bytes and mask are there only where filters are.
  entry take_entry(hdf5_cursor& at, bool filtered, std::uint64_t entry_bytes) const {
    entry one;
    one.address = at.address();
    one.bytes = what_.chunk_bytes;
    if (filtered) {
      one.bytes = at.number(entry_bytes - file_.address_bytes() - 4);
      one.skipped = static_cast<std::uint32_t>(at.number(4));
    }
    return one;
  }
  void check_entry(hdf5_cursor& at, bool filtered, std::uint64_t entry_bytes) const {
    const std::uint64_t least = file_.address_bytes() + (filtered ? 5 : 0);
    if (entry_bytes < least || entry_bytes > file_.address_bytes() + (filtered ? 12 : 0)) {
      at.fail(str_cat("an index whose entries have ", entry_bytes, " bytes"));
    }
  }

  // Arrays are numbered along the largest shape; an axis without an end comes first.
  void put_numbered(std::uint64_t number, const entry& one, std::size_t endless) {
    const std::size_t rank = grid_.size();
    std::vector<std::uint64_t> coordinates(rank);
    for (std::size_t axis = rank; axis-- > 0;) {
      if (axis == endless) continue;
      const std::uint64_t along = chunks_along(what_.shape_max[axis], what_.chunk[axis]);
      if (along == 0) return;
      coordinates[axis] = number % along;
      number /= along;
    }
    if (endless < rank) {
      coordinates[endless] = number;
    } else if (number != 0) {
      return;
    }
    put_at(coordinates, one);
  }

  void read_fixed_array() {
    const std::size_t none = grid_.size();
    file_.count_node(what_.address);
    const hdf5_block header = file_.read_checked(what_.address, 8 + file_.length_bytes() + file_.address_bytes());
    hdf5_cursor at = header.cursor();
    at.expect("FAHD");
    at.skip(1);
    const bool filtered = at.number(1) == 1;
    const std::uint64_t entry_bytes = at.number(1);
    const std::uint64_t page_bits = at.number(1);
    const std::uint64_t entries = at.length();
    const std::uint64_t address = at.address();
    check_entry(at, filtered, entry_bytes);
    if (page_bits > 31 || entries > file_.size()) at.fail("an array of sizes that make no sense");
    if (address == undefined) return;
    const std::uint64_t page_entries = std::uint64_t{1} << page_bits;
    const std::uint64_t prefix_bytes = 6 + file_.address_bytes();
    const auto take = [&](hdf5_cursor from, std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i) put_numbered(first + i, take_entry(from, filtered, entry_bytes), none);
    };
    file_.count_node(address);
    if (entries <= page_entries) {
      const hdf5_block block = file_.read_checked(address, prefix_bytes + entries * entry_bytes);
      hdf5_cursor inside = block.cursor();
      inside.expect("FADB");
      inside.skip(prefix_bytes - 4);
      take(inside, 0, entries);
      return;
    }
    const std::uint64_t pages = chunks_along(entries, page_entries);
    const std::uint64_t bits_bytes = (pages + 7) / 8;
    const hdf5_block block = file_.read_checked(address, prefix_bytes + bits_bytes);
    hdf5_cursor inside = block.cursor();
    inside.expect("FADB");
    inside.skip(prefix_bytes - 4);
    const std::span<const std::byte> written = inside.take(bits_bytes);
    const std::uint64_t first_page = address + prefix_bytes + bits_bytes + 4;
    for (std::uint64_t page = 0; page < pages; ++page) {
      if (!is_set(written, page)) continue;
      file_.count_node(address);
      const std::uint64_t first = page * page_entries;
      const std::uint64_t count = std::min(page_entries, entries - first);
      const hdf5_block part =
          file_.read_checked(first_page + page * (page_entries * entry_bytes + 4), count * entry_bytes);
      take(part.cursor(), first, count);
    }
  }

  static bool is_set(std::span<const std::byte> bits, std::uint64_t number) {
    return ((bits[number / 8] >> (7 - number % 8)) & std::byte{1}) != std::byte{};
  }

  // Entries in the index block, then in data blocks that it points to, then in those that its secondary blocks point to; each two
  // generations of blocks have twice as many entries.
  void read_extensible_array() {
    std::size_t endless = grid_.size();
    for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
      if (what_.shape_max[axis] == undefined) endless = axis;
    }
    file_.count_node(what_.address);
    const hdf5_block header = file_.read_checked(what_.address, 12 + 6 * file_.length_bytes() + file_.address_bytes());
    hdf5_cursor at = header.cursor();
    at.expect("EAHD");
    at.skip(1);
    const bool filtered = at.number(1) == 1;
    const std::uint64_t entry_bytes = at.number(1);
    const std::uint64_t bits = at.number(1);
    const std::uint64_t direct_entries = at.number(1);
    const std::uint64_t block_entries = at.number(1);
    const std::uint64_t secondary_blocks = at.number(1);
    const std::uint64_t page_bits = at.number(1);
    at.skip(4 * file_.length_bytes());
    const std::uint64_t entries_set = at.length();
    at.skip(file_.length_bytes());
    const std::uint64_t address = at.address();
    check_entry(at, filtered, entry_bytes);
    if (bits == 0 || bits > 64 || page_bits > 31 || !std::has_single_bit(block_entries) ||
        !std::has_single_bit(secondary_blocks) || entries_set > file_.size()) {
      at.fail("an array of sizes that make no sense");
    }
    if (address == undefined) return;
    const auto log2 = [](std::uint64_t value) { return static_cast<std::uint64_t>(std::bit_width(value)) - 1; };
    if (bits < log2(block_entries)) at.fail("an array of sizes that make no sense");
    const std::uint64_t generations = 1 + bits - log2(block_entries);
    const std::uint64_t pointed_generations = std::min(generations, 2 * log2(secondary_blocks));
    const std::uint64_t pointed_blocks = 2 * (secondary_blocks - 1);
    const std::uint64_t offset_bytes = (bits + 7) / 8;
    const std::uint64_t page_entries = std::uint64_t{1} << page_bits;
    const auto blocks_in = [](std::uint64_t generation) { return std::uint64_t{1} << (generation / 2); };
    const auto entries_in = [&](std::uint64_t generation) { return block_entries << ((generation + 1) / 2); };
    const auto take = [&](hdf5_cursor from, std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t i = 0; i < count; ++i)
        put_numbered(first + i, take_entry(from, filtered, entry_bytes), endless);
    };
    // Pages of a block that were never written are not there to be read: `written` says which.
    const std::uint64_t data_prefix_bytes = 6 + file_.address_bytes() + offset_bytes;
    const auto read_data = [&](std::uint64_t block, std::uint64_t first, std::uint64_t count,
                               const std::function<bool(std::uint64_t)>& written) {
      if (block == undefined || first >= entries_set) return;
      file_.count_node(block);
      if (count <= page_entries) {
        const hdf5_block data = file_.read_checked(block, data_prefix_bytes + count * entry_bytes);
        hdf5_cursor inside = data.cursor();
        inside.expect("EADB");
        inside.skip(data_prefix_bytes - 4);
        take(inside, first, count);
        return;
      }
      const hdf5_block prefix = file_.read_checked(block, data_prefix_bytes);
      prefix.cursor().expect("EADB");
      for (std::uint64_t page = 0; page < count / page_entries; ++page) {
        if (!written(page)) continue;
        file_.count_node(block);
        const std::uint64_t place = block + data_prefix_bytes + 4 + page * (page_entries * entry_bytes + 4);
        const hdf5_block data = file_.read_checked(place, page_entries * entry_bytes);
        take(data.cursor(), first + page * page_entries, page_entries);
      }
    };

    file_.count_node(address);
    const std::uint64_t pointers = pointed_blocks + generations - pointed_generations;
    const hdf5_block index = file_.read_checked(
        address, 6 + file_.address_bytes() + direct_entries * entry_bytes + pointers * file_.address_bytes());
    hdf5_cursor inside = index.cursor();
    inside.expect("EAIB");
    inside.skip(2 + file_.address_bytes());
    for (std::uint64_t i = 0; i < direct_entries; ++i) {
      put_numbered(i, take_entry(inside, filtered, entry_bytes), endless);
    }
    std::uint64_t first = direct_entries;
    std::uint64_t blocks_left = pointed_blocks;
    std::uint64_t generation = 0;
    for (; generation < pointed_generations; ++generation) {
      for (std::uint64_t i = 0; i < blocks_in(generation) && blocks_left != 0; ++i, --blocks_left) {
        read_data(inside.address(), first, entries_in(generation), [](std::uint64_t) { return true; });
        first += entries_in(generation);
      }
    }
    for (; generation < generations && first < entries_set; ++generation) {
      const std::uint64_t blocks = blocks_in(generation);
      const std::uint64_t count = entries_in(generation);
      const std::uint64_t secondary = inside.address();
      const std::uint64_t pages = count > page_entries ? count / page_entries : 0;
      // A bit for each page, for each block in whole bytes.
      const std::uint64_t bits_bytes = (pages + 7) / 8;
      if (blocks > hdf5_bytes::block_bytes_max || bits_bytes > hdf5_bytes::block_bytes_max)
        inside.fail("an array of sizes that make no sense");
      if (secondary == undefined) {
        first += blocks * count;
        continue;
      }
      file_.count_node(secondary);
      const std::uint64_t prefix = 6 + file_.address_bytes() + offset_bytes;
      const hdf5_block block = file_.read_checked(secondary, prefix + blocks * (bits_bytes + file_.address_bytes()));
      hdf5_cursor data = block.cursor();
      data.expect("EASB");
      data.skip(prefix - 4);
      const std::span<const std::byte> written = data.take(blocks * bits_bytes);
      for (std::uint64_t i = 0; i < blocks; ++i) {
        read_data(data.address(), first, count, [&](std::uint64_t page) { return is_set(written, i * pages + page); });
        first += count;
      }
    }
  }

  void read_tree() {
    constexpr std::uint64_t unfiltered = 10;
    constexpr std::uint64_t with_filters = 11;
    const std::size_t rank = grid_.size();
    std::vector<std::uint64_t> coordinates(rank);
    for_each_record(file_, what_.address, [&](std::uint64_t kind, hdf5_cursor record) {
      if (kind != unfiltered && kind != with_filters) record.fail("an index that is of no chunks");
      entry one;
      const std::uint64_t rest = file_.address_bytes() + 8 * rank + (kind == with_filters ? 4 : 0);
      const std::uint64_t bytes = record.left();
      one.address = record.address();
      one.bytes = what_.chunk_bytes;
      if (kind == with_filters) {
        if (bytes <= rest) record.fail("a chunk without a size");
        one.bytes = record.number(bytes - rest);
        one.skipped = static_cast<std::uint32_t>(record.number(4));
      }
      for (std::uint64_t& each : coordinates) each = record.number(8);
      put_at(coordinates, one);
    });
  }

  hdf5_bytes& file_;
  const hdf5_chunking& what_;
  std::vector<std::uint64_t> grid_;
  std::vector<chunk_place> places_;
};

}  // namespace

std::vector<chunk_place> read_chunk_index(hdf5_bytes& file, const hdf5_chunking& what) {
  return index_reader(file, what).read();
}

}  // namespace leat::datasets
