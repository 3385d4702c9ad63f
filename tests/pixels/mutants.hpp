#pragma once

// Damaged pictures: any answer will do, but for a crash, a read past an end (AddressSanitizer looks on) and a long wait.

#include "tests/pixels/decode_one.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

namespace leat::testing {

/// Some bytes changed, a part cut out or put in twice, or the end missing. Half of the changes are among the first 64 bytes.
inline void mutate(std::mt19937_64& random, std::vector<std::byte>& file) {
  const std::size_t changes = 1 + random() % 4;
  for (std::size_t i = 0; i < changes && !file.empty(); ++i) {
    const std::size_t reach = random() % 2 == 0 ? std::min<std::size_t>(file.size(), 64) : file.size();
    const std::size_t at = random() % reach;
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min<std::size_t>(file.size() - at, 1 + random() % 32));
    switch (random() % 8) {
      case 0:
        file.erase(begin, end);
        break;
      case 1: {
        const std::vector<std::byte> part(begin, end);
        file.insert(end, part.begin(), part.end());
        break;
      }
      case 2:
        if (random() % 4 == 0) file.resize(at);
        break;
      case 3:
        file[at] = std::byte{0xFF};
        break;
      case 4:
        file[at] = std::byte{0};
        break;
      default:
        file[at] ^= std::byte{1} << (random() % 8);
    }
  }
}

/// Decodes mutants of what `make(random)` gives, whole and scaled, each as an allocation of its own size.
template <class Make>
void decode_mutants(int seeds, const Make& make) {
  pixels::scratch_budget budget(std::size_t{64} << 20);
  pixels::picture_decoder decoder(budget);
  const auto how = pixels::store::from(dtype::u8, layout::nhwc, std::nullopt);
  const pixels::pipeline steps({transforms::resize{.shorter_side = 0, .height = 16, .width = 16}});
  std::vector<std::byte> row(how.row_bytes(16, 16));
  int good = 0;
  for_each_seed(seeds, [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::vector<std::byte> whole = make(random);
    for (int i = 0; i < 20; ++i) {
      std::vector<std::byte> damaged = whole;
      mutate(random, damaged);
      damaged.shrink_to_fit();
      const pixels::decode_options options{.exif_orientation = i % 2 == 0, .pixels_max = 1 << 22};
      const auto result = decoder.decode(damaged, steps, {}, how, options, row.data(), nullptr);
      good += result ? 1 : 0;
      if (!result) EXPECT_NE(result.reason(), "");
    }
  });
  ::testing::Test::RecordProperty("good", good);
}

}  // namespace leat::testing
