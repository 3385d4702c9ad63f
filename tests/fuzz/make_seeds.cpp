// make_seeds KIND DIRECTORY: what a fuzzer begins with, each with a crop. Kinds: huffman, small baseline JPEGs of every sort;
// picture, small WebP, BMP and photo packs; pack, packs alone and an index of them, without crops.
#include "datasets/formats/tar/photo_places.hpp"
#include "stages/fields/photo_reach.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/pixels/random_jpeg.hpp"
#include "tests/support/make_bmp.hpp"
#include "tests/support/make_webp.hpp"

#include <leat/error.hpp>
#include <leat/photo_pack.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

constexpr int side_max = 24;

std::vector<std::byte> small_webp(std::mt19937_64& random) {
  testing::rgb_picture seen;
  testing::rgb_picture picture =
      testing::make_texture(random(), testing::between(random, 1, side_max), testing::between(random, 1, side_max));
  if (random() % 3 == 0) {  // few colours: a palette
    for (auto& value : picture.pixels) value = static_cast<std::uint8_t>(value & 0x80);
  }
  return testing::make_webp(picture,
                            {.lossless = random() % 2 == 0,
                             .quality = testing::between(random, 0, 100),
                             .method = testing::between(random, 0, 4),
                             .alpha = random() % 3 == 0,
                             .extended = random() % 3 == 0,
                             .orientation = random() % 4 == 0 ? testing::between(random, 1, 8) : 0,
                             .xmp = random() % 4 == 0 ? "<x tiff:Orientation=\"6\"/>" : ""},
                            seen);
}

std::vector<std::byte> small_bmp(std::mt19937_64& random) {
  testing::rgb_picture seen;
  const testing::rgb_picture picture =
      testing::make_texture(random(), testing::between(random, 1, side_max), testing::between(random, 1, side_max));
  constexpr int all_bits[] = {1, 4, 8, 16, 24, 32};
  constexpr int all_headers[] = {40, 52, 56, 64, 108, 124};
  testing::bmp_options options{.bits = all_bits[random() % 6], .header_bytes = all_headers[random() % 6]};
  options.top_down = random() % 2 == 0;
  if (options.bits == 4 || options.bits == 8) options.run_lengths = random() % 2 == 0;
  if (options.bits == 16) options.masks = random() % 2 == 0 ? testing::bmp_masks::rgb_565 : testing::bmp_masks::none;
  if (options.bits == 32 && random() % 2 == 0) options.header_bytes = 124, options.masks = testing::bmp_masks::rgba;
  return testing::make_bmp(picture, options, seen);
}

std::vector<std::byte> seed_file(const std::string& kind, std::mt19937_64& random) {
  if (kind == "huffman") return testing::random_jpeg(random, side_max);
  if (random() % 3 == 0) {
    const std::vector<std::byte> jpeg = testing::random_jpeg(random, side_max);
    try {
      return pack_photo(jpeg);
    } catch (const error&) {
      return jpeg;  // of a sort that is not packed
    }
  }
  return random() % 2 == 0 ? small_webp(random) : small_bmp(random);
}

// Packs, and at last an index of them all.
int make_packs(const char* where) {
  constexpr int seeds = 200;
  const std::filesystem::path directory(where);
  std::filesystem::create_directories(directory);
  const auto write = [&](const std::string& name, const std::vector<std::byte>& bytes) {
    std::ofstream file(directory / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return static_cast<bool>(file.flush());
  };
  std::vector<datasets::photo_place> places;
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    std::vector<std::byte> pack;
    try {
      pack = pack_photo(testing::random_jpeg(random, side_max));
    } catch (const error&) {
      continue;  // of a sort that is not packed
    }
    if (const auto place = stages::place_of_photo(pack); place && places.size() < 8) places.push_back(*place);
    if (!write("seed-" + std::to_string(seed), pack)) return std::perror(where), 1;
  }
  if (!write("index", datasets::as_member(places))) return std::perror(where), 1;
  return 0;
}

int make(const std::string& kind, const char* where) {
  constexpr int seeds = 400;
  const std::filesystem::path directory(where);
  std::filesystem::create_directories(directory);
  for (int seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto encoded = seed_file(kind, random);
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
  const std::string kind = count == 3 ? words[1] : "";
  if (kind == "huffman" || kind == "picture") return leat::make(kind, words[2]);
  if (kind == "pack") return leat::make_packs(words[2]);
  std::fputs("usage: make_seeds huffman|picture|pack DIRECTORY\n", stderr);
  return 2;
}
