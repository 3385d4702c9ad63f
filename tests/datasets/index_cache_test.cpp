// An index that is kept between runs: what it gives is what opening gives without one, and whatever is wrong with it, it does no harm.
#include "datasets/files/index_cache.hpp"

#include "datasets/model/model.hpp"
#include "tests/datasets/archive.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/description.hpp>
#include <leat/index_options.hpp>
#include <leat/open.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

namespace fs = std::filesystem;
using outcome = index_report::outcome;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
void write_all(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

std::vector<std::string> listing(const fs::path& directory) {
  std::vector<std::string> names;
  if (!fs::exists(directory)) return names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// Until what was written has a time that no later change will have: an index of a source that changed a moment ago is not written.
void let_clock_tick() { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }

/// All that a dataset says of itself, and all of its bytes.
std::string everything_of(const dataset& samples) {
  std::string all;
  for (const std::string& note : samples.notes()) all += note + "\n";
  for (const field_info& field : samples.fields()) {
    all += field.name + " " + std::to_string(field.samples) + " " + std::to_string(field.bytes_max) + " " +
           std::to_string(field.bytes_total) + "\n";
  }
  for (const std::string& each : samples.classes()) all += each + " ";
  description described;
  samples.model()->describe(described);
  all += described.to_json();
  for (std::uint64_t i = 0; i < samples.size(); ++i) {
    all += samples.name(i) + ":";
    if (const auto found = samples.model()->defect_of(i)) {
      all += found->reason + "\n";
      continue;
    }
    datasets::part_list parts;
    samples.model()->parts(i, parts);
    for (const datasets::part& each : parts) {
      const std::string& field = samples.model()->fields()[each.field].name;
      const std::vector<std::byte> bytes = samples.read(i, field);
      all += field + "=" + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + " ";
    }
    if (!samples.model()->columns().empty())
      all += std::to_string(samples.column(i, samples.model()->columns()[0]).value_or(-1));
    all += "\n";
  }
  return all;
}

/// Three shards with all that is odd: a text here and there, a sample whose field comes twice, members that are no samples.
class index_cache : public ::testing::Test {
 protected:
  index_cache() {
    for (int shard = 0; shard < 3; ++shard) {
      archive made;
      for (int i = 0; i < 4 + shard; ++i) {
        const std::string key = std::to_string(shard) + "/" + std::to_string(i);
        made.file(key + ".jpg", "picture " + key);
        if (i % 2 == 0) made.file(key + ".txt", "text of " + key);
        if (i == 3 && shard == 1) made.file(key + ".jpg", "again");
      }
      if (shard == 2) made.file("nothing", "no sample");
      made.end().save(shard_path(shard));
    }
  }
  [[nodiscard]] fs::path shard_path(int shard) const { return root_.path() / ("s-" + std::to_string(shard) + ".tar"); }
  [[nodiscard]] std::string shards() const { return (root_.path() / "s-*.tar").string(); }
  [[nodiscard]] fs::path kept() const { return root_.path() / "kept"; }

  dataset open(index_use use = index_use::check, const std::string& directory = "kept") {
    let_clock_tick();
    return open_at_once(use, directory);
  }
  dataset open_at_once(index_use use = index_use::check, const std::string& directory = "kept") {
    reports_.clear();
    return leat::open(shards(),
                      {.index = {.use = use,
                                 .directory = directory.empty() ? "" : (root_.path() / directory).string(),
                                 .on_report = [this](const index_report& each) { reports_.push_back(each); }}});
  }
  /// What became of the index, and why.
  [[nodiscard]] outcome what() const {
    EXPECT_EQ(reports_.size(), 1U);
    return reports_.empty() ? outcome::none : reports_.front().what;
  }
  [[nodiscard]] std::string why() const { return reports_.empty() ? "" : reports_.front().why; }
  [[nodiscard]] std::string plain() const { return everything_of(leat::open(shards())); }
  [[nodiscard]] fs::path only_file() const {
    const std::vector<std::string> names = listing(kept());
    EXPECT_EQ(names.size(), 1U);
    return kept() / names.front();
  }

  temporary_directory root_;
  std::vector<index_report> reports_;
};

TEST_F(index_cache, gives_what_opening_gives_without_one) {
  const std::string expected = plain();
  EXPECT_THAT(expected, AllOf(HasSubstr("twice"), HasSubstr("belong to no sample"), HasSubstr("text of 2/4")));
  EXPECT_EQ(everything_of(open()), expected);
  EXPECT_EQ(what(), outcome::written);
  EXPECT_EQ(why(), "there was none");
  EXPECT_EQ(everything_of(open()), expected);
  EXPECT_EQ(what(), outcome::used);
  EXPECT_EQ(why(), only_file().string());
  // A dataset keeps its index though another one takes its place.
  const dataset held = open();
  fs::remove_all(kept());
  EXPECT_EQ(everything_of(held), expected);
}

TEST_F(index_cache, is_built_anew_where_a_shard_has_changed) {
  open();
  const auto changed = fs::last_write_time(shard_path(1)) - std::chrono::seconds(2);
  fs::last_write_time(shard_path(1), changed);
  open();
  EXPECT_EQ(what(), outcome::written);
  EXPECT_THAT(why(), AllOf(HasSubstr("s-1.tar"), HasSubstr("has changed")));
  open();
  EXPECT_EQ(what(), outcome::used);
  // Another size at the same time.
  archive other;
  other.file("9/9.jpg", "of another shard").end().save(shard_path(1));
  fs::last_write_time(shard_path(1), changed);
  EXPECT_EQ(everything_of(open()), plain());
  EXPECT_EQ(what(), outcome::written);
  // More of them, and fewer: other sources.
  fs::copy_file(shard_path(0), shard_path(3));
  EXPECT_EQ(everything_of(open()), plain());
  EXPECT_EQ(what(), outcome::written);
  fs::remove(shard_path(3));
  EXPECT_EQ(everything_of(open()), plain());
  EXPECT_EQ(what(), outcome::used);
  // Options that find other samples have an index of their own.
  static_cast<void>(leat::open(
      shards(), {.tar = {.ignore_zeros = true},
                 .index = {.use = index_use::check, .directory = kept().string(), .on_report = [&](const auto& each) {
                             EXPECT_EQ(each.what, outcome::written);
                           }}}));
}

TEST_F(index_cache, of_what_changed_a_moment_ago_is_not_kept) {
  fs::last_write_time(shard_path(1), fs::file_time_type::clock::now());
  open_at_once();
  EXPECT_EQ(what(), outcome::none);
  EXPECT_THAT(why(), HasSubstr("a moment ago"));
  EXPECT_THAT(listing(kept()), IsEmpty());
  open();
  EXPECT_EQ(what(), outcome::written);
}

TEST_F(index_cache, is_trusted_built_anew_or_left_alone_as_asked) {
  const std::string expected = plain();
  open(index_use::off);
  EXPECT_EQ(what(), outcome::none);
  EXPECT_THAT(listing(kept()), IsEmpty());
  EXPECT_EQ(everything_of(open(index_use::trust)), expected);
  EXPECT_EQ(what(), outcome::written) << "there was nothing to trust";
  fs::last_write_time(shard_path(1), fs::last_write_time(shard_path(1)) - std::chrono::seconds(2));
  EXPECT_EQ(everything_of(open(index_use::trust)), expected);
  EXPECT_EQ(what(), outcome::used);
  open(index_use::rebuild);
  EXPECT_EQ(what(), outcome::written);
  open();
  EXPECT_EQ(what(), outcome::used) << "the time of the shard is that which rebuilding saw";
}

/// A folder of two classes, one with a directory in it.
class kept_folder : public index_cache {
 protected:
  kept_folder() {
    for (const char* const file : {"a/1.jpg", "a/2.png", "b/deep/3.jpg", "b/4.jpg"}) {
      fs::create_directories((pictures() / file).parent_path());
      write_all(pictures() / file, std::string("picture ") + file);
    }
    write_all(pictures() / "beside.jpg", "of no class");
    fs::create_symlink("nowhere", pictures() / "b" / "5.jpg");
  }
  [[nodiscard]] fs::path pictures() const { return root_.path() / "pictures"; }
  dataset open_pictures(index_use use = index_use::check) {
    let_clock_tick();
    return open_pictures_at_once(use);
  }
  dataset open_pictures_at_once(index_use use = index_use::check) {
    reports_.clear();
    return leat::open(
        pictures().string(),
        {.index = {.use = use, .directory = kept().string(), .on_report = [this](const index_report& each) {
                     reports_.push_back(each);
                   }}});
  }
  [[nodiscard]] std::string walked() const { return everything_of(leat::open(pictures().string())); }
};

TEST_F(kept_folder, gives_what_walking_gives) {
  const std::string expected = walked();
  EXPECT_THAT(expected, AllOf(HasSubstr("picture b/deep/3.jpg"), HasSubstr("leads nowhere"), HasSubstr("no class")));
  EXPECT_EQ(everything_of(open_pictures()), expected);
  EXPECT_EQ(what(), outcome::written);
  EXPECT_EQ(everything_of(open_pictures()), expected);
  EXPECT_EQ(what(), outcome::used);
  // By another path it has another index, since what is said of it has that path in it.
  const fs::path before = fs::current_path();
  fs::current_path(root_.path());
  for (const outcome expected_outcome : {outcome::written, outcome::used}) {
    reports_.clear();
    const dataset relative = leat::open(
        "pictures", {.index = {.use = index_use::check,
                               .directory = kept().string(),
                               .on_report = [this](const index_report& each) { reports_.push_back(each); }}});
    EXPECT_EQ(what(), expected_outcome);
    EXPECT_EQ(everything_of(relative), everything_of(leat::open("pictures")));
  }
  fs::current_path(before);
}

TEST_F(kept_folder, is_walked_anew_where_a_directory_has_changed) {
  open_pictures();
  const auto expect_walked = [&](const std::string& directory) {
    EXPECT_EQ(everything_of(open_pictures()), walked());
    EXPECT_EQ(what(), outcome::written);
    EXPECT_THAT(why(), AllOf(HasSubstr(directory), HasSubstr("has changed")));
    open_pictures();
    EXPECT_EQ(what(), outcome::used);
  };
  write_all(pictures() / "b" / "deep" / "6.jpg", "one more");
  expect_walked("b/deep");
  fs::remove(pictures() / "a" / "1.jpg");
  expect_walked("pictures/a");
  fs::create_directory(pictures() / "c");
  write_all(pictures() / "c" / "7.jpg", "of another class");
  expect_walked("pictures");
  // A directory without pictures may get some.
  fs::create_directory(pictures() / "a" / "later");
  expect_walked("pictures/a");
  write_all(pictures() / "a" / "later" / "8.jpg", "late");
  expect_walked("a/later");
  fs::remove_all(pictures() / "b");
  EXPECT_EQ(everything_of(open_pictures()), walked());
  EXPECT_EQ(what(), outcome::written);
  fs::remove_all(pictures() / "c");
  EXPECT_EQ(everything_of(open_pictures(index_use::rebuild)), walked());
}

// Each place of a file; each third one where there are fewer seeds, since what is done about damage depends on no place.
std::size_t places_apart(std::size_t each) { return testing::seed_count(2) < 2 ? 3 * each : each; }

TEST_F(kept_folder, that_is_damaged_anywhere_is_noticed) {
  open_pictures();
  const fs::path file = only_file();
  const std::string whole = read_all(file);
  for (std::size_t at = 0; at < whole.size(); at += places_apart(3)) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    write_all(file, damaged);
    open_pictures_at_once();
    ASSERT_EQ(what(), outcome::written) << "byte " << at;
  }
  EXPECT_EQ(read_all(file), whole);
}

TEST_F(index_cache, that_is_damaged_anywhere_is_noticed) {
  const std::string expected = plain();
  open();
  const fs::path file = only_file();
  const std::string whole = read_all(file);
  ASSERT_GT(whole.size(), 500U);
  // Each byte of the beginning, where its sizes and digests are, and every seventh one behind it.
  for (std::size_t at = 0; at < whole.size(); at += places_apart(at < 256 ? 1 : 7)) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    write_all(file, damaged);
    const dataset opened = open_at_once();
    ASSERT_EQ(what(), outcome::written) << "byte " << at;
    if (at % 8 == 0) ASSERT_EQ(everything_of(opened), expected) << "byte " << at;
  }
  for (std::size_t size = 0; size < whole.size(); size += places_apart(23)) {
    write_all(file, whole.substr(0, size));
    open_at_once();
    ASSERT_EQ(what(), outcome::written) << "cut to " << size;
  }
  write_all(file, whole + "more");
  open();
  EXPECT_EQ(what(), outcome::written);
  EXPECT_EQ(read_all(file), whole);
}

