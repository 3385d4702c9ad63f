// Bytes as the programs that compress whole files write them.
#pragma once

#include "datasets/codecs/compress.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {

/// One member of gzip, or one frame of zstd.
inline std::string coded(datasets::packing how, std::string_view bytes) {
  std::vector<std::byte> packed;
  datasets::compress(how, 1, std::as_bytes(std::span(bytes)), packed);
  return {reinterpret_cast<const char*>(packed.data()), packed.size()};
}

/// Several of them one after the other, as bgzip, pigz and pzstd write: each of so many bytes.
inline std::string coded_in_parts(datasets::packing how, std::string_view bytes, std::size_t part_bytes) {
  std::string all;
  for (std::size_t at = 0; at < bytes.size(); at += part_bytes) all += coded(how, bytes.substr(at, part_bytes));
  return all;
}

/// Letters that compress about as text does, others for each seed.
inline std::string some_text(std::size_t bytes, unsigned seed) {
  std::mt19937 draw(seed);
  std::string text(bytes, ' ');
  for (char& each : text) each = static_cast<char>('a' + draw() % 16);
  return text;
}

inline void put(const std::string& path, std::string_view content) { std::ofstream(path, std::ios::binary) << content; }

}  // namespace leat::testing
