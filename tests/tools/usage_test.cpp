// What the command line says to what it is given.
#include "tests/support/photos.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"

#include <leat/version.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

// What the words of a command, as "bench read", are on the command line.
std::vector<std::string> words_of(const std::string& command) {
  std::istringstream text(command);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

// "--out" of "  -o,--out FILE      where it goes"; empty where a line begins with none.
std::string option_of(const std::string& line) {
  const std::size_t at = line.find("--");
  const bool begins = line.starts_with("  -") && at != std::string::npos && at <= 5;
  return begins ? line.substr(at, line.find_first_of(" ,\n", at) - at) : "";
}

struct listed_option {
  std::string command;
  std::string option;
};

// Of the help of each command.
std::vector<listed_option> all_options() {
  std::vector<listed_option> all;
  for (const char* command : {"epoch", "inspect", "show", "replay", "pack", "unpack", "make-photos", "doctor",
                              "bench read", "cache ls", "cache verify", "cache warm", "cache drop", "index", "help"}) {
    std::vector<std::string> arguments = words_of(command);
    arguments.push_back("--help");
    for (const std::string& line : lines_of(run(arguments).out)) {
      if (const std::string option = option_of(line); !option.empty()) all.push_back({command, option});
    }
  }
  return all;
}

TEST(usage, version_is_that_of_the_headers) {
  const ended process = run({"--version"});
  EXPECT_EQ(process.exit_code, 0);
  EXPECT_EQ(process.out, "leat " + std::to_string(LEAT_VERSION_MAJOR) + "." + std::to_string(LEAT_VERSION_MINOR) + "." +
                             std::to_string(LEAT_VERSION_PATCH) + "\n");
}

TEST(usage, help_names_every_command_and_fits_the_screen) {
  const ended process = run({"--help"});
  EXPECT_EQ(process.exit_code, 0);
  for (const char* name : {"epoch", "inspect", "check", "show", "report", "pack", "unpack", "make-photos", "doctor",
                           "bench", "cache", "index", "tokens", "where", "tune", "receipt"})
    EXPECT_THAT(process.out, HasSubstr(name));
  for (const std::string& line : lines_of(process.out)) EXPECT_THAT(line, SizeIs(Le(100U))) << line;
  EXPECT_THAT(lines_of(process.out), SizeIs(Le(24U)));
}

TEST(usage, each_command_explains_itself_with_examples) {
  for (const char* name : {"epoch", "inspect", "check", "show", "report", "pack", "unpack", "make-photos", "doctor",
                           "bench", "cache", "index", "tokens", "where", "tune", "receipt"}) {
    const ended process = run({name, "--help"});
    EXPECT_EQ(process.exit_code, 0) << name;
    EXPECT_THAT(process.out, HasSubstr(std::string("leat ") + name));
    EXPECT_THAT(process.out, HasSubstr("Examples"));
    for (const std::string& line : lines_of(process.out)) EXPECT_THAT(line, SizeIs(Le(110U))) << line;
  }
}

TEST(usage, epoch_help_names_every_option_of_its_contract) {
  const std::string help = run({"epoch", "--help"}).out;
  for (const char* option :
       {"--epochs",         "--batch-size", "--seed",   "--shuffle",    "--no-shuffle", "--drop-last",  "--limit",
        "--transform",      "--size",       "--dtype",  "--layout",     "--threads",    "--io-threads", "--queue-depth",
        "--host-bytes-max", "--reader",     "--direct", "--on-corrupt", "--journal",    "--digest",     "--batches",
        "--rows",           "--npy",        "--plan",   "--json",       "--order",      "--mixture",    "--last"}) {
    EXPECT_THAT(help, HasSubstr(std::string("\n  ") + option)) << option;
  }
}

TEST(usage, short_help_names_each_option_and_is_short) {
  for (const char* name : {"epoch", "pack", "show", "inspect"}) {
    const std::string whole = run({name, "--help"}).out;
    const ended process = run({name, "-h"});
    EXPECT_EQ(process.exit_code, 0);
    EXPECT_EQ(process.err, "");
    EXPECT_LT(lines_of(process.out).size(), lines_of(whole).size()) << name;
    EXPECT_THAT(process.out, HasSubstr(std::string("`leat ") + name + " --help`"));
    for (const std::string& line : lines_of(whole)) EXPECT_THAT(process.out, HasSubstr(option_of(line)));
    for (const std::string& line : lines_of(process.out)) EXPECT_THAT(line, SizeIs(Le(110U))) << line;
  }
  EXPECT_EQ(run({"make-photos", "-h"}).out, run({"make-photos", "--help"}).out) << "it fits a screen";
}

TEST(usage, help_is_a_command_too) {
  EXPECT_EQ(run({"help"}).out, run({"--help"}).out);
  EXPECT_EQ(run({"help", "epoch"}).out, run({"epoch", "--help"}).out);
  EXPECT_EQ(run({"help", "bench", "read"}).out, run({"bench", "read", "--help"}).out);
  const ended misspelt = run({"help", "epcoh"});
  EXPECT_EQ(misspelt.exit_code, 2);
  expect_one_line(misspelt, "leat help: there is no command 'epcoh'; did you mean epoch?");
}

TEST(usage, a_source_may_be_called_as_a_command_is) {
  const temporary_directory directory;
  const photo_folder photos;
  for (const char* const name : {"show", "epoch"}) {
    const std::string link = directory.path() / name;
    std::filesystem::create_directory_symlink(photos.path(), link);
    const std::string said = directory.path() / "said";
    const std::string line =
        "cd " + directory.path().string() + " && \"$LEAT_COMMAND\" epoch " + name + " --size 32 >" + said + " 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << text_of(said);
  }
}

TEST(usage, man_page_and_completions_have_each_option) {
  const std::vector<listed_option> all = all_options();
  ASSERT_GT(all.size(), 150U);
  const std::string manual = run({"help", "--man"}).out;
  const std::string bash = run({"help", "--completions", "bash"}).out;
  const std::string zsh = run({"help", "--completions", "zsh"}).out;
  const std::string fish = run({"help", "--completions", "fish"}).out;
  for (const listed_option& each : all) {
    SCOPED_TRACE(each.command + " " + each.option);
    std::string in_manual;
    for (const char letter : each.option) in_manual += letter == '-' ? std::string("\\-") : std::string(1, letter);
    const bool is_in_manual =
        manual.find(in_manual + "\\fR") != std::string::npos || manual.find(in_manual + ",") != std::string::npos;
    EXPECT_TRUE(is_in_manual);
    EXPECT_NE(zsh.find("'" + each.option + "["), std::string::npos);
    EXPECT_NE(fish.find(" -l " + each.option.substr(2) + " "), std::string::npos);
    const std::size_t at = bash.find("\n    '" + each.command + "')");
    ASSERT_NE(at, std::string::npos);
    EXPECT_THAT(bash.substr(at, bash.find(";;", at) - at), ContainsRegex("[ ']" + each.option + "[ ']"));
  }
}

TEST(usage, man_page_says_how_each_format_is_told_and_what_is_refused) {
  const std::string manual = run({"help", "--man"}).out;
  EXPECT_THAT(manual, HasSubstr("\n.SH FORMATS\n.TP\n\\fBa folder of pictures\\fR\nTold by "));
  EXPECT_THAT(manual, HasSubstr("\n.TP\n\\fBParquet\\fR\nTold by the first bytes PAR1. Fields: "));
  EXPECT_THAT(manual, ContainsRegex("Not read: [^\n]*\n$"));
}

TEST(usage, bash_completes_commands_options_and_their_words) {
  const temporary_directory directory;
  const std::string script = directory.path() / "leat";
  ASSERT_EQ(run_into(script, {"help", "--completions", "bash"}).exit_code, 0);
  const auto completed = [&](const std::string& words) {
    const std::string said = directory.path() / "said";
    const std::string line = "bash -c 'source " + script + " && COMP_WORDS=(leat " + words +
                             ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _leat && echo ${COMPREPLY[@]}' >" + said;
    EXPECT_EQ(std::system(line.c_str()), 0) << line;
    return text_of(said);
  };
  EXPECT_EQ(completed("ep"), "epoch\n");
  EXPECT_EQ(completed("bench \"\""), "read\n");
  EXPECT_EQ(completed("epoch photos --read"), "--reader\n");
  EXPECT_EQ(completed("epoch photos --reader \"\""), "auto io_uring preadv\n");
  EXPECT_EQ(completed("epoch photos --reader = io"), "io_uring\n");
  EXPECT_EQ(completed("epoch --batch-size \"\""), "\n") << "a number";
  EXPECT_EQ(completed("bench read --sw"), "--sweep\n");
  EXPECT_EQ(completed("epoch " + script.substr(0, script.size() - 1)), script + "\n");
}

// As `leat help | head -1` has it.
TEST(usage, a_reader_who_has_gone_is_told_nothing) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"help", "epoch"},
                                             {"--version"},
                                             {"inspect", folder},
                                             {"epoch", folder, "--size", "32"},
                                             {"epoch", folder, "--size", "32", "--batches", "-"},
                                             {"epoch", folder, "--size", "32", "--json"}}) {
    const ended process = command(arguments, command::streams::unread).wait();
    EXPECT_EQ(process.exit_code, 141) << arguments.front();
    EXPECT_FALSE(process.killed);
    EXPECT_EQ(process.err, "");
  }
}

