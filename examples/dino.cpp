// Self-supervised training as DINO does it (arXiv 2104.14294): a student sees two large and four small views of a picture, a
// teacher the large ones, and the student learns to say of any view what the teacher says of another. The teacher is a
// running mean of the student. The network is one matrix, so that the program is all there is.
//
//     dino [DIR] [EPOCHS]     class folders of JPEGs
#include <leat/loader.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <span>
#include <vector>

namespace {

constexpr std::size_t large_views = 2;
constexpr std::size_t views = large_views + 4;
constexpr std::size_t classes = 32;  // that the student makes up
constexpr std::size_t cells = 8;     // a view is seen as the means of 8 x 8 cells
constexpr std::size_t features = 3 * cells * cells;

using seen_view = std::array<float, features>;
using scores = std::array<double, classes>;
using matrix = std::vector<double>;  // [classes, features]

// [3, size, size] as the means of its cells.
seen_view look_at(std::span<const float> pixels) {
  const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(pixels.size() / 3))));
  const std::size_t cell = size / cells;
  seen_view seen{};
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t channel = i / (size * size);
    const std::size_t y = i / size % size / cell;
    const std::size_t x = i % size / cell;
    seen[(channel * cells + y) * cells + x] += pixels[i] / static_cast<float>(cell * cell);
  }
  return seen;
}

scores scores_of(const matrix& weights, const seen_view& of) {
  scores made{};
  for (std::size_t c = 0; c < classes; ++c) {
    for (std::size_t f = 0; f < features; ++f) made[c] += weights[c * features + f] * of[f];
  }
  return made;
}

scores softmax(scores of, double temperature) {
  const double most = *std::max_element(of.begin(), of.end());
  double sum = 0;
  for (double& each : of) sum += each = std::exp((each - most) / temperature);
  for (double& each : of) each /= sum;
  return of;
}

class dino {
 public:
  dino() : student_(classes * features) {
    std::uint32_t state = 7;
    for (double& each : student_)
      each = (static_cast<double>((state = state * 1664525U + 1013904223U) >> 8) / 0xFFFFFF - 0.5) * 0.1;
    teacher_ = student_;
  }

  /// One step, of the views of a batch: [row][view]. Returns the loss.
  double step(const std::vector<std::array<seen_view, views>>& batch) {
    matrix gradient(student_.size());
    scores mean{};
    double loss = 0;
    const double pairs = static_cast<double>(batch.size() * large_views * (views - 1));
    for (const auto& row : batch) {
      std::array<scores, views> says;
      std::array<scores, large_views> taught;
      for (std::size_t v = 0; v < views; ++v) says[v] = softmax(scores_of(student_, row[v]), 0.1);
      for (std::size_t v = 0; v < large_views; ++v) {
        scores plain = scores_of(teacher_, row[v]);
        for (std::size_t c = 0; c < classes; ++c) {
          mean[c] += plain[c] / static_cast<double>(batch.size() * large_views);
          plain[c] -= center_[c];
        }
        taught[v] = softmax(plain, 0.04);
      }
      for (std::size_t t = 0; t < large_views; ++t) {
        for (std::size_t s = 0; s < views; ++s) {
          if (s == t) continue;
          for (std::size_t c = 0; c < classes; ++c) {
            loss -= taught[t][c] * std::log(says[s][c] + 1e-12) / pairs;
            const double slope = (says[s][c] - taught[t][c]) / 0.1 / pairs;
            for (std::size_t f = 0; f < features; ++f) gradient[c * features + f] += slope * row[s][f];
          }
        }
      }
    }
    for (std::size_t i = 0; i < student_.size(); ++i) {
      student_[i] -= 0.003 * gradient[i];
      teacher_[i] = 0.98 * teacher_[i] + 0.02 * student_[i];
    }
    for (std::size_t c = 0; c < classes; ++c) center_[c] = 0.9 * center_[c] + 0.1 * mean[c];
    return loss;
  }

 private:
  matrix student_;
  matrix teacher_;
  scores center_{};
};

}  // namespace

int main(int argc, char** argv) try {
  const auto view = [](int size, double least, double most) {
    return leat::image{"jpg"}
        .random_resized_crop(size, {least, most})
        .random_flip()
        .color_jitter(0.4, 0.4, 0.2, 0.1)
        .normalize(leat::imagenet);
  };
  const auto epochs = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 20);
  leat::loader train{leat::open(argc > 1 ? argv[1] : "build/photos"),
                     {.batch_size = 50, .seed = 7, .epochs = epochs},
                     leat::views(view(64, 0.4, 1), large_views, "global"),
                     leat::views(view(32, 0.05, 0.4), views - large_views, "local")};
  dino network;
  std::vector<double> losses;
  for (leat::batch& batch : train.blocking()) {
    const auto global = batch["global"].as<float>();  // [rows, 2, 3, 64, 64]
    const auto local = batch["local"].as<float>();    // [rows, 4, 3, 32, 32]
    const std::size_t rows = batch.valid_rows();
    std::vector<std::array<seen_view, views>> seen(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t v = 0; v < views; ++v) {
        const auto from = v < large_views ? global : local;
        const std::size_t count = v < large_views ? large_views : views - large_views;
        const std::size_t pixels = from.size() / rows / count;
        seen[row][v] = look_at(from.subspan((row * count + (v < large_views ? v : v - large_views)) * pixels, pixels));
      }
    }
    losses.push_back(network.step(seen));
  }
  const std::size_t some = std::max<std::size_t>(1, losses.size() / 10);
  const auto mean = [&](std::size_t from) {
    double sum = 0;
    for (std::size_t i = from; i < from + some; ++i) sum += losses[i];
    return sum / static_cast<double>(some);
  };
  std::printf("%zu steps; the loss fell from %.2f to %.2f\n", losses.size(), mean(0), mean(losses.size() - some));
  return mean(losses.size() - some) < mean(0) ? 0 : 1;
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
