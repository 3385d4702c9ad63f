// Warps by any matrix, of pictures of any small size: nothing is read beside the picture, every pixel is written, and a flat picture
// on a ground of its own value stays flat.
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
  for (int y = 0; y < height; ++y) {
    std::vector<std::uint8_t> line(static_cast<std::size_t>(width) * 3, 0);
    warps.line(y, line.data());
    if (is_flat && std::any_of(line.begin(), line.end(), [&](std::uint8_t v) { return v != how.fill[0]; }))
      std::abort();
    std::vector<std::uint8_t> again(line.size(), 0xFF);
    warps.line(y, again.data());
    if (line != again) std::abort();
  }
  return 0;
}
