// Photo packs that a device decodes, as its kernels see them: plain data, the same for nvcc and the host's compiler. The host works out
// sizes, places and weights (photo_plan.hpp); a thread only follows them.
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include <cstdint>

namespace leat::stages {

/// How a component's samples become the picture's (libjpeg-turbo's jdsample.c).
///   replicated   each sample is expand_x by expand_y pixels; 1 by 1 where nothing has to be done
///   h2v1 ...     "fancy": 3/4 of the nearer and 1/4 of the farther sample, across, across and down, down
enum class upsampling : std::uint8_t { replicated, h2v1, h2v2, h1v2 };

/// One component's samples: those of the MCUs that are transformed. Coordinates are in samples.
///   at, stride      in bytes; `at` is counted from the photo's planes
///   left, top       which of the whole component's samples is the plane's first
///   width, height   of the whole component
///   across, down    blocks in an MCU
///   side            samples of a side of a transformed block: 8, 4, 2, 1
///   quantisation    in natural order
struct photo_plane {
  std::uint64_t at;
  std::uint32_t stride;
  std::int32_t left;
  std::int32_t top;
  std::int32_t width;
  std::int32_t height;
  std::uint8_t across;
  std::uint8_t down;
  std::uint8_t side;
  upsampling how;
  std::uint8_t expand_x;
  std::uint8_t expand_y;
  std::uint16_t quantisation[64];
};

/// How one axis is resampled: tables of the first input of each output, of its number of taps, and of its weights, taps_max for each.
///   table   where they lie, one behind the other, in numbers of 32 bits counted from the slot's tables
///   count   outputs, of which the first is the row's `at`-th
struct photo_axis {
  std::uint32_t table;
  std::int32_t taps_max;
  std::int32_t count;
  std::int32_t at;
};

/// One photo.
///   planes, pixels, lines   places in its scratch: samples; RGB of the region, upright; that after the first pass of
///                           resampling
///   row_blocks              of a whole row of MCUs
///   first_column ...        MCUs of a row that are transformed: end_column is outside
///   left ... stored_height  the region as it is stored, in decimated pixels
///   width, height           of the region, upright; 0 where the row is padding alone
///   down_first              the first pass is down: pixels::goes_down_first()
struct photo_on_device {
  std::uint64_t planes;
  std::uint64_t pixels;
  std::uint64_t lines;
  photo_plane plane[3];
  std::uint32_t row_blocks;
  std::uint32_t first_column;
  std::uint32_t end_column;
  std::uint8_t plane_count;
  std::uint8_t mcu_blocks;
  std::uint8_t block_plane[10];
  std::uint8_t block_x[10];
  std::uint8_t block_y[10];
  bool is_ycbcr;
  bool mirrored;  // EXIF's orientation: pixels/orientation.hpp
  bool upended;
  bool transposed;
  bool flip;  // left and right of the row exchanged, last
  bool down_first;
  std::int32_t left;
  std::int32_t top;
  std::int32_t stored_width;
  std::int32_t stored_height;
  std::int32_t width;
  std::int32_t height;
  photo_axis across;
  photo_axis down;
};

/// A row of the batch as the host writes it: this, and behind it either u8 pixels [height, width, 3], which begin at photo_slot_bytes; or
/// a photo's tables, the ends of its rows of MCUs, and those rows, docs/internals/photo-pack.md; or tables and a JPEG file, whose planes somebody else
/// fills with the whole picture's red, green and blue before any thread looks at them.
///   is_pack                  not 0: a photo
///   tables, row_ends, rows   bytes from the slot's beginning; ends are of 32 bits each, counted from `rows`
///   row_count                of MCUs; of a JPEG file 0
///   jpeg_bytes               of the JPEG file at `rows`; 0 where there is none
struct photo_slot {
  std::uint32_t is_pack;
  std::uint32_t tables;
  std::uint32_t row_ends;
  std::uint32_t rows;
  std::uint32_t row_count;
  std::uint32_t jpeg_bytes;
  photo_on_device photo;
};
inline constexpr std::uint64_t photo_slot_bytes = (sizeof(photo_slot) + 15) / 16 * 16;

/// Some rows of a batch. All of it memory of the device, aligned to 16 bytes.
///   slots      [photo_count], `slot_bytes` apart, a multiple of 16
///   scratch    `scratch_bytes` for each photo, a multiple of 16
///   to         u8 [photo_count, out_height, out_width, 3], or with is_planar [photo_count, 3, out_height, out_width]
///   damaged    [photo_count], 0 before; 1 where a row of MCUs contradicts itself: the photo's pixels mean nothing then. Null where the host
///              has looked at the rows, as write_photo_slot() does
struct photo_batch {
  const std::uint8_t* slots = nullptr;
  std::uint64_t slot_bytes = 0;
  std::uint8_t* scratch = nullptr;
  std::uint64_t scratch_bytes = 0;
  std::uint8_t* to = nullptr;
  std::uint32_t* damaged = nullptr;
  std::uint32_t photo_count = 0;
  std::uint32_t out_height = 0;
  std::uint32_t out_width = 0;
  bool is_planar = false;
};

}  // namespace leat::stages
