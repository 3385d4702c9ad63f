#include "datasets/codecs/element_bytes.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cstring>

namespace leat::datasets {
namespace {

// The number of bytes is known to the compiler, which interleaves the rows in registers.
template <std::size_t Bytes>
void interleave(std::size_t elements, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < elements; ++i) {
    for (std::size_t k = 0; k < Bytes; ++k) to[i * Bytes + k] = from[k * elements + i];
  }
}

// Elements of any size, some at a time, so that what is written stays in the cache.
void interleave(std::size_t bytes, std::size_t elements, const std::byte* from, std::byte* to) {
  constexpr std::size_t at_once = 256;
  for (std::size_t first = 0; first < elements; first += at_once) {
    const std::size_t end = std::min(elements, first + at_once);
    for (std::size_t k = 0; k < bytes; ++k) {
      for (std::size_t i = first; i < end; ++i) to[i * bytes + k] = from[k * elements + i];
    }
  }
}

template <std::size_t Bytes>
void reverse(std::span<const std::byte> from, std::byte* to) {
  for (std::size_t at = 0; at < from.size(); at += Bytes) {
    for (std::size_t k = 0; k < Bytes; ++k) to[at + k] = from[at + Bytes - 1 - k];
  }
}

std::optional<std::string> check_sizes(std::span<const std::byte> from, std::span<const std::byte> to) {
  if (from.size() == to.size()) return std::nullopt;
  return str_cat("a chunk of ", from.size(), " bytes where ", to.size(), " were expected");
}

}  // namespace

std::optional<std::string> unshuffle(std::uint32_t element_bytes, std::span<const std::byte> from,
                                     std::span<std::byte> to) {
  if (auto reason = check_sizes(from, to)) return reason;
  if (element_bytes == 0) return "a shuffle of elements without bytes";
  const std::size_t elements = from.size() / element_bytes;
  const std::size_t whole = elements * element_bytes;
  switch (element_bytes) {
    case 2:
      interleave<2>(elements, from.data(), to.data());
      break;
    case 4:
      interleave<4>(elements, from.data(), to.data());
      break;
    case 8:
      interleave<8>(elements, from.data(), to.data());
      break;
    default:
      interleave(element_bytes, elements, from.data(), to.data());
  }
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(whole), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(whole));
  return std::nullopt;
}

std::optional<std::string> swap_elements(std::uint32_t element_bytes, std::span<const std::byte> from,
                                         std::span<std::byte> to) {
  if (auto reason = check_sizes(from, to)) return reason;
  if (element_bytes == 0 || from.size() % element_bytes != 0) {
    return str_cat(from.size(), " bytes are no whole number of elements of ", element_bytes);
  }
  switch (element_bytes) {
    case 2:
      reverse<2>(from, to.data());
      return std::nullopt;
    case 4:
      reverse<4>(from, to.data());
      return std::nullopt;
    case 8:
      reverse<8>(from, to.data());
      return std::nullopt;
    default:
      for (std::size_t at = 0; at < from.size(); at += element_bytes) {
        std::reverse_copy(from.begin() + static_cast<std::ptrdiff_t>(at),
                          from.begin() + static_cast<std::ptrdiff_t>(at + element_bytes),
                          to.begin() + static_cast<std::ptrdiff_t>(at));
      }
      return std::nullopt;
  }
}

}  // namespace leat::datasets
