// XXH64, as other people's indexes have it.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace leat {

/// Of bytes that come piece after piece, seed 0.
class xxh64 {
 public:
  xxh64() noexcept { XXH64_reset(&state_, 0); }
  void add(std::span<const std::byte> bytes) noexcept { XXH64_update(&state_, bytes.data(), bytes.size()); }
  [[nodiscard]] std::uint64_t value() const noexcept { return XXH64_digest(&state_); }

 private:
  XXH64_state_t state_{};
};

}  // namespace leat
