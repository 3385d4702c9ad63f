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
    // SentencePiece has no way to ask for special tokens in a text.
    if (special && !expected[GetParam()].contains("tokens")) continue;
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
  // SentencePiece replaces each byte for itself.
  const bool is_pieces = std::string_view(GetParam()).ends_with(".model");
  for (const auto& [broken, meant] : cases) {
    const std::string by_bytes = broken == "\xE4\xB8"                   ? "\uFFFD\uFFFD"
                                 : broken == "\xE4\xB8 x"               ? "\uFFFD\uFFFD x"
                                 : broken == "\xF0\x9F\x98"             ? "\uFFFD\uFFFD\uFFFD"
                                 : broken == "\xF0\x9F\x98\xE4\xB8\x96" ? "\uFFFD\uFFFD\uFFFD\u4E16"
                                                                        : meant;
    EXPECT_EQ(ids_of(words, broken, {}), ids_of(words, is_pieces ? by_bytes : meant, {}));
  }
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
                                           "unigram_bytes.json", "precompiled.json", "unigram.model", "bpe.model",
                                           "bpe_rules.model", "suffix.model", "phrase.model"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find('.')) + (name.ends_with(".model") ? "_model" : "");
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
  EXPECT_THAT(refusal("tokenizer.bin", "", errc::unsupported), HasSubstr("tokenizer.model"));
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

// A member of a protocol buffer: its tag and its bytes, or its number.
std::string member(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
std::string member(int number, int value) {
  std::string tag;
  const int whole = number << 3;
  if (whole > 127) tag += static_cast<char>((whole & 127) | 128);
  tag += static_cast<char>(whole > 127 ? whole >> 7 : whole);
  return tag + static_cast<char>(value);
}
std::string piece(const std::string& text, int type) {
  return member(1, member(1, text) + std::string("\x15\0\0\x80\xbf", 5) + member(3, type));  // of score -1
}
constexpr int normal = 1;
constexpr int unknown = 2;
constexpr int control = 3;
constexpr int of_user = 4;
constexpr int unused = 5;
constexpr int of_byte = 6;
const std::string bpe_model = member(2, member(3, 2));

TEST(tokenizer, of_sentencepiece_refuses_what_it_does_not_read_by_its_name) {
  const std::string whole = piece("<unk>", unknown) + piece("a", normal);
  const std::vector<std::pair<std::string, const char*>> cases = {
      {whole + member(2, member(3, 3)), "a model of words"},
      {whole + member(2, member(3, 4)), "a model of characters"},
      {whole + member(2, member(3, 9)), "a model of the type 9"},
      {whole + bpe_model + piece("b", unused), "the unused piece 'b' of a bpe model"},
      {whole + piece("b", 7), "a piece of the type 7"},
      {piece("a", normal), "without an unknown piece"},
  };
  for (const auto& [content, named] : cases) {
    EXPECT_THAT(refusal("tokenizer.model", content, errc::unsupported), HasSubstr(named));
  }
}

TEST(tokenizer, of_sentencepiece_says_where_a_file_is_damaged) {
  const std::string whole = piece("<unk>", unknown) + piece("a", normal);
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "no pieces"},
      {whole + "\x0A\x50", "damaged, or cut"},
      {whole + piece("a", of_user), "'a' is there twice"},
      {whole + piece("u", unknown), "two unknown pieces"},
      {whole + piece("", normal), "the piece 2 has no text"},
      {whole + piece("\xFF", normal), "the piece 2 is no UTF-8"},
      {whole + piece("<0x0>", of_byte), "is no byte"},
      {whole + piece("<0x00>", of_byte), "byte_fallback is off"},
      {whole + member(2, member(35, 1)), "not all of <0x00> to <0xFF>"},
      {piece("<unk>", unknown), "no piece that a text becomes"},
      {whole + member(3, member(2, "ab")), "precompiled_charsmap"},
  };
  for (const auto& [content, named] : cases) {
    EXPECT_THAT(refusal("tokenizer.model", content, errc::format), HasSubstr(named));
  }
}

TEST(tokenizer, of_sentencepiece_ends_a_text_with_the_file_s_token_and_takes_control_pieces_only_where_asked) {
  const tokenizer words = tokenizer::open((data / "unigram.model").string());
  EXPECT_EQ(words.get()->eos, words.find("</s>"));
  const auto begin = static_cast<std::uint32_t>(words.find("<|begin|>").value_or(-1));
  using ::testing::Contains;
  using ::testing::Not;
  EXPECT_THAT(ids_of(words, "the <|begin|> of", {}), Not(Contains(begin)));
  EXPECT_THAT(ids_of(words, "the <|begin|> of", {.special_in_text = true}), Contains(begin));
}

TEST(tokenizer, of_sentencepiece_merges_over_letters_that_are_no_tokens) {
  const testing::temporary_directory folder;
  const std::filesystem::path path = folder.path() / "tokenizer.model";
  std::ofstream(path, std::ios::binary) << piece("<unk>", unknown) << piece("xyz", normal) << piece("xy", normal)
                                        << piece("a", normal) << piece("</s>", control) << bpe_model
                                        << member(3, member(3, 0));  // add_dummy_prefix
  const tokenizer words = tokenizer::open(path.string());
  EXPECT_THAT(words.encode("xyz"), ElementsAre(1));
  EXPECT_THAT(words.encode("axy"), ElementsAre(3, 2));
  EXPECT_THAT(words.encode("yxa"), ElementsAre(0, 3)) << "two unknown letters are one token";
  EXPECT_THAT(words.encode("zxyzz"), ElementsAre(0, 1, 0));
  EXPECT_EQ(words.vocabulary(), 5);
}

TEST(text_normalizer, composes_nothing_over_a_mark_that_the_reference_does_not_know) {
  const stages::text_normalizer nfc({{.what = stages::normal_step::kind::form, .form = stages::normal_form::nfc}});
  stages::normalize_scratch scratch(nfc);
  EXPECT_EQ(nfc.normalized("J\u0323\u0302", scratch), "\u0134\u0323");
  // U+10F4B is of Unicode 11: to tokenizers 0.23.3 it has no class.
  EXPECT_EQ(nfc.normalized("J\U00010F4B\u0302", scratch), "J\U00010F4B\u0302");
  EXPECT_EQ(nfc.normalized("J\u0302\U00010F4Be\u0301", scratch), "\u0134\U00010F4B\u00E9");
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
