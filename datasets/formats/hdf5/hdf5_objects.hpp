// What an HDF5 file has: its groups and their links, and the messages of an object.
#pragma once

#include "datasets/formats/hdf5/hdf5_bytes.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace leat::datasets {

/// One message of an object header.
///   source   HDF5 File Format Specification 3.0, IV.A.2
struct hdf5_message {
  enum type : std::uint16_t {
    dataspace = 1,
    link_info = 2,
    datatype = 3,
    old_fill_value = 4,
    fill_value = 5,
    link = 6,
    external_files = 7,
    layout = 8,
    filters = 11,
    attribute = 12,
    shared_messages = 15,
    continuation = 16,
    symbol_table = 17,
    attribute_info = 21
  };
  std::uint16_t type = 0;
  std::uint8_t flags = 0;
  hdf5_block body;

  [[nodiscard]] hdf5_cursor cursor() const { return body.cursor(); }
};

/// Names that stand for other names.
///   target   from the root where it begins with a slash, or where there is a file; else from the group that has the link
///   file     that has the target, as the link calls it; empty: this one
struct hdf5_link {
  std::string path;
  std::string target;
  std::string file = {};
};

class hdf5_attributes;

/// Calls `found` for each object that has data, group by group, by name, with its path ("group/name") and its messages; those that are kept
/// elsewhere, for several objects, are fetched. An object with several names comes under the first.
///   links   gets soft and external links, which are not followed
///   notes   gets links that are left out
///   attributes   gets those of all objects, groups too, where it wants any
void for_each_dataset(hdf5_bytes& file, std::vector<hdf5_link>& links, std::vector<std::string>& notes,
                      hdf5_attributes& attributes,
                      const std::function<void(const std::string& path, const std::vector<hdf5_message>&)>& found);

}  // namespace leat::datasets
