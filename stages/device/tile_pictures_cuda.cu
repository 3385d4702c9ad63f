// tile_pictures() on the GPU: one launch, a thread for each element of a row. It is bound by memory.
#include "stages/device/tile_pictures.hpp"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace leat::stages {
namespace {

constexpr unsigned tile_threads = 256;
constexpr unsigned tile_grid_rows_max = 65535;

template <class Unit>
__global__ void __launch_bounds__(tile_threads) tile_units(const __grid_constant__ tiled_batch pictures) {
  const unsigned plane = pictures.height * pictures.width;
  const unsigned row_units = pictures.planes * plane * pictures.units;
  const unsigned at = blockIdx.x * tile_threads + threadIdx.x;
  if (at >= row_units) return;
  const unsigned pixel = at / pictures.units;
  const unsigned unit = at - pixel * pictures.units;
  const unsigned in_planes = pixel / plane * plane;
  const unsigned y = (pixel - in_planes) / pictures.width;
  const unsigned x = pixel - in_planes - y * pictures.width;
  const auto* const from = static_cast<const Unit*>(pictures.from);
  auto* const to = static_cast<Unit*>(pictures.to);
  for (unsigned row = blockIdx.y; row < pictures.rows; row += gridDim.y) {
    const picture_tiles& tiles = pictures.tiles[row];
    const tile_source source = source_in_tiles(tiles, x, y, pictures.height, pictures.width);
    to[std::size_t{row} * row_units + at] =
        from[std::size_t{tiles.row[source.tile]} * row_units + (in_planes + source.pixel) * pictures.units + unit];
  }
}

// Not <<<>>>: this answers for the one launch, and leaves the trainer's last error to the trainer.
template <class Unit>
int launch_tiles(const tiled_batch& pictures, stream in) {
  const std::size_t threads = std::size_t{pictures.planes} * pictures.height * pictures.width * pictures.units;
  cudaLaunchConfig_t how{};
  how.gridDim.x = static_cast<unsigned>((threads + tile_threads - 1) / tile_threads);
  how.gridDim.y = pictures.rows < tile_grid_rows_max ? pictures.rows : tile_grid_rows_max;
  how.blockDim.x = tile_threads;
  how.stream = in.handle();
  return static_cast<int>(cudaLaunchKernelEx(&how, &tile_units<Unit>, pictures));
}

template <class Unit>
cudaError_t load_tiles() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, &tile_units<Unit>);
}

}  // namespace

int load_tile_pictures() noexcept {
  cudaError_t status = load_tiles<std::uint8_t>();
  if (status == cudaSuccess) status = load_tiles<std::uint16_t>();
  return static_cast<int>(status == cudaSuccess ? load_tiles<std::uint32_t>() : status);
}

int launch_tile_pictures(const tiled_batch& pictures, stream in) noexcept {
  if (pictures.rows == 0 || pictures.height == 0 || pictures.width == 0) return 0;
  switch (pictures.unit_bytes) {
    case 1:
      return launch_tiles<std::uint8_t>(pictures, in);
    case 2:
      return launch_tiles<std::uint16_t>(pictures, in);
    case 4:
      return launch_tiles<std::uint32_t>(pictures, in);
    default:
      return static_cast<int>(cudaErrorInvalidValue);
  }
}

}  // namespace leat::stages
