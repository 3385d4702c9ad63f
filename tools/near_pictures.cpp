#include "tools/near_pictures.hpp"

#include "datasets/files/parallel.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

namespace leat::tools {
namespace {

// Squared deviation of the brightness, of 255, below which a picture is of one colour: what noise and JPEG's rounding make.
constexpr std::uint64_t variance_least = 9;

// What [from, from + length) has of the cells of this length: visit(cell, units).
template <class Visit>
void share(std::size_t from, std::size_t length, std::size_t cell_length, const Visit& visit) {
  for (std::size_t at = from; at < from + length;) {
    const std::size_t cell = at / cell_length;
    const std::size_t end = std::min(from + length, (cell + 1) * cell_length);
    visit(cell, end - at);
    at = end;
  }
}

// Brightness in each cell of a grid. A pixel that an edge goes through counts in both cells, by its parts: where the edges fall
// must not depend on how large the picture is. In units of a pixel's width / Columns and its height / Rows, all cells are of one size.
// Lines are added to those of the grid first, which is vector code.
template <std::size_t Columns, std::size_t Rows>
std::array<std::uint64_t, Columns * Rows> cells_of(std::span<const std::uint8_t> bright, std::size_t width,
                                                   std::size_t height) {
  std::vector<std::uint32_t> lines(Rows * width);  // 255 x 65,535 lines at most
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* const from = bright.data() + y * width;
    share(y * Rows, Rows, height, [&](std::size_t row, std::size_t units) {
      std::uint32_t* const line = lines.data() + row * width;
      const auto times = static_cast<std::uint16_t>(units);  // Rows at most
      for (std::size_t x = 0; x < width; ++x) line[x] += static_cast<std::uint16_t>(from[x] * times);
    });
  }
  std::array<std::uint64_t, Columns * Rows> cells{};
  for (std::size_t x = 0; x < width; ++x) {
    share(x * Columns, Columns, width, [&](std::size_t column, std::size_t units) {
      for (std::size_t row = 0; row < Rows; ++row) {
        cells[row * Columns + column] += std::uint64_t{lines[row * width + x]} * units;
      }
    });
  }
  return cells;
}

/// A key, and the first picture that has it.
struct first_with {
  picture_key key;
  std::size_t picture = 0;
  std::size_t number = 0;  ///< of the key, in order
};

/// Among earlier pictures, the nearest one.
struct nearest {
  unsigned bits = std::numeric_limits<unsigned>::max();
  std::size_t picture = 0;

  void offer(unsigned other_bits, std::size_t other) noexcept {
    if (std::pair(other_bits, other) < std::pair(bits, picture)) *this = {other_bits, other};
  }
};

// Bits of `across` from one band to the next: together they are all 64.
std::uint64_t band_of(std::uint64_t across, unsigned band, unsigned bands) noexcept {
  const unsigned begin = 64 * band / bands;
  const unsigned end = 64 * (band + 1) / bands;
  const std::uint64_t shifted = across >> begin;
  return end - begin == 64 ? shifted : shifted & ((std::uint64_t{1} << (end - begin)) - 1);
}

}  // namespace

std::optional<picture_key> key_of(std::span<const std::byte> rgb, std::size_t width, std::size_t height) {
  const std::size_t pixels = width * height;
  assert(pixels != 0 && rgb.size() >= 3 * pixels);
  std::vector<std::uint8_t> bright(pixels);
  for (std::size_t i = 0; i < pixels; ++i) {
    // BT.601, in 256ths.
    bright[i] = static_cast<std::uint8_t>((77 * std::to_integer<std::uint32_t>(rgb[3 * i]) +
                                           150 * std::to_integer<std::uint32_t>(rgb[3 * i + 1]) +
                                           29 * std::to_integer<std::uint32_t>(rgb[3 * i + 2])) >>
                                          8);
  }
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  // So many pixels' sums fit 32 bits, which is vector code.
  constexpr std::size_t together = 65'536;
  for (std::size_t begin = 0; begin < pixels; begin += together) {
    std::uint32_t sum_of_some = 0;
    std::uint32_t squares_of_some = 0;
    for (std::size_t i = begin; i < std::min(pixels, begin + together); ++i) {
      sum_of_some += bright[i];
      squares_of_some += static_cast<std::uint32_t>(bright[i]) * bright[i];
    }
    sum += sum_of_some;
    squares += squares_of_some;
  }
  if (squares * pixels - sum * sum < variance_least * pixels * pixels) return std::nullopt;
  picture_key key;
  const auto across = cells_of<9, 8>(bright, width, height);
  const auto down = cells_of<8, 9>(bright, width, height);
  for (std::size_t row = 0; row < 8; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      const std::uint64_t bit = std::uint64_t{1} << (row * 8 + column);
      if (across[row * 9 + column] < across[row * 9 + column + 1]) key.across |= bit;
      if (down[row * 8 + column] < down[(row + 1) * 8 + column]) key.down |= bit;
    }
  }
  return key;
}

