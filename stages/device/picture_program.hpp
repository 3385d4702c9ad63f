// Steps of colour as a device runs them: one record a row, which crosses the bus with the batch. The host draws them and makes tables of
// what a table can say (write_program.hpp); a device follows them (picture_threads.hpp). Plain data, the same for nvcc and the host's compiler.
//
// No includes but these: it is compiled by nvcc too.
#pragma once

#include <cstdint>

namespace leat::stages {

/// What a step does to a pixel, or to the whole picture. Each takes u8 and gives u8.
///   map            each channel's value by its table
///   scale          value * a + b
///   saturate       value * a + floor(grey) * b
///   turn_hue       the hue turned by `a` sixths
///   grey           all channels become floor(grey)
///   permute        the channels in the order `number`
///   contrast       scale by a, and by b times the mean of the picture's grey: a picture has to be measured for it
///   autocontrast   a table that follows from the least and the most of each channel
///   equalize       a table that follows from the counts of each channel
///   sharpen        the difference from the neighbours' mean, times b, added
///   blur           `number` neighbours to each side
///   warp           each pixel is looked up in the picture before it
enum class step_kind : std::uint8_t {
  map,
  scale,
  saturate,
  turn_hue,
  grey,
  permute,
  contrast,
  autocontrast,
  equalize,
  sharpen,
  blur,
  warp
};

/// One step.
///   at      in bytes from the record's beginning: of a map its tables of 256 values, of a blur its weights, which are two
///           i32 (across, down) for the middle and each neighbour of one side, of a warp its program_warp
///   apart   bytes from one channel's table to the next one's: 0 or 256
struct program_step {
  step_kind what;
  std::uint8_t number;
  std::uint16_t apart;
  std::uint32_t at;
  float a;
  float b;
};

/// Where a warp looks (pixels/warp.hpp).
///   fixed       of an affine one: its numbers with 32 binary digits behind the point
///   matrix      of any other
///   fill        of what lies outside of the picture
///   bilinear    0: nearest
///   is_affine   not 0: it has `fixed`
struct program_warp {
  union {
    std::int64_t fixed[6];
    double matrix[9];
  };
  std::uint8_t fill[3];
  std::uint8_t bilinear;
  std::uint8_t is_affine;
  std::uint8_t padding[3];
};

/// The box that is erased, in the finished row, of which right and bottom are outside.
struct erased_part {
  std::uint32_t left;
  std::uint32_t top;
  std::uint32_t right;
  std::uint32_t bottom;
};

/// What noise is drawn by, line by line (base/random.hpp).
struct noise_key {
  std::uint64_t seed;
  std::uint64_t draw;
  std::uint32_t epoch;
  std::uint32_t operation;
};

/// A row's record: this, its steps, and what they refer to.
///   flip    not 0: left and right of the row exchanged, after all steps
///   first   steps before it are done. 0 as the host writes it
///   moved   not 0: what they have made lies in picture_batch::moved
///   erases  not 0: something is erased; 2: by noise
struct picture_program {
  std::uint8_t step_count;
  std::uint8_t flip;
  std::uint8_t first;
  std::uint8_t moved;
  std::uint8_t erases;
  std::uint8_t padding[11];
  erased_part erased;
  noise_key noise;
  std::uint32_t more_padding[2];
};
inline constexpr std::uint32_t program_head_bytes = sizeof(picture_program);
inline constexpr std::uint32_t blur_radius_max = 63;
/// The tables of three channels.
inline constexpr std::uint32_t program_tables_bytes = 3 * 256;

}  // namespace leat::stages