TEST_F(index_cache, that_cannot_be_written_does_no_harm) {
  const std::string expected = plain();
  write_all(root_.path() / "file", "no directory");
  EXPECT_EQ(everything_of(open(index_use::check, "file/in")), expected);
  EXPECT_EQ(what(), outcome::none);
  EXPECT_THAT(why(), HasSubstr("file/in"));
  // What is no file where the index should be.
  open();
  const fs::path file = only_file();
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(everything_of(open()), expected);
  EXPECT_EQ(what(), outcome::none);
  fs::remove(file);
  // What a killed process leaves behind.
  write_all(file.parent_path() / ("." + file.filename().string() + ".partial"), "half an index");
  EXPECT_EQ(everything_of(open()), expected);
  EXPECT_EQ(what(), outcome::written);
  EXPECT_THAT(listing(kept()), ElementsAre(file.filename().string()));
}

TEST_F(index_cache, is_whole_however_many_build_it_and_are_killed) {
  const std::string expected = plain();
  const int rounds = testing::seed_count(20);
  for (int round = 0; round < rounds; ++round) {
    std::vector<pid_t> builders;
    for (int i = 0; i < 3; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        for (;;)
          static_cast<void>(leat::open(shards(), {.index = {.use = index_use::rebuild, .directory = kept().string()}}));
      }
      builders.push_back(child);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3 + 40 * round / rounds));  // so much for them to have begun
    for (const pid_t each : builders) {
      ::kill(each, SIGKILL);
      int status = 0;
      ::waitpid(each, &status, 0);
    }
    EXPECT_EQ(everything_of(open()), expected);
    EXPECT_NE(what(), outcome::none) << why();
    open();
    EXPECT_EQ(what(), outcome::used);
  }
}

TEST_F(index_cache, lies_in_the_cache_of_the_user_for_large_sources) {
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string kept_before = before == nullptr ? "" : before;
  ::setenv("XDG_CACHE_HOME", (root_.path() / "cache").c_str(), 1);
  open(index_use::check, "");
  EXPECT_EQ(what(), outcome::none);
  EXPECT_THAT(why(), HasSubstr("fewer than 10000 samples"));
  archive large;
  for (int i = 0; i < 10'000; ++i) large.file(std::to_string(i) + ".txt", "t");
  large.end().save(shard_path(5));
  open(index_use::check, "");
  EXPECT_EQ(what(), outcome::written);
  open(index_use::check, "");
  EXPECT_EQ(what(), outcome::used);
  EXPECT_THAT(listing(root_.path() / "cache" / "leat"), ElementsAre(HasSubstr(".leatidx")));
  if (before == nullptr) {
    ::unsetenv("XDG_CACHE_HOME");
  } else {
    ::setenv("XDG_CACHE_HOME", kept_before.c_str(), 1);
  }
}

}  // namespace
}  // namespace leat::testing
