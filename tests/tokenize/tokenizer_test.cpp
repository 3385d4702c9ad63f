// Tokenizers beside the library that wrote their files: tests/data/tokenizers/make.py.
#include "base/base64.hpp"
#include "base/parse_json.hpp"
#include "stages/tokenize/tokenizer_state.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::filesystem::path data = std::filesystem::path(LEAT_TEST_DATA) / "tokenizers";

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::uint32_t> ids_of(const tokenizer& words, std::string_view text, const stages::encode_options& how) {
  const stages::text_encoder& encoder = words.get()->encoder;
  stages::encode_scratch scratch(encoder);
  std::vector<std::uint32_t> ids;
  EXPECT_EQ(encoder.encode(text, how, scratch, ids), std::nullopt);
  return ids;
}

class tokenizers : public ::testing::TestWithParam<const char*> {};

TEST_P(tokenizers, give_the_tokens_of_the_library_that_wrote_them) {
  const nlohmann::json expected = parse_json(content_of(data / "expected.json"));
  const tokenizer words = tokenizer::open((data / GetParam()).string());
  const stages::text_encoder& encoder = words.get()->encoder;
  stages::encode_scratch scratch(encoder);
  for (const bool special : {false, true}) {
    const nlohmann::json& all = expected[GetParam()][special ? "tokens" : "text"];
    ASSERT_EQ(all.size(), expected["texts"].size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string text = expected["texts"][i];
      std::vector<std::uint32_t> ids;
      ASSERT_EQ(encoder.encode(text, {.special_in_text = special}, scratch, ids), std::nullopt);
      ASSERT_THAT(ids, ElementsAreArray(all[i].get<std::vector<std::uint32_t>>()))
          << "special " << special << ": " << text;
      EXPECT_LE(ids.size(), encoder.ids_most(text.size()) + encoder.ids_around());
    }
  }
}

TEST_P(tokenizers, cut_a_text_to_its_first_tokens_and_keep_those_around_it) {
  const tokenizer words = tokenizer::open((data / GetParam()).string());
  const std::string text = "the quick brown Größe of 12345 things, and the others";
  const std::vector<std::uint32_t> bare = ids_of(words, text, {.around = false});
  const std::vector<std::uint32_t> whole = ids_of(words, text, {});
  const std::size_t around = words.get()->encoder.ids_around();
  ASSERT_EQ(whole.size(), bare.size() + around);
  for (std::size_t most = 0; most <= whole.size() + 1; ++most) {
    const std::vector<std::uint32_t> ids = ids_of(words, text, {.ids_max = most});
    const std::size_t kept = std::min(most > around ? most - around : 0, bare.size());
    ASSERT_EQ(ids.size(), kept + around);
    const std::vector<std::uint32_t> alone = ids_of(words, text, {.around = false, .ids_max = most});
    EXPECT_THAT(
        alone, ElementsAreArray(bare.begin(), bare.begin() + static_cast<std::ptrdiff_t>(std::min(most, bare.size()))));
  }
}

