// XXH3-128 over numbers, texts and bytes. Numbers enter as little-endian 64-bit words, texts and bytes with their length before
// them: no two inputs look the same.
#pragma once

#include <leat/digest.hpp>

#include <xxhash.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace leat {

class hasher {
 public:
  hasher() noexcept { XXH3_128bits_reset(&state_); }

  void add(std::uint64_t number) noexcept {
    static_assert(std::endian::native == std::endian::little, "digests are defined over little-endian bytes");
    XXH3_128bits_update(&state_, &number, sizeof number);
  }
  void add(std::span<const std::byte> bytes) noexcept {
    add(static_cast<std::uint64_t>(bytes.size()));
    XXH3_128bits_update(&state_, bytes.data(), bytes.size());
  }
  void add(std::string_view text) noexcept { add(std::as_bytes(std::span(text))); }
  void add(const digest& part) noexcept { XXH3_128bits_update(&state_, part.bytes.data(), part.bytes.size()); }

  [[nodiscard]] digest finish() noexcept {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_));
    digest result;
    std::memcpy(result.bytes.data(), canonical.digest, result.bytes.size());
    return result;
  }

 private:
  XXH3_state_t state_{};
};

}  // namespace leat
