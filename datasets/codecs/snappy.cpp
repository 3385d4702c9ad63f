#include "datasets/codecs/snappy.hpp"

#include "base/text.hpp"

#include <bit>
#include <cstring>

namespace leat::datasets {
namespace {

// Bytes that lie `distance` behind, which may be fewer than are copied: then they repeat.
void copy_within(std::byte* to, std::size_t distance, std::size_t count, std::size_t room) {
  const std::byte* from = to - distance;
  constexpr std::size_t step = 16;
  if (distance >= step && room >= count + step) {
    for (std::size_t done = 0; done < count; done += step) std::memcpy(to + done, from + done, step);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace

std::optional<std::string> expand_snappy(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  static_assert(std::endian::native == std::endian::little);
  const std::byte* from = stored.data();
  const std::byte* const end = from + stored.size();
  const auto damaged = [&] {
    return str_cat("damaged snappy data in ", stored.size(), " bytes, at ", from - stored.data());
  };
  const auto number = [&](std::size_t bytes) {
    std::uint32_t value = 0;
    std::memcpy(&value, from, bytes);
    from += bytes;
    return value;
  };
  std::uint64_t size = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (from == end || shift > 28) return damaged();
    const std::uint32_t byte = number(1);
    size |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) break;
  }
  if (size != decoded.size()) {
    return str_cat("snappy data become ", size, " bytes where ", decoded.size(), " were expected");
  }
  std::byte* to = decoded.data();
  std::byte* const to_end = to + decoded.size();
  while (from != end) {
    const std::uint32_t tag = number(1);
    const auto left = static_cast<std::size_t>(end - from);
    const auto room = static_cast<std::size_t>(to_end - to);
    if ((tag & 3U) == 0) {  // bytes as they are
      std::size_t count = (tag >> 2) + 1;
      if (count > 60) {
        const std::size_t bytes = count - 60;
        if (left < bytes) return damaged();
        count = std::size_t{number(bytes)} + 1;
      }
      if (count > static_cast<std::size_t>(end - from) || count > room) return damaged();
      std::memcpy(to, from, count);
      from += count;
      to += count;
      continue;
    }
    std::size_t count = (tag >> 2) + 1;
    std::size_t distance = 0;
    const std::size_t bytes = (tag & 3U) == 3 ? 4 : tag & 3U;
    if (left < bytes) return damaged();
    distance = number(bytes);
    if ((tag & 3U) == 1) {
      count = ((tag >> 2) & 7U) + 4;
      distance |= std::size_t{tag >> 5} << 8;
    }
    if (distance == 0 || distance > static_cast<std::size_t>(to - decoded.data()) || count > room) return damaged();
    copy_within(to, distance, count, room);
    to += count;
  }
  if (to != to_end) return damaged();
  return std::nullopt;
}

}  // namespace leat::datasets
