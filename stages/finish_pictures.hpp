// The last of a picture's stages where it is done on the device: u8 pixels, which are a quarter of the bytes on the bus, to
// what the trainer asked for. The same bits as store_line() on the host (docs/design.md, "What a pixel is"):
//
//   f32 = round(round(u8 * scale[c]) + bias[c])   two roundings, never a fused multiply-add
//   f16, bf16 = that f32, rounded to nearest even
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <cstdint>

namespace leat::pixels {
struct store;
}

namespace leat::stages {

/// A batch of pictures, whole.
///   from    u8 [rows, height, width, 3], aligned to 16 bytes
///   to      `type` [rows, 3, height, width] (nchw) or [rows, height, width, 3] (nhwc), aligned to 16 bytes; no part of it
///           is part of `from`
///   flips   u8 [rows]: not 0 where a picture is to be mirrored left to right; null where none is
struct picture_batch {
  const std::uint8_t* from = nullptr;
  void* to = nullptr;
  const std::uint8_t* flips = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  dtype type = dtype::f32;  ///< f32, f16 or bf16
  layout order = layout::nchw;
  float scale[3] = {1, 1, 1};
  float bias[3] = {0, 0, 0};
};

/// A batch that becomes what `how` says, still without its rows and its memory.
[[nodiscard]] picture_batch pictures_of(const pixels::store& how, std::uint32_t height, std::uint32_t width) noexcept;

/// On the host, pixel after pixel as the rule is written: what the kernel is held against.
void finish_pictures(const picture_batch& pictures) noexcept;

/// One launch for the whole batch, in the order of `in`. All pointers are the device's.
///   returns   0, or the cudaError_t of the launch
int launch_finish_pictures(const picture_batch& pictures, stream in) noexcept;

}  // namespace leat::stages
