#include "datasets/codecs/checksums.hpp"

#include <bit>
#include <cstring>

namespace leat::datasets {
namespace {

std::uint32_t swapped_halves(std::uint32_t value) { return ((value & 0x00FF00FF) << 8) | ((value >> 8) & 0x00FF00FF); }

}  // namespace

bool is_fletcher32(std::span<const std::byte> bytes, std::uint32_t stored) noexcept {
  constexpr std::size_t words_at_once = 360;  // more could overflow the second sum
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  const auto fold = [](std::uint32_t sum) { return (sum & 0xFFFF) + (sum >> 16); };
  const auto word_at = [&](std::size_t at) {
    return (std::to_integer<std::uint32_t>(bytes[at]) << 8) | std::to_integer<std::uint32_t>(bytes[at + 1]);
  };
  std::size_t at = 0;
  for (std::size_t words = bytes.size() / 2; words != 0;) {
    const std::size_t now = words < words_at_once ? words : words_at_once;
    words -= now;
    for (std::size_t i = 0; i < now; ++i, at += 2) {
      first += word_at(at);
      second += first;
    }
    first = fold(first);
    second = fold(second);
  }
  if (bytes.size() % 2 != 0) {
    first += std::to_integer<std::uint32_t>(bytes.back()) << 8;
    second += first;
    first = fold(first);
    second = fold(second);
  }
  const std::uint32_t sum = (fold(second) << 16) | fold(first);
  return sum == stored || swapped_halves(sum) == stored;
}

std::uint32_t lookup3(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t group_bytes = 12;
  std::uint32_t a = 0xDEADBEEF + static_cast<std::uint32_t>(bytes.size());
  std::uint32_t b = a;
  std::uint32_t c = a;
  // Three little-endian words; those of an incomplete group are filled up with zeros.
  const auto add = [&](std::span<const std::byte> group) {
    std::array<std::uint32_t, 3> words{};
    for (std::size_t i = 0; i < group.size(); ++i)
      words[i / 4] |= std::to_integer<std::uint32_t>(group[i]) << (8 * (i % 4));
    a += words[0];
    b += words[1];
    c += words[2];
  };
  if (bytes.empty()) return c;
  for (; bytes.size() > group_bytes; bytes = bytes.subspan(group_bytes)) {
    add(bytes.first(group_bytes));
    a = (a - c) ^ std::rotl(c, 4);
    c += b;
    b = (b - a) ^ std::rotl(a, 6);
    a += c;
    c = (c - b) ^ std::rotl(b, 8);
    b += a;
    a = (a - c) ^ std::rotl(c, 16);
    c += b;
    b = (b - a) ^ std::rotl(a, 19);
    a += c;
    c = (c - b) ^ std::rotl(b, 4);
    b += a;
  }
  add(bytes);
  c = (c ^ b) - std::rotl(b, 14);
  a = (a ^ c) - std::rotl(c, 11);
  b = (b ^ a) - std::rotl(a, 25);
  c = (c ^ b) - std::rotl(b, 16);
  a = (a ^ c) - std::rotl(c, 4);
  b = (b ^ a) - std::rotl(a, 14);
  return (c ^ b) - std::rotl(b, 24);
}

}  // namespace leat::datasets
