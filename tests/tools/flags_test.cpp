// Messages of the library, in the words of the command's line.
#include "tools/flags.hpp"

#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What no flag sets, so that a message about it speaks of C++.
constexpr option_id without_flag[] = {
    option_id::device_batches,     option_id::device_bytes_max, option_id::device_required, option_id::finish_on_device,
    option_id::order_sampled_by,   option_id::order_weighted,   option_id::preadv_threads,  option_id::read_timeout,
    option_id::registered_buffers, option_id::lmdb_database};

std::string words_of(option_id option) {
  for (const option_words& each : tools::on_the_command_line.words) {
    if (each.option == option && each.value.empty()) return std::string(each.words);
  }
  return {};
}

TEST(flags, each_option_that_a_message_may_name_is_one_of_some_command) {
  std::string help;
  for (const char* command : {"epoch", "inspect", "show", "pack"}) help += run({command, "--help"}).out;
  for (int number = 1; number <= static_cast<int>(option_id::skip_damaged); ++number) {
    const auto option = static_cast<option_id>(number);
    const std::string words = words_of(option);
    if (std::find(std::begin(without_flag), std::end(without_flag), option) != std::end(without_flag)) {
      EXPECT_EQ(words, "") << name(option);
    } else if (option == option_id::tokens_max) {
      EXPECT_THAT(help, HasSubstr(words)) << "a part of --order bucketed:LENGTH:TOKENS_MAX";
    } else {
      EXPECT_EQ(words.substr(0, 2), "--") << name(option);
      const std::string flag = words.substr(0, words.find(' '));
      EXPECT_THAT(help, HasSubstr(flag + " ")) << name(option);
    }
  }
}

TEST(flags, values_are_said_with_their_flag) {
  for (const option_words& each : tools::on_the_command_line.words) {
    EXPECT_TRUE(each.words.starts_with("--") || each.option == option_id::tokens_max) << each.words;
  }
}

struct wrong {
  std::vector<std::string> arguments;
  std::string said;
};

TEST(flags, what_can_be_wrong_is_said_in_them) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const temporary_directory directory;
  const std::string rows = (directory.path() / "rows.npy").string();
  std::ofstream(rows, std::ios::binary) << npy_text("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }",
                                                    "abcdef");
  const std::string there = (directory.path() / "there.tar").string();
  ASSERT_EQ(run({"pack", folder, there}).exit_code, 0);
  const std::vector<wrong> all = {
      {{"epoch", folder, "--host-bytes-max", "4KiB"}, "--host-bytes-max of 4.00 KiB is too small"},
      {{"epoch", folder, "--order", "shuffled_blocks:2"}, "--order shuffled_blocks: no samples"},
      {{"epoch", folder, "--order", "balanced:nothing"}, "--order balanced: the dataset has no column"},
      {{"epoch", folder, "--order", "bucketed:jpg:1"}, "above TOKENS_MAX = 1"},
      {{"epoch", folder, "--tokenizer", "/nowhere/tokenizer.json"}, "/nowhere/tokenizer.json: No such file"},
      {{"epoch", folder, "--tokenizer", std::string(LEAT_TEST_DATA) + "/tokenizers/gpt2.json"},
       "--tokenizer without a text among the fields"},
      {{"epoch", folder, "--text-tokens", "8"}, "--text-tokens requires --tokenizer"},
      {{"epoch", folder, "--chat", "llama3"}, "--chat requires --tokenizer"},
      {{"epoch", folder, "--tokenizer", "a.json", "--mask-prompt"}, "--mask-prompt requires --chat"},
      {{"epoch", folder, "--tokenizer", std::string(LEAT_TEST_DATA) + "/tokenizers/chat.json", "--chat", "llama3"},
       "--chat without lists of messages among the fields"},
      {{"epoch", folder, "--node-local", "3", "--global-batch-size", "4"},
       "--batch-size, or --global-batch-size, that is"},
      {{"epoch", folder, "--window", "2"}, "--window is of .npy, .npz, HDF5 and Zarr"},
      {{"epoch", folder, "--stride", "2"}, "--stride is of .npy, .npz, HDF5 and Zarr"},
      {{"epoch", folder, "--array-samples"}, "--array-samples is of HDF5 and Zarr"},
      {{"epoch", folder, "--columns", "n"}, "--columns is of Parquet"},
      {{"epoch", folder, "--checksums"}, "--checksums is of Parquet"},
      {{"epoch", folder, "--types", "n=f32"}, "--types is of JSONL and CSV"},
      {{"epoch", folder, "--path-column", "n"}, "--path-column is of JSONL and CSV"},
      {{"epoch", folder, "--ignore-zeros"}, "--ignore-zeros is of tar shards"},
      {{"epoch", rows, "--index-use", "rebuild"}, "--index-use is of"},
      {{"pack", folder, there}, "(--continue), or replace what is there (--overwrite)"},
  };
  for (const wrong& each : all) {
    const ended process = run(each.arguments);
    EXPECT_NE(process.exit_code, 0) << each.said;
    EXPECT_THAT(process.err, HasSubstr(each.said));
    EXPECT_THAT(process.err, Not(HasSubstr("_options::")));
  }
}

TEST(flags, a_path_that_is_called_like_an_option_keeps_its_name) {
  for (const char* path : {"batch_size", "on_corrupt", "cache_bytes", "queue_depth", "tokens_max"}) {
    const ended process = run({"epoch", path});
    EXPECT_EQ(process.exit_code, 2) << path;
    EXPECT_THAT(process.err, HasSubstr(std::string("leat epoch: ") + path + ":"));
    EXPECT_THAT(process.err, Not(HasSubstr("--"))) << path;
  }
}

}  // namespace
}  // namespace leat::testing
