// The README's program by a coroutine: photographs from a folder, one epoch, batch by batch (docs/guides/first-program.md).
#include <leat/loader.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <iostream>

namespace asio = boost::asio;

asio::awaitable<void> epoch(leat::loader& train) {
  while (auto batch = co_await train.next()) {
    const leat::tensor pixels = (*batch)["jpg"];   // f32, [rows, 3, 224, 224]
    const leat::tensor classes = (*batch)["cls"];  // i64, [rows]
    std::cout << "batch " << batch->index() << ": " << pixels.shape[0] << " pictures, the first of class "
              << classes.as<std::int64_t>()[0] << '\n';
  }  // The batch returns its memory here.
}

int main(int argc, char** argv) try {
  asio::thread_pool trainer{1};  // before the loader, which hands over to it until it ends
  leat::loader train{leat::open(argc > 1 ? argv[1] : "build/photos"),
                     {.batch_size = 64, .seed = 7, .epochs = 1},
                     leat::image{"jpg"}.random_resized_crop(224).random_flip().normalize(leat::imagenet),
                     leat::label{"cls"}};
  asio::co_spawn(trainer, epoch(train), asio::use_future).get();
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
