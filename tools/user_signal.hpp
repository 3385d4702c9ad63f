// SIGUSR1 as a request that a command can answer in order, while it goes on.
#pragma once

#include "base/descriptor.hpp"

#include <functional>
#include <thread>

namespace leat::tools {

/// It waits from now on, on this thread and those that it starts, for a user_signal or a release. Returns an errno, or 0.
int hold_user_signal() noexcept;
/// Does again what it does to any program: ends this one. For commands that have no answer.
void release_user_signal() noexcept;

/// Calls a function for each SIGUSR1, those held before included; several that come while it runs are one. It runs on a thread of
/// this, not in a signal handler, so it may lock and wait.
class user_signal {
 public:
  ///   answer   throws nothing
  ///   throws   std::system_error: no descriptor; error{errc::limit}: no thread
  explicit user_signal(std::function<void()> answer);
  user_signal(const user_signal&) = delete;
  user_signal& operator=(const user_signal&) = delete;
  ~user_signal();

 private:
  void watch();

  const std::function<void()> answer_;
  descriptor signals_;
  descriptor end_;  // an eventfd
  std::thread thread_;
};

}  // namespace leat::tools
