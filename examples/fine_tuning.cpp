// Fine-tuning: a part that has learnt already stays as it is, and a new last layer learns from a few photographs of each class.
// Classes are drawn equally often. What stands for the frozen part is a fixed map of a photograph to 48 numbers.
//
//     fine_tuning [FOLDER of class folders]
#include <leat/loader.hpp>

#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

constexpr std::size_t side = 32, cells = 4, features = 3 * cells * cells;

// Mean colours of 4 x 4 cells of f32 [3, 32, 32].
std::array<float, features> frozen(std::span<const float> picture) {
  std::array<float, features> made{};
  for (std::size_t i = 0; i < picture.size(); ++i) {
    const std::size_t channel = i / (side * side), y = i / side % side, x = i % side;
    made[channel * cells * cells + y * cells / side * cells + x * cells / side] +=
        picture[i] * cells * cells / side / side;
  }
  return made;
}

/// Softmax regression: a row of weights for each class.
struct last_layer {
  std::vector<std::array<float, features>> weights;

  std::vector<float> shares(const std::array<float, features>& of) const {
    std::vector<float> made;
    float sum = 0;
    for (const auto& row : weights) {
      float score = 0;
      for (std::size_t i = 0; i < features; ++i) score += row[i] * of[i];
      sum += made.emplace_back(std::exp(score));
    }
    for (float& share : made) share /= sum;
    return made;
  }
  float learn(const std::array<float, features>& from, std::size_t is) {
    const std::vector<float> now = shares(from);
    for (std::size_t c = 0; c < weights.size(); ++c) {
      for (std::size_t i = 0; i < features; ++i) weights[c][i] -= 0.02F * (now[c] - (c == is ? 1.0F : 0.0F)) * from[i];
    }
    return -std::log(now[is]);
  }
};

int main(int argc, char** argv) try {
  const leat::dataset photos = leat::open(argc > 1 ? argv[1] : "build/photos");
  const leat::dataset few = photos.split(7, {0.5})[0];
  leat::loader train{
      few,
      {.batch_size = 20, .seed = 7, .epochs = 8, .order = leat::balanced("cls"), .host_bytes_max = 128 << 20},
      leat::image{"jpg"}.random_resized_crop(side, {0.6, 1.0}).random_flip().normalize(leat::imagenet),
      leat::label{"cls"}};
  last_layer layer{std::vector<std::array<float, features>>(photos.classes().size())};
  float first = 0, last = 0;
  while (!train.finished()) {
    float sum = 0;
    std::size_t rows = 0;
    for (const leat::batch& batch : train.blocking()) {
      const auto pixels = batch["jpg"].as<float>();
      for (const std::int64_t is : batch["cls"].as<std::int64_t>()) {
        sum += layer.learn(frozen(pixels.subspan(rows++ % 20 * 3 * side * side, 3 * side * side)),
                           static_cast<std::size_t>(is));
      }
    }
    if (rows == 0) break;
    last = sum / static_cast<float>(rows);
    if (first == 0) first = last;
  }
  std::printf("%llu photographs of %zu classes: the loss fell from %.2f to %.2f\n",
              static_cast<unsigned long long>(few.size()), layer.weights.size(), first, last);
  return last < first ? 0 : 1;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "fine_tuning: %s\n", problem.what());
  return 1;
}
