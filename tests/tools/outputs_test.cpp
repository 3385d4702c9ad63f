// What the command writes replaces an older one of its kind, and no other file, by whatever option it is named.
#include "tests/support/photos.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"
#include "tools/output_kind.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tools::output_kind;

struct written_by {
  std::string what;
  std::vector<std::string> arguments;  // @ is where the file goes
  std::string file;                    // that is written for it; empty: that itself
};

/// A photograph, as it was before.
class photo_in_place {
 public:
  explicit photo_in_place(std::string path) : path_(std::move(path)) {
    std::filesystem::remove(path_);
    std::filesystem::copy_file(photos_.files().front(), path_);
  }
  [[nodiscard]] bool is_there_still() const { return text_of(path_) == text_of(photos_.files().front().string()); }

 private:
  photo_folder photos_;
  const std::string path_;
};

ended run_at(const written_by& output, const std::string& path) {
  std::vector<std::string> arguments = output.arguments;
  std::replace(arguments.begin(), arguments.end(), std::string("@"), path);
  return run(arguments);
}

TEST(outputs, replace_their_own_kind_and_no_other_file) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const temporary_directory directory;
  const auto at = [&](const std::string& name) { return (directory.path() / name).string(); };
  ASSERT_EQ(run({"epoch", folder, "--size", "32", "--progress", at("run.jsonl"), "--trace", at("t.json"), "--receipts",
                 at("run.receipt")})
                .exit_code,
            0);
  const std::filesystem::path array = directory.path() / "numbers.zarr";
  std::filesystem::create_directory(array);
  write_file(array / ".zarray", R"({"zarr_format":2,"shape":[4,2],"chunks":[2,2],"dtype":"|u1","order":"C",)"
                                R"("compressor":null,"filters":null,"fill_value":9})");
  write_file(array / "0.0", "abcd");
  const photo_folder damaged;
  write_file(damaged.files().front(), "no picture");
  const std::string sample = std::filesystem::relative(photos.files().front(), photos.path()).string();
  const std::vector<written_by> all = {
      {"page", {"show", folder, "--size", "32", "-o", "@"}, "sheet.html"},
      {"grid", {"show", folder, "--size", "32", "-o", "@"}, "sheet.png"},
      {"checked", {"check", folder, "-o", "@"}, {}},
      {"findings", {"check", folder, "--json", "@"}, {}},
      {"ids", {"check", folder, "--ids", "@"}, {}},
      {"report", {"report", at("run.jsonl"), "-o", "@"}, {}},
      {"events", {"report", at("run.jsonl"), "--tensorboard", "@"}, "events.out.tfevents.0.leat"},
      {"joined", {"report", "--join-traces", at("t.json"), "-o", "@"}, {}},
      {"proof", {"receipt", at("run.receipt"), sample, "--proof", "@"}, {}},
      {"references", {"inspect", array.string(), "--references", "@"}, {}},
      {"progress", {"epoch", folder, "--size", "32", "--progress", "@"}, {}},
      {"journal", {"epoch", damaged.path().string(), "--size", "32", "--on-corrupt", "skip", "--journal", "@"}, {}},
      {"batches", {"epoch", folder, "--size", "32", "--batches", "@"}, {}},
      {"metrics", {"epoch", folder, "--size", "32", "--metrics", "@"}, {}},
      {"trace", {"epoch", folder, "--size", "32", "--trace", "@"}, {}},
      {"npy", {"epoch", folder, "--size", "32", "--batch-size", "12", "--npy", "@"}, "0-0-jpg.npy"}};
  for (const written_by& each : all) {
    SCOPED_TRACE(each.what);
    // A folder gets the file, where it is not named itself.
    const bool in_folder = !each.file.empty() && each.what != "page" && each.what != "grid";
    const std::string named = at(in_folder || each.file.empty() ? each.what : each.file);
    if (in_folder) std::filesystem::create_directory(named);
    const std::string path = in_folder ? named + "/" + each.file : named;

    const ended first = run_at(each, named);
    ASSERT_EQ(first.exit_code, 0) << first.err;
    ASSERT_TRUE(std::filesystem::exists(path));
    const ended again = run_at(each, named);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_THAT(again.err, Not(HasSubstr("would replace")));

    const photo_in_place photo(path);
    const ended refused = run_at(each, named);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr(path), HasSubstr("would replace a file that is n"), HasSubstr("give another name")));
    EXPECT_TRUE(photo.is_there_still());
    // What another command has written is not its own either.
    if (each.what != "trace" && each.what != "joined") {
      std::filesystem::copy_file(at("t.json"), path, std::filesystem::copy_options::overwrite_existing);
      EXPECT_EQ(run_at(each, named).exit_code, 2);
      EXPECT_EQ(text_of(path), text_of(at("t.json")));
    }
    // An empty file is nothing, as `touch` makes it.
    write_file(path, "");
    EXPECT_EQ(run_at(each, named).exit_code, 0);
  }
}

TEST(outputs, say_what_would_be_lost) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "there").string();
  const auto refusal_of = [&](std::string_view bytes, output_kind kind) -> std::string {
    write_file(path, bytes);
    try {
      tools::check_replaces_own_kind(path, kind, "-o");
      return "";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      return refused.what();
    }
  };
  EXPECT_EQ(refusal_of("name,class\n", output_kind::ids),
            "-o " + path +
                " would replace a file that is no list of leat check --ids but text, 'name,class...'; move that "
                "away, or give another name");
  EXPECT_THAT(refusal_of("\xff\xd8\xff\xe0 and more", output_kind::page), HasSubstr("no page of leat but a JPEG;"));
  EXPECT_THAT(refusal_of(std::string(20, '\x01'), output_kind::plot), HasSubstr("no plot of leat bench read; move"));
  EXPECT_THAT(refusal_of("ab", output_kind::tokens), HasSubstr("is there, and tokens look like any other bytes"));
  EXPECT_EQ(refusal_of("ab", output_kind::packed), "") << "--overwrite says so";
  EXPECT_EQ(refusal_of("<?xml version=\"1.0\"?>\n<svg><desc>Produced by GNUPLOT 6.0", output_kind::plot), "");
  // Pages, lists and pictures of others.
  for (const auto& [bytes, kind] : std::vector<std::pair<std::string, output_kind>>{
           {"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>Mine</title>", output_kind::page},
           {"<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n", output_kind::page},
           {std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16) + std::string(40, '\x02'), output_kind::grid},
           {"# Samples that I like\n3\n", output_kind::ids},
           {"{\"epoch\":0,\"batch\":1,\"sample\":7}\n", output_kind::batches},
           {"{\"epoch\":,\"batch\":1,\"ids\":[]}\n", output_kind::batches},
           {"{\"t_s\":\"1\",\"seconds\":1,", output_kind::progress},
           {"# HELP node_cpu_seconds_total\n", output_kind::metrics},
           {"{\"version\": 1}", output_kind::references}}) {
    EXPECT_THAT(refusal_of(bytes, kind), HasSubstr("would replace a file that is no")) << bytes;
  }
  std::filesystem::remove(path);
  EXPECT_NO_THROW(tools::check_replaces_own_kind(path, output_kind::tokens));
  EXPECT_NO_THROW(tools::check_replaces_own_kind("/dev/null", output_kind::tokens));
}

}  // namespace
}  // namespace leat::testing
