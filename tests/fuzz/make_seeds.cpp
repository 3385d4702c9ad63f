// make_seeds DIRECTORY: what the fuzzer begins with, small baseline JPEGs of every kind, each with a crop.
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/pixels/random_jpeg.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

namespace leat {
namespace {

int make(const char* where) {
  constexpr int seeds = 400;
  constexpr int side_max = 24;
  const std::filesystem::path directory(where);
  std::filesystem::create_directories(directory);
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto encoded = testing::random_jpeg(random, side_max);
    testing::fuzz_crop crop;
    for (auto& byte : crop.raw) byte = static_cast<std::uint8_t>(random());
    if (seed % 4 == 0) crop.raw[2] = crop.raw[3] = 255, crop.raw[6] = 0;  // all of it, as it is
    std::ofstream file(directory / ("seed-" + std::to_string(seed)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(crop.raw), testing::fuzz_crop::bytes);
    file.write(reinterpret_cast<const char*>(encoded.data()), static_cast<std::streamsize>(encoded.size()));
    if (!file.flush()) return std::perror(where), 1;
  }
  return 0;
}

}  // namespace
}  // namespace leat

int main(int count, char** words) {
  if (count == 2) return leat::make(words[1]);
  std::fputs("usage: make_seeds DIRECTORY\n", stderr);
  return 2;
}
