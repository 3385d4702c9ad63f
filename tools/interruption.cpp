#include "tools/interruption.hpp"

#include <sys/signalfd.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace leat::tools {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  // nohup(1) starts a program with it ignored, and means it. A signal that is held is kept for us also while it is ignored.
  struct sigaction there{};
  if (::sigaction(SIGHUP, nullptr, &there) == 0 && there.sa_handler != SIG_IGN) ::sigaddset(&set, SIGHUP);
  return set;
}

// A debugger interrupts a call now and then. One that is always interrupted cannot be made here, and to go on would be for ever.
constexpr int interrupted_max = 100;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace

int hold_stop_signals() noexcept {
  const sigset_t set = stop_signals();
  return ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

interruption::interruption() {
  // An ignored signal is thrown away even while blocked.
  ::signal(SIGINT, SIG_DFL);
  ::signal(SIGTERM, SIG_DFL);
  if (const int failure = hold_stop_signals(); failure != 0) {
    throw std::system_error(failure, std::generic_category(), "pthread_sigmask");
  }
  const sigset_t set = stop_signals();
  signals_fd_ = checked(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  int ends[2];
  checked(::pipe2(ends, O_CLOEXEC), "pipe2");
  end_fd_ = ends[0];
  ended_by_fd_ = ends[1];
  // One that is waiting already is answered before anything begins; the next one finds the default action here.
  if (take()) {
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    source_.request_stop();
    return;
  }
  thread_ = std::thread([this] { watch(); });
}

bool interruption::take() noexcept {
  signalfd_siginfo info{};
  if (::read(signals_fd_, &info, sizeof info) != sizeof info) return false;
  signal_.store(static_cast<int>(info.ssi_signo));
  return true;
}

interruption::~interruption() {
  // Either wakes the thread; if both failed, it would be waited for in vain.
  const char end = 0;
  static_cast<void>(::write(ended_by_fd_, &end, 1) + ::close(ended_by_fd_));
  if (thread_.joinable()) thread_.join();
  ::close(end_fd_);
  ::close(signals_fd_);
}

void interruption::watch() {
  pollfd watched[] = {{signals_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
  bool watching = true;
  int interrupted = 0;
  while (watching) {
    const bool woken = ::poll(watched, 2, -1) >= 0;
    if (!woken && errno == EINTR && ++interrupted < interrupted_max) continue;
    interrupted = 0;
    if (woken && watched[1].revents != 0) return;
    if (woken && !take()) continue;
    // What answers the request may take its time on this thread; the next signal finds it here, with the default action. So does the
    // first one where the kernel cannot poll.
    const sigset_t set = stop_signals();
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    if (woken) source_.request_stop();
    watching = false;
  }
  char none = 0;
  while (::read(end_fd_, &none, 1) < 0 && errno == EINTR && ++interrupted < interrupted_max) continue;
}

const char* interruption::name() const noexcept {
  switch (signal_.load()) {
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "Ctrl-C";
  }
}

}  // namespace leat::tools
