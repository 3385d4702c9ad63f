#include "stages/device/finish_pictures.hpp"

#include "base/half.hpp"
#include "stages/device/noise_threads.hpp"
#include "stages/device/picture_threads.hpp"
#include "stages/pixels/store.hpp"

#include <cassert>
#include <cstddef>
#include <cstring>
#include <vector>

namespace leat::stages {
namespace {

std::size_t elements_per_row(const picture_batch& pictures) noexcept {
  return std::size_t{pictures.height} * pictures.width * 3;
}

struct as_f32 {
  using element = float;
  static float value_of(element bits) noexcept { return bits; }
  static element rounded(float value) noexcept { return value; }
};
struct as_f16 {
  using element = std::uint16_t;
  static float value_of(element bits) noexcept { return f16_value(bits); }
  static element rounded(float value) noexcept { return f16_bits(value); }
};
struct as_bf16 {
  using element = std::uint16_t;
  static float value_of(element bits) noexcept { return bf16_value(bits); }
  static element rounded(float value) noexcept { return bf16_bits(value); }
};

struct as_u8 {
  using element = std::uint8_t;
  static element rounded(float value) noexcept { return static_cast<element>(value); }  // whole numbers, both ways
};

template <class As>
void mix_elements(const mix_row& mixed, typename As::element* row, const typename As::element* partner,
                  std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    // Three statements: each rounds once.
    const float own = mixed.own * As::value_of(row[i]);
    const float other = mixed.other * As::value_of(partner[i]);
    const float sum = own + other;
    row[i] = As::rounded(sum);
  }
}

/// A row, and what its record says, if there is one.
struct row_to_finish {
  row_to_finish(const picture_batch& pictures, std::size_t row) noexcept {
    const std::size_t pixels = std::size_t{pictures.height} * pictures.width;
    from = pictures.from + row * pixels * 3;
    flip = pictures.flips != nullptr && pictures.flips[row] != 0;
    if (pictures.programs == nullptr) return;
    record = pictures.programs + row * pictures.program_bytes;
    record_bytes = pictures.program_bytes;
    program = reinterpret_cast<const picture_program*>(record);
    flip = program->flip != 0;
    if (program->moved != 0 && pictures.moved != nullptr) from = pictures.moved + row * pixels * 3;
    noise_row = row * pictures.noise_values;
  }

  [[nodiscard]] picture_threads::pixel pixel(std::size_t at) const noexcept {
    picture_threads::pixel all[1];
    for (std::size_t c = 0; c < 3; ++c) all[0].c[c] = from[at * 3 + c];
    if (program != nullptr) {
      picture_threads::run_steps(record, record_bytes, program->first,
                                 picture_threads::step_count_of(*program, record_bytes), all);
    }
    return all[0];
  }
  [[nodiscard]] float erased(const picture_batch& pictures, std::size_t c, std::size_t x,
                             std::size_t y) const noexcept {
    if (program->erases != 2) return pictures.erased[c];
    const std::uint32_t at = picture_threads::noise_at(program->erased, static_cast<std::uint32_t>(c),
                                                       static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y));
    return at < pictures.noise_values ? pictures.noise[noise_row + at] : 0;
  }
  [[nodiscard]] bool is_erased(std::size_t x, std::size_t y) const noexcept {
    if (program == nullptr || program->erases == 0) return false;
    const erased_part& part = program->erased;
    return x >= part.left && x < part.right && y >= part.top && y < part.bottom;
  }

  const std::uint8_t* from;
  const std::uint8_t* record = nullptr;
  const picture_program* program = nullptr;
  std::size_t noise_row = 0;
  std::uint32_t record_bytes = 0;
  bool flip;
};

