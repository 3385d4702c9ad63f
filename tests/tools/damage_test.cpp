// What the command tells of samples that are not delivered: who, where and why.
#include "tests/datasets/archive.hpp"
#include "tests/support/photos.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string photo_text(std::uint64_t seed) {
  const std::vector<std::uint8_t> file = photo_jpeg(seed, 40, 30);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// The name in the tar header at this offset.
std::string member_at(const std::string& shard, std::uint64_t offset) {
  const std::string block = text_of(shard).substr(offset, 100);
  return block.substr(0, block.find('\0'));
}

struct damaged_member {
  std::string key;
  std::string at;  // the member whose header is named
  std::string reason;
};

TEST(damage, a_missing_or_empty_field_is_told_with_shard_key_and_the_header_s_offset) {
  const temporary_directory directory;
  const std::string whole = photo_text(1);
  const std::vector<damaged_member> all = {{"n/no-picture", "n/no-picture.cls", "no field 'jpg' in this sample"},
                                           {"n/empty", "n/empty.jpg", "empty: zero bytes"},
                                           {"n/no-label", "n/no-label.jpg", "no field 'cls' in this sample"},
                                           {"n/empty-label", "n/empty-label.cls", "cls"}};
  const std::string long_name = "n/" + std::string(120, 'x');
  for (const damaged_member& each : all) {
    SCOPED_TRACE(each.key);
    archive shard;
    shard.file(long_name + ".jpg", whole).file(long_name + ".cls", "1");
    if (each.key == "n/no-picture") {
      shard.file("n/no-picture.cls", "1");
    } else if (each.key == "n/empty") {
      shard.file("n/empty.cls", "1").file("n/empty.jpg", "");
    } else if (each.key == "n/no-label") {
      shard.file("n/no-label.jpg", whole);
    } else {
      shard.file("n/empty-label.jpg", whole).file("n/empty-label.cls", "");
    }
    const std::string path = shard.end().save(directory.path() / "s.tar");
    const std::string journal = (directory.path() / "journal").string();
    const ended skipped = run({"epoch", path, "--size", "32", "--on-corrupt", "skip", "--journal", journal, "--json"});
    EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
    EXPECT_EQ(skipped.json().value("quarantined", 0), 1);
    ASSERT_EQ(lines_of(text_of(journal)).size(), 1U);
    const json line = json::parse(lines_of(text_of(journal)).front());
    EXPECT_EQ(line.at("source"), path);
    EXPECT_THAT(line.at("name").get<std::string>(), HasSubstr(each.key));
    EXPECT_THAT(line.at("reason").get<std::string>(), HasSubstr(each.reason));
    const auto offset = line.at("offset").get<std::uint64_t>();
    EXPECT_EQ(member_at(path, offset), each.at);

    const ended raised = run({"epoch", path, "--size", "32"});
    EXPECT_EQ(raised.exit_code, 1);
    expect_one_line(raised, "leat epoch: corrupt sample " + path + "/" + each.key + " (" + path + " at offset " +
                                std::to_string(offset) + "): ");
    EXPECT_THAT(raised.err, HasSubstr("--on-corrupt"));
  }
}

TEST(damage, a_run_that_delivers_nothing_fails) {
  const temporary_directory directory;
  archive shard;
  shard.file("a.jpg", "no picture").file("b.jpg", "nor this").end();
  const std::string path = shard.save(directory.path() / "s.tar");
  const ended process = run({"epoch", path, "--on-corrupt", "skip", "--json"});
  EXPECT_EQ(process.exit_code, 1);
  EXPECT_EQ(process.json().at("quarantined"), 2);
  EXPECT_THAT(process.json().value("error", ""), HasSubstr("nothing was delivered"));
  expect_one_line(process, "leat epoch: nothing was delivered: all 2 samples planned are corrupt; ");
}

TEST(damage, a_run_that_delivers_nothing_says_why_and_where_first) {
  const temporary_directory directory;
  archive shard;
  shard.file("a.jpg", "no picture").file("b.jpg", "nor this").file("c.jpg", "").end();
  const std::string path = shard.save(directory.path() / "s.tar");
  const ended process = run({"epoch", path, "--on-corrupt", "skip", "--no-shuffle"});
  EXPECT_THAT(process.err,
              HasSubstr("all 3 samples planned are corrupt; the most frequent reason (2 of 3), first of sample " +
                        path + "/a (" + path + "): "));
}

