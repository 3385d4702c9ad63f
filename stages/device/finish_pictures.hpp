// The last of a picture's stages where it is done on the device: u8 pixels, which are a quarter of the bytes on the bus, to
// what the trainer asked for. The same bits as store_line() on the host (docs/internals/pixels.md):
//
//   f32 = round(round(u8 * scale[c]) + bias[c])   two roundings, never a fused multiply-add
//   f16, bf16 = that f32, rounded to nearest even
//
// and, where the rows of a batch are mixed with one another, of that element and its like in the partner's picture
//
//   mixed = round(round(own * element) + round(other * partner's))   in f32, then rounded to the type again
//
// Steps of colour that look at no other pixel are done before, in the same launch, and what is erased after them (picture_program.hpp).
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include "stages/device/device_kernel.hpp"
#include "stages/device/picture_program.hpp"

#include <leat/stream.hpp>
#include <leat/tensor.hpp>

#include <cstdint>

namespace leat::pixels {
struct store;
}

namespace leat::stages {

/// How a row is mixed with its partner's, which is the next row; the first one is the last one's.
///   own, other   what both are multiplied with; other = 0 leaves the row as it is
///   left ...     inside this box, of which right and bottom are outside, the partner's pixels take the place of the row's
struct mix_row {
  float own = 1;
  float other = 0;
  std::uint16_t left = 0;
  std::uint16_t top = 0;
  std::uint16_t right = 0;
  std::uint16_t bottom = 0;
};

/// The most u8 elements that a picture may have, so that a kernel's numbers, which run over its end by what a block of
/// threads does, stay within 32 bits. Rows are counted in 64.
inline constexpr std::uint64_t picture_elements_max = std::uint64_t{1} << 31;

[[nodiscard]] constexpr bool fits_a_picture(std::uint64_t height, std::uint64_t width) noexcept {
  return height == 0 || width <= picture_elements_max / 3 / height;
}

/// A batch of pictures, whole. A picture has no more than picture_elements_max.
///   from    u8 [rows, height, width, 3], aligned to 16 bytes
///   to      `type` [rows, 3, height, width] (nchw) or [rows, height, width, 3] (nhwc), aligned to 16 bytes; no part of it
///           is part of `from`
///   flips   u8 [rows]: not 0 where a picture is to be mirrored left to right; null where none is
///   mixed   [rows], aligned to 4 bytes; null where rows stay by themselves
///   programs   records, `program_bytes` apart, aligned to 16; null where there is nothing else to do. They say what is mirrored then, and
///              flips is null. Steps that look at the picture have been done (prepare_pictures.hpp)
///   moved      as `from`: pixels of the rows whose record says so
///   erased     elements of what is erased
///   noise      where it is erased by noise, `noise_values` for each row
struct picture_batch {
  const std::uint8_t* from = nullptr;
  void* to = nullptr;
  const std::uint8_t* flips = nullptr;
  const mix_row* mixed = nullptr;
  std::uint32_t rows = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  dtype type = dtype::f32;  ///< f32, f16 or bf16; with programs also u8, which is not mixed
  layout order = layout::nchw;
  float scale[3] = {1, 1, 1};
  float bias[3] = {0, 0, 0};
  const std::uint8_t* programs = nullptr;
  const std::uint8_t* moved = nullptr;
  const float* noise = nullptr;
  std::uint32_t program_bytes = 0;
  std::uint32_t noise_values = 0;
  float erased[3] = {0, 0, 0};
};

/// A batch that becomes what `how` says, still without its rows and its memory.
[[nodiscard]] picture_batch pictures_of(const pixels::store& how, std::uint32_t height, std::uint32_t width) noexcept;

/// Arguments: a picture_batch.
extern const device_kernel finish_pictures_kernel;

/// With which row it is mixed. (The kernel has its own: it is compiled by another compiler.)
[[nodiscard]] constexpr std::uint32_t partner_of(std::uint32_t row, std::uint32_t rows) noexcept {
  return row + 1 == rows ? 0 : row + 1;
}

/// On the host, pixel after pixel as the rule is written: what the kernel is held against.
void finish_pictures(const picture_batch& pictures) noexcept;

/// One row of them, by itself: not mixed.
///   to   where the row begins
void finish_picture(const picture_batch& pictures, std::uint32_t row, void* to) noexcept;

/// Mixes one finished row with its partner's, in place.
///   how             whose type, order, height and width are looked at
///   row, partner    where the two begin; the partner's is only read
void mix_picture(const picture_batch& how, const mix_row& mixed, void* row, const void* partner) noexcept;

/// Of finish_pictures_kernel, as kernels_cuda.hpp says. One launch for the whole batch; all pointers are the device's.
int load_finish_pictures() noexcept;
int launch_finish_pictures(const picture_batch& pictures, stream in) noexcept;

/// Those with programs, for these two.
int load_finish_programs() noexcept;
int launch_finish_programs(const picture_batch& pictures, stream in) noexcept;

}  // namespace leat::stages
