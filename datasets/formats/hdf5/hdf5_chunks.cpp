#include "datasets/formats/hdf5/hdf5_chunks.hpp"

#include "base/text.hpp"
#include "datasets/formats/hdf5/hdf5_tree.hpp"

#include <leat/error.hpp>

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace leat::datasets {
namespace {

constexpr std::uint64_t undefined = hdf5_cursor::undefined;

std::uint64_t chunks_along(std::uint64_t extent, std::uint64_t chunk) { return extent / chunk + (extent % chunk != 0); }

class index_reader {
 public:
  index_reader(hdf5_bytes& file, const hdf5_chunking& what) : file_(file), what_(what) {
    // Few of them need have been written, and each takes memory.
    constexpr std::uint64_t always = std::uint64_t{1} << 24;
    const std::uint64_t most = std::max(always, file.size() / 8);
    std::uint64_t total = 1;
    for (std::size_t axis = 0; axis < what.shape.size(); ++axis) {
      grid_.push_back(chunks_along(what.shape[axis], what.chunk[axis]));
      if (grid_.back() != 0 && total > most / grid_.back()) {
        throw error(errc::limit, str_cat(file.path(), ": a dataset of more than ", most,
                                         " chunks; leat keeps the place of "
                                         "each: write it anew with larger ones"));
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

  // The dataset was made smaller after this chunk was written: the chunk lies beyond its shape.
  void put_at(std::span<const std::uint64_t> coordinates, entry one) {
    one.number = 0;
    for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
      if (coordinates[axis] >= grid_[axis]) return;
      one.number = one.number * grid_[axis] + coordinates[axis];
    }
    put(one);
  }

  // Level by level: what a level needs is read together.
  void read_old_tree() {
    const std::uint64_t entry_bytes = 8 + 8 * (grid_.size() + 1) + file_.address_bytes();
    constexpr std::uint64_t usual_entries = 64;
    const std::uint64_t usual_bytes = 8 + 2 * file_.address_bytes() + usual_entries * entry_bytes;
    std::vector<std::uint64_t> level{what_.address};
    file_.count_node(what_.address);
    while (!level.empty()) {
      std::vector<std::uint64_t> next;
      const auto range_of = [&](std::uint64_t address) { return hdf5_bytes::range{address, usual_bytes}; };
      file_.visit_ahead(std::span<const std::uint64_t>(level), range_of,
                        [&](std::uint64_t address) { read_old_node(address, usual_bytes, entry_bytes, next); });
      level = std::move(next);
    }
  }

  void read_old_node(std::uint64_t address, std::uint64_t usual_bytes, std::uint64_t entry_bytes,
                     std::vector<std::uint64_t>& children) {
    const std::size_t rank = grid_.size();
    const std::uint64_t prefix_bytes = 8 + 2 * file_.address_bytes();
    hdf5_block block = file_.read_up_to(address, usual_bytes);
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
    coordinates_.resize(rank);
    for (std::uint64_t i = 0; i < entries; ++i) {
      entry one;
      one.bytes = at.number(4);
      one.skipped = static_cast<std::uint32_t>(at.number(4));
      for (std::size_t axis = 0; axis < rank; ++axis) {
        const std::uint64_t first = at.number(8);
        if (level == 0 && first % what_.chunk[axis] != 0) at.fail("a chunk that does not begin where one does");
        coordinates_[axis] = first / what_.chunk[axis];
      }
      at.skip(8);
      one.address = at.address();
      if (level == 0) {
        put_at(coordinates_, one);
      } else {
        file_.count_node(one.address);
        children.push_back(one.address);
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

  // Arrays are numbered along the largest shape; an axis without an end comes first. That is the order of the grid where no axis behind the
  // first can grow.
  void number_along(std::size_t endless) {
    endless_ = endless;
    along_.clear();
    as_grid_ = endless == 0 || endless == grid_.size();
    for (std::size_t axis = 0; axis < grid_.size(); ++axis) {
      along_.push_back(axis == endless ? 0 : chunks_along(what_.shape_max[axis], what_.chunk[axis]));
      as_grid_ = as_grid_ && (axis == 0 || along_[axis] == grid_[axis]);
    }
  }
  void put_numbered(std::uint64_t number, entry one) {
    if (as_grid_) {
      one.number = number;
      return put(one);
    }
    const std::size_t rank = grid_.size();
    coordinates_.resize(rank);
    for (std::size_t axis = rank; axis-- > 0;) {
      if (axis == endless_) continue;
      if (along_[axis] == 0) return;
      coordinates_[axis] = number % along_[axis];
      number /= along_[axis];
    }
    if (endless_ < rank) {
      coordinates_[endless_] = number;
    } else if (number != 0) {
      return;
    }
    put_at(coordinates_, one);
  }

  void read_fixed_array() {
    number_along(grid_.size());
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
      for (std::uint64_t i = 0; i < count; ++i) put_numbered(first + i, take_entry(from, filtered, entry_bytes));
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
    std::vector<std::uint64_t> there;
    for (std::uint64_t page = 0; page < pages; ++page) {
      if (!is_set(written, page)) continue;
      file_.count_node(address);
      there.push_back(page);
    }
    const auto range_of = [&](std::uint64_t page) {
      const std::uint64_t count = std::min(page_entries, entries - page * page_entries);
      return hdf5_bytes::range{first_page + page * (page_entries * entry_bytes + 4), count * entry_bytes + 4};
    };
    file_.visit_ahead(std::span<const std::uint64_t>(there), range_of, [&](std::uint64_t page) {
      const hdf5_bytes::range where = range_of(page);
      const hdf5_block part = file_.read_checked(where.address, where.bytes - 4);
      const std::uint64_t first = page * page_entries;
      take(part.cursor(), first, std::min(page_entries, entries - first));
    });
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
    number_along(endless);
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
      for (std::uint64_t i = 0; i < count; ++i) put_numbered(first + i, take_entry(from, filtered, entry_bytes));
    };
    // Blocks of data are found first and read then, all of them.
    const std::uint64_t data_prefix_bytes = 6 + file_.address_bytes() + offset_bytes;
    std::vector<data_block> blocks;
    const auto add_page = [&](data_block& block, std::uint64_t page) {
      file_.count_node(block.address);
      block.pages.push_back(page);
    };
    const auto found = [&](data_block block) {
      if (block.address == undefined || block.first >= entries_set) return;
      file_.count_node(block.address);
      blocks.push_back(std::move(block));
    };

    file_.count_node(address);
    const std::uint64_t pointers = pointed_blocks + generations - pointed_generations;
    const hdf5_block index = file_.read_checked(
        address, 6 + file_.address_bytes() + direct_entries * entry_bytes + pointers * file_.address_bytes());
    hdf5_cursor inside = index.cursor();
    inside.expect("EAIB");
    inside.skip(2 + file_.address_bytes());
    for (std::uint64_t i = 0; i < direct_entries; ++i) {
      put_numbered(i, take_entry(inside, filtered, entry_bytes));
    }
    std::uint64_t first = direct_entries;
    std::uint64_t blocks_left = pointed_blocks;
    std::uint64_t generation = 0;
    for (; generation < pointed_generations; ++generation) {
      for (std::uint64_t i = 0; i < blocks_in(generation) && blocks_left != 0; ++i, --blocks_left) {
        data_block one{.address = inside.address(), .first = first, .count = entries_in(generation)};
        const std::uint64_t pages = one.count > page_entries ? one.count / page_entries : 0;
        for (std::uint64_t page = 0; one.address != undefined && page < pages; ++page) add_page(one, page);
        found(std::move(one));
        first += entries_in(generation);
      }
    }
    std::vector<secondary_block> secondary;
    const std::uint64_t prefix = 6 + file_.address_bytes() + offset_bytes;
    for (; generation < generations && first < entries_set; ++generation) {
      secondary_block one{.address = inside.address(),
                          .first = first,
                          .blocks = blocks_in(generation),
                          .count = entries_in(generation)};
      const std::uint64_t pages = one.count > page_entries ? one.count / page_entries : 0;
      // A bit for each page, for each block in whole bytes.
      one.bits_bytes = (pages + 7) / 8;
      if (one.blocks > hdf5_bytes::block_bytes_max || one.bits_bytes > hdf5_bytes::block_bytes_max)
        inside.fail("an array of sizes that make no sense");
      one.bytes = prefix + one.blocks * (one.bits_bytes + file_.address_bytes());
      first += one.blocks * one.count;
      if (one.address == undefined) continue;
      file_.count_node(one.address);
      secondary.push_back(one);
    }
    const auto range_of = [](const secondary_block& of) { return hdf5_bytes::range{of.address, of.bytes + 4}; };
    file_.visit_ahead(std::span<const secondary_block>(secondary), range_of, [&](const secondary_block& of) {
      const hdf5_block block = file_.read_checked(of.address, of.bytes);
      hdf5_cursor data = block.cursor();
      data.expect("EASB");
      data.skip(prefix - 4);
      const std::uint64_t pages = of.count > page_entries ? of.count / page_entries : 0;
      const std::span<const std::byte> written = data.take(of.blocks * of.bits_bytes);
      for (std::uint64_t i = 0; i < of.blocks; ++i) {
        data_block one{.address = data.address(), .first = of.first + i * of.count, .count = of.count};
        // Pages that were never written are not there to be read.
        for (std::uint64_t page = 0; one.address != undefined && page < pages; ++page) {
          if (is_set(written, i * pages + page)) add_page(one, page);
        }
        found(std::move(one));
      }
    });
    read_data_blocks(blocks, data_prefix_bytes, page_entries, entry_bytes, take);
  }

  /// A block of data of an extensible array.
  ///   first, count   of its entries
  ///   pages          that were written, where it has pages
  struct data_block {
    std::uint64_t address = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::vector<std::uint64_t> pages = {};
  };
  struct secondary_block {
    std::uint64_t address = 0;
    std::uint64_t first = 0;
    std::uint64_t blocks = 0;
    std::uint64_t count = 0;  // entries of each
    std::uint64_t bits_bytes = 0;
    std::uint64_t bytes = 0;
  };

  template <typename Take>
  void read_data_blocks(const std::vector<data_block>& blocks, std::uint64_t prefix_bytes, std::uint64_t page_entries,
                        std::uint64_t entry_bytes, const Take& take) {
    struct page_place {
      std::uint64_t address = 0;
      std::uint64_t first = 0;
    };
    std::vector<page_place> pages;
    const auto bytes_of = [&](const data_block& of) {
      return of.count <= page_entries ? prefix_bytes + of.count * entry_bytes : prefix_bytes;
    };
    const auto range_of = [&](const data_block& of) { return hdf5_bytes::range{of.address, bytes_of(of) + 4}; };
    file_.visit_ahead(std::span<const data_block>(blocks), range_of, [&](const data_block& of) {
      const hdf5_block data = file_.read_checked(of.address, bytes_of(of));
      hdf5_cursor inside = data.cursor();
      inside.expect("EADB");
      inside.skip(prefix_bytes - 4);
      if (of.count <= page_entries) return take(inside, of.first, of.count);
      for (const std::uint64_t page : of.pages) {
        pages.push_back(
            {of.address + prefix_bytes + 4 + page * (page_entries * entry_bytes + 4), of.first + page * page_entries});
      }
    });
    const std::uint64_t page_bytes = page_entries * entry_bytes;
    const auto range_of_page = [&](const page_place& of) { return hdf5_bytes::range{of.address, page_bytes + 4}; };
    file_.visit_ahead(std::span<const page_place>(pages), range_of_page, [&](const page_place& of) {
      take(file_.read_checked(of.address, page_bytes).cursor(), of.first, page_entries);
    });
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
  std::vector<std::uint64_t> coordinates_;  // of the entry that is read
  std::vector<std::uint64_t> along_;        // chunks along each axis of the largest shape
  std::size_t endless_ = 0;                 // the axis without an end
  bool as_grid_ = false;                    // entries are numbered as the grid is
  std::vector<chunk_place> places_;
};

}  // namespace

std::vector<chunk_place> read_chunk_index(hdf5_bytes& file, const hdf5_chunking& what) {
  return index_reader(file, what).read();
}

}  // namespace leat::datasets
