// mask_pixels: the masks of segmentations as COCO's annotations have them, for tests/conformance/masks.py to compare.
//
// Each line of stdin is "HEIGHT WIDTH JSON", the JSON as leat::open_coco()'s member 'segmentation' has it. Of each, stdout gets HEIGHT * WIDTH
// bytes: for a pixel the category. A refusal goes to stderr with exit status 1.
#include "stages/fields/segmentation.hpp"
#include "stages/pixels/mask_shapes.hpp"

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

int main() {
  using namespace leat;
  int height = 0;
  int width = 0;
  std::string json;
  while (std::cin >> height >> width && std::getline(std::cin, json)) {
    pixels::mask_shapes shapes;
    if (const auto read = stages::read_segmentation(json, width, height, shapes); !read) {
      std::fprintf(stderr, "%s\n", read.reason().c_str());
      return 1;
    }
    const auto count = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    std::vector<std::uint8_t> marks(count);
    std::vector<std::uint8_t> mask(count);
    for (const pixels::mask_shape& each : shapes.all) {
      pixels::paint_shape(shapes, each, height, {0, 0, width, height}, marks.data(), [&](int x, int begin, int end) {
        for (int y = begin; y < end; ++y) {
          mask[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] =
              static_cast<std::uint8_t>(each.number);
        }
      });
    }
    std::fwrite(mask.data(), 1, mask.size(), stdout);
  }
  return 0;
}
