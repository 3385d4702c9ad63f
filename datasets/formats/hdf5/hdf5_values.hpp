// Values of variable length in HDF5: a dataset of references to objects of global heaps, where the bytes lie as they are.
#pragma once

#include "datasets/formats/hdf5/hdf5_bytes.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace leat::datasets {

/// What stands in a dataset or an attribute for one value.
struct hdf5_reference {
  std::uint64_t bytes = 0;
  std::uint64_t heap = 0;
  std::uint64_t object = 0;
};
[[nodiscard]] hdf5_reference read_reference(hdf5_cursor& at);

/// Where such values lie. Reads the headers of all objects of their heaps; no value.
///   name     of what has them, for errors
///   throws   error{errc::format} damaged heaps, references to what is not there
[[nodiscard]] std::vector<value_place> find_values(hdf5_bytes& file, std::span<const hdf5_reference> wanted,
                                                   const std::string& name);

/// Where the values of a one-dimensional dataset lie, row by row. Reads all references, and the headers of all heap objects; no value.
///   references   the dataset: its type is u8, with a last axis of the bytes of a reference
///   throws       error{errc::format} damaged heaps, references to what is not there; error{errc::unsupported} a dataset that is filtered
///                with what cannot be undone
///   source       HDF5 File Format Specification 3.0, III.E, IV.B
[[nodiscard]] std::vector<value_place> find_values(hdf5_bytes& file, const chunked_array& references);

}  // namespace leat::datasets
