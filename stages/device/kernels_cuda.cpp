#include "stages/device/kernels_cuda.hpp"

#include "stages/device/decode_photos.hpp"
#include "stages/device/finish_pictures.hpp"
#include "stages/device/prepare_pictures.hpp"
#include "stages/device/tile_pictures.hpp"

namespace leat::stages {

std::span<const cuda_kernel> all_kernels() noexcept {
  static constexpr cuda_kernel all[] = {
      {&finish_pictures_kernel, &load_finish_pictures,
       [](const void* arguments, stream in) noexcept {
         return launch_finish_pictures(*static_cast<const picture_batch*>(arguments), in);
       }},
      {&prepare_pictures_kernel, &load_prepare_pictures,
       [](const void* arguments, stream in) noexcept {
         return launch_prepare_pictures(*static_cast<const picture_preparation*>(arguments), in);
       }},
      {&decode_photos_kernel, &load_decode_photos,
       [](const void* arguments, stream in) noexcept {
         return launch_decode_photos(*static_cast<const photo_batch*>(arguments), in);
       }},
      {&tile_pictures_kernel, &load_tile_pictures, [](const void* arguments, stream in) noexcept {
         return launch_tile_pictures(*static_cast<const tiled_batch*>(arguments), in);
       }}};
  return all;
}

}  // namespace leat::stages
