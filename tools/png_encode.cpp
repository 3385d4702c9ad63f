#include "tools/png_encode.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <png.h>

#include <cassert>
#include <string_view>

namespace leat::tools {

std::vector<std::byte> encode_png(std::span<const std::uint8_t> rgb, std::uint32_t width, std::uint32_t height) {
  assert(rgb.size() == std::size_t{3} * width * height);
  // libpng's simplified interface: errors come back as values, so no longjmp passes our objects.
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = PNG_FORMAT_RGB;
  const auto fail = [&image] {
    throw error(errc::limit, str_cat("cannot encode a PNG of ", image.width, " x ", image.height, " pixels: ",
                                     std::string_view(image.message), "; choose a smaller --size or --batch-size"));
  };
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> file(bytes);
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, rgb.data(), 0, nullptr) == 0) fail();
  file.resize(bytes);
  return file;
}

}  // namespace leat::tools
