// Which options a source takes: the one table of it. An option is never passed over in silence.
#pragma once

#include <leat/dataset.hpp>

#include <cstdint>
#include <string_view>

namespace leat::datasets {

/// What a source turns out to be.
enum class source_format : std::uint8_t {
  pictures,
  tar,
  npy,
  npz,
  hdf5,
  zarr,
  parquet,
  arrow,
  tfrecord,
  mds,
  jsonl,
  csv,
  lmdb,
  records,
  tokens
};

/// Refuses what is asked for and `what` does not take.
///   source   its path, for the error
///   throws   error{errc::usage} naming the option, the formats that take it, and this one
void refuse_options(source_format what, const open_options& asked, std::string_view source);
/// The same of a function that opens tables only.
void refuse_options(source_format what, const table_options& asked, std::string_view source);

}  // namespace leat::datasets
