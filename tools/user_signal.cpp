#include "tools/user_signal.hpp"

#include "base/start_thread.hpp"

#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace leat::tools {
namespace {

sigset_t only_user_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGUSR1);
  return set;
}

int descriptor_of(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

int user_signals() {
  const sigset_t set = only_user_signal();
  return descriptor_of(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

}  // namespace

int hold_user_signal() noexcept {
  const sigset_t set = only_user_signal();
  return ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void release_user_signal() noexcept {
  const sigset_t set = only_user_signal();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

user_signal::user_signal(std::function<void()> answer)
    : answer_(std::move(answer)), signals_(user_signals()), end_(descriptor_of(::eventfd(0, EFD_CLOEXEC), "eventfd")) {
  thread_ = start_thread({.what = "thread that waits for SIGUSR1"}, [this] { watch(); });
}

user_signal::~user_signal() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(end_.get(), &one, sizeof one));  // an eventfd that nobody else writes to takes it
  thread_.join();
}

void user_signal::watch() {
  pollfd watched[] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
  for (;;) {
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (watched[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signals_.get(), &info, sizeof info) == sizeof info) answer_();
  }
}

}  // namespace leat::tools
