// Texts become tokens on their way into the batch.
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::fake_dataset;
using testing::fake_sample;
using ::testing::HasSubstr;
using testing::values_of;

tokenizer words_of(const std::string& name) {
  return tokenizer::open((std::filesystem::path(LEAT_TEST_DATA) / "tokenizers" / name).string());
}

std::string text_of(std::uint64_t sample) {
  std::string text;
  for (std::uint64_t i = 0; i <= sample % 13; ++i) text += i % 2 == 0 ? " the others" : " and Größe 12345";
  return sample % 5 == 4 ? text + "<|end|>" : text;
}

fake_dataset texts(std::uint64_t samples) {
  std::vector<fake_sample> all;
  for (std::uint64_t i = 0; i < samples; ++i) {
    all.push_back({.members = {{"txt", testing::to_bytes(text_of(i))}}, .cls_column = std::nullopt, .defect = ""});
  }
  return fake_dataset(std::move(all));
}

TEST(tokenize, rows_lie_side_by_side_as_the_tokenizer_makes_them) {
  const testing::watchdog dog("tokens of texts");
  for (const char* const name : {"gpt2.json", "llama3.json", "qwen.json", "spaces.json"}) {
    const tokenizer words = words_of(name);
    const fake_dataset set = texts(60);
    testing::loader train(set, testing::one_epoch_in_order(), tokenize("txt", words));
    std::uint64_t rows = 0;
    for (const batch& got : train.blocking()) {
      EXPECT_EQ(got["txt"].type, dtype::i32);
      const std::vector<std::int32_t> values = values_of<std::int32_t>(got, "txt");
      const std::vector<std::int64_t> offsets = values_of<std::int64_t>(got, "txt.offsets");
      ASSERT_EQ(offsets.size(), got.valid_rows() + 1U);
      for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
        const std::vector<std::int32_t> wanted = words.encode(text_of(got.ids()[row]));
        ASSERT_EQ(std::vector<std::int32_t>(values.begin() + offsets[row], values.begin() + offsets[row + 1]), wanted);
      }
    }
    EXPECT_EQ(rows, 60U);
  }
}

TEST(tokenize, fills_rows_up_to_one_length_and_cuts_longer_texts_before_what_is_around_them) {
  const testing::watchdog dog("padded tokens");
  const tokenizer words = words_of("llama3.json");
  const std::int32_t end = words.find("<|end|>").value();
  constexpr std::size_t length = 12;
  const fake_dataset set = texts(60);
  testing::loader train(
      set, testing::one_epoch_in_order(),
      tokenize("txt", words).named("ids").as(dtype::i64).eos("<|end|>").truncate(length).pad(length, -1).mask());
  for (const batch& got : train.blocking()) {
    const std::vector<std::int64_t> values = values_of<std::int64_t>(got, "ids");
    const std::vector<std::int64_t> lengths = values_of<std::int64_t>(got, "ids.length");
    const std::vector<std::uint8_t> mask = values_of<std::uint8_t>(got, "ids.mask");
    ASSERT_EQ(values.size(), static_cast<std::size_t>(got["ids"].shape[0]) * length);
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      std::vector<std::int32_t> wanted = words.encode(text_of(got.ids()[row]));
      ASSERT_EQ(wanted.front(), words.find("<|begin|>"));
      wanted.resize(std::min(wanted.size(), length - 1));
      wanted.push_back(end);
      ASSERT_EQ(static_cast<std::size_t>(lengths[row]), wanted.size());
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_EQ(values[row * length + i], i < wanted.size() ? wanted[i] : -1);
        ASSERT_EQ(mask[row * length + i], i < wanted.size() ? 1 : 0);
      }
    }
  }
}

TEST(tokenize, takes_special_tokens_in_texts_only_where_it_is_told_to) {
  const tokenizer words = words_of("gpt2.json");
  const std::int32_t end = words.find("<|end|>").value();
  for (const bool special : {false, true}) {
    const fake_dataset set = texts(40);
    const tokenize how = special ? tokenize("txt", words).special_in_text() : tokenize("txt", words);
    testing::loader train(set, testing::one_epoch_in_order(), how);
    std::int64_t found = 0;
    for (const batch& got : train.blocking()) {
      const std::vector<std::int32_t> values = values_of<std::int32_t>(got, "txt");
      found += std::count(values.begin(), values.end(), end);
    }
    EXPECT_EQ(found, special ? 8 : 0);
  }
}

