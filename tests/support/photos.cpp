#include "tests/support/photos.hpp"

#include "tools/paint.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

namespace leat::testing {

photo_folder::photo_folder(const tools::make_photos_options& options) { tools::make_photos(path(), options); }

tools::make_photos_options photo_folder::small() {
  tools::make_photos_options options;
  options.count = 12;
  options.classes = 3;
  options.width = 64;
  options.height = 48;
  options.threads = 1;
  return options;
}

std::vector<std::filesystem::path> photo_folder::files() const {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path()))
    if (entry.path().extension() == ".jpg") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::uint8_t> photo_pixels(std::uint64_t seed, std::uint32_t width, std::uint32_t height) {
  tools::canvas picture{.width = width, .height = height, .rgb = {}};
  tools::painter::scratch scratch;
  tools::shared_painter().paint(seed, static_cast<std::uint32_t>(seed % 10), 0, picture, scratch);
  return std::move(picture.rgb);
}

std::vector<std::uint8_t> photo_jpeg(std::uint64_t seed, std::uint32_t width, std::uint32_t height,
                                     const tools::jpeg_encode_options& options) {
  std::vector<std::uint8_t> file;
  tools::encode_jpeg(photo_pixels(seed, width, height), width, height, options, file);
  return file;
}

std::vector<std::uint8_t> bytes_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace leat::testing
