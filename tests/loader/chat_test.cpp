// Chats become tokens and labels on their way into the batch.
#include "tests/loader/running.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>
#include <leat/loading.hpp>
#include <leat/open.hpp>
#include <leat/order.hpp>
#include <leat/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using testing::small_options;
using testing::values_of;

tokenizer chat_words() {
  return tokenizer::open((std::filesystem::path(LEAT_TEST_DATA) / "tokenizers/chat.json").string());
}

constexpr std::size_t chats_in_all = 40;

std::string question(std::uint64_t chat) { return "the others " + std::to_string(chat); }
std::string answer(std::uint64_t chat) {
  std::string text = "and";
  for (std::uint64_t i = 0; i < chat % 11; ++i) text += " words of 12345";
  return text;
}

class chat_lines {
 public:
  chat_lines() {
    std::ofstream file(path());
    for (std::uint64_t i = 0; i < chats_in_all; ++i) {
      file << R"({"messages": [{"role": "user", "content": ")" << question(i)
           << R"("}, {"role": "assistant", "content": ")" << answer(i) << "\"}]}\n";
    }
  }
  [[nodiscard]] std::string path() const { return (directory_.path() / "chats.jsonl").string(); }

 private:
  testing::temporary_directory directory_;
};

struct ids_and_labels {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> labels;
};

// By hand: special tokens, and the texts between them.
ids_and_labels wanted(const tokenizer& words, std::uint64_t chat, bool masked) {
  ids_and_labels made;
  const auto add = [&](const std::vector<std::int32_t>& ids, bool counts) {
    for (const std::int32_t id : ids) {
      made.ids.push_back(id);
      made.labels.push_back(counts || !masked ? id : -100);
    }
  };
  const std::int32_t begin = words.find("<|im_start|>").value();
  const std::int32_t end = words.find("<|im_end|>").value();
  add({begin}, false);
  add(words.encode("user\n" + question(chat)), false);
  add({end}, false);
  add(words.encode("\n"), false);
  add({begin}, false);
  add(words.encode("assistant\n"), false);
  add(words.encode(answer(chat)), true);
  add({end}, true);
  add(words.encode("\n"), false);
  return made;
}

TEST(chat, gives_ids_and_labels_of_each_row) {
  const testing::watchdog dog("chats");
  const tokenizer words = chat_words();
  const chat_lines lines;
  for (const bool masked : {false, true}) {
    const chat how = chat("messages", words).with_template("chatml");
    testing::loader train(open(lines.path()), testing::one_epoch_in_order(), masked ? how.mask_prompt() : how);
    std::size_t rows = 0;
    for (const batch& got : train.blocking()) {
      const std::vector<std::int32_t> ids = values_of<std::int32_t>(got, "input_ids");
      const std::vector<std::int32_t> labels = values_of<std::int32_t>(got, "labels");
      const std::vector<std::int64_t> offsets = values_of<std::int64_t>(got, "input_ids.offsets");
      ASSERT_EQ(offsets, values_of<std::int64_t>(got, "labels.offsets"));
      for (std::size_t row = 0; row < got.valid_rows(); ++row, ++rows) {
        const ids_and_labels all = wanted(words, got.ids()[row], masked);
        ASSERT_EQ(std::vector<std::int64_t>(ids.begin() + offsets[row], ids.begin() + offsets[row + 1]), all.ids);
        ASSERT_EQ(std::vector<std::int64_t>(labels.begin() + offsets[row], labels.begin() + offsets[row + 1]),
                  all.labels);
      }
    }
    EXPECT_EQ(rows, chats_in_all);
  }
}

