#include "datasets/formats/hdf5/hdf5_tree.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace leat::datasets {
namespace {

// Bytes that numbers up to `most` take.
std::size_t bytes_for(std::uint64_t most) { return (static_cast<std::size_t>(std::bit_width(most | 1)) + 7) / 8; }

struct node {
  std::uint64_t address = 0;
  std::uint64_t records = 0;
};

}  // namespace

void for_each_record(hdf5_bytes& file, std::uint64_t header,
                     const std::function<void(std::uint64_t, hdf5_cursor)>& found) {
  constexpr std::uint64_t checksum_bytes = 4;
  constexpr std::uint64_t node_prefix_bytes = 6 + checksum_bytes;  // signature, version, kind; the checksum is behind
  constexpr std::uint64_t node_bytes_max = std::uint64_t{1} << 24;
  constexpr std::uint64_t depth_max = 32;
  file.count_node(header);
  const hdf5_block block = file.read_checked(header, 18 + file.address_bytes() + file.length_bytes());
  hdf5_cursor at = block.cursor();
  at.expect("BTHD");
  at.skip(1);
  const std::uint64_t kind = at.number(1);
  const std::uint64_t node_bytes = at.number(4);
  const std::uint64_t record_bytes = at.number(2);
  const std::uint64_t depth = at.number(2);
  at.skip(2);
  const std::uint64_t root = at.address();
  const std::uint64_t root_records = at.number(2);
  if (root == hdf5_cursor::undefined) return;
  if (node_bytes < 64 || node_bytes > node_bytes_max || depth > depth_max || record_bytes == 0 ||
      record_bytes > node_bytes - node_prefix_bytes) {
    at.fail("a B-tree of sizes that make no sense");
  }
  // How many records a node of each level holds, which says how wide the counts beside the pointers to them are.
  const std::uint64_t leaf_records = (node_bytes - node_prefix_bytes) / record_bytes;
  const std::size_t count_bytes = bytes_for(leaf_records);
  std::vector<std::uint64_t> below(depth + 1, leaf_records);  // records of a subtree
  std::size_t total_bytes = 0;
  for (std::uint64_t level = 1; level <= depth; ++level) {
    const std::uint64_t pointer_bytes = file.address_bytes() + count_bytes + total_bytes;
    if (node_bytes < node_prefix_bytes + pointer_bytes + record_bytes) at.fail("a B-tree whose nodes hold nothing");
    const std::uint64_t records = (node_bytes - node_prefix_bytes - pointer_bytes) / (record_bytes + pointer_bytes);
    if (below[level - 1] > (~std::uint64_t{0} - records) / (records + 1)) at.fail("a B-tree that is too deep");
    below[level] = (records + 1) * below[level - 1] + records;
    total_bytes = bytes_for(below[level]);
  }

  std::vector<node> nodes{{root, root_records}};
  for (std::uint64_t level = depth + 1; level-- > 0;) {
    std::vector<node> next;
    const std::size_t totals = level > 1 ? bytes_for(below[level - 1]) : 0;
    // The checksum follows what is in use.
    const auto bytes_used = [&](const node& of) {
      const std::uint64_t pointers = level == 0 ? 0 : of.records + 1;
      return node_prefix_bytes - checksum_bytes + of.records * record_bytes +
             pointers * (file.address_bytes() + count_bytes + totals);
    };
    const auto range_of = [&](const node& of) {
      return hdf5_bytes::range{of.address, std::min(bytes_used(of) + checksum_bytes, node_bytes)};
    };
    file.visit_ahead(std::span<const node>(nodes), range_of, [&](const node& each) {
      file.count_node(each.address);
      const std::uint64_t used = bytes_used(each);
      if (used > node_bytes - checksum_bytes) file.fail(each.address, "a node of more records than it has room for");
      const hdf5_block bytes = file.read_checked(each.address, used);
      hdf5_cursor inside = bytes.cursor();
      inside.expect(level == 0 ? "BTLF" : "BTIN");
      inside.skip(2);
      for (std::uint64_t i = 0; i < each.records; ++i) {
        const std::uint64_t offset = inside.offset();
        found(kind, hdf5_cursor(file, inside.take(record_bytes), offset));
      }
      for (std::uint64_t i = 0; level != 0 && i <= each.records; ++i) {
        const std::uint64_t address = inside.address();
        next.push_back({address, inside.number(count_bytes)});
        inside.skip(totals);
      }
    });
    nodes = std::move(next);
  }
}

