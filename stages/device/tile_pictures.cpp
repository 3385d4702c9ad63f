#include "stages/device/tile_pictures.hpp"

#include <cstddef>
#include <cstring>

namespace leat::stages {

const device_kernel tile_pictures_kernel = {
    .name = "the kernel that makes mosaics",
    .argument_bytes = sizeof(tiled_batch),
    .run_on_host = [](const void* arguments) noexcept { tile_pictures(*static_cast<const tiled_batch*>(arguments)); }};

void tile_picture(const tiled_batch& how, const picture_tiles& tiles, std::uint32_t tile, void* to,
                  const void* from) noexcept {
  const std::size_t pixel = std::size_t{how.units} * how.unit_bytes;
  const std::size_t plane = std::size_t{how.height} * how.width;
  for (std::uint32_t y = 0; y < how.height; ++y) {
    for (std::uint32_t x = 0; x < how.width; ++x) {
      const tile_source source = source_in_tiles(tiles, x, y, how.height, how.width);
      if (source.tile != tile) continue;
      const std::size_t at = std::size_t{y} * how.width + x;
      for (std::size_t p = 0; p < how.planes; ++p) {
        std::memcpy(static_cast<std::byte*>(to) + (p * plane + at) * pixel,
                    static_cast<const std::byte*>(from) + (p * plane + source.pixel) * pixel, pixel);
      }
    }
  }
}

void tile_pictures(const tiled_batch& pictures) noexcept {
  const std::size_t row_bytes =
      std::size_t{pictures.planes} * pictures.height * pictures.width * pictures.units * pictures.unit_bytes;
  for (std::size_t row = 0; row < pictures.rows; ++row) {
    const picture_tiles& tiles = pictures.tiles[row];
    for (std::uint32_t tile = 0; tile < 4; ++tile) {
      tile_picture(pictures, tiles, tile, static_cast<std::byte*>(pictures.to) + row * row_bytes,
                   static_cast<const std::byte*>(pictures.from) + tiles.row[tile] * row_bytes);
    }
  }
}

}  // namespace leat::stages