TEST(chat, fills_rows_up_with_no_labels_and_cuts_longer_ones_where_it_may) {
  const testing::watchdog dog("padded chats");
  const tokenizer words = chat_words();
  const chat_lines lines;
  constexpr std::size_t length = 40;
  testing::loader train(open(lines.path()), testing::one_epoch_in_order(),
                        chat("messages", words)
                            .with_template("chatml")
                            .mask_prompt()
                            .as(dtype::i64)
                            .truncate(length)
                            .pad(length, 3)
                            .mask());
  std::size_t cut = 0;
  for (const batch& got : train.blocking()) {
    const std::vector<std::int64_t> ids = values_of<std::int64_t>(got, "input_ids");
    const std::vector<std::int64_t> labels = values_of<std::int64_t>(got, "labels");
    const std::vector<std::int64_t> lengths = values_of<std::int64_t>(got, "input_ids.length");
    const std::vector<std::uint8_t> mask = values_of<std::uint8_t>(got, "input_ids.mask");
    for (std::size_t row = 0; row < got.valid_rows(); ++row) {
      ids_and_labels all = wanted(words, got.ids()[row], true);
      cut += all.ids.size() > length ? 1 : 0;
      const std::size_t tokens = std::min(all.ids.size(), length);
      ASSERT_EQ(static_cast<std::size_t>(lengths[row]), tokens);
      all.ids.resize(tokens);
      all.labels.resize(tokens);
      all.ids.resize(length, 3);
      all.labels.resize(length, -100);
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_EQ(ids[row * length + i], all.ids[i]);
        ASSERT_EQ(labels[row * length + i], all.labels[i]);
        ASSERT_EQ(mask[row * length + i], i < tokens ? 1 : 0);
      }
    }
  }
  EXPECT_GT(cut, 0U);
  EXPECT_LT(cut, chats_in_all);
}

TEST(chat, packs_whole_chats_with_labels_beside_them) {
  const testing::watchdog dog("packed chats");
  const tokenizer words = chat_words();
  const chat_lines lines;
  for (const auto& [type, masked] :
       {std::pair(dtype::i32, true), std::pair(dtype::i64, true), std::pair(dtype::i32, false)}) {
    testing::loader_options options = testing::one_epoch_in_order();
    options.batch_size = 2;
    options.order = packed(256, {.by = packed_by::best_fit, .pad = -1});
    const chat how = chat("messages", words).with_template("chatml").as(type);
    testing::loader train(open(lines.path()), options, masked ? how.mask_prompt() : how);
    std::size_t chats = 0;
    for (const batch& got : train.blocking()) {
      const auto numbers = [&](const char* name) {
        if (type == dtype::i64) return values_of<std::int64_t>(got, name);
        const std::vector<std::int32_t> narrow = values_of<std::int32_t>(got, name);
        return std::vector<std::int64_t>(narrow.begin(), narrow.end());
      };
      const std::vector<std::int64_t> ids = numbers("input_ids");
      const std::vector<std::int64_t> labels = numbers("labels");
      const std::vector<std::int32_t> positions = values_of<std::int32_t>(got, "input_ids.positions");
      const std::vector<std::int32_t> documents = values_of<std::int32_t>(got, "input_ids.documents");
      ASSERT_EQ(got["labels"].shape, got["input_ids"].shape);
      std::size_t piece = 0;
      for (std::size_t at = 0; at < ids.size();) {
        if (documents[at] < 0) {
          ASSERT_EQ(ids[at], -1);
          ASSERT_EQ(labels[at], -100);
          ++at;
          continue;
        }
        ASSERT_EQ(positions[at], 0);
        const ids_and_labels all = wanted(words, got.ids()[piece++], masked);
        ASSERT_LE(at + all.ids.size(), ids.size());
        for (std::size_t i = 0; i < all.ids.size(); ++i, ++at) {
          ASSERT_EQ(ids[at], all.ids[i]);
          ASSERT_EQ(labels[at], all.labels[i]);
        }
      }
      chats += piece;
      ASSERT_EQ(piece, got.ids().size());
    }
    EXPECT_EQ(chats, chats_in_all);
  }
}

