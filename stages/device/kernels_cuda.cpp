#include "stages/device/kernels_cuda.hpp"

#include "stages/device/decode_photos.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/gather_rows.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/tile_pictures.hpp"

namespace leat::stages {

std::span<const cuda_kernel> all_kernels() noexcept {
  static constexpr cuda_kernel all[] = {
      {&finish_pictures_kernel, &load_finish_pictures, &launch_of<picture_batch, &launch_finish_pictures>},
      {&prepare_pictures_kernel, &load_prepare_pictures, &launch_of<picture_preparation, &launch_prepare_pictures>},
      {&decode_photos_kernel, &load_decode_photos, &launch_of<photo_batch, &launch_decode_photos>},
      {&tile_pictures_kernel, &load_tile_pictures, &launch_of<tiled_batch, &launch_tile_pictures>},
      {&gather_rows_kernel, &load_gather_rows, &launch_of<gathered_pieces, &launch_gather_rows>}};
  return all;
}

}  // namespace leat::stages
