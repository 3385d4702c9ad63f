// XXH3-128 over numbers, texts and bytes. Numbers enter as little-endian 64-bit words, texts and bytes with their length before
// them: no two inputs look the same.
#pragma once

#include <leat/digest.hpp>

#include <xxhash.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace leat {

static_assert(std::endian::native == std::endian::little, "digests are defined over little-endian bytes");

class hasher {
 public:
  hasher() noexcept;

  void add(std::uint64_t number) noexcept { put(&number, sizeof number); }
  void add(std::span<const std::byte> bytes) noexcept {
    add(static_cast<std::uint64_t>(bytes.size()));
    put(bytes.data(), bytes.size());
  }
  void add(std::string_view text) noexcept { add(std::as_bytes(std::span(text))); }
  void add(const digest& part) noexcept { put(part.bytes.data(), part.bytes.size()); }

  [[nodiscard]] digest finish() noexcept;

 private:
  void put(const void* bytes, std::size_t count) noexcept;

  XXH3_state_t state_{};
};

}  // namespace leat
