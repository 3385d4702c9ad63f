// Mosaics on the device: the kernel's own source run by an emulation and its host twin, against the definition (leat/mosaic.hpp).
#include "stages/device/tile_pictures.hpp"

#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// What the test is about: the kernel as nvcc gets it.
#include "stages/device/tile_pictures_cuda.cu"  // NOLINT

namespace leat::stages {
namespace {

/// Memory of whole words, as the largest element wants it.
struct tiled_bytes {
  explicit tiled_bytes(std::size_t size) : words(size / 4 + 1, 0xA5A5A5A5), bytes(size) {}
  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  [[nodiscard]] std::vector<std::byte> copy() { return {data(), data() + bytes}; }

  std::vector<std::uint32_t> words;
  std::size_t bytes;
};

std::int32_t int_below(testing::seeded_random& random, std::uint32_t end) {
  return static_cast<std::int32_t>(random.below(end));
}

std::size_t tiled_row_bytes(const tiled_batch& how) {
  return std::size_t{how.planes} * how.height * how.width * how.units * how.unit_bytes;
}

std::vector<std::byte> tiled_by_definition(const tiled_batch& of) {
  std::vector<std::byte> made(of.rows * tiled_row_bytes(of));
  const std::size_t pixel = std::size_t{of.units} * of.unit_bytes;
  const auto at = [&](std::size_t row, std::size_t plane, std::int64_t x, std::int64_t y) {
    return (((row * of.planes + plane) * of.height + static_cast<std::size_t>(y)) * of.width +
            static_cast<std::size_t>(x)) *
           pixel;
  };
  const auto inside = [](std::int64_t place, std::int64_t size) {
    return place < 0 ? size - 1 : place >= size ? 0 : place;
  };
  for (std::size_t row = 0; row < of.rows; ++row) {
    const picture_tiles& tiles = of.tiles[row];
    for (std::int64_t y = 0; y < of.height; ++y) {
      for (std::int64_t x = 0; x < of.width; ++x) {
        const std::size_t k = (x < tiles.x ? 0U : 1U) + (y < tiles.y ? 0U : 2U);
        for (std::size_t plane = 0; plane < of.planes; ++plane) {
          std::memcpy(
              made.data() + at(row, plane, x, y),
              static_cast<const std::byte*>(of.from) +
                  at(tiles.row[k], plane, inside(x + tiles.dx[k], of.width), inside(y + tiles.dy[k], of.height)),
              pixel);
        }
      }
    }
  }
  return made;
}

TEST(tile_pictures, show_the_pixels_of_four_rows_whatever_their_elements) {
  testing::for_each_seed(150, [](std::uint64_t seed) {
    testing::seeded_random random(seed);
    constexpr std::uint32_t element_bytes[] = {1, 2, 4};
    const bool planar = random.below(2) == 0;
    tiled_batch batch{.rows = static_cast<std::uint32_t>(1 + random.below(6)),
                      .planes = planar ? 3U : 1U,
                      .height = static_cast<std::uint32_t>(1 + random.below(20)),
                      .width = static_cast<std::uint32_t>(1 + random.below(30)),
                      .units = planar ? 1U : 3U,
                      .unit_bytes = element_bytes[random.below(3)]};
    std::vector<picture_tiles> tiles(batch.rows);
    for (std::uint32_t row = 0; row < batch.rows; ++row) {
      picture_tiles& each = tiles[row];
      each = {.row = {row, row, row, row},
              .dx = {},
              .dy = {},
              .x = static_cast<std::int32_t>(batch.width),
              .y = static_cast<std::int32_t>(batch.height),
              .padding = {}};
      if (random.below(4) == 0) continue;  // no mosaic
      each.x = int_below(random, batch.width);
      each.y = int_below(random, batch.height);
      for (std::size_t k = 0; k < 4; ++k) {
        each.row[k] = static_cast<std::uint32_t>(random.below(batch.rows));
        // From beyond one edge to beyond the other.
        each.dx[k] = int_below(random, 2 * batch.width + 1) - static_cast<std::int32_t>(batch.width);
        each.dy[k] = int_below(random, 2 * batch.height + 1) - static_cast<std::int32_t>(batch.height);
      }
    }
    tiled_bytes from(batch.rows * tiled_row_bytes(batch));
    testing::fill_seeded(seed, 0, {from.data(), from.bytes});
    batch.from = from.data();
    batch.tiles = tiles.data();
    const std::vector<std::byte> expected = tiled_by_definition(batch);

    tiled_bytes on_host(from.bytes);
    batch.to = on_host.data();
    tile_pictures_kernel.run_on_host(&batch);
    EXPECT_EQ(on_host.copy(), expected);
    tiled_bytes on_device(from.bytes);
    batch.to = on_device.data();
    const std::size_t before = emulated_launches;
    ASSERT_EQ(launch_tile_pictures(batch, {}), 0);
    EXPECT_EQ(emulated_launches - before, 1U);
    EXPECT_EQ(on_device.copy(), expected);
  });
}

TEST(tile_pictures, are_not_launched_for_nothing_and_refuse_other_elements) {
  const std::size_t before = emulated_launches;
  EXPECT_EQ(launch_tile_pictures({}, {}), 0);
  EXPECT_EQ(launch_tile_pictures({.rows = 1, .height = 2, .width = 2, .unit_bytes = 8}, {}), cudaErrorInvalidValue);
  EXPECT_EQ(emulated_launches, before);
  const std::size_t loads = emulated_loads;
  EXPECT_EQ(load_tile_pictures(), 0);
  EXPECT_EQ(emulated_loads - loads, 3U) << "each kernel is loaded before the loop";
}

}  // namespace
}  // namespace leat::stages