TEST(damage, corrupt_max_is_a_number_or_a_share_of_what_is_left_out) {
  const photo_folder photos;  // of 12
  for (const std::size_t i : {std::size_t{2}, std::size_t{7}}) std::filesystem::resize_file(photos.files()[i], 0);
  const std::vector<std::string> base = {"epoch", photos.path().string(), "--size", "32", "--on-corrupt", "skip"};
  const auto with = [&](const std::string& most) {
    std::vector<std::string> all = base;
    all.insert(all.end(), {"--corrupt-max", most});
    return run(all);
  };
  for (const char* enough : {"2", "100%", "16.7%"}) EXPECT_EQ(with(enough).exit_code, 0) << enough;
  for (const char* less : {"1", "0", "0%", "16%"}) {
    const ended process = with(less);
    EXPECT_EQ(process.exit_code, 1) << less;
    EXPECT_THAT(process.err, HasSubstr("may be (--corrupt-max); the most frequent reason"));
  }
  for (const char* wrong : {"", "-1", "1.5", "101%", "%", "x%", "nan%", "1e1%", "2 %"}) {
    EXPECT_EQ(with(wrong).exit_code, 2) << wrong;
  }
  EXPECT_EQ(run({"epoch", photos.path().string(), "--corrupt-max", "2"}).exit_code, 2) << "none is left out";
}

TEST(damage, inspect_lists_pictures_of_zero_bytes) {
  const photo_folder photos;
  std::filesystem::resize_file(photos.files()[5], 0);
  const json found = run({"inspect", photos.path().string(), "--json"}).json();
  ASSERT_EQ(found.at("defects").size(), 1U) << found;
  EXPECT_EQ(found["defects"][0].at("sample"), 5);
  EXPECT_THAT(found["defects"][0].at("name").get<std::string>(), HasSubstr(photos.files()[5].filename().string()));
  EXPECT_THAT(found["defects"][0].at("reason").get<std::string>(), HasSubstr("zero bytes"));
  EXPECT_THAT(run({"inspect", photos.path().string()}).out, HasSubstr("1 damaged sample"));
}

TEST(damage, inspect_tells_of_a_cut_shard_once) {
  const temporary_directory directory;
  for (const std::size_t cut_by : {std::size_t{1024 + 510}, std::size_t{1024 + 512 + 300}}) {
    archive shard;
    shard.file("a.jpg", photo_text(1)).file("b.jpg", photo_text(2)).file("b.txt", "a text").end();
    const std::string path = shard.cut_to(shard.size() - cut_by).save(directory.path() / "s.tar");
    const std::string page = run({"inspect", path}).out;
    const std::string wanted = "the shard ends inside";
    const std::size_t first = page.find(wanted);
    ASSERT_NE(first, std::string::npos) << page;
    EXPECT_EQ(page.find(wanted, first + 1), std::string::npos) << page;
    EXPECT_THAT(page, HasSubstr("1 damaged sample"));
  }
}

TEST(damage, drop_last_that_leaves_nothing_says_so_and_counts_its_epochs) {
  const photo_folder photos;
  const ended process = run({"epoch", photos.path().string(), "--drop-last", "--epochs", "3", "--json"});
  EXPECT_EQ(process.exit_code, 0);
  expect_one_line(process, "leat epoch: warning: --drop-last leaves out all 12 samples");
  EXPECT_THAT(process.err, HasSubstr("--batch-size of at most 12"));
  EXPECT_EQ(process.json().value("epochs", 0), 3);
  EXPECT_EQ(process.json().value("samples", -1), 0);
  EXPECT_EQ(run({"epoch", photos.path().string(), "--drop-last", "--batch-size", "12", "--size", "32"}).err, "");
}

TEST(damage, a_source_that_is_no_regular_file_is_refused_by_name_at_once) {
  const temporary_directory directory;
  const std::string pipe = (directory.path() / "p.tar").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [source, kind] : {std::pair{pipe, "a pipe"},
                                     {std::string("/dev/zero"), "a character device"},
                                     {directory.path().string(), "a pipe"}}) {
    for (const char* name : {"inspect", "epoch"}) {
      const ended process = run({name, source});
      EXPECT_EQ(process.exit_code, 2) << source;
      expect_one_line(process, std::string("leat ") + name + ": " + (kind == std::string("a pipe") ? pipe : source) +
                                   ": is " + kind + " and no regular file");
    }
  }
}