TEST(usage, nothing_asked_shows_the_help_and_is_a_usage_error) {
  const ended process = run({});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_EQ(process.out, "");
  EXPECT_THAT(process.err, HasSubstr("epoch"));
}

// One rule: what the command line names and leat cannot read as asked is a mistake of the command line.
TEST(usage, a_source_that_is_not_there_or_no_data_ends_with_2) {
  const temporary_directory directory;
  const auto file = [&](const char* name, const std::string& content) {
    const std::string path = (directory.path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  };
  const std::string pipe = (directory.path() / "pipe.tar").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string empty = (directory.path() / "empty").string();
  std::filesystem::create_directory(empty);
  const std::string archive = file("photos.tar.bz2", "BZh9" + std::string(100, 'z'));
  const std::string text = file("notes.md", "what I know of the data\n");
  const std::string named_tar = file("notes.tar", "what I know of the data\n");
  const std::vector<std::vector<std::string>> all = {{"hf://owner/name"},      {text}, {named_tar}, {empty + "/*.tar"},
                                                     {empty + "/none.tar"},    {pipe}, {archive},   {empty},
                                                     {empty, "--tokens", "16"}};
  for (const std::vector<std::string>& each : all) {
    std::vector<std::string> arguments{"epoch"};
    arguments.insert(arguments.end(), each.begin(), each.end());
    const ended process = run(arguments);
    EXPECT_EQ(process.exit_code, 2) << each.front();
    EXPECT_EQ(process.out, "");
    EXPECT_EQ(std::count(process.err.begin(), process.err.end(), '\n'), 1) << process.err;
  }
  EXPECT_EQ(run({"pack", empty, "s3://bucket/p.tar"}).exit_code, 2);

  // Damage is no mistake of the command line.
  const std::string cut = file("cut.tar", std::string(700, '\1'));
  EXPECT_EQ(run({"epoch", cut}).exit_code, 1);
}

TEST(usage, options_of_a_command_stand_behind_its_name) {
  const ended before = run({"--json", "epoch", "photos"});
  EXPECT_EQ(before.exit_code, 2);
  EXPECT_EQ(before.err, "leat epoch: '--json' stands before epoch; options go behind it: `leat epoch --json`\n");
  EXPECT_THAT(run({"--batch-size=4", "epoch", "photos"}).err,
              HasSubstr("'--batch-size=4' stands before epoch; options"));
  EXPECT_THAT(run({"--json", "bench", "read", "f"}).err, HasSubstr("'--json' stands before bench read; options"));
  EXPECT_THAT(run({"--nonsense", "epoch", "photos"}).err, HasSubstr("'--nonsense' stands before epoch; leave it out"));
}

// Neither damage nor samples that lack something.
TEST(usage, sources_that_do_not_match_are_a_mistake_of_the_command_line) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string table = directory.path() / "t.csv";
  std::ofstream csv(table);
  csv << "a,b\n";
  for (int row = 0; row < 12; ++row) csv << row << ",x" << row << '\n';
  csv.close();
  const ended process = run({"epoch", photos.path().string(), table, "--size", "32"});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("the sources do not match"));
  EXPECT_THAT(process.err, HasSubstr("load them apart"));
}

