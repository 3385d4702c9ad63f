#include "stages/digest.hpp"

#include <xxhash.h>

#include <bit>
#include <cstring>
#include <string>

namespace leat {

std::string digest::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

namespace stages {
namespace {

// Numbers enter as little-endian 64-bit words, texts with their length before them: no two inputs look the same.
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

}  // namespace

digest row_digest(std::uint64_t sample, std::span<const row_output> outputs) noexcept {
  hasher hash;
  hash.add(sample);
  for (const row_output& output : outputs) {
    hash.add(output.name);
    hash.add(name(output.type));
    hash.add(static_cast<std::uint64_t>(output.shape.size()));
    for (const std::int64_t extent : output.shape) hash.add(static_cast<std::uint64_t>(extent));
    hash.add(output.bytes);
  }
  return hash.finish();
}

digest batch_digest(std::uint32_t epoch, std::uint64_t index, std::span<const digest> rows) noexcept {
  hasher hash;
  hash.add(static_cast<std::uint64_t>(epoch));
  hash.add(index);
  hash.add(static_cast<std::uint64_t>(rows.size()));
  for (const digest& row : rows) hash.add(row);
  return hash.finish();
}

digest chain_digest(const digest& previous, const digest& next) noexcept {
  hasher hash;
  hash.add(previous);
  hash.add(next);
  return hash.finish();
}

}  // namespace stages
}  // namespace leat
