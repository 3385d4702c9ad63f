// clahe: the histogram of each tile is equalised, as far as the clip lets it, and pixels between tiles take some of each.
#include "stages/pixels/operations/operation.hpp"

#include <cmath>
#include <cstring>
#include <new>

namespace leat::pixels {
namespace {

constexpr int tiles_max = 64;

// Of red, green and blue, in 1/256, rounded.
inline int luma_of(int r, int g, int b) noexcept { return (77 * r + 150 * g + 29 * b + 128) >> 8; }

//   source   OpenCV 4, clahe.cpp: how clipped values are spread, the table, and which tiles a pixel takes
struct clahe_rules {
  using step = transforms::clahe;
  static constexpr bool in_place = true;

  static void check(const step& what, number_check& to) {
    to.range("clip", what.clip, 0, 1000);
    for (const int each : {what.rows, what.columns}) {
      if (each < 1 || each > tiles_max) to.refuse("rows and columns of tiles must be 1..64");
    }
  }
  static drawn_numbers draw(const step& what, random_draws& draws) { return {drawn_of(what.clip, draws)}; }
  // Where a pixel lies between the middles of two tiles.
  struct between {
    int first;
    int second;
    float share;  // of the second

    between(int at, int side, int tiles) noexcept {
      const float place = static_cast<float>(at) / static_cast<float>(side) - 0.5F;
      const float whole = std::floor(place);
      share = place - whole;
      first = std::clamp(static_cast<int>(whole), 0, tiles - 1);
      second = std::clamp(static_cast<int>(whole) + 1, 0, tiles - 1);
    }
  };

  static std::size_t scratch_bytes(const step& what, int height, int width) {
    return static_cast<std::size_t>(width) * sizeof(between) +
           static_cast<std::size_t>(height) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(what.rows) * static_cast<std::size_t>(what.columns) * 256;
  }

  // Clipped, and spread anew.
  static void limit(std::array<int, 256>& counts, int most) noexcept {
    int cut = 0;
    for (int& count : counts) {
      if (count <= most) continue;
      cut += count - most;
      count = most;
    }
    const int each = cut / 256;
    int rest = cut - each * 256;
    for (int& count : counts) count += each;
    if (rest == 0) return;
    const int step = std::max(256 / rest, 1);
    for (int i = 0; i < 256 && rest > 0; i += step, --rest) ++counts[static_cast<std::size_t>(i)];
  }
  static void apply(const step& what, const operation_run& run) {
    const int height = run.to.height;
    const int width = run.to.width;
    auto* const places = static_cast<between*>(run.scratch);
    auto* const luma = reinterpret_cast<std::uint8_t*>(places + width);
    std::uint8_t* const tables = luma + static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
    const auto luma_at = [&](int y) { return luma + static_cast<std::size_t>(y) * static_cast<std::size_t>(width); };
    for (int y = 0; y < height; ++y) {
      const std::uint8_t* const line = run.to.line(y);
      std::uint8_t* const to = luma_at(y);
      for (int x = 0; x < width; ++x) {
        to[x] = static_cast<std::uint8_t>(luma_of(line[x], line[x + width], line[x + 2 * width]));
      }
    }
    // Tiles are alike; the last ones continue as a mirror image.
    const int high = (height + what.rows - 1) / what.rows;
    const int wide = (width + what.columns - 1) / what.columns;
    const int area = high * wide;
    const int most = std::max(1, static_cast<int>(run.numbers[0] * area / 256));
    const float scale = 255.0F / static_cast<float>(area);
    for (int row = 0; row < what.rows; ++row) {
      for (int column = 0; column < what.columns; ++column) {
        std::array<int, 256> counts{};
        for (int y = row * high; y < (row + 1) * high; ++y) {
          const std::uint8_t* const line = luma_at(mirrored(y, height));
          const int left = column * wide;
          for (int x = left; x < left + wide; ++x) ++counts[line[x < width ? x : mirrored(x, width)]];
        }
        if (run.numbers[0] > 0) limit(counts, most);
        std::uint8_t* const table = tables + (row * what.columns + column) * 256;
        int sum = 0;
        for (std::size_t v = 0; v < 256; ++v) {
          sum += counts[v];
          table[v] = static_cast<std::uint8_t>(std::min(std::nearbyint(static_cast<float>(sum) * scale), 255.0F));
        }
      }
    }
    for (int x = 0; x < width; ++x) ::new (static_cast<void*>(places + x)) between(x, wide, what.columns);
    for (int y = 0; y < height; ++y) {
      const between down(y, high, what.rows);
      const std::uint8_t* const upper = tables + down.first * what.columns * 256;
      const std::uint8_t* const lower = tables + down.second * what.columns * 256;
      const std::uint8_t* const from = luma_at(y);
      std::uint8_t* const line = run.to.line(y);
      for (int x = 0; x < width; ++x) {
        const between& across = places[x];
        const int v = from[x];
        const auto mixed = [&](const std::uint8_t* of) {
          return static_cast<float>(of[across.first * 256 + v]) * (1 - across.share) +
                 static_cast<float>(of[across.second * 256 + v]) * across.share;
        };
        const float made = mixed(upper) * (1 - down.share) + mixed(lower) * down.share;
        const int moved = static_cast<int>(to_value(made)) - v;
        for (int c = 0; c < 3; ++c) {
          std::uint8_t& value = line[c * width + x];
          value = static_cast<std::uint8_t>(std::clamp(value + moved, 0, 255));
        }
      }
    }
  }
  static transform drawn(const step& what, const drawn_numbers& n) {
    return step{{n[0], n[0]}, what.rows, what.columns};
  }
};

}  // namespace

operation clahe_operation() { return make_operation<clahe_rules>(); }

}  // namespace leat::pixels
