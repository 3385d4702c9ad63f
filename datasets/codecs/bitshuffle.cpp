#include "datasets/codecs/bitshuffle.hpp"

#include "base/text.hpp"
#include "datasets/codecs/big_endian.hpp"
#include "datasets/codecs/lz4.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace leat::datasets {
namespace {

constexpr std::size_t at_once = 8;  // elements: a byte holds one bit of each

// Bit k of byte b of eight elements lies in row 8 * b + k, a byte for each eight elements.
void unshuffle_block(std::size_t element_bytes, std::span<const std::byte> from, std::byte* to) {
  const std::size_t groups = from.size() / element_bytes / at_once;
  for (std::size_t byte = 0; byte < element_bytes; ++byte) {
    for (std::size_t group = 0; group < groups; ++group) {
      std::uint64_t bits = 0;  // row k in byte k
      for (std::size_t k = 0; k < 8; ++k) {
        bits |= std::to_integer<std::uint64_t>(from[(byte * 8 + k) * groups + group]) << (8 * k);
      }
      // The transpose of 8 x 8 bits: byte j then has bit j of each row.
      std::uint64_t swap = (bits ^ (bits >> 7)) & 0x00AA00AA00AA00AA;
      bits ^= swap ^ (swap << 7);
      swap = (bits ^ (bits >> 14)) & 0x0000CCCC0000CCCC;
      bits ^= swap ^ (swap << 14);
      swap = (bits ^ (bits >> 28)) & 0x00000000F0F0F0F0;
      bits ^= swap ^ (swap << 28);
      for (std::size_t element = 0; element < at_once; ++element) {
        to[(group * at_once + element) * element_bytes + byte] = static_cast<std::byte>(bits >> (8 * element));
      }
    }
  }
}

// As bitshuffle chooses it where nobody does: about 8 KiB, whole groups, and at least 128 elements.
std::size_t usual_block_elements(std::size_t element_bytes) {
  constexpr std::size_t target_bytes = 8192;
  constexpr std::size_t least = 128;
  return std::max(target_bytes / element_bytes / at_once * at_once, least);
}

}  // namespace

std::optional<std::string> bitunshuffle(std::uint32_t element_bytes, std::uint32_t block_elements,
                                        std::span<const std::byte> from, std::span<std::byte> to) {
  if (from.size() != to.size()) {
    return str_cat("a chunk of ", from.size(), " bytes where ", to.size(), " were expected");
  }
  if (element_bytes == 0 || from.size() % element_bytes != 0) {
    return str_cat(from.size(), " bytes are no whole number of elements of ", element_bytes);
  }
  const std::size_t block_bytes =
      (block_elements != 0 ? block_elements : usual_block_elements(element_bytes)) * element_bytes;
  const std::size_t group_bytes = at_once * element_bytes;
  while (from.size() >= group_bytes) {
    const std::size_t now = std::min(block_bytes, from.size() / group_bytes * group_bytes);
    unshuffle_block(element_bytes, from.first(now), to.data());
    from = from.subspan(now);
    to = to.subspan(now);
  }
  std::copy(from.begin(), from.end(), to.begin());
  return std::nullopt;
}

std::optional<std::string> expand_bitshuffle_lz4(std::uint32_t element_bytes, std::span<const std::byte> stored,
                                                 std::span<std::byte> decoded) {
  constexpr std::size_t header_bytes = 12;
  constexpr std::size_t size_bytes = 4;
  const std::size_t all = stored.size();
  const auto damaged = [&] { return str_cat("damaged bitshuffle data in ", all, " bytes"); };
  if (all < header_bytes || element_bytes == 0 || decoded.size() % element_bytes != 0) return damaged();
  if (const std::uint64_t bytes = big_endian(stored.first(8)); bytes != decoded.size()) {
    return str_cat("bitshuffle data become ", bytes, " bytes where ", decoded.size(), " were expected");
  }
  const std::size_t group_bytes = at_once * element_bytes;
  std::size_t block_bytes = big_endian(stored.subspan(8, 4));
  if (block_bytes == 0) block_bytes = usual_block_elements(element_bytes) * element_bytes;
  if (block_bytes % group_bytes != 0) return damaged();
  stored = stored.subspan(header_bytes);
  thread_local std::vector<std::byte> shuffled;
  while (decoded.size() >= group_bytes) {
    const std::size_t now = std::min(block_bytes, decoded.size() / group_bytes * group_bytes);
    if (stored.size() < size_bytes) return damaged();
    const std::uint64_t packed = big_endian(stored.first(size_bytes));
    stored = stored.subspan(size_bytes);
    if (packed > stored.size()) return damaged();
    if (shuffled.size() < now) shuffled.resize(now);
    const std::span<std::byte> block = std::span(shuffled).first(now);
    if (auto reason = expand_lz4_block(stored.first(packed), block)) return reason;
    unshuffle_block(element_bytes, block, decoded.data());
    stored = stored.subspan(packed);
    decoded = decoded.subspan(now);
  }
  if (stored.size() != decoded.size()) return damaged();
  std::copy(stored.begin(), stored.end(), decoded.begin());
  return std::nullopt;
}

}  // namespace leat::datasets
