#include "datasets/codecs/snappy.hpp"

#include "base/text.hpp"

#include <snappy-c.h>

namespace leat::datasets {

std::optional<std::string> expand_snappy(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  const char* const from = reinterpret_cast<const char*>(stored.data());
  std::size_t bytes = 0;
  if (snappy_uncompressed_length(from, stored.size(), &bytes) != SNAPPY_OK) {
    return str_cat("damaged snappy data in ", stored.size(), " bytes");
  }
  // It writes as many as the data say.
  if (bytes != decoded.size()) {
    return str_cat("snappy data become ", bytes, " bytes where ", decoded.size(), " were expected");
  }
  if (snappy_uncompress(from, stored.size(), reinterpret_cast<char*>(decoded.data()), &bytes) != SNAPPY_OK) {
    return str_cat("damaged snappy data in ", stored.size(), " bytes");
  }
  return std::nullopt;
}

}  // namespace leat::datasets
