// Rows of CSV are looked for in 64 bytes at once, unless fewer come, or a quote stands where none can be.
#include "datasets/files/lines.hpp"

#include <leat/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::datasets {
namespace {

using offset_and_bytes = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

/// next: how many bytes come at a time. Empty where quotes have no end
template <class Next>
offset_and_bytes rows_of(std::string_view text, const Next& next) {
  const auto finder = finder_of_csv_rows("x.csv", ',');
  finder->take(text.substr(0, 3));
  for (std::size_t at = 3; at < text.size();) {
    const std::string_view piece = text.substr(at, next());
    finder->take(piece);
    at += piece.size();
  }
  offset_and_bytes found;
  try {
    for (const value_place& place : finder->finish()) found.emplace_back(place.offset, place.bytes);
  } catch (const error&) {
  }
  return found;
}

TEST(lines, rows_of_csv_are_the_same_however_many_bytes_come_at_once) {
  std::mt19937_64 random(11);
  std::size_t rows = 0;
  std::size_t unended = 0;
  for (int i = 0; i < 20'000; ++i) {
    // Half of the texts have quotes where they belong, and ends of lines within them.
    std::string text = "a\n.";
    const bool is_sound = i % 2 == 0;
    const std::string_view letters = is_sound ? "ab,,\n\r " : "ab,\"\"\n\r ";
    for (std::uint64_t k = 3 + random() % 400; k > 0; --k) {
      if (is_sound && random() % 8 == 0) {
        text += random() % 2 == 0 ? ",\"x\r\n,\"\"y\"" : "\n\"\"\r\n";
      } else {
        text += letters[random() % letters.size()];
      }
    }
    const offset_and_bytes one_by_one = rows_of(text, [] { return std::size_t{1}; });
    EXPECT_EQ(rows_of(text, [&] { return text.size(); }), one_by_one) << text;
    EXPECT_EQ(rows_of(text, [&] { return std::size_t{1} + random() % 200; }), one_by_one) << text;
    if (HasFailure()) return;
    rows += one_by_one.size();
    unended += one_by_one.empty() ? 1 : 0;
  }
  EXPECT_GT(rows, 100'000U);
  EXPECT_GT(unended, 1'000U);
}

}  // namespace
}  // namespace leat::datasets
