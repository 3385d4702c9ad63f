// Trains a small softmax classifier on photographs with nothing but leat and the standard library, on one coroutine:
// its loss falls, and it says what share of the time it stood waiting for data.
//
//     trainer [FOLDER of class folders] [EPOCHS]
#include <leat/loader.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace asio = boost::asio;
using clock_type = std::chrono::steady_clock;

namespace {

double seconds(clock_type::duration time) { return std::chrono::duration<double>(time).count(); }

// One layer: logits = pixels . weights + bias, trained by stochastic gradient descent on the cross-entropy.
class softmax_classifier {
 public:
  softmax_classifier(std::size_t inputs, std::size_t classes)
      : inputs_(inputs), classes_(classes), weights_(inputs * classes), bias_(classes) {}

  struct result {
    double loss = 0;
    std::size_t right = 0;
  };

  // A step on one batch: its loss, summed over the rows, before the step.
  result step(std::span<const float> pixels, std::span<const std::int64_t> labels, float rate) {
    result sum;
    std::vector<float> weight_steps(weights_.size());
    std::vector<float> bias_steps(classes_);
    std::vector<float> share(classes_);
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const auto picture = pixels.subspan(row * inputs_, inputs_);
      const auto label = static_cast<std::size_t>(labels[row]);
      predict(picture, share);
      sum.loss -= std::log(std::max(share[label], 1e-12F));
      if (std::max_element(share.begin(), share.end()) - share.begin() == labels[row]) ++sum.right;
      share[label] -= 1;
      for (std::size_t c = 0; c < classes_; ++c) {
        bias_steps[c] += share[c];
        for (std::size_t i = 0; i < inputs_; ++i) weight_steps[c * inputs_ + i] += share[c] * picture[i];
      }
    }
    const float scale = rate / static_cast<float>(std::max<std::size_t>(labels.size(), 1));
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= scale * weight_steps[i];
    for (std::size_t c = 0; c < classes_; ++c) bias_[c] -= scale * bias_steps[c];
    return sum;
  }

 private:
  void predict(std::span<const float> picture, std::vector<float>& share) const {
    for (std::size_t c = 0; c < classes_; ++c) {
      float logit = bias_[c];
      for (std::size_t i = 0; i < inputs_; ++i) logit += weights_[c * inputs_ + i] * picture[i];
      share[c] = logit;
    }
    const float highest = *std::max_element(share.begin(), share.end());
    float sum = 0;
    for (float& value : share) sum += value = std::exp(value - highest);
    for (float& value : share) value /= sum;
  }

  std::size_t inputs_;
  std::size_t classes_;
  std::vector<float> weights_;
  std::vector<float> bias_;
};

constexpr int side = 24;  // pixels: a picture this small still shows what is in it

asio::awaitable<void> train(leat::loader& photos, std::size_t classes, unsigned epochs) {
  softmax_classifier model(3 * side * side, classes);
  double first_loss = 0;
  double last_loss = 0;
  for (unsigned epoch = 0; epoch < epochs; ++epoch) {
    const clock_type::time_point start = clock_type::now();
    clock_type::duration waited{};
    softmax_classifier::result sum;
    std::size_t rows = 0;
    while (true) {
      const clock_type::time_point asked = clock_type::now();
      const std::optional<leat::batch> batch = co_await photos.next();
      waited += clock_type::now() - asked;
      if (!batch) break;
      const auto step = model.step((*batch)["jpg"].as<float>(), (*batch)["cls"].as<std::int64_t>(), 0.02F);
      sum.loss += step.loss;
      sum.right += step.right;
      rows += batch->valid_rows();
    }
    const double count = static_cast<double>(std::max<std::size_t>(rows, 1));
    const double took_s = seconds(clock_type::now() - start);
    last_loss = sum.loss / count;
    if (epoch == 0) first_loss = last_loss;
    std::printf("epoch %2u: loss %6.3f, %5.1f %% right, %5.2f s, of which %4.1f %% waiting for data\n", epoch,
                last_loss, 100.0 * static_cast<double>(sum.right) / count, took_s, 100.0 * seconds(waited) / took_s);
    std::fflush(stdout);
  }
  if (last_loss < first_loss) std::printf("the loss fell from %.3f to %.3f\n", first_loss, last_loss);
}

}  // namespace

int main(int argc, char** argv) try {
  const leat::dataset photos = leat::open(argc > 1 ? argv[1] : "build/photos");
  const unsigned epochs = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 5;
  leat::loader loader{photos,
                      {.batch_size = 50, .seed = 1, .epochs = epochs},
                      leat::image{"jpg"}.random_resized_crop(side, {0.5, 1.0}).random_flip().normalize(leat::imagenet),
                      leat::label{"cls"}};
  asio::io_context context;
  auto done = asio::co_spawn(context, train(loader, photos.classes().size(), epochs), asio::use_future);
  context.run();
  done.get();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "trainer: %s\n", problem.what());
  return 1;
}
