// Version 2 B-trees and fractal heaps of HDF5: how newer files keep many links, and chunks along several unlimited axes.
#pragma once

#include "datasets/formats/hdf5/hdf5_bytes.hpp"

#include <cstdint>
#include <functional>
#include <set>

namespace leat::datasets {

/// Calls `found` for each record of the tree, level by level.
///   found    gets the tree's kind of records, and one of them
///   source   HDF5 File Format Specification 3.0, III.A.2
void for_each_record(hdf5_bytes& file, std::uint64_t header,
                     const std::function<void(std::uint64_t kind, hdf5_cursor record)>& found);

/// Objects of variable size, by their ids. Only objects that lie in blocks of the heap, or in their ids: links and messages do.
///   source   HDF5 File Format Specification 3.0, III.G
class hdf5_heap {
 public:
  hdf5_heap(hdf5_bytes& file, std::uint64_t header);

  [[nodiscard]] hdf5_block object(hdf5_cursor id) const;

 private:
  /// A block of data.
  ///   begin   in the heap's own space
  struct data_block {
    std::uint64_t address = 0;
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
  };

  /// The block that has what lies at `offset` of the heap's own space.
  [[nodiscard]] data_block find(std::uint64_t offset) const;
  void verify_data(const data_block& what) const;

  hdf5_bytes& file_;
  std::uint64_t width_ = 0;              // blocks in a row
  std::uint64_t first_block_bytes_ = 0;  // of those in the first two rows
  std::uint64_t direct_bytes_max_ = 0;
  std::uint64_t root_ = 0;
  std::uint64_t root_rows_ = 0;  // 0: the root is a block of data itself
  std::size_t offset_bytes_ = 0;
  std::size_t length_bytes_ = 0;
  bool ids_are_long_ = false;
  bool has_checksums_ = false;                // blocks of data; all others have
  mutable std::set<std::uint64_t> verified_;  // addresses of blocks
};

}  // namespace leat::datasets
