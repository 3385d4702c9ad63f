// leat::reader by itself: files of one's own, read as fast as the drive goes, in whatever order. It counts how often each byte
// occurs, over the pieces of all files at random, and says how many bits a byte carries: 8 where nothing could compress it.
//
//     own_files FILE…
#include <leat/read_queue.hpp>
#include <leat/reader.hpp>
#include <leat/units.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace leat::literals;

constexpr std::size_t piece_bytes = 64_KiB, reads_max = 64;

asio::awaitable<void> count(leat::reader& disk, std::vector<std::string> paths) {
  std::vector<leat::read_request> pieces;
  for (const std::string& path : paths) {
    const leat::reader::file file = co_await disk.open(path, asio::use_awaitable);
    for (std::uint64_t offset = 0; offset < file.size_bytes; offset += piece_bytes) {
      pieces.push_back({file, offset, std::min<std::uint64_t>(piece_bytes, file.size_bytes - offset)});
    }
  }
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937{7});

  // Each read has a place in this memory; a piece that has ended leaves its place to the next one.
  leat::lease memory = co_await disk.lease(reads_max * piece_bytes, asio::use_awaitable);
  leat::read_queue queue = disk.queue({.reads_max = reads_max});
  std::size_t pushed = 0;
  const auto push_next = [&](std::uint64_t place) {
    if (pushed == pieces.size()) return;
    leat::read_request& piece = pieces[pushed++];
    piece.into = memory.bytes().subspan(place * piece_bytes, piece_bytes);
    piece.tag = place;
    queue.push(piece);
  };
  for (std::uint64_t place = 0; place < reads_max; ++place) push_next(place);

  std::array<std::uint64_t, 256> counts{};
  for (;;) {
    const auto ended = co_await queue.completed(asio::use_awaitable);  // as many as have ended, in their order
    if (ended.empty()) break;
    for (const leat::read_completion& piece : ended) {
      if (piece.failure != 0) throw queue.explain(piece);
      for (const std::byte value : piece.data) ++counts[std::to_integer<std::size_t>(value)];
      push_next(piece.tag);
    }
  }

  double all = 0;
  double bits = 0;
  for (const std::uint64_t times : counts) all += static_cast<double>(times);
  for (const std::uint64_t times : counts) {
    if (times > 0) bits -= static_cast<double>(times) / all * std::log2(static_cast<double>(times) / all);
  }
  std::printf("%zu files, %.0f bytes in %zu pieces: %.3f bits a byte\n", paths.size(), all, pieces.size(), bits);
}

int main(int argc, char** argv) try {
  leat::reader disk(reads_max * piece_bytes);
  // On the reader's own executor no thread hops.
  asio::co_spawn(disk.get_executor(), count(disk, {argv + 1, argv + argc}), asio::use_future).get();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "own_files: %s\n", problem.what());
  return 1;
}
