// Photo packs to u8 pixels on a device: what libjpeg-turbo and the resampler do on the host, with the same bits. Behind it come
// the pictures' own finish (finish_pictures.hpp) as behind rows that were decoded on the host.
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include "stages/device/device_kernel.hpp"
#include "stages/device/photo_batch.hpp"

#include <leat/stream.hpp>

namespace leat::stages {

/// Arguments: a photo_batch.
extern const device_kernel decode_photos_kernel;

/// On the host: the device's own code (photo_threads.hpp), one thread after the other.
void decode_photos(const photo_batch& photos) noexcept;

/// Of decode_photos_kernel, as kernels_cuda.hpp says. Four launches: rows of MCUs to samples, samples to pixels, and the two passes of the
/// resampling. All pointers are the device's.
int load_decode_photos() noexcept;
int launch_decode_photos(const photo_batch& photos, stream in) noexcept;

}  // namespace leat::stages
