// A file system that answers a look at a path with an errno: what is said of it. It stands before stat(2) (the linker's --wrap).
#include "datasets/files/path_error.hpp"

#include "datasets/model/model.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/open.hpp>
#include <leat/open_folder.hpp>
#include <leat/open_tar.hpp>
#include <leat/samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

namespace leat {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Looks at paths that end so fail with this errno. Nobody looks while it changes.
struct refusal {
  std::string_view path_end;
  int failure = 0;

  [[nodiscard]] bool concerns(std::string_view path) const { return failure != 0 && path.ends_with(path_end); }
};
refusal refused;

std::string said_by(const std::function<void()>& what) {
  try {
    what();
  } catch (const error& failure) {
    return failure.what();
  }
  return "nothing";
}

TEST(path_error, says_what_the_file_system_said_and_not_that_the_path_is_wrong) {
  const testing::temporary_directory root;
  fs::create_directory(root.path() / "a");
  std::ofstream(root.path() / "a/1.jpg").put('x');
  std::ofstream(root.path() / "s.tar").put('x');
  const std::string tar = (root.path() / "s.tar").string();
  for (const auto& [failure, words] : {std::pair{EIO, "the device or file system failed (EIO)"},
                                       {ESTALE, "the network file system forgot the file"}}) {
    refused = {"s.tar", failure};
    for (const std::string& said :
         {said_by([&] { static_cast<void>(open_tar(tar)); }), said_by([&] { static_cast<void>(open(tar)); })}) {
      EXPECT_THAT(said, AllOf(HasSubstr(tar), HasSubstr(words), Not(HasSubstr("check the pattern"))));
    }
    refused = {"1.jpg", failure};
    const dataset pictures = open_folder(root.path().string());
    ASSERT_EQ(pictures.model()->defects(), 1U);
    EXPECT_THAT(pictures.model()->defect_of(0)->reason, AllOf(HasSubstr(words), Not(HasSubstr("link"))));
  }
  refused = {};
}

TEST(path_error, says_of_a_link_to_itself_that_it_leads_back) {
  const testing::temporary_directory root;
  fs::create_directory(root.path() / "a");
  const fs::path in_folder = root.path() / "a/self.jpg", alone = root.path() / "self.tar";
  fs::create_symlink(in_folder, in_folder);
  fs::create_symlink(alone, alone);
  const dataset pictures = open_folder(root.path().string());
  EXPECT_THAT(pictures.model()->defect_of(0)->reason,
              AllOf(HasSubstr("ELOOP"), HasSubstr("lead back to itself"), Not(HasSubstr("nowhere"))));
  for (const std::string& said : {said_by([&] { static_cast<void>(open_tar(alone.string())); }),
                                  said_by([&] { static_cast<void>(open(alone.string())); })}) {
    EXPECT_THAT(said, AllOf(HasSubstr(alone.string()), HasSubstr("ELOOP"), HasSubstr("lead back to itself")));
  }
}

TEST(path_error, names_what_is_nearly_called_so) {
  const testing::temporary_directory root;
  fs::create_directory(root.path() / "photos");
  std::ofstream(root.path() / "train.tar").put('x');
  const auto said_of = [&](const char* name) {
    return said_by([&] { static_cast<void>(open((root.path() / name).string())); });
  };
  EXPECT_THAT(said_of("phots"), HasSubstr("did you mean '" + (root.path() / "photos").string() + "'?"));
  EXPECT_THAT(said_of("photso/"), HasSubstr("did you mean '" + (root.path() / "photos").string() + "'?"));
  EXPECT_THAT(said_of("tarin.tar"), HasSubstr("did you mean '" + (root.path() / "train.tar").string() + "'?"));
  EXPECT_THAT(said_of("elsewhere"), Not(HasSubstr("did you mean")));
}

TEST(path_error, keeps_its_advice_for_what_is_not_there) {
  EXPECT_EQ(datasets::path_error(ENOENT, "/x", "look twice").code(), errc::not_found);
  EXPECT_THAT(datasets::path_error(ENOENT, "/x", "look twice").what(), HasSubstr("look twice"));
  EXPECT_EQ(datasets::path_error(EACCES, "/x", "look twice").code(), errc::permission);
}

}  // namespace

extern "C" {
int __real_stat(const char* path, struct stat* into);
int __real_fstatat(int directory, const char* path, struct stat* into, int flags);

int __wrap_stat(const char* path, struct stat* into) {
  if (!refused.concerns(path)) return __real_stat(path, into);
  errno = refused.failure;
  return -1;
}
int __wrap_fstatat(int directory, const char* path, struct stat* into, int flags) {
  if (!refused.concerns(path)) return __real_fstatat(directory, path, into, flags);
  errno = refused.failure;
  return -1;
}
}

}  // namespace leat
