// Rows of a fixed dtype and shape as one file: a .npy, or records with the JSON that describes them.
#pragma once

#include "datasets/write/pack.hpp"

#include <cstdint>
#include <string>

namespace leat::tools {

enum class row_format : std::uint8_t {
  npy,     ///< one field, or one column: an array whose first axis counts the samples
  records  ///< all fields and columns of a sample side by side, columns as i64; OUT is name.bin, beside it name.json
};

/// Writes the samples of `from`, in its order or in one drawn from the seed, into the file `out`. Of `how` it takes shuffle,
/// seed, overwrite, progress and stop. The file gets its name when it is whole.
///   memory   16 MiB of rows at a time, one row at least
///   throws   error{errc::unsupported} naming a field that has no rows of one dtype and shape; error{errc::usage} a name that
///            is taken or does not fit the format; error{errc::changed} as pack(); error{errc::cancelled} on stop; what reading and writing throw
[[nodiscard]] datasets::pack_result pack_rows(const dataset& from, const std::string& out, row_format to,
                                              const datasets::pack_options& how);

}  // namespace leat::tools
