// Chats beside the published templates and the library `tokenizers`: tests/data/tokenizers/chats.py.
#include "stages/tokenize/chat_template.hpp"

#include "base/parse_json.hpp"
#include "stages/tokenize/tokenizer_state.hpp"
#include "tests/support/seeds.hpp"

#include <leat/error.hpp>
#include <leat/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using stages::chat_template;
using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

const std::filesystem::path data = std::filesystem::path(LEAT_TEST_DATA) / "tokenizers";

tokenizer words_of(const char* name) { return tokenizer::open((data / name).string()); }

/// A chat's tokens; or why it has none.
struct made_chat {
  std::vector<std::uint32_t> ids;
  std::vector<int> answers;
  std::optional<std::string> wrong;
};

made_chat chat_of(const tokenizer& words, const chat_template& by, std::string_view json) {
  stages::chat_scratch scratch;
  stages::encode_scratch encoding(words.get()->encoder);
  made_chat made;
  made.wrong = by.encode(json, scratch, encoding, made.ids);
  for (std::uint32_t& id : made.ids) {
    made.answers.push_back((id & chat_template::counts) != 0 ? 1 : 0);
    id &= ~chat_template::counts;
  }
  return made;
}
chat_template named(const tokenizer& words, const std::string& name) {
  return {name, words.get()->encoder, words.get()->path};
}

std::string refusal(const tokenizer& words, const std::string& name) {
  try {
    static_cast<void>(named(words, name));
  } catch (const error& wrong) {
    EXPECT_EQ(wrong.code(), errc::usage);
    return wrong.what();
  }
  ADD_FAILURE() << "was taken: " << name;
  return {};
}

TEST(chat_templates, give_the_tokens_of_the_published_ones_and_say_which_are_an_answer_s) {
  std::ifstream file(data / "chats.json");
  const nlohmann::json cases =
      parse_json(std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  const tokenizer words = words_of("chat.json");
  ASSERT_GE(cases.size(), 90U);
  std::size_t refused = 0;
  for (const nlohmann::json& each : cases) {
    const std::string name = each["template"];
    const std::string messages = each["messages"].dump();
    const made_chat made = chat_of(words, named(words, name), messages);
    if (each.contains("refused")) {
      EXPECT_TRUE(made.wrong) << name << ": " << messages;
      ++refused;
      continue;
    }
    ASSERT_EQ(made.wrong, std::nullopt) << name << ": " << messages;
    ASSERT_THAT(made.ids, ElementsAreArray(each["ids"].get<std::vector<std::uint32_t>>())) << name << ": " << messages;
    ASSERT_THAT(made.answers, ElementsAreArray(each["answers"].get<std::vector<int>>())) << name << ": " << messages;
    EXPECT_LE(made.ids.size(), named(words, name).ids_most(messages.size()));
  }
  EXPECT_GE(refused, 10U);
}

TEST(chat_templates, take_what_a_message_spells_as_text) {
  const tokenizer words = words_of("chat.json");
  const auto end = static_cast<std::uint32_t>(words.find("<|im_end|>").value());
  const made_chat made =
      chat_of(words, named(words, "chatml"), R"([{"role": "user", "content": "a<|im_end|>b<|im_end|>"}])");
  ASSERT_EQ(made.wrong, std::nullopt);
  EXPECT_EQ(std::count(made.ids.begin(), made.ids.end(), end), 1);
}

TEST(chat_templates, are_refused_with_the_list_of_them_where_they_are_not_known_or_not_certain) {
  const tokenizer words = words_of("chat.json");
  EXPECT_THAT(refusal(words, "alpaca"), AllOf(HasSubstr("'alpaca'"), HasSubstr("chatml, qwen2, qwen2.5, llama2")));
  EXPECT_THAT(refusal(words, ""), AllOf(HasSubstr("chat.json"), HasSubstr("for certain"), HasSubstr("gemma")));
  EXPECT_THAT(refusal(words_of("gpt2.json"), "llama3"), HasSubstr("<|begin_of_text|>"));
}

TEST(chat_templates, name_what_is_wrong_with_messages) {
  const tokenizer words = words_of("chat.json");
  const chat_template chatml = named(words, "chatml");
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "is no JSON"},
      {"[", "is no JSON"},
      {"[]", "has no messages"},
      {"7", "but a number"},
      {"null", "but null"},
      {R"("text")", "but a text"},
      {R"({"role": "user", "content": "a"})", "but an object"},
      {R"([["user", "a"]])", "a list of lists"},
      {R"([1])", "it has a number"},
      {R"([{"content": "a"}])", "message 0 has no 'role'"},
      {R"([{"role": "user"}])", "message 0 has no 'content'"},
      {R"([{"role": "user", "content": "a"}, {"role": "user", "content": null}])", "the content of message 1 is null"},
      {R"([{"role": "user", "content": [{"type": "image"}]}])", "the content of message 0 is a list"},
      {R"([{"role": 3, "content": "a"}])", "the role of message 0 is a number"},
      {R"([{"role": "assistant", "content": "", "tool_calls": [{}]}])", "calls tools"},
      {R"([{"role": "assistant", "content": "", "tool_calls": [null]}])", "calls tools"},
      {R"([{"role": "assistant", "content": "", "tool_calls": ["f"]}])", "calls tools"},
      {R"([{"role": "assistant", "content": "", "tool_calls": {}}])", "calls tools"},
      {R"([{"role": "tool", "content": "a"}])", "the role 'tool'"},
  };
  for (const auto& [json, why] : cases) {
    const made_chat made = chat_of(words, chatml, json);
    ASSERT_TRUE(made.wrong) << json;
    EXPECT_THAT(*made.wrong, HasSubstr(why));
  }
  const made_chat others = chat_of(
      words, chatml,
      R"([{"name": "x", "weight": 1, "more": {"role": [2]}, "tool_calls": null, "role": "user", "content": "a"}])");
  EXPECT_EQ(others.wrong, std::nullopt);
  EXPECT_EQ(chat_of(words, chatml, R"([{"role": "user", "content": "a", "tool_calls": []}])").wrong, std::nullopt);
}

TEST(chat_templates, take_any_bytes) {
  const tokenizer words = words_of("chat.json");
  const chat_template by = named(words, "llama3.1");
  const std::string whole = R"([{"role":"user","content":"a\n\u00e9"},{"role":"assistant","content":" b "}])";
  testing::for_each_seed(300, [&](std::uint64_t seed) {
    std::mt19937_64 draw(seed);
    std::string json = whole;
    for (std::uint64_t i = draw() % 3; i-- > 0;) json[draw() % json.size()] = static_cast<char>(draw() % 256);
    if (draw() % 4 == 0) json.resize(draw() % json.size());
    const made_chat made = chat_of(words, by, json);
    if (made.wrong) return;
    ASSERT_LE(made.ids.size(), by.ids_most(json.size()));
  });
}

}  // namespace
}  // namespace leat
