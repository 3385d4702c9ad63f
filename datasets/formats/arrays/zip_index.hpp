// The directory of a zip archive, at its end: where its members lie.
#pragma once

#include "datasets/files/file_bytes.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace leat::datasets {

/// A member that is stored as it is, or packed by deflate.
///   offset         of its bytes in the archive
///   bytes          of it, unpacked
///   stored_bytes   in the archive
///   crc32          of its bytes, unpacked
///   not_read       why its bytes cannot be read; empty: they can
struct zip_member {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint32_t crc32 = 0;
  bool deflated = false;
  std::string not_read = {};
};

/// In the directory's order.
///   throws   error{errc::format} with path and offset; error{errc::unsupported} for archives in several parts
///   source   PKWARE APPNOTE 6.3.3, 4.3 and 4.5.3 (zip64)
[[nodiscard]] std::vector<zip_member> read_zip_index(const file_bytes& file);

}  // namespace leat::datasets