// Of every command that takes names, whether or not it has as many as it needs before the dashes.
TEST(usage, what_stands_behind_dashes_is_a_name) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const std::vector<std::vector<std::string>> lines = {{"epoch", "--", "-x"},
                                                       {"epoch", folder, "--", "-x"},
                                                       {"inspect", folder, "--json", "--", "-x"},
                                                       {"check", folder, "--", "-x"},
                                                       {"replay", "--batch", "0", folder, "--", "-x"},
                                                       {"tune", folder, "--", "-x"},
                                                       {"where", folder, "--", "-x", "3"},
                                                       {"pack", "--", folder, "-x", "o.tar"},
                                                       {"index", "--", "-x"},
                                                       {"report", "--", "-x"},
                                                       {"bench", "read", "--", "-x"}};
  for (const std::vector<std::string>& line : lines) {
    const ended process = run(line);
    EXPECT_NE(process.exit_code, 0) << line.front();
    EXPECT_THAT(process.err, ContainsRegex("-x: (no such file|No such file)|-x:? ?.*(no such|No such|not|cannot)"))
        << line.front();
    EXPECT_THAT(process.err, Not(HasSubstr("unknown"))) << line.front();
  }
  EXPECT_THAT(run({"epoch", folder, "--", "--json"}).err, HasSubstr("leat epoch: --json: No such file"));
  EXPECT_THAT(run({"cache", "warm", "--", "-x"}).err, HasSubstr("leat cache warm: ADDRESS is required"));
  EXPECT_THAT(run({"cache", "--", "ls"}).err, HasSubstr("leat cache: unknown argument 'ls'"));
  EXPECT_THAT(run({"make-photos", "one", "--", "-x"}).err, HasSubstr("leat make-photos: unknown argument '-x'"));
  // A value may be two dashes.
  EXPECT_THAT(run({"epoch", folder, "--where", "--", "--json"}).err, HasSubstr("leat epoch: --where '--'"));
}