hdf5_heap::hdf5_heap(hdf5_bytes& file, std::uint64_t header) : file_(file) {
  file.count_node(header);
  const std::size_t lengths = file.length_bytes();
  constexpr std::uint64_t begin_bytes = 9;
  const hdf5_block begin = file.read(header, begin_bytes);
  hdf5_cursor at = begin.cursor();
  at.expect("FRHP");
  at.skip(1);
  constexpr std::uint64_t short_id_bytes_max = 18;  // of longer ones the length of what they have takes a byte more
  ids_are_long_ = at.number(2) > short_id_bytes_max;
  if (at.number(2) != 0) file.refuse(at.offset(), "a heap whose objects are filtered");
  const hdf5_block block = file.read_checked(header, 22 + 12 * lengths + 3 * file.address_bytes());
  at = block.cursor();
  at.skip(begin_bytes);
  constexpr std::uint64_t blocks_are_checked = 2;
  has_checksums_ = (at.number(1) & blocks_are_checked) != 0;
  const std::uint64_t managed_bytes_max = at.number(4);
  at.skip(lengths + file.address_bytes() + lengths + file.address_bytes() + 8 * lengths);
  width_ = at.number(2);
  first_block_bytes_ = at.length();
  direct_bytes_max_ = at.length();
  const std::uint64_t offset_bits = at.number(2);
  at.skip(2);
  root_ = at.address();
  root_rows_ = at.number(2);
  if (width_ == 0 || width_ > 4096 || !std::has_single_bit(first_block_bytes_) ||
      !std::has_single_bit(direct_bytes_max_) || direct_bytes_max_ < first_block_bytes_ || offset_bits == 0 ||
      offset_bits > 64 || root_rows_ > 64) {
    at.fail("a heap of sizes that make no sense");
  }
  offset_bytes_ = (static_cast<std::size_t>(offset_bits) + 7) / 8;
  length_bytes_ = std::min(bytes_for(direct_bytes_max_), bytes_for(managed_bytes_max));
}

hdf5_block hdf5_heap::object(hdf5_cursor id) const {
  constexpr std::uint64_t object_bytes_max = std::uint64_t{1} << 20;
  const std::uint64_t first = id.number(1);
  constexpr std::uint64_t in_block = 0;
  constexpr std::uint64_t in_id = 2;
  const std::uint64_t kind = first >> 4 & 3;
  if (kind == in_id && !ids_are_long_) {
    const std::uint64_t offset = id.offset();
    const std::span<const std::byte> taken = id.take((first & 15) + 1);
    return {&file_, {taken.begin(), taken.end()}, offset};
  }
  if (kind != in_block) file_.refuse(id.offset(), "a heap object of another kind");
  const std::uint64_t offset = id.number(offset_bytes_);
  const std::uint64_t bytes = id.number(length_bytes_);
  if (bytes > object_bytes_max) id.fail(str_cat("a heap object of ", bytes, " bytes"));
  const data_block block = root_rows_ == 0 ? data_block{root_, 0, first_block_bytes_} : find(offset);
  const std::uint64_t within = offset - block.begin;
  if (within > block.bytes || bytes > block.bytes - within) id.fail("a heap object outside its block");
  verify_data(block);
  return file_.read(block.address + within, bytes);
}

// The checksum stands before the data, and is of the whole block with zeros in its own place.
void hdf5_heap::verify_data(const data_block& what) const {
  constexpr std::size_t checksum_bytes = 4;
  if (!has_checksums_ || !verified_.insert(what.address).second) return;
  hdf5_block block = file_.read(what.address, what.bytes);
  hdf5_cursor at = block.cursor();
  at.expect("FHDB");
  at.skip(1 + file_.address_bytes() + offset_bytes_);
  const auto place = static_cast<std::size_t>(at.offset() - block.offset);
  const auto stored = static_cast<std::uint32_t>(at.number(checksum_bytes));
  std::fill_n(block.bytes.data() + place, checksum_bytes, std::byte{});
  file_.verify(block.bytes, stored, block.offset);
}

// Rows of blocks: those of the first two are of the first size, those of each later row twice as large as in the row before. Blocks that
// are too large to be of data have rows of their own.
hdf5_heap::data_block hdf5_heap::find(std::uint64_t offset) const {
  const auto direct_rows = static_cast<std::uint64_t>(std::bit_width(direct_bytes_max_ / first_block_bytes_)) + 1;
  std::uint64_t block = root_;
  std::uint64_t rows = root_rows_;
  std::uint64_t begin = 0;  // of the block, in the heap's space
  for (int depth = 0; depth < 16; ++depth) {
    std::uint64_t row_begin = begin;
    std::uint64_t bytes = first_block_bytes_;
    std::uint64_t row = 0;
    for (; row < rows; ++row) {
      if (row > 1) bytes *= 2;
      if (bytes > (std::uint64_t{1} << 50)) file_.fail(block, "a heap that is too large");
      if (offset - row_begin < bytes * width_) break;
      row_begin += bytes * width_;
    }
    if (row == rows || offset < row_begin) file_.fail(block, "a heap object outside its heap");
    const std::uint64_t entry = (offset - row_begin) / bytes;
    const std::uint64_t number = row * width_ + entry;
    const std::uint64_t prefix_bytes = 5 + file_.address_bytes() + offset_bytes_;
    if (verified_.insert(block).second) {
      static_cast<void>(file_.read_checked(block, prefix_bytes + rows * width_ * file_.address_bytes()));
    }
    const hdf5_block pointers = file_.read(block, prefix_bytes + (number + 1) * file_.address_bytes());
    file_.count_node(block);
    hdf5_cursor at = pointers.cursor();
    at.expect("FHIB");
    at.skip(1 + file_.address_bytes() + offset_bytes_ + number * file_.address_bytes());
    const std::uint64_t found = at.address();
    const std::uint64_t found_begin = row_begin + entry * bytes;
    if (row < direct_rows) return {found, found_begin, bytes};
    rows = static_cast<std::uint64_t>(std::bit_width(bytes / (first_block_bytes_ * width_) | 1));
    block = found;
    begin = found_begin;
  }
  file_.fail(block, "a heap that is too deep");
}

}  // namespace leat::datasets