TEST(chat, has_a_digest_that_is_of_its_labels_too) {
  const testing::watchdog dog("digests of chats");
  const tokenizer words = chat_words();
  const chat_lines lines;
  const auto digest_of = [&](bool masked, dtype type, const std::optional<order>& by) {
    testing::loader_options options = testing::one_epoch_in_order();
    options.digests = true;
    options.order = by;
    const chat how = chat("messages", words).with_template("chatml").as(type);
    testing::loader train(open(lines.path()), options, masked ? how.mask_prompt() : how);
    for (const batch& got : train.blocking()) static_cast<void>(got);
    return train.state().run_digest.value();
  };
  for (const dtype type : {dtype::i32, dtype::i64}) {
    EXPECT_NE(digest_of(false, type, std::nullopt), digest_of(true, type, std::nullopt));
    for (const packed_by by : {packed_by::stream, packed_by::best_fit, packed_by::first_fit}) {
      const order rows = packed(128, {.by = by, .longer = longer_samples::split});
      EXPECT_NE(digest_of(false, type, rows), digest_of(true, type, rows));
    }
  }
}

TEST(chat, of_parquet_has_the_ids_and_labels_of_jsonl) {
  const testing::watchdog dog("chats of Parquet");
  const tokenizer words = chat_words();
  const chat_lines lines;
  const std::string table = (std::filesystem::path(LEAT_TEST_DATA) / "parquet/chats.parquet").string();
  const auto tokens_of = [&](const std::string& path, bool shuffle, const std::optional<order>& by) {
    testing::loader_options options = testing::one_epoch_in_order();
    options.shuffle = shuffle;
    options.order = by;
    testing::loader train(open(path), options, chat("messages", words).with_template("chatml").mask_prompt());
    std::vector<std::vector<std::int32_t>> all;
    for (const batch& got : train.blocking()) {
      all.push_back(values_of<std::int32_t>(got, "input_ids"));
      all.push_back(values_of<std::int32_t>(got, "labels"));
    }
    return all;
  };
  for (const bool shuffle : {false, true}) {
    const auto expected = tokens_of(lines.path(), shuffle, std::nullopt);
    EXPECT_GT(expected.size(), 2U);
    EXPECT_EQ(tokens_of(table, shuffle, std::nullopt), expected);
  }
  for (const packed_by by : {packed_by::stream, packed_by::best_fit}) {
    const order rows = packed(128, {.by = by, .longer = longer_samples::split});
    EXPECT_EQ(tokens_of(table, true, rows), tokens_of(lines.path(), true, rows));
  }
}

TEST(chat, that_is_none_follows_the_policy_and_says_why) {
  const testing::watchdog dog("corrupt chats");
  const tokenizer words = chat_words();
  const testing::temporary_directory folder;
  const std::string path = (folder.path() / "chats.jsonl").string();
  std::ofstream(path) << R"({"messages": [{"role": "user", "content": "a"}]})" << "\n"
                      << R"({"messages": [{"role": "user"}]})" << "\n"
                      << R"({"messages": [{"role": "user", "content": "b"}]})" << "\n";
  testing::loader_options options = testing::one_epoch_in_order();
  const chat how = chat("messages", words).with_template("chatml");
  testing::loader strict(open(path), options, how);
  try {
    for (const batch& got : strict.blocking()) static_cast<void>(got);
    FAIL();
  } catch (const error& wrong) {
    EXPECT_THAT(wrong.what(), HasSubstr("message 0 has no 'content'"));
  }
  options.on_corrupt = corrupt_policy::skip;
  testing::loader skipping(open(path), options, how);
  std::size_t rows = 0;
  for (const batch& got : skipping.blocking()) rows += got.valid_rows();
  EXPECT_EQ(rows, 2U);
}

TEST(chat, is_refused_when_the_loader_is_built_where_its_template_is_not_known) {
  const chat_lines lines;
  for (const char* const name : {"", "alpaca"}) {
    try {
      testing::loader train(open(lines.path()), testing::one_epoch_in_order(),
                            chat("messages", chat_words()).with_template(name));
      FAIL();
    } catch (const error& wrong) {
      EXPECT_EQ(wrong.code(), errc::usage);
      EXPECT_THAT(wrong.what(), HasSubstr("chatml, qwen2"));
    }
  }
}

}  // namespace
}  // namespace leat
