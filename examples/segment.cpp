// Detection and segmentation: a picture, its mask and its boxes go through one crop, flip and turn, and a classifier of pixels
// learns from them. The samples are made here: a square of class 1 and a disc of class 2 on a ground that looks like neither.
#include <leat/loader.hpp>
#include <leat/targets.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <random>
#include <span>
#include <vector>

constexpr std::int64_t pictures = 256, side = 96, classes = 3, ignored = 255;

// Red, green and blue, of which each is a number and a weight of its own; and 1.
class pixel_classifier {
 public:
  // Takes a step down the loss of all pixels that are not ignored; returns what it was, on average.
  double learn(std::span<const float> photos, std::span<const std::uint8_t> masks, std::size_t plane) {
    std::array<std::array<double, 4>, classes> down{};
    double loss = 0, pixels = 0;
    for (std::size_t i = 0; i < masks.size(); ++i) {
      if (masks[i] == ignored) continue;
      const float* const red = photos.data() + i / plane * plane * 3 + i % plane;
      const std::array<double, 4> seen = {red[0], red[plane], red[2 * plane], 1};
      std::array<double, classes> share{};
      double sum = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        for (std::size_t k = 0; k < seen.size(); ++k) share[c] += weights_[c][k] * seen[k];
        sum += share[c] = std::exp(share[c]);
      }
      loss -= std::log(share[masks[i]] / sum);
      for (std::size_t c = 0; c < classes; ++c) {
        for (std::size_t k = 0; k < seen.size(); ++k) down[c][k] += (share[c] / sum - (c == masks[i])) * seen[k];
      }
      ++pixels;
    }
    for (std::size_t c = 0; c < classes; ++c) {
      for (std::size_t k = 0; k < down[c].size(); ++k) weights_[c][k] -= 4 * down[c][k] / pixels;
    }
    return loss / pixels;
  }

 private:
  std::array<std::array<double, 4>, classes> weights_{};
};

struct samples {
  std::vector<std::uint8_t> photos, masks;
  std::vector<float> boxes;  // of the square, then of the disc
};

samples make_samples() {
  samples made;
  std::mt19937 random(7);
  constexpr std::array<std::array<int, 3>, classes> colours{{{110, 110, 110}, {180, 90, 90}, {90, 90, 180}}};
  for (int i = 0; i < pictures; ++i) {
    const int left = static_cast<int>(random() % 50), top = static_cast<int>(random() % 50);
    const int x0 = 20 + static_cast<int>(random() % 56), y0 = 20 + static_cast<int>(random() % 56);
    for (const int edge : {left, top, left + 40, top + 40, x0 - 16, y0 - 16, x0 + 16, y0 + 16}) {
      made.boxes.push_back(static_cast<float>(edge));
    }
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const bool is_square = x >= left && x < left + 40 && y >= top && y < top + 40;
        const bool is_disc = (x - x0) * (x - x0) + (y - y0) * (y - y0) < 16 * 16;
        made.masks.push_back(is_disc ? 2 : is_square ? 1 : 0);
        for (const int value : colours[made.masks.back()]) {
          made.photos.push_back(static_cast<std::uint8_t>(value + static_cast<int>(random() % 80) - 40));
        }
      }
    }
  }
  return made;
}

int main() try {
  samples made = make_samples();
  const auto of = [](leat::dtype type, const leat::dimensions& shape, void* data) {
    return leat::tensor{type, shape, leat::dense_strides(shape), data, leat::host};
  };
  const leat::dataset set =
      leat::from_tensors({{"photo", of(leat::dtype::u8, {pictures, side, side, 3}, made.photos.data())},
                          {"mask", of(leat::dtype::u8, {pictures, side, side}, made.masks.data())},
                          {"boxes", of(leat::dtype::f32, {pictures, 2, 4}, made.boxes.data())}},
                         nullptr);

  leat::loader train{set,
                     {.batch_size = 32, .seed = 7, .shuffle = true, .epochs = 5},
                     leat::image{"photo"}.random_resized_crop(64, {0.4, 1}).random_flip().rotate(-15, 15),
                     leat::mask{"mask"}.follows("photo").ignore(ignored),
                     leat::boxes{"boxes"}.follows("photo").min_visible(0.5)};

  pixel_classifier learnt;
  double first = 0, last = 0;
  std::size_t in_step = 0, boxes = 0;
  for (int epoch = 0; epoch < 5; ++epoch) {
    while (auto batch = train.next_blocking()) {
      const auto masks = (*batch)["mask"].as<std::uint8_t>();
      last = learnt.learn((*batch)["photo"].as<float>(), masks, 64 * 64);
      if (first == 0) first = last;

      // Wherever the picture went, its boxes hold the pixels of their class.
      const auto places = (*batch)["boxes"].as<float>();
      const auto begins = (*batch)["boxes.offsets"].as<std::int64_t>();
      const auto kept = (*batch)["boxes.kept"].as<std::int64_t>();
      for (std::size_t row = 0; row < batch->valid_rows(); ++row) {
        for (auto i = static_cast<std::size_t>(begins[row]); i < static_cast<std::size_t>(begins[row + 1]);
             ++i, ++boxes) {
          const auto is_beside = [&](std::size_t at) {
            const auto x = static_cast<float>(at % 64), y = static_cast<float>(at / 64);
            const bool is_its = masks[row * 64 * 64 + at] == kept[i] + 1;
            return is_its && (x + 1 < places[4 * i] || y + 1 < places[4 * i + 1] || x > places[4 * i + 2] ||
                              y > places[4 * i + 3]);
          };
          bool all = true;
          for (std::size_t at = 0; at < 64 * 64; ++at) all = all && !is_beside(at);
          in_step += all ? 1 : 0;
        }
      }
    }
  }
  std::printf("the loss fell from %.3f to %.3f; %zu boxes, %zu in step with the mask\n", first, last, boxes, in_step);
  return last < first / 2 && in_step == boxes ? 0 : 1;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "segment: %s\n", failure.what());
  return 1;
}
