// Does a text that was made up bring down the parser of transforms? It is refused with an error of leat's; or it is read, written, read
// again and written to the same text, and a chain is built of it or refused.
#include "stages/pixels/recipe.hpp"

#include <leat/error.hpp>
#include <leat/transforms.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string written(const std::vector<leat::transform>& steps) {
  std::string text;
  for (const leat::transform& each : steps) text += leat::to_string(each) + " ";
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    std::vector<leat::transform> steps =
        leat::parse_transforms(std::string_view(reinterpret_cast<const char*>(data), size));
    const std::string once = written(steps);
    if (written(leat::parse_transforms(once)) != once) std::abort();
    const leat::pixels::pipeline chain(std::move(steps));
    leat::pixels::recipe drawn;
    for (std::uint64_t sample = 0; sample < 4; ++sample) {
      static_cast<void>(chain.compile(64, 48, {1, 0, sample}));
      chain.draw_colour({1, 0, sample}, drawn);
      for (const leat::pixels::colour_pass& pass : drawn.drawn()) static_cast<void>(leat::pixels::text_of(pass));
    }
  } catch (const leat::error&) {
  }
  return 0;
}
