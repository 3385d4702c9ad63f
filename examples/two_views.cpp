// Two views of each picture, as SimCLR and DINO want them, and beside them a field of one's own from the same file: the
// picture's size before it was cropped. Each file is read once, and each picture is decoded once where that is possible.
//
//     two_views [DIR]     class folders of JPEGs
#include <leat/loader.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <span>
#include <string>

namespace {

// Height and width, from the frame header of a JPEG. What is returned says why there are none: the sample is then corrupt.
std::string read_size(std::span<const std::byte> file, const leat::sample_context&, std::span<std::byte> row) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::int64_t>(file[i]); };
  for (std::size_t i = 2; i + 9 < file.size() && at(i) == 0xFF;) {
    const std::int64_t marker = at(i + 1);
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame) {
      const std::int64_t size[] = {at(i + 5) << 8 | at(i + 6), at(i + 7) << 8 | at(i + 8)};
      std::memcpy(row.data(), size, sizeof size);
      return {};
    }
    i += 2 + static_cast<std::size_t>(at(i + 2) << 8 | at(i + 3));
  }
  return "no JPEG with a frame header";
}

// What stands for a network here: the mean of each channel.
struct embedding {
  double mean[3] = {};

  explicit embedding(std::span<const float> picture) {
    const std::size_t plane = picture.size() / 3;
    for (std::size_t i = 0; i < picture.size(); ++i) mean[i / plane] += picture[i] / static_cast<double>(plane);
  }
  [[nodiscard]] double distance(const embedding& other) const {
    return std::hypot(mean[0] - other.mean[0], mean[1] - other.mean[1], mean[2] - other.mean[2]);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const auto view = [](const char* name) {
    return leat::image{name}.from("jpg").random_resized_crop(96).random_flip().normalize(leat::imagenet);
  };
  leat::loader train{leat::open(argc > 1 ? argv[1] : "build/photos"),
                     {.batch_size = 64, .seed = 7, .epochs = 1},
                     view("view1"),
                     view("view2"),
                     leat::custom{"size", leat::dtype::i64, {2}, read_size}.from("jpg")};
  std::cout << train.plan().to_string();

  std::uint64_t pictures = 0;
  std::uint64_t nearer = 0;  // to the other view of the same picture than to one of the next picture
  double megapixels = 0;
  for (leat::batch& batch : train.blocking()) {
    const auto first = batch["view1"].as<float>();       // [rows, 3, 96, 96]
    const auto second = batch["view2"].as<float>();      // the same pictures, cropped and flipped otherwise
    const auto size = batch["size"].as<std::int64_t>();  // [rows, 2]
    const std::size_t rows = batch.valid_rows();
    const std::size_t elements = first.size() / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      const embedding own{first.subspan(row * elements, elements)};
      const embedding other{second.subspan(row * elements, elements)};
      const embedding next{second.subspan((row + 1) % rows * elements, elements)};
      nearer += own.distance(other) < own.distance(next) ? 1 : 0;
      megapixels += static_cast<double>(size[2 * row] * size[2 * row + 1]) * 1e-6;
    }
    pictures += rows;
  }
  const double all = static_cast<double>(pictures);
  std::printf(
      "%llu pictures of %.2f megapixels; the two views of one are alike: %.0f %% are nearer to one another than to "
      "the next picture's\n",
      static_cast<unsigned long long>(pictures), megapixels / all, 100 * static_cast<double>(nearer) / all);
  return 2 * nearer > pictures ? 0 : 1;
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
