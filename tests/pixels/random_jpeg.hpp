#pragma once

// Baseline JPEGs of every kind that our Huffman stage takes, a crop of each, and the question put to both stages.

#include "tests/pixels/decode_one.hpp"
#include "tests/support/make_picture.hpp"

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

inline int between(std::mt19937_64& random, int from, int to) {
  return std::uniform_int_distribution<int>(from, to)(random);
}

inline rgb_picture make_noise(std::mt19937_64& random, int width, int height) {
  rgb_picture made{width, height, {}};
  made.pixels.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  for (auto& value : made.pixels) value = static_cast<std::uint8_t>(random());
  return made;
}

/// From smooth to such that codes and values are as long as they get.
inline std::vector<std::byte> random_jpeg(std::mt19937_64& random, int side_max = 90) {
  const int width = between(random, 1, side_max);
  const int height = between(random, 1, side_max);
  const rgb_picture picture =
      between(random, 0, 2) == 0 ? make_noise(random, width, height) : make_texture(random(), width, height);
  jpeg_options options;
  const jpeg_colours colours[] = {jpeg_colours::ycbcr, jpeg_colours::ycbcr, jpeg_colours::rgb,
                                  jpeg_colours::grey,  jpeg_colours::cmyk,  jpeg_colours::ycck};
  options.colours = colours[between(random, 0, 5)];
  options.h = between(random, 1, 2);
  options.v = between(random, 1, 2);
  const int qualities[] = {1, 20, 75, 90, 100};
  options.quality = qualities[between(random, 0, 4)];
  options.optimise = between(random, 0, 1) == 1;
  options.restart_interval = between(random, 0, 2) == 0 ? static_cast<unsigned>(between(random, 1, 9)) : 0;
  return make_jpeg(picture, options);
}

struct huffman_answer {
  stages::outcome_kind kind;
  std::string reason;
  std::vector<std::uint8_t> row;
  bool again = false;
};

enum class huffman_stage : std::uint8_t { libjpeg, own, own_plain };

/// The crop of a picture, by our Huffman stage or by libjpeg-turbo's.
inline huffman_answer ask_huffman(pixels::picture_decoder& decoder, std::span<const std::byte> encoded,
                                  const pixels::geometry& drawn, pixels::decode_options options, huffman_stage by) {
  options.own_huffman = by != huffman_stage::libjpeg;
  options.plain_huffman = by == huffman_stage::own_plain;
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  std::vector<std::uint8_t> row(how.row_bytes(drawn.out_height, drawn.out_width));
  const auto result = decoder.decode(encoded, drawn, how, options, reinterpret_cast<std::byte*>(row.data()), nullptr);
  if (!result) return {result.kind(), result.reason(), {}};
  return {result.kind(), "", std::move(row), result->huffman_again};
}

}  // namespace leat::testing
