// Merging, beside the definition: of all neighbours the pair of the least rank, the first of those, until none is left.
#include "stages/tokenize/byte_pairs.hpp"

#include "tests/support/seeds.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

struct rules {
  std::vector<vocabulary_entry> vocabulary;
  std::vector<token_merge> merges;
};

// Every byte, and tokens of neighbours that earlier ones have.
rules some_rules(std::mt19937_64& draw, std::size_t merges, std::string_view letters) {
  rules made;
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    made.vocabulary.push_back({std::string(1, static_cast<char>(byte)), byte});
  std::vector<std::uint32_t> usual;
  for (const char letter : letters) usual.push_back(static_cast<unsigned char>(letter));
  for (std::size_t i = 0; i < merges; ++i) {
    const std::uint32_t left = usual[draw() % usual.size()];
    const std::uint32_t right = usual[draw() % usual.size()];
    const auto id = static_cast<std::uint32_t>(made.vocabulary.size());
    const bool is_known = std::any_of(made.merges.begin(), made.merges.end(), [&](const token_merge& each) {
      return each.left == left && each.right == right;
    });
    if (is_known) continue;
    made.vocabulary.push_back({made.vocabulary[left].bytes + made.vocabulary[right].bytes, id});
    made.merges.push_back({left, right, id, static_cast<std::uint32_t>(made.merges.size())});
    usual.push_back(id);
  }
  return made;
}

std::vector<std::uint32_t> by_definition(const rules& of, const std::string& word) {
  std::vector<std::uint32_t> ids;
  for (const char letter : word) ids.push_back(static_cast<unsigned char>(letter));
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> rank;
  for (std::size_t i = 0; i < of.merges.size(); ++i) rank[{of.merges[i].left, of.merges[i].right}] = i;
  for (;;) {
    std::size_t best = of.merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = rank.find({ids[i], ids[i + 1]});
      if (found == rank.end() || found->second >= best) continue;
      best = found->second;
      at = i;
    }
    if (best == of.merges.size()) return ids;
    ids[at] = of.merges[best].id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::vector<std::uint32_t> encoded(const byte_pairs& pairs, std::string_view word) {
  merge_scratch scratch;
  std::vector<std::uint32_t> ids;
  pairs.encode(word, scratch, ids);
  return ids;
}

TEST(byte_pairs, merge_as_the_definition_has_it_in_words_of_any_length) {
  testing::for_each_seed(100, [](std::uint64_t seed) {
    std::mt19937_64 draw(seed);
    const rules of = some_rules(draw, 1 + draw() % 60, "abc");
    const byte_pairs pairs(of.vocabulary, of.merges, false);
    for (std::size_t bytes : {1U, 2U, 3U, 7U, 47U, 48U, 49U, 50U, 200U}) {
      std::string word;
      while (word.size() < bytes) word += "abcab"[draw() % 5];
      ASSERT_EQ(encoded(pairs, word), by_definition(of, word)) << word;
    }
  });
}

TEST(byte_pairs, take_a_word_of_the_vocabulary_whole_where_they_are_told_to) {
  std::vector<vocabulary_entry> vocabulary;
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    vocabulary.push_back({std::string(1, static_cast<char>(byte)), byte});
  vocabulary.push_back({"abc", 300});
  EXPECT_EQ(encoded({vocabulary, {}, true}, "abc"), (std::vector<std::uint32_t>{300}));
  EXPECT_EQ(encoded({vocabulary, {}, true}, "abcd"), (std::vector<std::uint32_t>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(encoded({vocabulary, {}, false}, "abc"), (std::vector<std::uint32_t>{'a', 'b', 'c'}));
}

TEST(byte_pairs, take_no_time_for_a_long_word_that_grows_with_its_square) {
  std::mt19937_64 draw(1);
  const rules of = some_rules(draw, 200, "ab");
  const byte_pairs pairs(of.vocabulary, of.merges, false);
  // 10^12 looks at a pair if each merge went through the word.
  const std::string word(byte_pairs::word_bytes_max, 'a');
  EXPECT_LE(encoded(pairs, word).size(), word.size());
}

TEST(byte_pairs, name_a_byte_that_the_vocabulary_lacks) {
  std::vector<vocabulary_entry> vocabulary;
  for (std::uint32_t byte = 0; byte < 255; ++byte)
    vocabulary.push_back({std::string(1, static_cast<char>(byte)), byte});
  try {
    const byte_pairs pairs(vocabulary, {}, false);
    FAIL();
  } catch (const error& wrong) {
    EXPECT_EQ(wrong.code(), errc::format);
    EXPECT_THAT(wrong.what(), ::testing::HasSubstr("no token for the byte 255"));
  }
}

}  // namespace
}  // namespace leat::stages
