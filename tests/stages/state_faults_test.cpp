// Saving a state over another one while calls fail: the linker puts these functions before the C library's (--wrap). Whatever fails,
// and when, there is the old state or the new one, whole.
#include "stages/state/state_file.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/error.hpp>
#include <leat/loader_state.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>
#include <sys/wait.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

/// The call that fails next, how often it may succeed before, and with what it fails.
struct fault {
  std::string_view call;
  int passes = 0;
  int failure = 0;
};
std::optional<fault> planned;
std::vector<std::string> called;  // while a fault is planned
std::size_t write_bytes_max = SIZE_MAX;
int interruptions = 0;  // of write, each of which is followed by a call that succeeds
bool interrupted = false;

bool fails(const char* call) {
  if (!planned) return false;
  called.emplace_back(call);
  if (planned->call != call) return false;
  if (planned->passes-- > 0) return false;
  errno = planned->failure;
  return true;
}

}  // namespace

// NOLINTBEGIN: names that the linker makes.
extern "C" {
int __real_open(const char* path, int flags, ...);
int __real_flock(int file, int how);
int __real_ftruncate(int file, off_t bytes);
ssize_t __real_write(int file, const void* bytes, std::size_t count);
ssize_t __real_pwrite(int file, const void* bytes, std::size_t count, off_t offset);
int __real_fdatasync(int file);
int __real_fsync(int file);
int __real_renameat(int from_folder, const char* from, int to_folder, const char* to);
int __real_openat(int folder, const char* path, int flags, ...);
int __real_close(int file);

int __wrap_open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = static_cast<mode_t>(va_arg(arguments, unsigned));
  va_end(arguments);
  return fails("open") ? -1 : __real_open(path, flags, mode);
}
int __wrap_flock(int file, int how) { return fails("flock") ? -1 : __real_flock(file, how); }
int __wrap_ftruncate(int file, off_t bytes) { return fails("ftruncate") ? -1 : __real_ftruncate(file, bytes); }
ssize_t __wrap_write(int file, const void* bytes, std::size_t count) {
  if (fails("write")) return -1;
  if (interruptions > 0 && !std::exchange(interrupted, !interrupted)) {
    --interruptions;
    errno = EINTR;
    return -1;
  }
  return __real_write(file, bytes, std::min(count, write_bytes_max));
}
ssize_t __wrap_pwrite(int file, const void* bytes, std::size_t count, off_t offset) {
  return fails("pwrite") ? -1 : __real_pwrite(file, bytes, count, offset);
}
int __wrap_fdatasync(int file) { return fails("fdatasync") ? -1 : __real_fdatasync(file); }
int __wrap_fsync(int file) { return fails("fsync") ? -1 : __real_fsync(file); }
int __wrap_renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return fails("rename") ? -1 : __real_renameat(from_folder, from, to_folder, to);
}
int __wrap_openat(int folder, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = static_cast<mode_t>(va_arg(arguments, unsigned));
  va_end(arguments);
  return fails("open") ? -1 : __real_openat(folder, path, flags, mode);
}
int __wrap_close(int file) {
  const int closed = __real_close(file);
  return fails("close") ? -1 : closed;
}
}
// NOLINTEND

namespace leat {
namespace {

using ::testing::HasSubstr;

loader_state state_at(std::uint64_t batch, int seed = 7) {
  description options;
  options.add("seed", seed);
  for (int i = 0; i < 50; ++i) options.add("key " + std::to_string(i), std::string(100, 'x'));
  loader_state state;
  state.batch = batch;
  state.descriptions = std::make_shared<const state_descriptions>(options, description(), description(), description());
  return state;
}

class saving_a_state : public ::testing::Test {
 protected:
  void SetUp() override { state_at(1).save(path_); }
  void TearDown() override {
    planned.reset();
    write_bytes_max = SIZE_MAX;
    interruptions = 0;
  }

  // What was thrown.
  std::optional<error> save_with(const fault& what) {
    called.clear();
    planned = what;
    std::optional<error> thrown;
    try {
      state_at(2).save(path_);
    } catch (const error& failed) {
      thrown = failed;
    }
    planned.reset();
    return thrown;
  }
  [[nodiscard]] std::uint64_t batch_there() const { return loader_state::load(path_).batch; }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_.path()), std::filesystem::directory_iterator());
  }

  testing::temporary_directory folder_;
  const std::filesystem::path path_ = folder_.path() / "run.state";
};

TEST_F(saving_a_state, leaves_the_old_one_whole_where_a_call_fails_before_the_new_one_has_its_name) {
  for (const char* const call : {"open", "write", "fsync", "rename"}) {
    for (const int failure : {ENOSPC, EIO, EDQUOT, EACCES}) {
      const std::optional<error> thrown = save_with({.call = call, .failure = failure});
      ASSERT_TRUE(thrown) << call;
      EXPECT_THAT(thrown->what(), HasSubstr(path_.string())) << call;
      EXPECT_EQ(thrown->code(), failure == EIO      ? errc::io
                                : failure == EACCES ? errc::permission
                                                    : errc::limit)
          << call << ": " << thrown->what();
      EXPECT_EQ(batch_there(), 1U) << call;
      EXPECT_EQ(files(), 1) << call << ": something was left behind";
    }
  }
  state_at(3).save(path_);
  EXPECT_EQ(batch_there(), 3U);
}

TEST_F(saving_a_state, says_where_the_new_one_has_its_name_and_could_not_be_made_durable) {
  // fsync of the folder is the second one; close of the file is the first.
  for (const fault& what : {fault{"fsync", 1, EIO}, fault{"open", 1, EMFILE}, fault{"close", 0, EIO}}) {
    state_at(1).save(path_);
    const std::optional<error> thrown = save_with(what);
    ASSERT_TRUE(thrown) << what.call;
    EXPECT_EQ(thrown->code(), errc::io);
    EXPECT_EQ(batch_there(), 2U) << what.call;
    EXPECT_EQ(files(), 1) << what.call;
  }
}

