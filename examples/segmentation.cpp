// Segmentation: a picture and its mask through one geometry. Both fields draw the same box and the same flip; the mask is
// resampled by the nearest pixel, so that its classes stay whole numbers. The pictures are made here, and lie in one file:
// a dataset of one's own, of extents.
#include <leat/loader.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

constexpr int side = 64, pictures = 48;

// A BMP file: a square, brighter the greater its class is, on black; or the classes themselves, 0 beside the square.
std::string make_picture(int sample, bool is_mask) {
  std::string file("BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x40\0\0\0\x40\0\0\0\1\0\x18\0", 30);
  file.resize(54);
  const int left = sample * 7 % 32, bottom = sample * 11 % 32, kind = 1 + sample % 3;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const bool inside = x >= left && x < left + 24 && y >= bottom && y < bottom + 24;
      file.append(3, static_cast<char>(!inside ? 0 : is_mask ? kind : 80 * kind));
    }
  }
  return file;
}

int main() try {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "leat-segmentation-example.bin";
  leat::extent_list table{.files = {path.string()}, .fields = {{"picture", {}}, {"mask", {}}}};
  std::ofstream out(path, std::ios::binary);
  for (int sample = 0; sample < pictures; ++sample) {
    for (leat::extent_list::field& member : table.fields) {
      const std::string bytes = make_picture(sample, member.name == "mask");
      member.extents.push_back({.offset = static_cast<std::uint64_t>(out.tellp()), .stored_bytes = bytes.size()});
      out << bytes;
    }
  }
  out.close();

  const auto whole_numbers = [](leat::image field) { return field.as(leat::dtype::u8).as(leat::layout::nhwc); };
  leat::loader train{leat::from_extents(table),
                     {.batch_size = 16, .seed = 7, .epochs = 3, .host_bytes_max = 64 << 20},
                     whole_numbers(leat::image{"picture"}.random_resized_crop(48, {0.4, 1.0}).random_flip()),
                     whole_numbers(leat::image{"mask"}
                                       .random_resized_crop(48, {0.4, 1.0}, {3.0 / 4, 4.0 / 3}, leat::filter::nearest)
                                       .random_flip())};
  std::size_t pixels = 0, right = 0;
  while (!train.finished()) {
    for (const leat::batch& batch : train.blocking()) {
      const auto picture = batch["picture"].as<std::uint8_t>();  // [rows, 48, 48, 3]
      const auto mask = batch["mask"].as<std::uint8_t>();
      for (std::size_t i = 0; i < picture.size(); i += 3, ++pixels) {
        if (mask[i] > 3) throw std::runtime_error("a class that there is not");
        right += std::abs(picture[i] - 80 * mask[i]) < 40 ? 1 : 0;  // at the border of a square colours mix
      }
    }
  }
  std::filesystem::remove(path);
  std::printf("%zu pixels, %.1f %% with their class\n", pixels,
              100.0 * static_cast<double>(right) / static_cast<double>(pixels));
} catch (const std::exception& problem) {
  std::fprintf(stderr, "segmentation: %s\n", problem.what());
  return 1;
}
