#include "base/hasher.hpp"

#include <cstring>

namespace leat {

hasher::hasher() noexcept { XXH3_128bits_reset(&state_); }

void hasher::put(const void* bytes, std::size_t count) noexcept { XXH3_128bits_update(&state_, bytes, count); }

digest hasher::finish() noexcept {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
  digest result;
  std::memcpy(result.bytes.data(), canonical.digest, result.bytes.size());
  return result;
}

}  // namespace leat