TEST_F(saving_a_state, goes_on_where_a_file_system_has_no_locks) {
  for (const int failure : {ENOSYS, ENOLCK, EOPNOTSUPP}) {
    state_at(1).save(path_);
    EXPECT_FALSE(save_with({.call = "flock", .failure = failure}));
    EXPECT_EQ(batch_there(), 2U);
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(saving_a_state, is_refused_while_another_process_does) {
  const std::optional<error> thrown = save_with({.call = "flock", .failure = EWOULDBLOCK});
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::usage);
  EXPECT_THAT(thrown->what(), HasSubstr("another process is writing it"));
  EXPECT_EQ(batch_there(), 1U);
}

TEST_F(saving_a_state, makes_the_content_durable_before_the_name) {
  ASSERT_FALSE(save_with({.call = "none"}));
  const auto first = [](const char* call) { return std::find(called.begin(), called.end(), call) - called.begin(); };
  EXPECT_LT(first("write"), first("fsync"));
  EXPECT_LT(first("fsync"), first("rename"));
  EXPECT_EQ(std::count(called.begin(), called.end(), "fsync"), 2) << "the file's and the folder's";
  EXPECT_GT(std::find(called.rbegin(), called.rend(), "rename") - called.rbegin(),
            std::find(called.rbegin(), called.rend(), "fsync") - called.rbegin())
      << "the folder is synced after the name";
}

TEST_F(saving_a_state, goes_on_after_short_and_interrupted_writes) {
  write_bytes_max = 7;
  interruptions = 20;
  state_at(2).save(path_);
  EXPECT_EQ(batch_there(), 2U);
  EXPECT_EQ(loader_state::load(path_).bytes(), state_at(2).bytes());
}

TEST_F(saving_a_state, uses_what_a_killed_process_left_behind) {
  for (const std::size_t bytes : {0U, 1U, 300U, 100'000U}) {
    if (std::FILE* const left = std::fopen((folder_.path() / ".run.state.partial").c_str(), "w"); left != nullptr) {
      std::fputs(std::string(bytes, 'x').c_str(), left);
      std::fclose(left);
    }
    state_at(bytes + 5).save(path_);
    EXPECT_EQ(batch_there(), bytes + 5);
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(saving_a_state, after_each_batch_writes_the_numbers_in_place) {
  stages::state_file file(path_);
  file.write(state_at(5));
  EXPECT_EQ(batch_there(), 5U);
  called.clear();
  planned = fault{.call = "none"};
  for (std::uint64_t batch = 6; batch < 20; ++batch) {
    file.write(state_at(batch));
    EXPECT_EQ(batch_there(), batch);
  }
  file.sync();
  EXPECT_EQ(std::count(called.begin(), called.end(), "pwrite"), 14);
  EXPECT_EQ(std::count(called.begin(), called.end(), "rename"), 0);
  EXPECT_EQ(std::count(called.begin(), called.end(), "fdatasync"), 1);
  EXPECT_EQ(loader_state::load(path_).bytes(), state_at(19).bytes());
}

TEST_F(saving_a_state, after_each_batch_writes_it_whole_where_more_than_numbers_changed) {
  stages::state_file file(path_);
  file.write(state_at(5));
  loader_state state = state_at(6, 8);
  file.write(state);
  EXPECT_EQ(loader_state::load(path_).bytes(), state.bytes());
  // Removed, or replaced, by somebody else.
  std::filesystem::remove(path_);
  file.write(state);
  EXPECT_EQ(batch_there(), 6U);
  state_at(100).save(path_);
  state.batch = 7;
  file.write(state);
  EXPECT_EQ(batch_there(), 7U);
  EXPECT_EQ(files(), 1);
}

TEST_F(saving_a_state, after_each_batch_leaves_the_old_one_whole_where_a_call_fails) {
  stages::state_file file(path_);
  file.write(state_at(5));
  for (const int failure : {ENOSPC, EIO}) {
    planned = fault{.call = "pwrite", .failure = failure};
    EXPECT_THROW(file.write(state_at(6)), error);
    planned.reset();
    EXPECT_EQ(batch_there(), 5U);
  }
  planned = fault{.call = "fdatasync", .failure = EIO};
  EXPECT_THROW(file.sync(), error);
  planned.reset();
  file.write(state_at(6));
  EXPECT_EQ(batch_there(), 6U);
}

TEST_F(saving_a_state, after_each_batch_is_whole_whenever_the_process_is_killed) {
  constexpr int kills = 50;
  std::uint64_t before = 0;
  testing::seeded_random draws(7);
  for (int kill = 0; kill < kills; ++kill) {
    const std::uint64_t first = before + 1;
    int told[2] = {-1, -1};
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      stages::state_file file(path_);
      for (std::uint64_t batch = first;; ++batch) {
        // Numbers in place, and now and then the whole file.
        file.write(state_at(batch, batch % 16 == 0 ? 8 : 7));
        if (::write(told[1], "", 1) != 1) ::_exit(1);
      }
    }
    // After so many states it is killed, in the middle of whatever it does then.
    std::uint64_t written = 0;
    for (const std::uint64_t wanted = 1 + draws.below(40); written < wanted; ++written) {
      char byte = 0;
      ASSERT_EQ(::read(told[0], &byte, 1), 1);
    }
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended by itself";
    const std::uint64_t there = batch_there();
    EXPECT_GE(there, first + written - 1);
    before = there;
    ::close(told[0]);
    ::close(told[1]);
  }
}

}  // namespace
}  // namespace leat
