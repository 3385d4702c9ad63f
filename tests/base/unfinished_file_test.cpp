#include "base/unfinished_file.hpp"

#include "base/descriptor.hpp"
#include "base/replaced_place.hpp"
#include "tests/support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace leat {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class unfinished : public ::testing::Test {
 protected:
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_.path()), std::filesystem::directory_iterator()));
  }
  testing::temporary_directory folder_;
  const std::string path_ = (folder_.path() / "a").string();
};

TEST_F(unfinished, file_has_no_name_of_its_own_before_it_is_whole) {
  unfinished_file file(path_);
  ASSERT_EQ(file.open(), 0);
  ASSERT_EQ(file.write(bytes_of("new")), 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_EQ(file.sync(), 0);
  ASSERT_EQ(file.take_name(false), 0);
  EXPECT_EQ(sync_folder_of(path_), 0);
  EXPECT_EQ(content_of(path_), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(unfinished, file_that_is_given_up_leaves_what_was_there) {
  std::ofstream(path_) << "old";
  {
    unfinished_file file(path_);
    ASSERT_EQ(file.open(), 0);
    ASSERT_EQ(file.write(bytes_of("new")), 0);
  }
  EXPECT_EQ(content_of(path_), "old");
  EXPECT_EQ(files(), 1U);
}

TEST_F(unfinished, file_replaces_another_only_where_it_may) {
  std::ofstream(path_) << "old";
  unfinished_file file(path_);
  ASSERT_EQ(file.open(), 0);
  ASSERT_EQ(file.write(bytes_of("new")), 0);
  EXPECT_EQ(file.take_name(false), EEXIST);
  EXPECT_EQ(content_of(path_), "old");
  EXPECT_EQ(file.take_name(true), 0);
  EXPECT_EQ(content_of(path_), "new");
}

TEST_F(unfinished, file_of_another_process_is_not_touched) {
  unfinished_file first(path_);
  ASSERT_EQ(first.open(), 0);
  ASSERT_EQ(first.write(bytes_of("first")), 0);
  unfinished_file second(path_);  // Locks belong to the open file, so that one process can play two.
  EXPECT_EQ(second.open(), EWOULDBLOCK);
  ASSERT_EQ(first.take_name(true), 0);
  EXPECT_EQ(second.open(), 0);
  ASSERT_EQ(second.write(bytes_of("second")), 0);
  ASSERT_EQ(second.take_name(true), 0);
  EXPECT_EQ(content_of(path_), "second");
}

TEST_F(unfinished, file_that_a_killed_process_left_behind_is_used_again) {
  std::ofstream(folder_.path() / ".a.partial") << "what a killed process had written";
  unfinished_file file(path_);
  ASSERT_EQ(file.open(), 0);
  ASSERT_EQ(file.write(bytes_of("new")), 0);
  ASSERT_EQ(file.take_name(true), 0);
  EXPECT_EQ(content_of(path_), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(unfinished, file_is_not_written_through_a_link) {
  std::ofstream(folder_.path() / "other") << "other";
  std::filesystem::create_symlink("other", folder_.path() / ".a.partial");
  unfinished_file file(path_);
  EXPECT_EQ(file.open(), ELOOP);
  EXPECT_EQ(content_of(folder_.path() / "other"), "other");
}

TEST_F(unfinished, file_in_a_folder_that_is_not_there_says_so) {
  const std::filesystem::path folder = folder_.path() / "missing";
  unfinished_file file((folder / "a").string());
  EXPECT_EQ(file.open(), ENOENT);
  EXPECT_EQ(sync_folder_of((folder / "a").string()), ENOENT);
}

TEST_F(unfinished, whole_file_replaces_a_file_and_leaves_nothing_beside_it) {
  std::ofstream(path_) << "old";
  EXPECT_EQ(can_write_whole(path_), 0);
  EXPECT_EQ(content_of(path_), "old");
  EXPECT_EQ(write_whole(path_, bytes_of("new")), 0);
  EXPECT_EQ(content_of(path_), "new");
  EXPECT_EQ(files(), 1U);
  const std::string missing = (folder_.path() / "missing" / "a").string();
  EXPECT_EQ(can_write_whole(missing), ENOENT);
  EXPECT_EQ(write_whole(missing, bytes_of("new")), ENOENT);
  EXPECT_EQ(can_write_whole(folder_.path().string()), EISDIR);
  EXPECT_EQ(write_whole(folder_.path().string(), bytes_of("new")), EISDIR);
}

TEST_F(unfinished, whole_file_goes_to_who_reads_a_pipe_and_does_not_take_its_place) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(can_write_whole(path_), 0);
  EXPECT_EQ(write_whole(path_, bytes_of("new")), ENXIO);
  const descriptor reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_GE(reader.get(), 0);
  ASSERT_EQ(write_whole(path_, bytes_of("new")), 0);
  char read[8] = {};
  EXPECT_EQ(::read(reader.get(), read, sizeof(read)), 3);
  EXPECT_STREQ(read, "new");
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_EQ(files(), 1U);
}

TEST_F(unfinished, whole_file_goes_behind_links_and_into_what_a_process_has_open) {
  std::filesystem::create_directory(folder_.path() / "far");
  std::filesystem::create_symlink("far/b", path_);
  const std::filesystem::path target = folder_.path() / "far" / "b";
  EXPECT_EQ(replaced_place(path_), (folder_.path() / "far/b").string());
  EXPECT_EQ(can_write_in_place(path_), 0);
  ASSERT_EQ(write_whole(path_, bytes_of("long and old")), 0) << "where it leads to nothing yet";
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(content_of(target), "long and old");
  const descriptor open(::open(target.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_GE(open.get(), 0);
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(open.get()), path_);
  EXPECT_EQ(replaced_place(path_), std::nullopt);
  ASSERT_EQ(write_whole(path_, bytes_of("new")), 0);
  char read[16] = {};
  EXPECT_EQ(::pread(open.get(), read, sizeof(read), 0), 3) << "it is the file that was open, and has no more";
  EXPECT_STREQ(read, "new");
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
}

TEST(folder_of, is_what_stands_before_the_last_slash) {
  EXPECT_EQ(folder_of("a"), ".");
  EXPECT_EQ(folder_of("/a"), "/");
  EXPECT_EQ(folder_of("b/a"), "b");
  EXPECT_EQ(folder_of("/b/a"), "/b");
}

}  // namespace
}  // namespace leat
