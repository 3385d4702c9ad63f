// What HDF5's filters and their client values mean.
#pragma once

#include "datasets/codecs/filters.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace leat::datasets {

/// Not damaged: of a kind that is not read. In words, and what to do.
struct hdf5_not_read {
  std::string why;
};

/// One filter of a dataset.
///   name            that the file has for it; it may have none
///   values          its client values: each is used, or only says how the writer went about it
///   element_bytes   of the dataset's type
///   throws          hdf5_not_read
///   source          each filter's set_local and decode function; github.com/HDFGroup/hdf5_plugins
[[nodiscard]] filter hdf5_filter_of(std::uint64_t id, const std::string& name, std::span<const std::uint32_t> values,
                                    std::uint32_t element_bytes);

}  // namespace leat::datasets
