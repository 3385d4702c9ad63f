// The directory of a zip archive, at its end: where its stored members lie.
#pragma once

#include "datasets/file_bytes.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace leat::datasets {

/// A member that is stored as it is.
///   offset   of its bytes in the archive
struct zip_member {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// In the directory's order.
///   throws   error{errc::format} with path and offset; error{errc::unsupported} for compressed and encrypted members, by
///            name, and for archives in several parts
///   source   PKWARE APPNOTE 6.3.3, 4.3 and 4.5.3 (zip64)
[[nodiscard]] std::vector<zip_member> read_zip_index(const file_bytes& file);

}  // namespace leat::datasets
