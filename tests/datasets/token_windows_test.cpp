// Which tokens a window has, beside a reference that walks over all of them.
#include "datasets/views/token_windows.hpp"

#include "tests/support/raw_files.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace leat::datasets {
namespace {

using testing::bytes_of;
using testing::for_each_seed;
using testing::seeded_random;
using testing::temporary_directory;
using testing::write_file;

/// Shards of tokens that count upwards from 0, over all shards.
struct counted_tokens {
  temporary_directory root;
  std::vector<std::uint64_t> lengths;
  std::vector<std::string> paths;

  explicit counted_tokens(const std::vector<std::uint64_t>& of) : lengths(of) {
    std::uint32_t next = 0;
    for (const std::uint64_t length : lengths) {
      std::vector<std::uint32_t> tokens(length);
      std::iota(tokens.begin(), tokens.end(), next);
      next += static_cast<std::uint32_t>(length);
      paths.push_back(write_file(root.path() / (std::to_string(paths.size()) + ".bin"), bytes_of(tokens)));
    }
  }
  [[nodiscard]] dataset open() const { return open_tokens(paths, {.type = dtype::u32}); }
};

std::vector<std::uint64_t> any_lengths(seeded_random& draws) {
  std::vector<std::uint64_t> lengths(1 + draws.below(4));
  for (std::uint64_t& each : lengths) each = draws.below(60);
  return lengths;
}

token_windows windows_over(const dataset& from, std::uint64_t length, window_order order,
                           document_rule documents = document_rule::ignore) {
  return {from.model(), 0, {.length = length, .order = order, .documents = documents}};
}

TEST(token_windows, shifted_every_token_comes_at_most_once_and_few_are_left_out) {
  for_each_seed(200, [](std::uint64_t seed) {
    seeded_random draws(seed);
    counted_tokens tokens(any_lengths(draws));
    const std::uint64_t length = 1 + draws.below(12);
    if (*std::max_element(tokens.lengths.begin(), tokens.lengths.end()) <= length) return;
    const token_windows windows = windows_over(tokens.open(), length, window_order::shifted);
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      std::map<std::uint32_t, std::set<std::uint64_t>> inputs;  // by file
      for (std::uint64_t i = 0; i < windows.size(); ++i) {
        const token_window window = windows.window(i, {.seed = seed, .draw = i, .epoch = epoch});
        ASSERT_EQ(window.tokens, length + 1);
        ASSERT_LE(window.offset / 4 + window.tokens, tokens.lengths[window.file]);
        for (std::uint64_t t = 0; t < length; ++t) {
          ASSERT_TRUE(inputs[window.file].insert(window.offset / 4 + t).second) << "a token twice";
        }
      }
      for (std::uint32_t file = 0; file < tokens.lengths.size(); ++file) {
        const std::uint64_t there = tokens.lengths[file];
        if (there <= length) {
          EXPECT_EQ(inputs.count(file), 0U);
        } else {
          EXPECT_LT(there - inputs[file].size(), 2 * length) << "of " << there << " tokens, length " << length;
        }
      }
    }
  });
}

TEST(token_windows, shifted_every_offset_comes_in_some_epoch_and_a_run_keeps_one) {
  counted_tokens tokens({100});
  const token_windows windows = windows_over(tokens.open(), 8, window_order::shifted);
  ASSERT_EQ(windows.size(), 11U);
  std::set<std::uint64_t> offsets;
  for (std::uint32_t epoch = 0; epoch < 400; ++epoch) {
    const std::uint64_t first = windows.window(0, {.seed = 7, .draw = 0, .epoch = epoch}).offset / 4;
    offsets.insert(first);
    for (std::uint64_t i = 1; i < windows.size(); ++i)
      EXPECT_EQ(windows.window(i, {.seed = 7, .draw = i, .epoch = epoch}).offset / 4, first + 8 * i);
  }
  EXPECT_EQ(offsets.size(), 8U);
  EXPECT_EQ(*offsets.rbegin(), 7U);
}

TEST(token_windows, tiled_are_what_a_walk_over_the_shards_finds) {
  for_each_seed(100, [](std::uint64_t seed) {
    seeded_random draws(seed);
    counted_tokens tokens(any_lengths(draws));
    const std::uint64_t length = 1 + draws.below(12);
    std::vector<std::pair<std::uint32_t, std::uint64_t>> expected;
    for (std::uint32_t file = 0; file < tokens.lengths.size(); ++file) {
      for (std::uint64_t at = 0; at + length + 1 <= tokens.lengths[file]; at += length) expected.emplace_back(file, at);
    }
    if (expected.empty()) return;
    const token_windows windows = windows_over(tokens.open(), length, window_order::tiled);
    ASSERT_EQ(windows.size(), expected.size());
    for (std::uint64_t i = 0; i < windows.size(); ++i) {
      const token_window window = windows.window(i, {.seed = seed, .draw = i, .epoch = static_cast<std::uint32_t>(i)});
      EXPECT_EQ(window.file, expected[i].first);
      EXPECT_EQ(window.offset, expected[i].second * 4);
    }
  });
}

TEST(token_windows, random_ones_begin_everywhere_and_lie_in_their_shard) {
  counted_tokens tokens({12, 5, 9, 20});
  const token_windows windows = windows_over(tokens.open(), 6, window_order::random);
  EXPECT_EQ(windows.size(), 1U + 0 + 1 + 3);
  std::map<std::pair<std::uint32_t, std::uint64_t>, int> seen;
  constexpr int epochs = 6000;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint64_t i = 0; i < windows.size(); ++i) {
      const token_window window = windows.window(i, {.seed = 3, .draw = i, .epoch = epoch});
      ASSERT_LE(window.offset / 4 + 7, tokens.lengths[window.file]);
      ++seen[{window.file, window.offset / 4}];
    }
  }
  // 6 + 0 + 3 + 14 places, each as likely: 1,304 times, give or take 35 (one deviation).
  EXPECT_EQ(seen.size(), 23U);
  for (const auto& [place, count] : seen) {
    EXPECT_NEAR(count, epochs * 5 / 23, 180) << place.first << " " << place.second;
  }
}