TEST(tokenize, a_text_of_more_tokens_than_a_row_has_is_corrupt_unless_it_may_be_cut) {
  const tokenizer words = words_of("gpt2.json");
  const fake_dataset set = texts(26);
  testing::loader_options options = testing::one_epoch_in_order();
  options.on_corrupt = corrupt_policy::skip;
  std::size_t wanted = 0;
  for (std::uint64_t i = 0; i < 26; ++i) wanted += words.encode(text_of(i)).size() <= 10 ? 1 : 0;
  ASSERT_GT(wanted, 0U);
  ASSERT_LT(wanted, 26U);
  testing::loader train(set, options, tokenize("txt", words).pad(10));
  std::size_t rows = 0;
  for (const batch& got : train.blocking()) rows += got.valid_rows();
  EXPECT_EQ(rows, wanted);
  options.on_corrupt = corrupt_policy::raise;
  testing::loader strict(set, options, tokenize("txt", words).pad(10));
  try {
    for (const batch& got : strict.blocking()) static_cast<void>(got);
    FAIL();
  } catch (const error& wrong) {
    EXPECT_THAT(wrong.what(), HasSubstr("more than 10 tokens; tokenize::truncate() cuts it"));
  }
}

TEST(tokenize, does_not_cut_a_text_that_is_no_utf_8_below_what_was_asked_for) {
  const tokenizer words = words_of("gpt2.json");
  const std::string broken(50, '\xFF');
  const std::size_t tokens = words.encode(broken).size();
  ASSERT_GT(tokens, broken.size());
  for (const std::int64_t most : {10, 50, 51, 1000}) {
    std::vector<fake_sample> all(8);
    for (fake_sample& each : all) each.members = {{"txt", testing::to_bytes("the others")}};
    all[3].members = {{"txt", testing::to_bytes(broken)}};
    testing::loader_options options = testing::one_epoch_in_order();
    options.on_corrupt = corrupt_policy::skip;
    const fake_dataset set(std::move(all));
    testing::loader train(set, options, tokenize("txt", words).truncate(most));
    std::size_t rows = 0;
    for (const batch& got : train.blocking()) {
      const std::vector<std::int64_t> offsets = values_of<std::int64_t>(got, "txt.offsets");
      for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
        if (got.ids()[row] == 3) EXPECT_EQ(offsets[row + 1] - offsets[row], most);
      }
    }
    EXPECT_EQ(rows, most <= 50 ? 8U : 7U);
  }
}

TEST(tokenize, refuses_what_cannot_be_when_the_loader_is_built) {
  const tokenizer words = words_of("llama3.json");
  const fake_dataset set = texts(4);
  const auto refusal = [&](const tokenize& how) -> std::string {
    try {
      testing::loader train(set, testing::one_epoch_in_order(), how);
    } catch (const error& wrong) {
      EXPECT_EQ(wrong.code(), errc::usage);
      return wrong.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(tokenize("no", words)), HasSubstr("'no'"));
  EXPECT_THAT(refusal(tokenize("txt", words).as(dtype::f32)), HasSubstr("i32 or i64, not f32"));
  EXPECT_THAT(refusal(tokenize("txt", words).mask()), HasSubstr("call pad() too"));
  EXPECT_THAT(refusal(tokenize("txt", words).pad(0)), HasSubstr("pad(0)"));
  EXPECT_THAT(refusal(tokenize("txt", words).eos("<|end|>").truncate(1)), HasSubstr("the 2 tokens around a text"));
  EXPECT_THAT(refusal(tokenize("txt", words).pad(8).truncate(9)), HasSubstr("truncate(9) leaves more than pad(8)"));
  EXPECT_THAT(refusal(tokenize("txt", words).pad(8, std::int64_t{1} << 40)), HasSubstr("is no i32"));
  EXPECT_THROW(static_cast<void>(tokenize("txt", words).eos("no token")), error);
  EXPECT_THROW(static_cast<void>(tokenize("txt", words).eos()), error) << "no file says which token ends a text";
}

}  // namespace
}  // namespace leat
