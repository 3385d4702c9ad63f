// Ctrl-C, and a terminal that is closed, as a request that the program can answer in order.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace leat::tools {

/// SIGINT, SIGTERM and SIGHUP (unless it comes ignored, as under nohup) wait from now on, on this thread and those that it
/// starts, until an interruption takes them. Returns an errno, or 0.
int hold_stop_signals() noexcept;

/// Turns the first SIGINT, SIGTERM or SIGHUP into a stop request; the second one ends the process at once. SIGINT also of
/// processes that a shell started in the background, where it comes ignored: who sends it to us by number means it. A SIGHUP that
/// comes ignored stays ignored.
///
/// What is registered with the token (std::stop_callback) runs on a thread of this, not in a signal handler, so it may
/// lock and wait. Thread: constructed before any other thread, since those must inherit the blocked signals.
class interruption {
 public:
  interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;
  ~interruption();

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }
  [[nodiscard]] bool requested() const noexcept { return source_.stop_requested(); }
  /// 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP, as shells count.
  [[nodiscard]] int exit_code() const noexcept { return 128 + signal_.load(); }
  /// "Ctrl-C", "SIGTERM" or "SIGHUP".
  [[nodiscard]] const char* name() const noexcept;

 private:
  [[nodiscard]] bool take() noexcept;
  void watch();

  std::stop_source source_;
  std::atomic<int> signal_{0};
  int signals_fd_ = -1;
  // A pipe that nothing is written to: it ends when this does.
  int end_fd_ = -1;
  int ended_by_fd_ = -1;
  std::thread thread_;
};

}  // namespace leat::tools
