// Two loaders under ||: a step on whichever has a batch first. The side that comes second has taken nothing, so that no
// sample is lost.
//
//     two_loaders [FOLDER of class folders]
#include <leat/loader.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <cstdint>
#include <exception>
#include <iostream>
#include <set>
#include <vector>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;

using sample_ids = std::multiset<std::uint64_t>;

asio::awaitable<void> train(leat::loader& photos, leat::loader& numbers, sample_ids& of_photos,
                            sample_ids& of_numbers) {
  const auto step = [](const std::optional<leat::batch>& batch, sample_ids& seen) {
    if (batch) seen.insert(batch->ids().begin(), batch->ids().end());
    return batch.has_value();  // else it is the end of the epoch
  };
  bool both = true;
  while (both) {
    const auto got = co_await (photos.next(asio::use_awaitable) || numbers.next(asio::use_awaitable));
    both = got.index() == 0 ? step(std::get<0>(got), of_photos) : step(std::get<1>(got), of_numbers);
  }
  // One of them has ended: the rest of the other one.
  while (!photos.finished() && step(co_await photos.next(), of_photos)) {
  }
  while (!numbers.finished() && step(co_await numbers.next(), of_numbers)) {
  }
}

bool each_once(const sample_ids& seen, std::uint64_t samples) {
  return seen.size() == samples && std::set<std::uint64_t>(seen.begin(), seen.end()).size() == samples;
}

int main(int argc, char** argv) try {
  leat::loader photos{leat::open(argc > 1 ? argv[1] : "build/photos"),
                      {.batch_size = 16, .epochs = 1, .host_bytes_max = 128 << 20},
                      leat::image{"jpg"}.random_resized_crop(64)};
  const auto number = [](std::uint64_t sample) { return std::vector(1, std::byte(sample)); };
  leat::loader numbers{leat::from_function(200, number, {.field = "n", .bytes_max = 1}),
                       {.batch_size = 4, .epochs = 1, .host_bytes_max = 64 << 20},
                       leat::bytes{"n"}};
  sample_ids of_photos, of_numbers;
  asio::io_context loop;  // || asks for one thread, or a strand
  auto done = asio::co_spawn(loop, train(photos, numbers, of_photos, of_numbers), asio::use_future);
  loop.run();
  done.get();
  const bool all = each_once(of_photos, photos.samples()) && each_once(of_numbers, numbers.samples());
  std::cout << of_photos.size() << " photographs and " << of_numbers.size() << " numbers"
            << (all ? ", each once\n" : ", and some are missing or came twice\n");
  return all ? 0 : 1;
} catch (const std::exception& problem) {
  std::cerr << problem.what() << '\n';
  return 1;
}
