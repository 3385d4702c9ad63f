#include "base/confined_folder.hpp"

#include "base/descriptor.hpp"
#include "tests/support/temporary_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

namespace leat {
namespace {

namespace fs = std::filesystem;

class confined_folders : public ::testing::TestWithParam<bool> {
 protected:
  confined_folders() {
    fs::create_directories(outside_);
    EXPECT_EQ(folder_.open(inside_.string()), 0);
  }
  // 0 or the errno, and that it is the folder of this name.
  int look(const std::string& path) {
    const descriptor opened(folder_.open_below(path));
    if (opened.get() < 0) return -opened.get();
    struct stat found{};
    struct stat named{};
    EXPECT_EQ(::fstat(opened.get(), &found), 0);
    EXPECT_EQ(::stat((inside_ / path).c_str(), &named), 0);
    EXPECT_EQ(found.st_ino, named.st_ino) << path;
    return 0;
  }

  const testing::temporary_directory root_;
  const fs::path inside_ = root_.path() / "new" / "inside";
  const fs::path outside_ = root_.path() / "outside";
  confined_folder folder_{GetParam()};
};

TEST_P(confined_folders, are_made_as_deep_as_is_asked_for) {
  for (const char* const path : {"", "a", "a/b/c", "a/b/c", "a//d/", "a/b/e"}) EXPECT_EQ(look(path), 0) << path;
  std::ofstream(inside_ / "file") << "x";
  EXPECT_EQ(look("file"), ENOTDIR);
  EXPECT_EQ(look("file/b"), ENOTDIR);
}

TEST_P(confined_folders, no_link_leads_out) {
  fs::create_directory_symlink(outside_, inside_ / "whole");
  fs::create_directory_symlink("../../outside", inside_ / "relative");
  fs::create_directory_symlink("nowhere", inside_ / "loose");
  fs::create_directory_symlink("ring", inside_ / "ring");
  for (const char* const path : {"whole", "whole/a", "relative", "relative/a/b", "ring", "ring/a"}) {
    const int failed = look(path);
    EXPECT_TRUE(failed == EXDEV || failed == ELOOP) << path << ": " << failed;
  }
  EXPECT_NE(look("loose/a"), 0);
  EXPECT_TRUE(fs::is_empty(outside_));
}

TEST_P(confined_folders, a_link_that_stays_within_is_followed_where_the_kernel_can_tell) {
  if (GetParam() && ::syscall(SYS_openat2, -1, nullptr, nullptr, 0) < 0 && errno == ENOSYS) {
    GTEST_SKIP() << "this kernel has no openat2(2)";
  }
  fs::create_directories(inside_ / "x");
  fs::create_directories(inside_ / "y");
  fs::create_directory_symlink("../y", inside_ / "x" / "to_y");
  EXPECT_EQ(look("x/to_y/new"), GetParam() ? 0 : ELOOP);
  EXPECT_EQ(fs::exists(inside_ / "y" / "new"), GetParam());
}

INSTANTIATE_TEST_SUITE_P(kernels, confined_folders, ::testing::Bool());

}  // namespace
}  // namespace leat