struct mistake {
  std::vector<std::string> arguments;
  std::string start;  // of the one line on standard error
  std::string part;   // somewhere in it
};

TEST(usage, mistakes_are_one_line_that_says_what_would_do) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const std::vector<mistake> mistakes = {
      {{"epcoh"}, "leat: unknown command 'epcoh'", "did you mean epoch?"},
      {{"frobnicate"}, "leat: unknown command 'frobnicate'", "--help"},
      {{"--frobnicate"}, "leat: unknown option '--frobnicate'", "--help"},
      {{"epoch"}, "leat epoch: SOURCE", "`leat epoch --help`"},
      {{"epoch", folder, "--batchsize", "3"}, "leat epoch: unknown option '--batchsize'", "did you mean --batch-size?"},
      {{"epoch", folder, "--workers", "4"}, "leat epoch: unknown option '--workers'", "did you mean --threads?"},
      {{"epoch", folder, "--num-workers=4"}, "leat epoch: unknown option '--num-workers'", "did you mean --threads?"},
      {{"epoch", folder, "--num_workers", "4"},
       "leat epoch: unknown option '--num_workers'",
       "did you mean --threads?"},
      {{"show", folder, "-o", "s.html", "--num_workers", "4"}, "leat show: unknown option", "did you mean --threads?"},
      {{"epoch", folder, "--batch_size", "4"},
       "leat epoch: unknown option '--batch_size'",
       "did you mean --batch-size?"},
      {{"epoch", folder, "--drop_last"}, "leat epoch: unknown option '--drop_last'", "did you mean --drop-last?"},
      {{"epoch", folder, "--image_size", "64"}, "leat epoch: unknown option '--image_size'", "did you mean --size?"},
      {{"epoch", folder, "--profile"}, "leat epoch: unknown option '--profile'", "lists what there is"},
      {{"epoch", folder, "--half"}, "leat epoch: unknown option '--half'", "lists what there is"},
      {{"epoch", folder, "--cpu"}, "leat epoch: unknown option '--cpu'", "lists what there is"},
      {{"epoch", folder, "--pin_memory"}, "leat epoch: unknown option '--pin_memory'", "pinned by itself"},
      {{"inspect", folder, "--workers", "4"}, "leat inspect: unknown option '--workers'", "`leat inspect --help`"},
      {{"epoch", folder, "--tokens", "16"}, "leat epoch: " + folder + ": tokens are files, and this is a folder", ""},
      {{"epoch", folder + "-{3..0}.tar"},
       "leat epoch: '" + folder + "-{3..0}.tar' counts down",
       "did you mean {0..3}?"},
      {{"pack", folder, folder + ".tar.gz"}, "leat pack: '" + folder + ".tar.gz': shards are plain tars", ".tar'"},
      {{"epoch", folder, "--batch-size=0"}, "leat epoch: --batch-size '0'", "a whole number from 1 to"},
      {{"epoch", folder, "--batch-size=-1"}, "leat epoch: --batch-size '-1'", "a whole number from 1 to"},
      {{"epoch", folder, "--batch-size", "many"}, "leat epoch: --batch-size 'many'", "a whole number"},
      {{"epoch", folder, "--seed", "18446744073709551616"}, "leat epoch: --seed", "a whole number"},
      {{"epoch", folder, "--epochs", "0"}, "leat epoch: --epochs '0'", "from 1"},
      {{"epoch", folder, "--limit", "0"}, "leat epoch: --limit '0'", "from 1"},
      {{"epoch", folder, "--threads", "100000"}, "leat epoch: --threads '100000'", "to 1024"},
      {{"epoch", folder, "--dtype", "f64"}, "leat epoch: --dtype 'f64'", "u8|f16|bf16|f32"},
      {{"epoch", folder, "--layout", "chwn"}, "leat epoch: --layout", "nchw|nhwc"},
      {{"epoch", folder, "--transform", "test"}, "leat epoch: --transform", "train|eval"},
      {{"epoch", folder, "--augment", "simclr grayscale"},
       "leat epoch: --augment: at character 1: 'simclr' is a recipe, which stands alone",
       "write its own: random_apply("},
      {{"epoch", folder, "--augment", "DINO"}, "leat epoch: --augment: at character 1: 'DINO'", "mean 'dino'?"},
      {{"epoch", folder, "--augment", "dno"}, "leat epoch: --augment: at character 1: 'dno'", "mean 'dino'?"},
      {{"epoch", folder, "--augment", "hue(0.7)"}, "leat epoch: --augment: transforms as text, at character 1", "0.5"},
      {{"epoch", folder, "--augment", "invert random_flip"}, "leat epoch: --augment: random_flip", "--transform"},
      {{"epoch", folder, "--augment", "gaussian_blur(99)", "--size", "32"}, "leat epoch: --augment: gaus", "than 64"},
      {{"epoch", folder, "--reader", "mmap"}, "leat epoch: --reader", "auto|io_uring|preadv"},
      {{"epoch", folder, "--direct", "yes"}, "leat epoch: --direct", "auto|on|off"},
      {{"epoch", folder, "--on-corrupt", "ignore"}, "leat epoch: --on-corrupt", "raise|skip|substitute"},
      {{"epoch", folder, "--host-bytes-max", "lots"}, "leat epoch: --host-bytes-max 'lots'", "512MiB"},
      {{"epoch", folder, "--host-bytes-max"}, "leat epoch: --host-bytes-max needs a value", "`leat epoch --help`"},
      {{"epoch", folder, "--seed", "1", "--seed", "2"},
       "leat epoch: --seed is given more than once",
       "leave all but one"},
      {{"epoch", folder, "--shuffle", "--no-shuffle"}, "leat epoch: ", "--no-shuffle"},
      {{"epoch", folder, "--rows"}, "leat epoch: --rows", "--batches"},
      {{"epoch", folder, "--batches", "/dev/null", "--rows", "--digest", "off"}, "leat epoch: --rows", "--digest off"},
      {{"epoch", folder, "--batches", "-", "--json"}, "leat epoch: --batches -", "--json"},
      {{"epoch", folder, "--journal", "-"}, "leat epoch: --journal", "./-"},
      {{"epoch", folder, "--npy", "-"}, "leat epoch: --npy", "./-"},
      {{"pack", folder, "-"}, "leat pack: OUT '-'", "photos.tar"},
      {{"show", folder}, "leat show: ", "--out"},
      {{"show", folder, "-o", "sheet.gif"}, "leat show: -o 'sheet.gif'", ".html"},
      {{"pack", folder}, "leat pack: ", "OUT"},
      {{"epoch", ""}, "leat epoch: SOURCE", "is empty"},
      {{"make-photos", folder, "--count", "3", "--classes", "5"},
       "leat make-photos: 3 pictures in 5 classes",
       "each class"},
      {{"make-photos"}, "leat make-photos: DIR", "--help"},
  };
  for (const mistake& each : mistakes) {
    std::string line;
    for (const std::string& word : each.arguments) line += word + " ";
    SCOPED_TRACE(line);
    const ended process = run(each.arguments);
    EXPECT_EQ(process.exit_code, 2);
    EXPECT_EQ(process.out, "");
    expect_one_line(process, each.start);
    EXPECT_THAT(process.err, HasSubstr(each.part));
  }
}

}  // namespace
}  // namespace leat::testing
