// Mean and deviation of a set of photographs, channel by channel, as normalize() takes them: each step is one launch of a CUDA
// graph that was captured for the memory in which the batch lies (cuda_graph.cu says what can be captured and what cannot).
// Without a GPU the same loop adds up on the CPU. Either way the numbers are compared with the host fallback's.
//
//     cuda_graph [FOLDER or shards]
#include "cuda_graph.hpp"

#include <leat/cuda.hpp>
#include <leat/loader.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace asio = boost::asio;

namespace {

constexpr int side = 112;

struct epoch_result {
  channel_sums::sums sums;
  std::size_t batches = 0;
  std::size_t rows = 0;
  std::size_t addresses = 0;  ///< at which batches have lain
  std::size_t graphs = 0;
  leat::fallback use;
};

asio::awaitable<epoch_result> epoch(const leat::dataset& photos, leat::device where) {
  channel_sums model(where);
  leat::loader loader{
      photos,
      {.batch_size = 16, .seed = 1, .epochs = 1, .device = where, .device_required = true, .device_batches = 3},
      leat::image{"jpg"}.resize(side).center_crop(side).as(leat::dtype::u8).as(leat::layout::nhwc)};
  epoch_result all{.use = loader.stats().device.use};
  std::set<const void*> addresses;
  while (std::optional<leat::batch> batch = co_await loader.next()) {
    batch->wait_on(model.stream());  // Before the graph, and outside of any capture.
    const leat::tensor pixels = (*batch)["jpg"];
    model.step(pixels);
    addresses.insert(pixels.data);
    all.rows += batch->valid_rows();
    ++all.batches;
  }  // The batch ends behind its graph: the block's next copy waits for it.
  all.sums = model.read();
  all.graphs = model.graphs();
  all.addresses = addresses.size();
  co_return all;
}

epoch_result run(const leat::dataset& photos, leat::device where) {
  asio::io_context context;
  auto done = asio::co_spawn(context, epoch(photos, where), asio::use_future);
  context.run();
  return done.get();
}

}  // namespace

int main(int argc, char** argv) try {
  const leat::dataset photos = leat::open(argc > 1 ? argv[1] : "build/photos");
  const epoch_result got = run(photos, leat::current_device());
  std::printf("on %s: %s\n", got.use.use.c_str(), got.use.why.c_str());
  std::printf("%zu batches at %zu addresses, %zu graphs\n", got.batches, got.addresses, got.graphs);
  const double pixels = static_cast<double>(got.rows) * side * side;
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = static_cast<double>(got.sums.values[c]) / pixels;
    const double variance = static_cast<double>(got.sums.squares[c]) / pixels - mean * mean;
    std::printf("channel %zu: mean %.4f, deviation %.4f\n", c, mean / 255, std::sqrt(variance) / 255);
  }
  const bool same = run(photos, leat::host).sums == got.sums;
  std::printf("%s\n", same ? "the same numbers as on the host" : "NOT the numbers of the host");
  return same ? 0 : 1;
} catch (const std::exception& problem) {
  std::fprintf(stderr, "cuda_graph: %s\n", problem.what());
  return 1;
}
