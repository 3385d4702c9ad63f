#include "datasets/codecs/lzf.hpp"

#include "base/text.hpp"

#include <cstring>

namespace leat::datasets {

// A control byte: below 32, so many literal bytes and one more follow; else a run of what was written before, of the length in its upper
// three bits (7: a byte more says how much longer) and at the distance in its lower five and the next byte.
std::optional<std::string> expand_lzf(std::span<const std::byte> stored, std::span<std::byte> decoded) {
  constexpr std::size_t literals_max = 32;
  constexpr std::size_t longer = 7;
  std::size_t from = 0;
  std::size_t to = 0;
  const auto next = [&] { return std::to_integer<std::size_t>(stored[from++]); };
  const auto damaged = [&] { return str_cat("damaged LZF data in ", stored.size(), " bytes"); };
  while (from < stored.size()) {
    const std::size_t control = next();
    if (control < literals_max) {
      const std::size_t count = control + 1;
      if (count > stored.size() - from || count > decoded.size() - to) return damaged();
      std::memcpy(decoded.data() + to, stored.data() + from, count);
      from += count;
      to += count;
      continue;
    }
    std::size_t count = control >> 5;
    if (count == longer) {
      if (from == stored.size()) return damaged();
      count += next();
    }
    count += 2;
    if (from == stored.size()) return damaged();
    const std::size_t distance = ((control & 31) << 8 | next()) + 1;
    if (distance > to || count > decoded.size() - to) return damaged();
    // The run may reach into what it writes.
    for (; count != 0; --count, ++to) decoded[to] = decoded[to - distance];
  }
  if (to == decoded.size()) return std::nullopt;
  return str_cat("LZF data become ", to, " bytes where ", decoded.size(), " were expected");
}

}  // namespace leat::datasets
