#include "datasets/codecs/blosc.hpp"

#include "base/text.hpp"

#include <blosc.h>

#include <limits>

namespace leat::datasets {

std::optional<std::string> expand_blosc(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  std::size_t bytes = 0;
  if (stored.size() < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(stored.data(), stored.size(), &bytes) != 0) {
    return str_cat("damaged Blosc data in ", stored.size(), " bytes");
  }
  if (bytes != decoded.size()) {
    return str_cat("Blosc data become ", bytes, " bytes where ", decoded.size(), " were expected");
  }
  if (decoded.empty()) return std::nullopt;
  constexpr int threads = 1;
  const int written = blosc_decompress_ctx(stored.data(), decoded.data(), decoded.size(), threads);
  if (written >= 0 && static_cast<std::size_t>(written) == decoded.size()) return std::nullopt;
  return str_cat("damaged Blosc data in ", stored.size(), " bytes, or of a codec that this libblosc was built without");
}

}  // namespace leat::datasets
