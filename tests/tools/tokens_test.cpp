// leat tokens, and leat inspect --tokenizer: each text's tokens in their order, read back as they were written.
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <leat/open_tokens.hpp>
#include <leat/samples.hpp>
#include <leat/tokenizer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const std::string words_path = std::string(LEAT_TEST_DATA) + "/tokenizers/gpt2.json";

class made_texts {
 public:
  explicit made_texts(std::uint64_t count = 700) {
    std::ofstream file(path());
    for (std::uint64_t i = 0; i < count; ++i) {
      texts.push_back(text_of(i));
      file << R"({"text": ")" << texts.back() << R"(", "n": )" << i << "}\n";
    }
  }
  [[nodiscard]] static std::string text_of(std::uint64_t i) {
    std::string text = i % 50 == 7 ? "" : std::to_string(i);
    for (std::uint64_t k = 0; k < (i == 3 ? 40'000 : i % 40); ++k) text += k % 3 == 0 ? " Größe 9" : " the others";
    return text;
  }
  [[nodiscard]] std::string path() const { return beside("texts.jsonl"); }
  [[nodiscard]] std::string beside(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const fs::directory_entry& each : fs::directory_iterator(directory_.path())) {
      all.push_back(each.path().filename().string());
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::vector<std::string> texts;

 private:
  temporary_directory directory_;
};

std::vector<std::int32_t> wanted(const tokenizer& words, const std::string& text) {
  std::vector<std::int32_t> tokens = words.encode(text);
  tokens.push_back(words.find("<|end|>").value());
  return tokens;
}

template <class Token>
std::vector<std::int32_t> tokens_of(const dataset& file, std::uint64_t sample) {
  const std::vector<std::byte> bytes = file.read(sample, "tokens");
  std::vector<Token> stored(bytes.size() / sizeof(Token));
  if (!bytes.empty()) std::memcpy(stored.data(), bytes.data(), stored.size() * sizeof(Token));
  return {stored.begin(), stored.end()};
}

TEST(tokens, of_all_texts_are_one_file_that_reads_back_as_they_are) {
  const made_texts made;
  const tokenizer words = tokenizer::open(words_path);
  std::vector<std::int32_t> all;
  for (const std::string& each : made.texts) {
    const std::vector<std::int32_t> tokens = wanted(words, each);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  const std::string out = made.beside("train.bin");
  const ended process = run({"tokens", made.path(), "--tokenizer", words_path, "--eos", "<|end|>", out, "--json"});
  EXPECT_EQ(process.json().at("run").at("sources"), json::array({made.path()}));
  ASSERT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(process.json().at("texts"), made.texts.size());
  EXPECT_EQ(process.json().at("tokens"), all.size());
  EXPECT_EQ(process.json().at("type"), "u16");
  EXPECT_EQ(tokens_of<std::uint16_t>(open_tokens(out, {.type = dtype::u16}), 0), all);
  // Wider ones are the same.
  const std::string wide = made.beside("wide.bin");
  ASSERT_EQ(run({"tokens", made.path(), "--tokenizer", words_path, "--eos", "<|end|>", "--token-type", "u32", wide})
                .exit_code,
            0);
  EXPECT_EQ(tokens_of<std::uint32_t>(open_tokens(wide, {.type = dtype::u32}), 0), all);
  EXPECT_EQ(made.names(), (std::vector<std::string>{"texts.jsonl", "train.bin", "wide.bin"}));
}

TEST(tokens, of_megatron_are_a_document_for_each_text) {
  const made_texts made;
  const tokenizer words = tokenizer::open(words_path);
  for (const std::string type : {"u16", "u32"}) {
    const std::string out = made.beside(type + ".bin");
    ASSERT_EQ(run({"tokens", made.path(), "--tokenizer", words_path, "--eos", "<|end|>", "--to", "megatron",
                   "--token-type", type, out})
                  .exit_code,
              0);
    const dataset documents = open_tokens(out);
    ASSERT_EQ(documents.size(), made.texts.size());
    for (std::uint64_t i = 0; i < documents.size(); ++i) {
      const std::vector<std::int32_t> tokens =
          type == "u16" ? tokens_of<std::uint16_t>(documents, i) : tokens_of<std::int32_t>(documents, i);
      ASSERT_EQ(tokens, wanted(words, made.texts[i])) << "text " << i;
    }
  }
}

TEST(tokens, of_ranks_are_those_of_one_process_one_file_behind_the_other) {
  const made_texts made(701);
  const tokenizer words = tokenizer::open(words_path);
  std::size_t text = 0;
  for (const std::string rank : {"0", "1", "2"}) {
    const ended process = run({"tokens", made.path(), "--tokenizer", words_path, "--eos", "<|end|>", "--to", "megatron",
                               "--rank", rank, "--world", "3", made.beside("part.%r.bin"), "--json"});
    ASSERT_EQ(process.exit_code, 0) << process.err;
    EXPECT_EQ(process.json().at("rank"), std::stoi(rank));
    EXPECT_EQ(process.json().at("world"), 3);
    const dataset documents = open_tokens(made.beside("part." + rank + ".bin"));
    EXPECT_EQ(documents.size(), rank == "2" ? 233U : 234U);
    for (std::uint64_t i = 0; i < documents.size(); ++i, ++text) {
      ASSERT_EQ(tokens_of<std::uint16_t>(documents, i), wanted(words, made.texts[text])) << "text " << text;
    }
  }
  EXPECT_EQ(text, made.texts.size());
  const ended one_name = run({"tokens", made.path(), "--tokenizer", words_path, "--eos", "<|end|>", "--rank", "0",
                              "--world", "3", made.beside("part.bin")});
  EXPECT_EQ(one_name.exit_code, 2);
  EXPECT_THAT(one_name.err, HasSubstr("part.%r.bin"));
}

TEST(tokens, a_damaged_text_ends_it_unless_it_is_to_be_left_out) {
  const made_texts made(20);
  std::ofstream(made.path(), std::ios::app) << "{\"n\": 20}\n{\"text\": \"behind\"}\n";
  const tokenizer words = tokenizer::open(words_path);
  const std::string out = made.beside("train.bin");
  const ended refused = run({"tokens", made.path(), "--tokenizer", words_path, "--no-eos", out});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("--skip-corrupt leaves it out"));
  EXPECT_EQ(made.names(), std::vector<std::string>{"texts.jsonl"}) << "nothing is left of it";
  const ended process =
      run({"tokens", made.path(), "--tokenizer", words_path, "--no-eos", "--skip-corrupt", out, "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(process.json().at("texts"), 21);
  EXPECT_EQ(process.json().at("skipped"), 1);
  std::vector<std::int32_t> all;
  for (const std::string& each : made.texts) {
    const std::vector<std::int32_t> tokens = words.encode(each);
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  const std::vector<std::int32_t> behind = words.encode("behind");
  all.insert(all.end(), behind.begin(), behind.end());
  EXPECT_EQ(tokens_of<std::uint16_t>(open_tokens(out, {.type = dtype::u16}), 0), all);
}

TEST(tokens, a_run_that_is_interrupted_leaves_no_file) {
  const made_texts made(200'000);
  const std::string out = made.beside("train.bin");
  command running({"tokens", made.path(), "--tokenizer", words_path, "--no-eos", out}, command::streams::terminal);
  running.read_until("texts: ");
  running.signal(SIGINT);
  const ended process = running.wait();
  EXPECT_EQ(process.exit_code, 130);
  EXPECT_EQ(made.names(), std::vector<std::string>{"texts.jsonl"});
}

TEST(tokens, refuses_what_would_be_read_back_as_something_else) {
  const made_texts made(5);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& why) {
    std::vector<std::string> all{"tokens", made.path(), "--tokenizer", words_path};
    all.insert(all.end(), more.begin(), more.end());
    const ended process = run(all);
    EXPECT_EQ(process.exit_code, 2) << process.err;
    EXPECT_THAT(process.err, HasSubstr(why));
  };
  refused({made.beside("train.bin")}, "name it with --eos, or give --no-eos");
  refused({made.beside("train.bin"), "--eos", "no such"}, "has no token 'no such'");
  refused({made.beside("train.tok"), "--no-eos"}, "a name that ends in .bin");
  refused({made.beside("train.bin"), "--no-eos", "--field", "none"}, "no field 'none'");
  std::ofstream(made.beside("train.idx")) << "of others";
  refused({made.beside("train.bin"), "--no-eos"}, "an index of other tokens");
  EXPECT_EQ(
      run({"tokens", made.path(), "--tokenizer", made.beside("none.json"), "--no-eos", made.beside("x.bin")}).exit_code,
      2);
}

TEST(tokens, take_the_place_of_empty_files) {
  const made_texts made(5);
  for (const char* const form : {"plain", "megatron"}) {
    std::filesystem::remove(made.beside("e.bin"));
    for (const char* const name : {"e.bin", "e.idx"}) std::ofstream(made.beside(name), std::ios::trunc).flush();
    const ended process =
        run({"tokens", made.path(), "--tokenizer", words_path, "--no-eos", "--to", form, made.beside("e.bin")});
    EXPECT_EQ(process.exit_code, 0) << process.err;
    EXPECT_GT(std::filesystem::file_size(made.beside("e.bin")), 0U);
  }
}

TEST(tokens, of_a_run_that_was_killed_between_its_two_files_are_written_anew) {
  const made_texts made(5);
  const std::vector<std::string> all{"tokens",   made.path(), "--tokenizer", words_path,
                                     "--no-eos", "--to",      "megatron",    made.beside("train.bin")};
  ASSERT_EQ(run(all).exit_code, 0);
  EXPECT_THAT(run(all).err, HasSubstr("train.idx is there")) << "both are there: they are somebody's";
  const auto content = [&](const char* name) {
    std::ifstream file(made.beside(name), std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  };
  const std::string tokens = content("train.bin");
  const std::string index = content("train.idx");
  fs::remove(made.beside("train.bin"));
  const ended again = run(all);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(content("train.bin"), tokens);
  EXPECT_EQ(content("train.idx"), index);
  fs::remove(made.beside("train.bin"));
  const ended plain = run({"tokens", made.path(), "--tokenizer", words_path, "--no-eos", made.beside("train.bin")});
  EXPECT_EQ(plain.exit_code, 2) << "the index would be taken for its own";
}

TEST(tokens, of_a_text_that_is_damaged_are_refused_with_its_name_once) {
  const made_texts made(5);
  std::ofstream(made.path(), std::ios::app) << "{\"text\": \"\xff\"}\n";
  const ended process = run({"tokens", made.path(), "--tokenizer", words_path, "--no-eos", made.beside("train.bin")});
  EXPECT_EQ(process.exit_code, 1) << process.err;
  const std::string name = "texts.jsonl[5]: ";
  const std::size_t first = process.err.find(name);
  ASSERT_NE(first, std::string::npos) << process.err;
  EXPECT_EQ(process.err.find(name, first + 1), std::string::npos) << process.err;
}

TEST(tokens, of_each_text_are_counted_by_inspect) {
  const made_texts made;
  const tokenizer words = tokenizer::open(words_path);
  std::vector<std::uint64_t> counts;
  for (const std::string& each : made.texts) counts.push_back(words.encode(each).size());
  const std::uint64_t longest =
      static_cast<std::uint64_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  std::uint64_t tokens = 0;
  for (const std::uint64_t each : counts) tokens += each;
  std::sort(counts.begin(), counts.end());
  const ended process = run({"inspect", made.path(), "--tokenizer", words_path, "--json"});
  ASSERT_EQ(process.exit_code, 0) << process.err;
  const json found = process.json().at("tokens");
  EXPECT_EQ(found.at("field"), "text");
  EXPECT_EQ(found.at("texts"), made.texts.size());
  EXPECT_EQ(found.at("tokens"), tokens);
  EXPECT_EQ(found.at("unknown"), 0);
  EXPECT_EQ(found.at("unreadable"), 0);
  EXPECT_EQ(found.at("longest").at("sample"), longest);
  EXPECT_EQ(found.at("longest").at("tokens"), counts.back());
  EXPECT_EQ(found.at("percentiles").at("50"), counts[counts.size() / 2]);
  EXPECT_EQ(found.at("percentiles").at("99"), counts[counts.size() * 99 / 100]);
  std::uint64_t in_histogram = 0;
  std::uint64_t from = found.at("histogram").at(0).at("from");
  EXPECT_LE(from, counts.front());
  for (const json& each : found.at("histogram")) {
    EXPECT_EQ(each.at("from"), from) << "no gap";
    from = each.at("to");
    const auto is_in = [&](std::uint64_t count) { return count >= each.at("from") && count < each.at("to"); };
    EXPECT_EQ(each.at("texts"), static_cast<std::uint64_t>(std::count_if(counts.begin(), counts.end(), is_in)));
    in_histogram += each.at("texts").get<std::uint64_t>();
  }
  EXPECT_EQ(in_histogram, counts.size());
  EXPECT_THAT(run({"inspect", made.path(), "--tokenizer", words_path}).out, HasSubstr("tokens of 'text'"));
}

}  // namespace
}  // namespace leat::testing
