// Warps by any matrix, of pictures of any small size: nothing is read beside the picture, every pixel is written, and a flat picture
// on a ground of its own value stays flat. A device's code gives the same bits, and of any numbers reads nothing beside the picture.
#include "stages/device/warp_threads.hpp"
#include "stages/pixels/warp.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using leat::pixels::picture;
using leat::pixels::warp;

// What warper takes of an affine matrix; recipes are checked for it.
constexpr double entry_max = 16'383;

using leat::stages::program_warp;

class one_thread {
 public:
  template <class F>
  void run(const F& f) {
    f(0U, 1U);
  }
  void barrier() {}
};

// Interleaved, of `from`, which is lines of three planes.
std::vector<std::uint8_t> warped_by_device(const program_warp& how, const std::vector<std::uint8_t>& from, int height,
                                           int width) {
  const auto side = static_cast<std::size_t>(width);
  std::vector<std::uint8_t> pixels(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t y = i / (3 * side);
    const std::size_t c = i / side % 3;
    pixels[(y * side + i % side) * 3 + c] = from[i];
  }
  std::vector<std::uint8_t> made(from.size());
  one_thread team;
  leat::stages::picture_threads::look_up_pixels(team, pixels.data(), static_cast<std::uint32_t>(height),
                                                static_cast<std::uint32_t>(width), &how, made.data());
  return made;
}

program_warp on_device(const warp& how, int height, int width) {
  program_warp made{
      .matrix = {}, .fill = {}, .bilinear = how.how == leat::filter::bilinear, .is_affine = 0, .padding = {}};
  std::copy(how.fill.begin(), how.fill.end(), made.fill);
  if (const auto fixed = leat::pixels::fixed_numbers(how, height, width)) {
    made.is_affine = 1;
    std::copy(fixed->begin(), fixed->end(), made.fixed);
  } else {
    std::copy(how.from.begin(), how.from.end(), made.matrix);
  }
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  warp how;
  constexpr std::size_t head = 6;
  if (size < head + sizeof how.from) return 0;
  const int height = 1 + data[0] % 70;
  const int width = 1 + data[1] % 140;
  how.how = data[2] % 2 == 0 ? leat::filter::nearest : leat::filter::bilinear;
  std::copy_n(data + 3, 3, how.fill.begin());
  std::memcpy(how.from.data(), data + head, sizeof how.from);
  if (data[2] & 2) how.from[6] = how.from[7] = 0, how.from[8] = 1;
  if (how.from[6] == 0 && how.from[7] == 0 && how.from[8] == 1) {
    for (double& entry : how.from) {
      if (!(std::abs(entry) <= entry_max)) entry = std::fmod(std::isfinite(entry) ? entry : 1.0, entry_max);
    }
  }
  // Of exactly this size, so that AddressSanitizer sees who reads beyond.
  const std::size_t values = static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3;
  std::vector<std::uint8_t> from(values);
  if (data[2] & 4) how.fill.fill(how.fill[0]);
  const bool is_flat = (data[2] & 4) != 0;
  for (std::size_t i = 0; i < values; ++i) from[i] = is_flat ? how.fill[0] : static_cast<std::uint8_t>(i * 37);
  const leat::pixels::warper warps(how, picture{from.data(), height, width});
  const std::vector<std::uint8_t> there = warped_by_device(on_device(how, height, width), from, height, width);
  for (int y = 0; y < height; ++y) {
    std::vector<std::uint8_t> line(static_cast<std::size_t>(width) * 3, 0);
    warps.line(y, line.data());
    if (is_flat && std::any_of(line.begin(), line.end(), [&](std::uint8_t v) { return v != how.fill[0]; }))
      std::abort();
    std::vector<std::uint8_t> again(line.size(), 0xFF);
    warps.line(y, again.data());
    if (line != again) std::abort();
    const auto side = static_cast<std::size_t>(width);
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != there[(static_cast<std::size_t>(y) * side + i % side) * 3 + i / side]) std::abort();
    }
  }
  // A record of any bytes.
  program_warp any{};
  std::memcpy(static_cast<void*>(&any), data + head, sizeof any.matrix);
  any.bilinear = data[2] & 1;
  any.is_affine = data[2] & 8;
  warped_by_device(any, from, height, width);
  return 0;
}
