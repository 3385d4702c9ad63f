// Masks out of made-up PNG files and arrays, in rows that turn, scale, crop and pad them: nothing is read beside the numbers, and
// each pixel of a row of u8 has a number that is stored, or is ignored.
//
// The first eight bytes of an input say how; the rest is the file, or the numbers. scripts/fuzz runs it.
#include "stages/pixels/mask_reader.hpp"

#include <leat/transforms.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

using namespace leat;

constexpr std::array types{dtype::u8,  dtype::i8,  dtype::u16, dtype::i16, dtype::u32,
                           dtype::i32, dtype::u64, dtype::i64, dtype::f32, dtype::f64};
constexpr std::array row_types{dtype::u8, dtype::u16, dtype::i32, dtype::i64, dtype::f32};
constexpr std::byte ignored{77};

// How the picture that is followed lies in its row.
pixels::pipeline steps_of(std::uint8_t kind, std::uint8_t degrees, int side) {
  std::vector<transform> steps;
  if (kind & 1) steps.push_back(transforms::resize{.shorter_side = 0, .height = side, .width = 2 * side});
  steps.push_back(transforms::center_crop{side, side});
  if (kind & 2) steps.push_back(transforms::random_flip{.probability = 1});
  if (kind & 4) steps.push_back(transforms::rotate{.degrees = {1.0 * degrees, 1.0 * degrees}});
  return pixels::pipeline(steps);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t head = 8;
  if (size < head) return 0;
  const int width = 1 + data[0] % 48;
  const int height = 1 + data[1] % 48;
  const int side = 1 + data[2] % 64;
  static pixels::scratch_budget budget(std::size_t{64} << 20);
  static pixels::mask_reader reader(budget);
  static pixels::placed_picture where;
  const pixels::pipeline chain = steps_of(data[3], data[4], side);
  pixels::place(chain, {}, pixels::geometry_of(chain, {}, width, height, 1 + data[5] % 8), where);
  pixels::mask_reading how{.type = row_types[data[6] % row_types.size()],
                           .ignore = static_cast<std::int64_t>(ignored),
                           .scaled = (data[3] & 8) != 0};
  // Of exactly this size, so that AddressSanitizer sees who reads beyond.
  const auto* const first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first + head, first + size);
  if (data[7] % 2 != 0) {
    dtype type = types[data[7] / 2 % types.size()];
    const bool is_real = type == dtype::f32 || type == dtype::f64;
    if (is_real != (how.type == dtype::f32)) type = how.type;
    how.array = pixels::mask_array{type, width, height};
    bytes.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * size_bytes(type));
  }
  const auto pixels = static_cast<std::size_t>(where.geometry.row_width * where.geometry.row_height);
  std::vector<std::byte> row(pixels * size_bytes(how.type));
  if (!reader.read(bytes, where, how, row, nullptr)) return 0;
  if (!how.array || how.array->type != dtype::u8 || how.type != dtype::u8) return 0;
  std::array<bool, 256> is_known{};
  is_known[static_cast<std::size_t>(ignored)] = true;
  for (const std::byte each : bytes) is_known[static_cast<std::size_t>(each)] = true;
  for (const std::byte each : row) {
    if (!is_known[static_cast<std::size_t>(each)]) std::abort();
  }
  return 0;
}
