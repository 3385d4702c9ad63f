// leat::reader by itself: files of one's own, read as fast as the drive goes, in whatever order. It counts how often each byte
// occurs, over random pieces of all files, and says how many bits a byte carries: 8 where nothing could compress it.
//
//     own_files FILE…
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

constexpr std::uint64_t piece_bytes = 64_KiB;

asio::awaitable<void> count(leat::reader& disk, std::vector<std::string> paths) {
  std::vector<leat::reader::request> pieces;
  for (const std::string& path : paths) {
    const leat::reader::file file = co_await disk.open(path, asio::use_awaitable);
    for (std::uint64_t offset = 0; offset < file.size_bytes; offset += piece_bytes) {
      pieces.push_back({.file = file, .offset = offset, .bytes = std::min(piece_bytes, file.size_bytes - offset)});
    }
  }
  std::shuffle(pieces.begin(), pieces.end(), std::mt19937{7});

  // Each lease takes one piece, and the reads of a group are under way at once.
  std::vector<leat::lease> memory;
  for (int i = 0; i < 32; ++i) memory.push_back(co_await disk.lease(piece_bytes, asio::use_awaitable));
  std::array<std::uint64_t, 256> counts{};
  for (std::size_t begin = 0; begin < pieces.size(); begin += memory.size()) {
    const auto group = std::span(pieces).subspan(begin, std::min(memory.size(), pieces.size() - begin));
    for (std::size_t i = 0; i < group.size(); ++i) group[i].into = &memory[i];
    co_await disk.read(group, asio::use_awaitable);
    for (const leat::reader::request& piece : group) {
      for (const std::byte value : piece.data) ++counts[std::to_integer<std::size_t>(value)];
    }
  }

  double all = 0;
  double bits = 0;
  for (const std::uint64_t count : counts) all += static_cast<double>(count);
  for (const std::uint64_t count : counts) {
    if (count > 0) bits -= static_cast<double>(count) / all * std::log2(static_cast<double>(count) / all);
  }
  std::printf("%zu files, %.0f bytes in %zu pieces: %.3f bits a byte\n", paths.size(), all, pieces.size(), bits);
}

int main(int argc, char** argv) try {
  leat::reader disk(16_MiB);
  // On the reader's own executor no thread hops.
  asio::co_spawn(disk.get_executor(), count(disk, {argv + 1, argv + argc}), asio::use_future).get();
} catch (const std::exception& problem) {
  std::fprintf(stderr, "own_files: %s\n", problem.what());
  return 1;
}