unsigned bits_between(const picture_key& a, const picture_key& b) noexcept {
  return static_cast<unsigned>(std::max(std::popcount(a.across ^ b.across), std::popcount(a.down ^ b.down)));
}

std::vector<near_picture> find_near(std::span<const picture_key> keys, std::size_t asked_from, unsigned bits_max,
                                    unsigned threads) {
  assert(bits_max <= near_bits_max);
  std::vector<std::size_t> by_key(keys.size());
  std::iota(by_key.begin(), by_key.end(), std::size_t{0});
  std::sort(by_key.begin(), by_key.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(keys[a], a) < std::pair(keys[b], b); });
  std::vector<first_with> firsts;
  for (const std::size_t each : by_key) {
    if (firsts.empty() || firsts.back().key != keys[each]) firsts.push_back({keys[each], each, firsts.size()});
  }

  // Behind those that a picture is compared with.
  const auto before = [&](std::size_t picture) { return asked_from == 0 ? picture : asked_from; };

  // In one band each key is in one run of equals, so that no two threads write to one.
  std::vector<nearest> found(firsts.size());
  const unsigned bands = bits_max + 1;
  std::vector<std::size_t> runs;
  for (unsigned band = 0; bits_max != 0 && band < bands; ++band) {
    const auto value = [&](const first_with& first) { return band_of(first.key.across, band, bands); };
    // Themselves, and not numbers of them: keys of a run are read one after another.
    std::sort(firsts.begin(), firsts.end(),
              [&](const first_with& a, const first_with& b) { return value(a) < value(b); });
    runs.clear();
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      if (i == 0 || value(firsts[i]) != value(firsts[i - 1])) runs.push_back(i);
    }
    runs.push_back(firsts.size());
    constexpr std::size_t runs_together = 64;
    const std::size_t portions = (runs.size() - 1 + runs_together - 1) / runs_together;
    datasets::for_each_parallel(portions, threads, [&](std::size_t portion) {
      const std::size_t end = std::min((portion + 1) * runs_together, runs.size() - 1);
      for (std::size_t run = portion * runs_together; run < end; ++run) {
        for (std::size_t i = runs[run]; i < runs[run + 1]; ++i) {
          const first_with& one = firsts[i];
          for (std::size_t k = i + 1; k < runs[run + 1]; ++k) {
            const first_with& other = firsts[k];
            const unsigned bits = bits_between(one.key, other.key);
            if (bits > bits_max) continue;
            if (other.picture < before(one.picture)) found[one.number].offer(bits, other.picture);
            if (one.picture < before(other.picture)) found[other.number].offer(bits, one.picture);
          }
        }
      }
    });
  }

  std::sort(firsts.begin(), firsts.end(), [](const first_with& a, const first_with& b) { return a.number < b.number; });

  std::vector<near_picture> all;
  std::size_t first = 0;
  for (std::size_t i = 0; i < by_key.size(); ++i) {
    const std::size_t picture = by_key[i];
    if (firsts[first].key != keys[picture]) ++first;
    if (picture < asked_from) continue;
    if (firsts[first].picture < before(picture)) {
      all.push_back({picture, firsts[first].picture, 0});
    } else if (found[first].bits <= bits_max) {
      all.push_back({picture, found[first].picture, found[first].bits});
    }
  }
  std::sort(all.begin(), all.end(), [](const near_picture& a, const near_picture& b) { return a.picture < b.picture; });
  return all;
}

}  // namespace leat::tools
