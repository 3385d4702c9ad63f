// Two loaders beside one another: nine tenths of the photographs to train on, shuffled and cropped at random, and a tenth to
// validate on after each epoch, always the same pixels. Both read ahead, also while the other one is in use; memory is bounded
// for each. What is trained is the mean picture of each class, and a photograph's class is the one whose mean is nearest.
//
//     train_and_validate [FOLDER of class folders]
#include <leat/loader.hpp>

#include <cstdio>
#include <vector>

using namespace leat::literals;

constexpr int side = 16;
using picture = std::vector<float>;

double distance(const float* a, const picture& b) {
  double sum = 0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

int main(int argc, char** argv) try {
  const leat::dataset photos = leat::open(argc > 1 ? argv[1] : "build/photos");
  const std::vector<leat::dataset> parts = photos.split(7, {0.9});  // the rest is the second part
  leat::loader train{parts[0],
                     {.batch_size = 32, .seed = 7, .epochs = 3, .host_bytes_max = 192_MiB},
                     leat::image{"jpg"}.random_resized_crop(side, {0.5, 1.0}).random_flip().normalize(leat::imagenet),
                     leat::label{"cls"}};
  leat::loader validation{parts[1],
                          {.batch_size = 32, .shuffle = false, .epochs = 3, .host_bytes_max = 64_MiB},
                          leat::image{"jpg"}.resize(side + 2).center_crop(side).normalize(leat::imagenet),
                          leat::label{"cls"}};

  std::vector<picture> means(photos.classes().size(), picture(3 * side * side));
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const leat::batch& batch : train.blocking()) {
      const auto pixels = batch["jpg"].as<float>();
      const auto classes = batch["cls"].as<std::int64_t>();
      for (std::size_t row = 0; row < classes.size(); ++row) {
        picture& mean = means[static_cast<std::size_t>(classes[row])];
        for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += 0.05F * (pixels[row * mean.size() + i] - mean[i]);
      }
    }
    std::size_t right = 0;
    for (const leat::batch& batch : validation.blocking()) {
      const auto pixels = batch["jpg"].as<float>();
      const auto classes = batch["cls"].as<std::int64_t>();
      for (std::size_t row = 0; row < classes.size(); ++row) {
        std::size_t nearest = 0;
        const float* const own = &pixels[row * means[0].size()];
        for (std::size_t c = 1; c < means.size(); ++c) {
          if (distance(own, means[c]) < distance(own, means[nearest])) nearest = c;
        }
        right += nearest == static_cast<std::size_t>(classes[row]) ? 1 : 0;
      }
    }
    std::printf("epoch %d: trained on %llu photographs, %zu of %llu others recognised, of %zu classes\n", epoch,
                static_cast<unsigned long long>(train.samples()), right,
                static_cast<unsigned long long>(validation.samples()), means.size());
  }
} catch (const std::exception& problem) {
  std::fprintf(stderr, "train_and_validate: %s\n", problem.what());
  return 1;
}
