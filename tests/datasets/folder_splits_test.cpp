// Which splits a folder has, by its names and by its README.md.
#include "datasets/open/folder_splits.hpp"

#include "tests/support/failures.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/open.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace leat::datasets {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;

class folder_splits : public ::testing::Test {
 protected:
  void put(const std::string& name, std::string_view content = "{}\n") const {
    std::filesystem::create_directories((root_.path() / name).parent_path());
    testing::write_file(root_.path() / name, content);
  }
  [[nodiscard]] std::string path() const { return root_.path().string(); }
  // "train: a b", with paths below the folder.
  [[nodiscard]] std::vector<std::string> found() const {
    std::vector<std::string> all;
    for (const folder_split& each : splits_of(*folder_on_disk(path()))) {
      std::string text = each.name + ":";
      if (!each.folder.empty()) text += " " + each.folder.substr(path().size() + 1) + "/";
      for (const std::string& file : each.files) text += " " + file.substr(path().size() + 1);
      all.push_back(text);
    }
    return all;
  }

  testing::temporary_directory root_;
};

TEST_F(folder_splits, are_folders_whose_names_are_all_of_splits) {
  put("train/0.jsonl");
  EXPECT_THAT(found(), ElementsAre("train: train/"));
  put("Val/0.jsonl");
  EXPECT_THAT(found(), ElementsAre("Val: Val/", "train: train/"));
  put("bus/0.jsonl");
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(folder_splits, are_files_by_a_word_of_their_names_or_by_what_stands_before_their_numbers) {
  put("data/train_sft-00000-of-00002.parquet");
  put("data/train_sft-00001-of-00002.parquet");
  put("data/test-00000-of-00001.parquet");
  put("data/contest.parquet");
  EXPECT_THAT(found(),
              ElementsAre("test: data/test-00000-of-00001.parquet",
                          "train_sft: data/train_sft-00000-of-00002.parquet data/train_sft-00001-of-00002.parquet"));
  put("imagenet-train-000.tar");
  EXPECT_THAT(found(), ElementsAre("train: imagenet-train-000.tar"));
  put("other.tar");
  EXPECT_THAT(found(), ElementsAre(HasSubstr("test: data/"), HasSubstr("train_sft: data/")));
}

TEST_F(folder_splits, are_what_the_readme_says) {
  put("README.md",
      "---\nlicense: mit\nconfigs:\n- config_name: default\n  data_files:\n  - split: one\n    path: \"a/*.jsonl\"\n"
      "  - split: two\n    path:\n    - b.jsonl\n    - c.jsonl\n---\nText\n");
  for (const char* const name : {"a/0.jsonl", "a/1.jsonl", "b.jsonl", "c.jsonl", "train.jsonl"}) put(name);
  EXPECT_THAT(found(), ElementsAre("one: a/0.jsonl a/1.jsonl", "two: b.jsonl c.jsonl"));
  put("README.md",
      "---\nconfigs:\n- config_name: en\n  data_files: b.jsonl\n- config_name: de\n  data_files:\n  - split: test\n"
      "    path: c.jsonl\n---\n");
  EXPECT_THAT(found(), ElementsAre("en/train: b.jsonl", "de/test: c.jsonl"));
}

TEST_F(folder_splits, are_asked_about_and_never_mixed) {
  put("data/train-00000-of-00001.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  put("data/validation-00000-of-00001.jsonl", "{\"text\": \"c\"}\n");
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open(path())); }),
              AllOf(HasSubstr("train, validation"), HasSubstr("open_options::split")));
  EXPECT_THAT(message_of(errc::not_found, [&] { static_cast<void>(open(path(), {.split = "test"})); }),
              AllOf(HasSubstr("no split 'test'"), HasSubstr("train, validation")));
  EXPECT_EQ(open(path(), {.split = "train"}).size(), 2U);
  EXPECT_EQ(open(path(), {.split = "val"}).size(), 1U);
  const std::string file = path() + "/data/train-00000-of-00001.jsonl";
  EXPECT_THAT(message_of(errc::usage, [&] { static_cast<void>(open(file, {.split = "train"})); }),
              HasSubstr("a split is of a folder"));
}

TEST_F(folder_splits, of_folders_have_their_own_tables) {
  for (const char* const split : {"train", "test"}) {
    put(std::string(split) + "/0.jpg", "\xFF\xD8\xFF");
    put(std::string(split) + "/metadata.jsonl", R"({"file_name": "0.jpg", "text": ")" + std::string(split) + "\"}\n");
  }
  const dataset samples = open(path(), {.split = "test"});
  ASSERT_EQ(samples.size(), 1U);
  const std::vector<std::byte> text = samples.read(0, "text");
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(text.data()), text.size()), "test");
}

TEST_F(folder_splits, folders_of_other_formats_are_refused_by_name) {
  const auto refused = [&] { return message_of(errc::unsupported, [&] { static_cast<void>(open(path())); }); };
  put("a.orc");
  EXPECT_THAT(refused(), AllOf(HasSubstr("ORC"), HasSubstr("pyarrow.orc")));
  put("_versions/1.manifest");
  EXPECT_THAT(refused(), AllOf(HasSubstr("Lance"), HasSubstr("lance.dataset")));
  put("index.json", R"({"chunks": [], "config": {}})");
  put("chunk-0-0.bin");
  EXPECT_THAT(refused(), AllOf(HasSubstr("LitData"), HasSubstr("litdata.StreamingDataset")));
}

}  // namespace
}  // namespace leat::datasets