template <class As>
void finish_row(const picture_batch& pictures, std::size_t row, typename As::element* to) noexcept {
  const std::size_t height = pictures.height;
  const std::size_t width = pictures.width;
  const row_to_finish from(pictures, row);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const picture_threads::pixel pixel = from.pixel(y * width + (from.flip ? width - 1 - x : x));
      for (std::size_t c = 0; c < 3; ++c) {
        // Two statements: each rounds once (-ffp-contract=off keeps them apart).
        const float scaled = pixel.c[c] * pictures.scale[c];
        const float value = scaled + pictures.bias[c];
        to[pictures.order == layout::nchw ? (c * height + y) * width + x : (y * width + x) * 3 + c] =
            As::rounded(from.is_erased(x, y) ? from.erased(pictures, c, x, y) : value);
      }
    }
  }
}

}  // namespace

const device_kernel finish_pictures_kernel = {.name = "the kernel that finishes pictures",
                                              .argument_bytes = sizeof(picture_batch),
                                              .run_on_host = [](const void* arguments) noexcept {
                                                finish_pictures(*static_cast<const picture_batch*>(arguments));
                                              }};

picture_batch pictures_of(const pixels::store& how, std::uint32_t height, std::uint32_t width) noexcept {
  return {.height = height,
          .width = width,
          .type = how.type,
          .order = how.order,
          .scale = {how.scale[0], how.scale[1], how.scale[2]},
          .bias = {how.bias[0], how.bias[1], how.bias[2]}};
}

void finish_picture(const picture_batch& pictures, std::uint32_t row, void* to) noexcept {
  assert(fits_a_picture(pictures.height, pictures.width));
  if (pictures.type == dtype::f32) return finish_row<as_f32>(pictures, row, static_cast<float*>(to));
  if (pictures.type == dtype::f16) return finish_row<as_f16>(pictures, row, static_cast<std::uint16_t*>(to));
  if (pictures.type == dtype::u8) return finish_row<as_u8>(pictures, row, static_cast<std::uint8_t*>(to));
  assert(pictures.type == dtype::bf16);
  finish_row<as_bf16>(pictures, row, static_cast<std::uint16_t*>(to));
}

void mix_picture(const picture_batch& how, const mix_row& mixed, void* row, const void* partner) noexcept {
  if (mixed.other != 0) {
    const std::size_t count = elements_per_row(how);
    if (how.type == dtype::f32) {
      mix_elements<as_f32>(mixed, static_cast<float*>(row), static_cast<const float*>(partner), count);
    } else if (how.type == dtype::f16) {
      mix_elements<as_f16>(mixed, static_cast<std::uint16_t*>(row), static_cast<const std::uint16_t*>(partner), count);
    } else {
      assert(how.type == dtype::bf16);
      mix_elements<as_bf16>(mixed, static_cast<std::uint16_t*>(row), static_cast<const std::uint16_t*>(partner), count);
    }
  }
  if (mixed.left >= mixed.right) return;
  // A line of the box is one piece in each plane, or in all of them together.
  const std::size_t element = size_bytes(how.type);
  const std::size_t planes = how.order == layout::nchw ? 3 : 1;
  const std::size_t pixel = how.order == layout::nchw ? element : 3 * element;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::size_t y = mixed.top; y < mixed.bottom; ++y) {
      const std::size_t at = ((plane * how.height + y) * how.width + mixed.left) * pixel;
      std::memcpy(static_cast<std::byte*>(row) + at, static_cast<const std::byte*>(partner) + at,
                  std::size_t{mixed.right} * pixel - mixed.left * pixel);
    }
  }
}

void finish_pictures(const picture_batch& pictures) noexcept {
  const std::size_t row_bytes = elements_per_row(pictures) * size_bytes(pictures.type);
  auto* const to = static_cast<std::byte*>(pictures.to);
  std::vector<std::byte> partner(pictures.mixed != nullptr ? row_bytes : 0);
  for (std::uint32_t row = 0; row < pictures.rows; ++row) {
    finish_picture(pictures, row, to + row * row_bytes);
    if (pictures.mixed == nullptr) continue;
    finish_picture(pictures, partner_of(row, pictures.rows), partner.data());
    mix_picture(pictures, pictures.mixed[row], to + row * row_bytes, partner.data());
  }
}

}  // namespace leat::stages
