// TIFF files of every kind that libtiff writes, for wide_fuzz to begin with. scripts/fuzz runs it.
#include "tests/support/make_tiff.hpp"

#include <tiffio.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

using leat::testing::tiff_options;

tiff_options random_kind(std::mt19937_64& random, int& channels) {
  constexpr std::array compressions{COMPRESSION_NONE,          COMPRESSION_LZW,      COMPRESSION_JPEG,
                                    COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_ZSTD};
  constexpr std::array bits{8, 16, 32};
  tiff_options how{.bits = bits[random() % bits.size()],
                   .kind = static_cast<int>(1 + random() % 3),
                   .tile = random() % 2 == 0 ? 16 : 0,
                   .rows = static_cast<int>(1 + random() % 9),
                   .compression = compressions[random() % compressions.size()],
                   .planar = random() % 2 == 0,
                   .big_endian = random() % 2 == 0,
                   .big_tiff = random() % 3 == 0};
  channels = static_cast<int>(1 + random() % 5);
  if (how.kind == 3) how.bits = 32;
  if (how.compression == COMPRESSION_JPEG) {
    how.bits = 8, how.kind = 1, how.rows = 16, how.planar = false;
    channels = random() % 2 == 0 ? 1 : 3;
    if (channels == 3) how.photometric = PHOTOMETRIC_YCBCR;
    return how;
  }
  const bool predicts = how.compression == COMPRESSION_LZW || how.compression == COMPRESSION_ADOBE_DEFLATE;
  if (predicts && random() % 2 == 0) how.predictor = 2;
  if (channels >= 3 && random() % 2 == 0) how.photometric = PHOTOMETRIC_RGB, how.alpha = channels == 4;
  if (channels == 1 && how.bits == 8 && random() % 3 == 0) how.photometric = PHOTOMETRIC_PALETTE;
  return how;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return std::fputs("usage: make_tiff_seeds DIRECTORY\n", stderr), 2;
  const std::filesystem::path directory(words[1]);
  std::filesystem::create_directories(directory);
  constexpr int seeds = 300;
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    int channels = 1;
    const tiff_options how = random_kind(random, channels);
    const int width = static_cast<int>(1 + random() % 40);
    const int height = static_cast<int>(1 + random() % 40);
    std::vector<double> numbers(static_cast<std::size_t>(width * height * channels));
    for (double& number : numbers) number = static_cast<double>(random() % (how.bits == 8 ? 256 : 60'000));
    const auto file = leat::testing::make_tiff(width, height, channels, numbers, how);
    std::array<char, 8> head{};  // which bits and channels, and the part: wide_fuzz.cpp
    head[0] = static_cast<char>(how.bits == 8 ? 0 : how.bits == 16 ? 1 : 3);
    head[1] = static_cast<char>(channels - 1 - (how.alpha ? 1 : 0));
    head[2] = static_cast<char>(random());
    head[3] = static_cast<char>(random());
    std::ofstream out(directory / ("seed-" + std::to_string(seed)), std::ios::binary);
    out.write(head.data(), head.size());
    out.write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
    if (!out.flush()) return std::perror(words[1]), 1;
  }
  return 0;
}