TEST(token_windows, depend_on_seed_epoch_and_number_alone) {
  counted_tokens tokens({500});
  for (const window_order order : {window_order::shifted, window_order::random}) {
    const token_windows one = windows_over(tokens.open(), 7, order);
    const token_windows other = windows_over(tokens.open(), 7, order);
    bool differs_by_epoch = false;
    bool differs_by_seed = false;
    for (std::uint64_t i = one.size(); i-- > 0;) {
      EXPECT_EQ(one.window(i, {.seed = 5, .draw = i, .epoch = 6}).offset,
                other.window(i, {.seed = 5, .draw = i, .epoch = 6}).offset);
      differs_by_epoch = differs_by_epoch || one.window(i, {.seed = 5, .draw = i, .epoch = 6}).offset !=
                                                 one.window(i, {.seed = 5, .draw = i, .epoch = 7}).offset;
      differs_by_seed = differs_by_seed || one.window(i, {.seed = 5, .draw = i, .epoch = 6}).offset !=
                                               one.window(i, {.seed = 8, .draw = i, .epoch = 6}).offset;
    }
    EXPECT_TRUE(differs_by_epoch);
    EXPECT_TRUE(differs_by_seed);
  }
}

/// One file of documents of these lengths, in their order.
dataset documents_of(const temporary_directory& root, const std::vector<std::int32_t>& lengths) {
  std::vector<std::uint16_t> tokens(static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), 0)));
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{0});
  write_file(root.path() / "m.bin", bytes_of(tokens));
  std::vector<std::int64_t> borders(lengths.size() + 1);
  std::iota(borders.begin(), borders.end(), std::int64_t{0});
  write_file(root.path() / "m.idx", testing::megatron_index(8, 2, lengths, borders));
  return open_tokens((root.path() / "m.bin").string());
}

TEST(token_windows, within_documents_every_pair_of_neighbours_comes_exactly_once) {
  for_each_seed(100, [](std::uint64_t seed) {
    seeded_random draws(seed);
    const temporary_directory root;
    std::vector<std::int32_t> lengths(1 + draws.below(9));
    for (std::int32_t& each : lengths) each = static_cast<std::int32_t>(draws.below(20));
    const std::uint64_t length = 1 + draws.below(6);
    std::set<std::uint64_t> expected;  // first tokens of pairs
    std::uint64_t at = 0;
    for (const std::int32_t each : lengths) {
      for (std::int32_t t = 0; t + 1 < each; ++t) expected.insert(at + static_cast<std::uint64_t>(t));
      at += static_cast<std::uint64_t>(each);
    }
    if (expected.empty()) return;
    const token_windows windows =
        windows_over(documents_of(root, lengths), length, window_order::shifted, document_rule::within);
    std::set<std::uint64_t> found;
    for (std::uint64_t i = 0; i < windows.size(); ++i) {
      const token_window window = windows.window(i, {.seed = seed, .draw = i, .epoch = 1});
      ASSERT_GE(window.tokens, 2U);
      ASSERT_LE(window.tokens, length + 1);
      for (std::uint64_t t = 0; t + 1 < window.tokens; ++t) {
        ASSERT_TRUE(found.insert(window.offset / 2 + t).second);
      }
    }
    EXPECT_EQ(found, expected);
  });
}

TEST(token_windows, marked_borders_are_where_documents_begin) {
  const temporary_directory root;
  const token_windows windows =
      windows_over(documents_of(root, {4, 1, 6, 9}), 5, window_order::tiled, document_rule::mark);
  EXPECT_EQ(windows.size(), 3U);
  const auto borders = windows.borders(3, 11);
  EXPECT_EQ((std::vector<std::uint64_t>{borders.begin(), borders.end()}), (std::vector<std::uint64_t>{4, 5}));
  EXPECT_EQ(windows.borders(4, 5).size(), 0U);
  EXPECT_EQ(windows.borders(0, 20).size(), 3U);
}

TEST(token_windows, shards_that_are_too_short_for_any_are_an_error_that_says_how_long_they_are) {
  counted_tokens tokens({8, 5});
  EXPECT_EQ(windows_over(tokens.open(), 7, window_order::tiled).size(), 1U);
  try {
    static_cast<void>(windows_over(tokens.open(), 8, window_order::tiled));
    FAIL() << "nothing was thrown";
  } catch (const error& refusal) {
    EXPECT_EQ(refusal.code(), errc::usage);
    EXPECT_NE(std::string(refusal.what()).find("the longest of the 2 has 8"), std::string::npos) << refusal.what();
  }
}

TEST(token_windows, say_how_much_an_epoch_reads) {
  counted_tokens tokens({101});
  const token_windows windows = windows_over(tokens.open(), 10, window_order::tiled);
  EXPECT_EQ(windows.fields().front().samples, 10U);
  EXPECT_EQ(windows.fields().front().bytes_max, 44U);
  EXPECT_EQ(windows.fields().front().bytes_total, 440U);
  datasets::part_list parts;
  const datasets::need wanted[] = {{.field = 0, .seed = 1, .epoch = 2}};
  windows.parts(3, wanted, parts);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].where, (extent{0, 0, 120, 44, 44}));
}

}  // namespace
}  // namespace leat::datasets
