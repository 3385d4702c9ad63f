// Values of variable length in HDF5: a dataset of references to objects of global heaps, where the bytes lie as they are.
#pragma once

#include "datasets/formats/hdf5/hdf5_bytes.hpp"
#include "datasets/tables/chunked_array.hpp"

#include <cstdint>
#include <vector>

namespace leat::datasets {

/// Where the values of a one-dimensional dataset lie, row by row. Reads all references, and the headers of all heap objects; no value.
///   references   the dataset: its type is u8, with a last axis of the bytes of a reference
///   throws       error{errc::format} damaged heaps, references to what is not there; error{errc::unsupported} a dataset that is filtered
///                with what cannot be undone
///   source       HDF5 File Format Specification 3.0, III.E, IV.B
[[nodiscard]] std::vector<value_place> find_values(hdf5_bytes& file, const chunked_array& references);

}  // namespace leat::datasets
