// Finished pictures to mosaics of four of them, on a device: each pixel is looked up in one of the batch's rows. As write_tile() on the host
// (mosaic.hpp).
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include "stages/device/device_kernel.hpp"

#include <leat/stream.hpp>

#include <cstdint>

#ifdef __CUDACC__
#define LEAT_OF_TILES __device__ __forceinline__
#else
#define LEAT_OF_TILES inline
#endif

namespace leat::stages {

/// Of a row: its upper left, upper right, lower left and lower right tile, which meet at (x, y). A row that is no mosaic is its own upper left
/// tile, and (x, y) is its lower right corner.
///   row      whose pixels a tile shows
///   dx, dy   pixel (x, y) of the tile is pixel (x + dx, y + dy) there. What lies left of that row is as its right edge, above it as its lower
///            one, and the other way round
struct picture_tiles {
  std::uint32_t row[4];
  std::int32_t dx[4];
  std::int32_t dy[4];
  std::int32_t x;
  std::int32_t y;
  std::uint32_t padding[2];
};

/// A batch of rows of `planes` planes, height x width pixels of `units` elements of `unit_bytes` bytes: 1, 2 or 4.
///   from    [rows], aligned to 4 bytes
///   to      likewise; no part of it is part of `from`
///   tiles   [rows]
struct tiled_batch {
  const void* from = nullptr;
  void* to = nullptr;
  const picture_tiles* tiles = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t planes = 1;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t units = 1;
  std::uint32_t unit_bytes = 1;
};

/// Where a pixel of a mosaic comes from.
struct tile_source {
  std::uint32_t tile;
  std::uint32_t pixel;  // of a plane
};

[[nodiscard]] LEAT_OF_TILES tile_source source_in_tiles(const picture_tiles& tiles, std::uint32_t x, std::uint32_t y,
                                                        std::uint32_t height, std::uint32_t width) {
  const bool right = static_cast<std::int32_t>(x) >= tiles.x;
  const bool below = static_cast<std::int32_t>(y) >= tiles.y;
  const std::uint32_t tile = (right ? 1U : 0U) + (below ? 2U : 0U);
  const std::int32_t from_x = static_cast<std::int32_t>(x) + tiles.dx[tile];
  const std::int32_t from_y = static_cast<std::int32_t>(y) + tiles.dy[tile];
  const auto inside = [](std::int32_t at, std::uint32_t end) {
    return at < 0 ? end - 1 : static_cast<std::uint32_t>(at) >= end ? 0 : static_cast<std::uint32_t>(at);
  };
  return {tile, inside(from_y, height) * width + inside(from_x, width)};
}

/// Arguments: a tiled_batch.
extern const device_kernel tile_pictures_kernel;

/// On the host, pixel after pixel.
void tile_pictures(const tiled_batch& pictures) noexcept;

/// One tile of a row.
///   to, from   where the row begins, and the row that the tile shows
void tile_picture(const tiled_batch& how, const picture_tiles& tiles, std::uint32_t tile, void* to,
                  const void* from) noexcept;

/// Of tile_pictures_kernel, as kernels_cuda.hpp says. One launch for the whole batch; all pointers are the device's.
int load_tile_pictures() noexcept;
int launch_tile_pictures(const tiled_batch& pictures, stream in) noexcept;

}  // namespace leat::stages
