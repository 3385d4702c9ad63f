#include "datasets/files/patterns.hpp"

#include "tests/support/failures.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace leat::datasets {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::temporary_directory;

void touch(const std::filesystem::path& path) { std::ofstream(path) << "x"; }

errc code_of(const std::string& pattern) {
  try {
    static_cast<void>(expand_braces(pattern));
  } catch (const error& caught) {
    return caught.code();
  }
  ADD_FAILURE() << pattern << " was taken";
  return errc::io;
}

TEST(patterns, text_without_braces_is_itself) {
  EXPECT_THAT(expand_braces("train.tar"), ElementsAre("train.tar"));
  EXPECT_THAT(expand_braces(""), ElementsAre(""));
  EXPECT_THAT(expand_braces("a{b}c"), ElementsAre("a{b}c"));
  EXPECT_FALSE(has_braces("a{b}c"));
}

TEST(patterns, ranges_keep_the_width_of_their_wider_end) {
  EXPECT_THAT(expand_braces("a-{000..002}.tar"), ElementsAre("a-000.tar", "a-001.tar", "a-002.tar"));
  EXPECT_THAT(expand_braces("{8..11}"), ElementsAre("8", "9", "10", "11"));
  EXPECT_THAT(expand_braces("{08..11}"), ElementsAre("08", "09", "10", "11"));
  EXPECT_THAT(expand_braces("{9..0011}"), ElementsAre("0009", "0010", "0011"));
  EXPECT_THAT(expand_braces("{-1..1}"), ElementsAre("-1", "0", "1"));
  EXPECT_THAT(expand_braces("{3..1..-1}"), ElementsAre("3", "2", "1"));
  EXPECT_THAT(expand_braces("{0..10..5}"), ElementsAre("0", "5", "10"));
  EXPECT_THAT(expand_braces("{c..a..-1}"), ElementsAre("c", "b", "a"));
  EXPECT_THAT(expand_braces("{010..000..-5}"), ElementsAre("010", "005", "000"));
}

TEST(patterns, a_range_that_counts_down_is_asked_about) {
  const auto asked = [](const std::string& pattern) {
    return testing::message_of(errc::usage, [&] { static_cast<void>(expand_braces(pattern)); });
  };
  EXPECT_EQ(asked("a-{003..000}.tar"),
            "'a-{003..000}.tar' counts down; did you mean {000..003}? To count down write {003..000..-1}");
  EXPECT_THAT(asked("{10..0..5}"), AllOf(HasSubstr("{0..10..5}"), HasSubstr("{10..0..-5}")));
  EXPECT_THAT(asked("{c..a}"), HasSubstr("{a..c}"));
}

TEST(patterns, a_glob_that_matches_nothing_says_what_is_there) {
  const temporary_directory directory;
  const std::string root = directory.path().string();
  const auto said = [&](const std::string& pattern) {
    return testing::message_of(errc::not_found, [&] { static_cast<void>(expand_paths(pattern)); });
  };
  EXPECT_THAT(said(root + "/*.tar"), HasSubstr("the folder '" + root + "' is empty"));
  for (const char* name : {"a.txt", "val-1.tar", "val-0.tar"}) touch(directory.path() / name);
  EXPECT_THAT(said(root + "/train-*.tar"), AllOf(HasSubstr("'" + root + "/train-*.tar'"), HasSubstr("has 3 entries"),
                                                 HasSubstr("for example 'val-0.tar'")));
  EXPECT_THAT(said(root + "/no/*.tar"), HasSubstr("'" + root + "/no' cannot be read: No such file"));
}

TEST(patterns, an_address_says_how_to_come_by_a_file) {
  const auto said = [](const std::string& pattern) {
    return testing::message_of(errc::unsupported, [&] { static_cast<void>(expand_paths(pattern)); });
  };
  EXPECT_THAT(said("hf://datasets/a/b"),
              AllOf(HasSubstr("local files, https:// and s3://, and stores that a program registers"),
                    HasSubstr("hf download")));
  EXPECT_THAT(said("s3://bucket/{000..003}.tar"), HasSubstr("aws s3 sync"));
  EXPECT_THAT(said("gs://bucket/a.tar"), HasSubstr("gcloud storage"));
  EXPECT_THAT(said("https://host/a.tar"), HasSubstr("curl"));
  EXPECT_THAT(said("pipe:cat a.tar"), HasSubstr("write a file"));
  EXPECT_THAT(said("abfs://a/b.tar"), HasSubstr("copy or mount"));
  EXPECT_THAT(expand_paths("dir with space://x.tar"), ElementsAre("dir with space://x.tar"));
}

TEST(patterns, lists_nest_and_multiply) {
  EXPECT_THAT(expand_braces("{train,val}.tar"), ElementsAre("train.tar", "val.tar"));
  EXPECT_THAT(expand_braces("{a,b}{1..2}"), ElementsAre("a1", "a2", "b1", "b2"));
  EXPECT_THAT(expand_braces("{a,b{1,2}}x"), ElementsAre("ax", "b1x", "b2x"));
  EXPECT_THAT(expand_braces("x{,y}"), ElementsAre("x", "xy"));
}

TEST(patterns, a_backslash_takes_a_braces_meaning_away) {
  EXPECT_THAT(expand_braces("a\\{1..2\\}"), ElementsAre("a{1..2}"));
  EXPECT_FALSE(has_braces("a\\{1..2\\}"));
}

TEST(patterns, a_brace_left_open_or_a_million_names_too_many_is_a_usage_error) {
  EXPECT_EQ(code_of("a-{000..127.tar"), errc::usage);
  EXPECT_EQ(code_of("{0..1000000}"), errc::usage);
  EXPECT_EQ(code_of("{0..2000}{0..2000}"), errc::usage);
  EXPECT_EQ(code_of("{0..999999999999999999}"), errc::usage);
}

TEST(patterns, globs_are_sorted_by_byte_and_lists_keep_their_order) {
  const temporary_directory directory;
  for (const char* name : {"b-1.tar", "b-0.tar", "B-2.tar", "a-0.tar"}) touch(directory.path() / name);
  const std::string root = directory.path().string() + "/";
  EXPECT_THAT(expand_paths(root + "[bB]-*.tar"), ElementsAre(root + "B-2.tar", root + "b-0.tar", root + "b-1.tar"));
  EXPECT_THAT(expand_paths(root + "{b,a}-0.tar"), ElementsAre(root + "b-0.tar", root + "a-0.tar"));
  EXPECT_THAT(expand_paths(root + "{b-*,a-0}.tar"), SizeIs(3));
}

TEST(patterns, a_path_that_exists_is_itself_whatever_it_holds) {
  const temporary_directory directory;
  const std::string path = (directory.path() / "odd{1..2}[x].tar").string();
  touch(path);
  EXPECT_THAT(expand_paths(path), ElementsAre(path));
}

TEST(patterns, a_glob_without_a_match_says_so) {
  const temporary_directory directory;
  try {
    static_cast<void>(expand_paths((directory.path() / "none-*.tar").string()));
    FAIL() << "found something";
  } catch (const error& caught) {
    EXPECT_EQ(caught.code(), errc::not_found);
    EXPECT_THAT(caught.what(), HasSubstr("none-*.tar"));
  }
}

}  // namespace
}  // namespace leat::datasets
