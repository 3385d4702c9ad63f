#include "io/remote/shell_output.hpp"

#include "base/errno_words.hpp"
#include "base/start_process.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <openssl/crypto.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>
#include <utility>

namespace leat::io {
namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void fail(int failure) { throw error(errc::io, str_cat("/bin/sh: ", errno_words(failure))); }

pid_t start(const std::string& command, int output) {
  pid_t process = 0;
  const int failure = start_process({"/bin/sh", "-c", command}, {.output = output}, process);
  if (failure != 0) fail(failure);
  return process;
}

// Milliseconds, at least one as long as there is time.
int left_until(clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

shell_result shell_output(const std::string& command, std::size_t bytes_max, std::chrono::milliseconds patience) {
  const clock::time_point end = clock::now() + patience;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail(errno);
  pid_t process = 0;
  try {
    process = start(command, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  shell_result result;
  char part[4096];
  // At once, so that no copy of a secret is left behind in memory that it has grown out of.
  result.text.reserve(bytes_max + sizeof part);
  for (bool is_over = false; !is_over && !result.is_late && !result.is_large;) {
    pollfd output{.fd = ends[0], .events = POLLIN, .revents = 0};
    const int ready = ::poll(&output, 1, left_until(end));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      result.is_late = true;
      continue;
    }
    const ssize_t got = ::read(ends[0], part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) result.text.append(part, static_cast<std::size_t>(got));
    is_over = got <= 0;
    result.is_large = result.text.size() > bytes_max;
  }
  ::OPENSSL_cleanse(part, sizeof part);
  ::close(ends[0]);
  // Its output is closed, and it may go on all the same.
  constexpr auto look_again = std::chrono::milliseconds(5);
  int status = 0;
  bool is_gone = false;
  while (!is_gone && !result.is_late && !result.is_large) {
    const pid_t ended = ::waitpid(process, &status, WNOHANG);
    is_gone = ended == process || (ended < 0 && errno != EINTR);
    if (is_gone) break;
    result.is_late = clock::now() >= end;
    if (!result.is_late) std::this_thread::sleep_for(look_again);
  }
  if (!is_gone) {
    ::kill(-process, SIGKILL);
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
  }
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace leat::io
