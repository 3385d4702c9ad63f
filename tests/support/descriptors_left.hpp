// A process that may open few descriptors more.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fcntl.h>
#include <unistd.h>

namespace leat::testing {

/// While it lives, the process gets so many more descriptors.
class descriptors_left {
 public:
  explicit descriptors_left(rlim_t more) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    // The smallest that is free: what lies below is taken.
    const int free = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
    EXPECT_GE(free, 0);
    ::close(free);
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(free) + more;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &less), 0);
  }
  ~descriptors_left() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  descriptors_left(const descriptors_left&) = delete;
  descriptors_left& operator=(const descriptors_left&) = delete;

 private:
  rlimit before_{};
};

}  // namespace leat::testing
