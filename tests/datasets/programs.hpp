// Other people's programs, and other users, for tests that ask them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <grp.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

namespace leat::testing {

/// Runs a shell command; returns its exit status, or 128 + the signal that ended it.
inline int run(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline bool has_program(const std::string& name) { return run("command -v " + name + " >/dev/null 2>&1") == 0; }

inline constexpr uid_t nobody = 65534;

inline bool can_become_nobody() { return ::geteuid() == 0; }

/// Runs `body` as the user nobody where we are root, in a process of its own; its failed expectations fail the test.
inline void as_nobody(const std::function<void()>& body) {
  if (::geteuid() != 0) {
    body();
    return;
  }
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(99);
    body();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the part run as nobody failed: " << status;
}

}  // namespace leat::testing
