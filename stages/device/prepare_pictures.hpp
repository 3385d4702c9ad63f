// Steps of colour that look at the whole picture, on a device: those of each row's record up to the last of them. What is left is done by the
// kernel that finishes pictures (finish_pictures.hpp).
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include "stages/device/device_kernel.hpp"
#include "stages/device/picture_program.hpp"

#include <leat/stream.hpp>

#include <cstdint>

namespace leat::stages {

/// A batch of pictures. All memory is the device's, aligned to 16 bytes.
///   from       u8 [rows, height, width, 3]
///   programs   records as the host wrote them, `program_bytes` apart
///   records    copies, `record_bytes` apart, which is program_bytes and program_tables_bytes for each autocontrast and equalize
///   made       as `from`: the pictures whose record says `moved`; null where no step looks at neighbours or warps
///   between    as many numbers of 16 bits; likewise
///   noise      `noise_values` for each row, of those that are erased by noise (noise_threads.hpp)
struct picture_preparation {
  const std::uint8_t* from = nullptr;
  const std::uint8_t* programs = nullptr;
  std::uint8_t* records = nullptr;
  std::uint8_t* made = nullptr;
  std::uint16_t* between = nullptr;
  float* noise = nullptr;
  std::uint32_t program_bytes = 0;
  std::uint32_t record_bytes = 0;
  std::uint32_t rows = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t noise_values = 0;
};

/// Arguments: a picture_preparation.
extern const device_kernel prepare_pictures_kernel;

/// On the host: the device's own code (picture_threads.hpp), one thread after the other.
void prepare_pictures(const picture_preparation& pictures) noexcept;

/// Of prepare_pictures_kernel, as kernels_cuda.hpp says. One launch for the whole batch.
int load_prepare_pictures() noexcept;
int launch_prepare_pictures(const picture_preparation& pictures, stream in) noexcept;

}  // namespace leat::stages