TEST_P(tokenizers, replace_what_is_no_utf_8) {
  const tokenizer words = tokenizer::open((data / GetParam()).string());
  const std::vector<std::pair<std::string, std::string>> cases = {{"a\xFF"
                                                                   "b",
                                                                   "a\uFFFDb"},
                                                                  {"\xE4\xB8", "\uFFFD"},
                                                                  {"\xE4\xB8 x", "\uFFFD x"},
                                                                  {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
                                                                  {"\xC0\xAF", "\uFFFD\uFFFD"},
                                                                  {"\xF0\x9F\x98", "\uFFFD"},
                                                                  {"\xF0\x9F\x98\xE4\xB8\x96", "\uFFFD\u4E16"},
                                                                  {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"}};
  for (const auto& [broken, meant] : cases) EXPECT_EQ(ids_of(words, broken, {}), ids_of(words, meant, {}));
}

TEST_P(tokenizers, take_any_bytes) {
  const tokenizer words = tokenizer::open((data / GetParam()).string());
  const stages::text_encoder& encoder = words.get()->encoder;
  stages::encode_scratch scratch(encoder);
  testing::for_each_seed(300, [&](std::uint64_t seed) {
    std::mt19937_64 draw(seed);
    std::string text(draw() % 300, '\0');
    for (char& letter : text) letter = static_cast<char>(draw() % (draw() % 2 == 0 ? 128 : 256));
    std::vector<std::uint32_t> ids;
    ASSERT_EQ(encoder.encode(text, {}, scratch, ids), std::nullopt);
    for (const std::uint32_t id : ids) ASSERT_LT(id, encoder.vocabulary());
    // What was seen before is the same.
    ASSERT_EQ(ids, ids_of(words, text, {}));
  });
}

INSTANTIATE_TEST_SUITE_P(of, tokenizers,
                         ::testing::Values("gpt2.json", "llama3.json", "qwen.json", "spaces.json", "bert.json",
                                           "bert_cased.json", "llama2.json", "mistral.json", "albert.json",
                                           "unigram_bytes.json", "precompiled.json"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(tokenizer, knows_its_tokens_by_their_bytes) {
  const tokenizer words = tokenizer::open((data / "gpt2.json").string());
  EXPECT_EQ(words.find("<|end|>"), 600);
  EXPECT_EQ(words.vocabulary(), 601);
  EXPECT_EQ(words.find("no token"), std::nullopt);
  ASSERT_TRUE(words.find(" the"));
  EXPECT_THAT(words.encode(" the"), ElementsAre(*words.find(" the")));
}

TEST(tokenizer, counts_tokens_that_are_only_put_around_a_text) {
  nlohmann::json file = parse_json(content_of(data / "llama3.json"));
  file["added_tokens"] = nlohmann::json::array();
  const testing::temporary_directory folder;
  const std::filesystem::path path = folder.path() / "tokenizer.json";
  std::ofstream(path) << file.dump();
  const tokenizer words = tokenizer::open(path.string());
  for (const std::int32_t id : words.encode("the")) EXPECT_LT(id, words.vocabulary());
}

TEST(tokenizer, is_another_one_where_its_file_differs) {
  const digest gpt2 = tokenizer::open((data / "gpt2.json").string()).identity();
  EXPECT_EQ(gpt2, tokenizer::open((data / "gpt2.json").string()).identity());
  EXPECT_NE(gpt2, tokenizer::open((data / "qwen.json").string()).identity());
}

std::string refusal(const std::string& name, const std::string& content, errc code) {
  const testing::temporary_directory folder;
  const std::filesystem::path path = folder.path() / name;
  std::ofstream(path, std::ios::binary) << content;
  try {
    static_cast<void>(tokenizer::open(path.string()));
  } catch (const error& wrong) {
    EXPECT_EQ(wrong.code(), code) << wrong.what();
    EXPECT_THAT(wrong.what(), HasSubstr(path.string()));
    return wrong.what();
  }
  ADD_FAILURE() << "was opened: " << content.substr(0, 200);
  return {};
}

TEST(tokenizer, refuses_each_part_that_it_does_not_read_by_its_name) {
  const nlohmann::json whole = parse_json(content_of(data / "gpt2.json"));
  const auto with = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json changed = whole;
    change(changed);
    return changed.dump();
  };
  const std::vector<std::pair<std::function<void(nlohmann::json&)>, const char*>> cases = {
      {[](nlohmann::json& of) { of["normalizer"] = {{"type", "Nmt"}}; }, "the normalizer Nmt"},
      {[](nlohmann::json& of) { of["pre_tokenizer"] = {{"type", "Whitespace"}}; }, "the pre-tokenizer Whitespace"},
      {[](nlohmann::json& of) { of["model"]["type"] = "WordLevel"; }, "the model WordLevel"},
      {[](nlohmann::json& of) { of["model"]["type"] = "Unigram"; }, "behind the pre-tokenizer ByteLevel"},
      {[](nlohmann::json& of) {
         of["pre_tokenizer"] = nullptr;
         of["model"]["byte_fallback"] = true;
       },
       "byte_fallback without the token <0x00>"},
      {[](nlohmann::json& of) {
         of["normalizer"] = {{"type", "Strip"}};
         of["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
       },
       "the prepend_scheme first"},
      {[](nlohmann::json& of) { of["model"]["dropout"] = 0.1; }, "model.dropout"},
      {[](nlohmann::json& of) { of["model"]["end_of_word_suffix"] = "</w>"; }, "model.end_of_word_suffix"},
      {[](nlohmann::json& of) { of["added_tokens"][0]["single_word"] = true; }, "with single_word"},
      {[](nlohmann::json& of) { of["added_tokens"][0]["content"] = std::string(257, 'a'); },
       "an added token of 257 bytes"},
      {[](nlohmann::json& of) { of["post_processor"] = {{"type", "New"}}; }, "the post-processor New"},
      {[](nlohmann::json& of) {
         of["pre_tokenizer"] = {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "Contiguous"}};
       },
       "the behavior Contiguous"},
  };
  for (const auto& [change, named] : cases) {
    EXPECT_THAT(refusal("tokenizer.json", with(change), errc::unsupported), HasSubstr(named));
  }
  EXPECT_THAT(refusal("tokenizer.model", "", errc::unsupported), HasSubstr("tokenizer.json"));
  EXPECT_THAT(refusal("mine.tiktoken", "", errc::unsupported), HasSubstr("cl100k_base"));
}

TEST(tokenizer, says_where_a_file_is_damaged) {
  const nlohmann::json whole = parse_json(content_of(data / "gpt2.json"));
  nlohmann::json lacking = whole;
  lacking["model"]["merges"].push_back({"nothing", "there"});
  EXPECT_THAT(refusal("tokenizer.json", lacking.dump(), errc::format), HasSubstr("'nothing' is not in the vocabulary"));
  nlohmann::json negative = whole;
  negative["model"]["vocab"]["a"] = -1;
  EXPECT_THAT(refusal("tokenizer.json", negative.dump(), errc::format), HasSubstr("a whole number"));
  EXPECT_THAT(refusal("tokenizer.json", "{\"model\": [", errc::format), HasSubstr("line 1"));
  EXPECT_THAT(refusal("tokenizer.json", "{}", errc::format), HasSubstr("no 'model'"));
  EXPECT_THAT(refusal("gpt2.tiktoken", "YQ== 0\nYg== x\n", errc::format), HasSubstr("line 2"));
  EXPECT_THAT(refusal("gpt2.tiktoken", "YQ== 0\nYQ== 1\n", errc::format), HasSubstr("a line before it"));
}

TEST(tokenizer, of_tiktoken_merges_what_is_a_token_together) {
  std::string file;
  for (int byte = 0; byte < 256; ++byte)
    file += to_base64(std::string(1, static_cast<char>(byte))) + " " + std::to_string(byte) + "\n";
  file += to_base64("ab") + " 256\n" + to_base64("bc") + " 257\n" + to_base64("abc") + " 258\n" + to_base64("xabc") +
          " 259\n";
  const testing::temporary_directory folder;
  const std::filesystem::path path = folder.path() / "cl100k_base.tiktoken";
  std::ofstream(path, std::ios::binary) << file;
  const tokenizer words = tokenizer::open(path.string());
  EXPECT_THAT(words.encode("abc"), ElementsAre(258));
  EXPECT_THAT(words.encode("bcab"), ElementsAre(257, 256));
  EXPECT_THAT(words.encode("xabc"), ElementsAre(259));
  EXPECT_THAT(words.encode("yabc"), ElementsAre('y', 258));
  EXPECT_EQ(words.find("<|endoftext|>"), 100257);
}

TEST(tokenizer, refuses_a_word_that_is_too_long_and_nothing_else_of_its_thread) {
  const tokenizer words = tokenizer::open((data / "gpt2.json").string());
  const std::string word(stages::byte_pairs::word_bytes_max + 1, 'a');
  try {
    static_cast<void>(words.encode("the " + word));
    FAIL();
  } catch (const error& wrong) {
    EXPECT_EQ(wrong.code(), errc::limit);
    EXPECT_THAT(wrong.what(), HasSubstr("a word of 1048578 bytes"));
  }
  EXPECT_FALSE(words.encode("the").empty());
}

}  // namespace
}  // namespace leat