// `cat a.tar b.tar`: the second archive's samples are lost for whoever stops at the first one's end.
TEST(damage, a_concatenated_tar_is_warned_of_by_every_command_and_read_with_ignore_zeros) {
  const temporary_directory directory;
  archive shard;
  shard.file("a.jpg", photo_text(1)).end().file("b.jpg", photo_text(2)).file("c.jpg", photo_text(3)).end();
  const std::string path = shard.save(directory.path() / "both.tar");
  const std::string page = (directory.path() / "s.html").string();
  const auto out = [&](const char* name) { return (directory.path() / name).string(); };
  const std::vector<std::vector<std::string>> commands = {
      {"epoch", path, "--json"}, {"pack", path, out("one.tar"), "--json"}, {"show", path, "-o", page}};
  for (const std::vector<std::string>& command : commands) {
    const ended process = run(command);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    expect_one_line(process, "leat " + command.front() + ": warning: " + path + ": another archive begins at offset");
    EXPECT_THAT(process.err, HasSubstr("samples are missing"));
    EXPECT_THAT(process.err, HasSubstr("--ignore-zeros"));
    if (command.front() == "show") continue;
    EXPECT_EQ(process.json().at("samples"), 1);
    ASSERT_EQ(process.json().at("notes").size(), 1U);
    EXPECT_THAT(process.json()["notes"][0].get<std::string>(), HasSubstr("--ignore-zeros"));
  }
  for (std::vector<std::string> command :
       {std::vector<std::string>{"epoch", path}, {"pack", path, out("three.tar")}, {"inspect", path}}) {
    command.insert(command.end(), {"--ignore-zeros", "--json"});
    const ended process = run(command);
    EXPECT_EQ(process.exit_code, 0) << process.err;
    EXPECT_EQ(process.err, "");
    EXPECT_EQ(process.json().at("samples"), 3);
  }
}

TEST(damage, many_notes_are_told_in_a_few_lines_and_whole_in_json) {
  const temporary_directory directory;
  for (int i = 0; i < 8; ++i) {
    archive shard;
    shard.file("k.jpg", photo_text(1)).save(directory.path() / (std::to_string(i) + ".tar"));
  }
  const ended process = run({"epoch", directory.path().string(), "--json"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_EQ(lines_of(process.err).size(), 6U) << process.err;
  EXPECT_THAT(process.err, HasSubstr("no end marker"));
  EXPECT_THAT(process.err, HasSubstr("3 more of the kind; `leat inspect` lists them"));
  EXPECT_EQ(process.json().at("notes").size(), 8U);
}

TEST(damage, a_tar_of_symbolic_links_alone_says_why_it_has_no_sample) {
  const temporary_directory directory;
  archive shard;
  shard.add({.name = "a.jpg", .type = '2', .link_name = "/data/a.jpg"}).end();
  const ended process = run({"epoch", shard.save(directory.path() / "s.tar")});
  EXPECT_EQ(process.exit_code, 2);
  EXPECT_THAT(process.err, HasSubstr("there is no sample in it"));
  EXPECT_THAT(process.err, HasSubstr("--dereference"));
}

TEST(damage, a_budget_too_small_is_told_in_units_that_fit_and_by_the_option_s_name) {
  const photo_folder photos;
  const ended process = run({"epoch", photos.path().string(), "--host-bytes-max", "4KiB"});
  EXPECT_EQ(process.exit_code, 2);
  expect_one_line(process, "leat epoch: --host-bytes-max of 4.00 KiB is too small");
  // What it says would do does.
  const std::string wanted = "give at least ";
  const std::size_t at = process.err.find(wanted);
  ASSERT_NE(at, std::string::npos) << process.err;
  std::string least = process.err.substr(at + wanted.size(), process.err.find(" (", at) - at - wanted.size());
  EXPECT_EQ(run({"epoch", photos.path().string(), "--host-bytes-max", least}).exit_code, 0) << least;

  const std::string sheet = (photos.path() / "sheet.html").string();
  const ended shown = run({"show", photos.path().string(), "-o", sheet, "--host-bytes-max", "4KiB"});
  EXPECT_EQ(shown.exit_code, 2) << "the same mistake of the command line";
  expect_one_line(shown, "leat show: --host-bytes-max of 4.00 KiB is too small");
}

}  // namespace
}  // namespace leat::testing
