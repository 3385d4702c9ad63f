// The README's first program: photographs from a folder, one epoch, batch by batch.
#include <leat/loader.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdio>

namespace asio = boost::asio;
using namespace leat::literals;

asio::awaitable<void> epoch(leat::loader& train) {
  while (auto batch = co_await train.next(asio::use_awaitable)) {
    const leat::tensor pixels = (*batch)["jpg"];   // f32, [rows, 3, 224, 224]
    const leat::tensor classes = (*batch)["cls"];  // i64, [rows]
    std::printf("batch %3llu: %lld pictures, the first of class %lld\n",
                static_cast<unsigned long long>(batch->index()), static_cast<long long>(pixels.shape[0]),
                static_cast<long long>(classes.as<std::int64_t>()[0]));
  }  // The batch's memory goes home here.
}

int main(int argc, char** argv) try {
  const leat::dataset photos = leat::open(argc > 1 ? argv[1] : "build/photos");
  leat::loader train{photos,
                     {.batch_size = 64, .seed = 7, .epochs = 1, .host_bytes_max = 512_MiB},
                     leat::image{"jpg"}.random_resized_crop(224).random_flip().normalize(leat::imagenet),
                     leat::label{"cls"}};
  asio::io_context context;
  auto done = asio::co_spawn(context, epoch(train), asio::use_future);
  context.run();
  done.get();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "%s\n", problem.what());
  return 1;
}
