// What the command writes replaces an older one of its kind, and no other file, by whatever option it is named.
#include "base/unfinished_file.hpp"
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

// All are looked at before one is touched.
TEST(outputs, of_a_run_before_are_whole_where_the_next_is_refused) {
  const photo_folder damaged;
  write_file(damaged.files().front(), "no picture");
  const temporary_directory directory;
  const auto at = [&](const std::string& name) { return (directory.path() / name).string(); };
  const std::vector<std::pair<std::string, std::string>> outputs = {
      {"--journal", at("j.jsonl")}, {"--receipts", at("r.rec")}, {"--record", at("e.rec")},
      {"--batches", at("b.jsonl")}, {"--metrics", at("m.prom")}, {"--trace", at("t.json")},
      {"--progress", at("p.jsonl")}};
  const auto run_with = [&](const std::string& other, const std::string& value,
                            const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {
        "epoch", damaged.path().string(), "--size", "16", "--on-corrupt", "skip", "--npy", at("npy")};
    for (const auto& [option, path] : outputs) {
      arguments.push_back(option);
      arguments.push_back(option == other ? value : path);
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  const ended first = run_with("", "");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  std::vector<std::string> before;
  for (const auto& [option, path] : outputs) {
    before.push_back(text_of(path));
    EXPECT_FALSE(before.back().empty()) << option;
  }
  const auto expect_whole = [&](const ended& refused, int exit_code) {
    EXPECT_EQ(refused.exit_code, exit_code) << refused.err;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(text_of(outputs[i].second) == before[i]) << outputs[i].first;
    }
  };
  for (const auto& [option, path] : outputs) {
    SCOPED_TRACE(option);
    const photo_in_place photo(at("photo.jpg"));
    const ended refused = run_with(option, at("photo.jpg"));
    expect_whole(refused, 2);
    EXPECT_THAT(refused.err, HasSubstr(at("photo.jpg")));
    EXPECT_TRUE(photo.is_there_still());
    // Nor where it could not be written.
    expect_whole(run_with(option, at("no/such/folder")), 1);
  }
  expect_whole(run_with("", "", {"--metrics-port", "0", "--metrics-address", "nowhere"}), 2);
  {
    const photo_in_place photo(at("npy") + "/0-0-jpg.npy");
    expect_whole(run_with("", ""), 2);
    EXPECT_TRUE(photo.is_there_still());
  }
  // A page is not written where the events beside it are refused.
  write_file(at("page.html"), "");
  std::filesystem::create_directory(at("board"));
  const photo_in_place photo(at("board") + "/events.out.tfevents.0.leat");
  EXPECT_EQ(run({"report", at("p.jsonl"), "-o", at("page.html"), "--tensorboard", at("board")}).exit_code, 2);
  EXPECT_EQ(text_of(at("page.html")), "");
  EXPECT_TRUE(photo.is_there_still());
}

TEST(outputs, follow_links_and_leave_them) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const temporary_directory directory;
  std::filesystem::create_directory(directory.path() / "far");
  const std::string link = (directory.path() / "link").string();
  const std::string target = (directory.path() / "far" / "target").string();
  for (const std::vector<std::string>& each :
       std::vector<std::vector<std::string>>{{"check", folder, "-o"},
                                             {"check", folder, "--json"},
                                             {"check", folder, "--ids"},
                                             {"epoch", folder, "--size", "16", "--metrics"},
                                             {"epoch", folder, "--size", "16", "--trace"},
                                             {"epoch", folder, "--size", "16", "--record"},
                                             {"epoch", folder, "--size", "16", "--progress"},
                                             {"epoch", folder, "--size", "16", "--batches"},
                                             {"epoch", folder, "--size", "16", "--receipts"}}) {
    SCOPED_TRACE(each.back());
    std::filesystem::remove(link);
    std::filesystem::remove(target);
    std::filesystem::create_symlink("far/target", link);
    std::vector<std::string> arguments = each;
    arguments.push_back(link);
    for (const char* const when : {"it leads nowhere", "there is a target"}) {
      SCOPED_TRACE(when);
      const ended process = run(arguments);
      EXPECT_EQ(process.exit_code, 0) << process.err;
      EXPECT_TRUE(std::filesystem::is_symlink(link));
      EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(target)));
      EXPECT_FALSE(text_of(target).empty());
    }
  }
}

