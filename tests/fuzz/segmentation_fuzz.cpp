// Does a made-up segmentation bring down the reader of COCO's polygons and run lengths, or what paints them? It may only be painted, or
// refused. What is painted in a part of a picture has to be what the whole picture has there.
//
// The first six bytes of an input are the picture's sides and the part of it, the rest is the JSON. scripts/fuzz runs it.
#include "stages/fields/segmentation.hpp"
#include "stages/pixels/mask_shapes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory_resource>
#include <string_view>
#include <vector>

namespace leat {
namespace {

void demand(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::int64_t> painted(const pixels::mask_shapes& shapes, int height, const pixels::rectangle& part) {
  const auto width = static_cast<std::size_t>(part.width);
  std::vector<std::uint8_t> marks(width * static_cast<std::size_t>(part.height));
  std::vector<std::int64_t> plane(marks.size());
  for (const pixels::mask_shape& each : shapes.all) {
    pixels::paint_shape(shapes, each, height, part, marks.data(), [&](int x, int begin, int end) {
      demand(x >= part.x && x < part.x + part.width);
      demand(begin >= part.y && begin < end && end <= part.y + part.height);
      for (int y = begin; y < end; ++y) {
        plane[static_cast<std::size_t>(y - part.y) * width + static_cast<std::size_t>(x - part.x)] = each.number;
      }
    });
    demand(std::all_of(marks.begin(), marks.end(), [](std::uint8_t mark) { return mark == 0; }));
  }
  return plane;
}

}  // namespace
}  // namespace leat

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leat;
  constexpr std::size_t head = 6;
  if (size < head) return 0;
  const int width = 1 + data[0] % 64;
  const int height = 1 + data[1] % 64;
  pixels::rectangle part{data[2] % width, data[3] % height, 0, 0};
  part.width = 1 + data[4] % (width - part.x);
  part.height = 1 + data[5] % (height - part.y);
  const std::string_view json(reinterpret_cast<const char*>(data) + head, size - head);
  // It takes no more memory than it says: a further byte throws.
  std::vector<std::byte> room(stages::segmentation_bytes_max(json));
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size(), std::pmr::null_memory_resource());
  pixels::mask_shapes shapes(&memory);
  if (!stages::read_segmentation(json, width, height, shapes)) return 0;
  const std::vector<std::int64_t> whole = painted(shapes, height, {0, 0, width, height});
  const std::vector<std::int64_t> some = painted(shapes, height, part);
  for (int y = 0; y < part.height; ++y) {
    const auto line = whole.begin() + static_cast<std::ptrdiff_t>(part.y + y) * width + part.x;
    demand(std::equal(line, line + part.width, some.begin() + static_cast<std::ptrdiff_t>(y) * part.width));
  }
  return 0;
}
