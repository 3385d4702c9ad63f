// Zarr's consolidated metadata: that of a whole hierarchy in one file, so that opening it lists no folder and reads no other.
#pragma once

#include "datasets/formats/zarr/zarr_store.hpp"

#include <memory>

namespace leat::datasets {

/// The store with its metadata as they were consolidated, in .zmetadata or in the root's zarr.json; itself where they were not. As in
/// zarr-python, what was added since is not seen.
///   throws   error{errc::format} consolidated metadata that are damaged
[[nodiscard]] std::unique_ptr<zarr_store> with_consolidated_metadata(std::unique_ptr<zarr_store> store);

}  // namespace leat::datasets