// As /dev/stdout is one: through /proc it leads to a file that has a name, which stays the file that is open.
TEST(outputs, are_written_into_what_standard_output_is) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string out = (directory.path() / "out.json").string();
  const std::string link = (directory.path() / "stdout").string();
  std::filesystem::create_symlink("/proc/self/fd/1", link);
  const ended process = run_into(out, {"check", photos.path().string(), "--json", link});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(std::filesystem::read_symlink(link), "/proc/self/fd/1");
  const std::string text = text_of(out);
  EXPECT_TRUE(text.starts_with("{\n \"version\": \"")) << text.substr(0, 60);
  EXPECT_THAT(text, HasSubstr("\n}\n")) << "all of it, and the summary behind it";
  EXPECT_GT(text.size(), text.find("\n}\n") + 3);
}

TEST(outputs, are_begun_under_a_name_that_nobody_else_has) {
  const photo_folder photos;
  const temporary_directory directory;
  const auto at = [&](const std::string& name) { return (directory.path() / name).string(); };
  const std::vector<std::string> check = {"check", photos.path().string(), "-o", at("y.html")};
  write_file(at("y.html.partial"), "mine");
  EXPECT_EQ(run(check).exit_code, 0);
  EXPECT_EQ(text_of(at("y.html.partial")), "mine");
  // What a killed run has left is used up.
  const std::string begun = at(".y.html.partial");
  write_file(begun, text_of(at("y.html")).substr(0, 5000));
  EXPECT_EQ(run(check).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(begun));
  write_file(begun, "mine");
  const ended refused = run(check);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(begun), HasSubstr("would replace a file that is no page of leat")));
  EXPECT_EQ(text_of(begun), "mine");
  std::filesystem::rename(begun, at("target"));
  std::filesystem::create_symlink("target", begun);
  const ended linked = run(check);
  EXPECT_EQ(linked.exit_code, 2);
  EXPECT_THAT(linked.err, AllOf(HasSubstr(begun), HasSubstr("is a link; move that away")));
  EXPECT_EQ(text_of(at("target")), "mine");
  std::filesystem::remove(begun);
  // Two that write one file.
  unfinished_file other(at("y.html"));
  ASSERT_EQ(other.open(), 0);
  const ended second = run(check);
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("another process is writing it"));
}

TEST(outputs, take_a_first_line_that_was_torn_for_their_own) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "there").string();
  for (const auto& [bytes, kind] : std::vector<std::pair<std::string, output_kind>>{
           {"\n", output_kind::progress},
           {"\n\n{\"t_s\":1.5,\"seconds\":1,\"batches\":3", output_kind::progress},
           {"{\"t_s\":1", output_kind::progress},
           {"{\"epoch\":0,\"ba", output_kind::batches}}) {
    write_file(path, bytes);
    EXPECT_NO_THROW(tools::check_replaces_own_kind(path, kind)) << bytes;
  }
  write_file(path, "\nmine");
  EXPECT_THROW(tools::check_replaces_own_kind(path, output_kind::progress), error);
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
  const std::string plot = "<?xml version=\"1.0\"?>\n<svg><desc>Produced by GNUPLOT 6.0";
  EXPECT_EQ(refusal_of(tools::marked_plot(plot), output_kind::plot), "");
  const std::string list = tools::sealed_list("3  # a.jpg: no picture\n# 5  # b.jpg: resembles sample 4\n");
  EXPECT_EQ(refusal_of(list, output_kind::ids), "");
  for (const std::string& edited : {list.substr(0, list.size() - 1), list + "7\n", list.substr(0, list.find("# 5")),
                                    list.substr(0, list.find('\n') + 1)}) {
    EXPECT_THAT(refusal_of(edited, output_kind::ids), HasSubstr("a list that is not as leat check has written it"))
        << edited;
  }
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
           {plot, output_kind::plot},
           {"{\"version\": 1, \"refs\": {\".zgroup\": \"{}\"}}", output_kind::references},
           {"{\"version\": 1}", output_kind::references}}) {
    EXPECT_THAT(refusal_of(bytes, kind), HasSubstr("would replace a file that is no")) << bytes;
  }
  std::filesystem::remove(path);
  EXPECT_NO_THROW(tools::check_replaces_own_kind(path, output_kind::tokens));
  EXPECT_NO_THROW(tools::check_replaces_own_kind("/dev/null", output_kind::tokens));
}

}  // namespace
}  // namespace leat::testing
