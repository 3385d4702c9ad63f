// Trains a network of two layers on photographs, on a GPU: its loss falls, and it says what share of the time the GPU stood
// waiting for data. Without a GPU the same lines train it on the CPU: the loader's batches stay on the host, and what
// wait_on() waits for is there already.
//
//     trainer_cuda [FOLDER of class folders] [EPOCHS]
#include "trainer_cuda.hpp"

#include <leat/cuda.hpp>
#include <leat/loader.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace asio = boost::asio;

namespace {

constexpr int side = 24;  // pixels: a picture this small still shows what is in it

asio::awaitable<void> train(leat::loader& photos, two_layers& model, unsigned epochs) {
  double first_loss = 0;
  double last_loss = 0;
  for (unsigned epoch = 0; epoch < epochs; ++epoch) {
    while (true) {
      model.wait_begins();
      std::optional<leat::batch> batch = co_await photos.next();
      if (!batch) break;
      batch->wait_on(model.stream());  // The stream waits for the copy; this thread does not.
      model.step((*batch)["jpg"], (*batch)["cls"], 0.02F);
    }  // The batch ends: what is copied into its memory next waits for the step.
    const two_layers::epoch_result sum = model.end_epoch();
    last_loss = sum.loss;
    if (epoch == 0) first_loss = last_loss;
    std::printf("epoch %2u: loss %6.3f, %5.1f %% right, %6.3f s, of which %4.1f %% waiting for data\n", epoch,
                last_loss,
                100.0 * static_cast<double>(sum.right) / static_cast<double>(std::max<std::size_t>(sum.rows, 1)),
                sum.took_s, 100.0 * sum.stalled_s / sum.took_s);
    std::fflush(stdout);
  }
  if (last_loss < first_loss) std::printf("the loss fell from %.3f to %.3f\n", first_loss, last_loss);
}

}  // namespace

int main(int argc, char** argv) try {
  const leat::dataset photos = leat::open(argc > 1 ? argv[1] : "build/photos");
  const unsigned epochs = argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)) : 5;
  const leat::device where = leat::current_device();  // the host where there is no GPU
  // Required: the model will be where it says, and reads the batches there.
  const leat::loader_options options{
      .batch_size = 50, .seed = 1, .epochs = epochs, .device = where, .device_required = true};
  two_layers model(where, {.inputs = 3 * side * side,
                           .hidden = 64,
                           .classes = photos.classes().size(),
                           .rows_max = options.batch_size,
                           .epoch_rows_max = photos.size()});
  leat::loader loader{photos, options,
                      leat::image{"jpg"}.random_resized_crop(side, {0.5, 1.0}).random_flip().normalize(leat::imagenet),
                      leat::label{"cls"}};
  const leat::fallback use = loader.stats().device.use;
  std::printf("on %s: %s\n", use.use.c_str(), use.why.c_str());
  asio::io_context context;
  auto done = asio::co_spawn(context, train(loader, model, epochs), asio::use_future);
  context.run();
  done.get();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "trainer_cuda: %s\n", problem.what());
  return 1;
}
