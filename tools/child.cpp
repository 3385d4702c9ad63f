#include "tools/child.hpp"

#include "base/text.hpp"

#include <leat/error.hpp>

#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

extern "C" char** environ;

namespace leat::tools {
namespace {

struct closes {
  void operator()(FILE* file) const noexcept { std::fclose(file); }
};
using file = std::unique_ptr<FILE, closes>;

/// A file without a name that holds `text`, to be read from its beginning.
file holding(std::string_view text) {
  file made(std::tmpfile());
  if (made == nullptr || std::fwrite(text.data(), 1, text.size(), made.get()) != text.size() ||
      std::fflush(made.get()) != 0 || ::lseek(::fileno(made.get()), 0, SEEK_SET) != 0) {
    throw error(errc::io, str_cat("a temporary file: ", std::strerror(errno)));
  }
  return made;
}

// Its signals are its own: ours are blocked, and some ignored.
pid_t start(const std::vector<std::string>& arguments, int standard_input, int standard_output) {
  std::vector<char*> words;
  for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, standard_input, 0);
  ::posix_spawn_file_actions_adddup2(&actions, standard_output, 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  sigset_t pipe_signal = none;
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  const int failure = ::posix_spawnp(&process, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) throw error(errc::not_found, str_cat(arguments.front(), " is not installed"));
  if (failure != 0) {
    throw error(errc::io, str_cat(arguments.front(), " does not start: ", std::strerror(failure)));
  }
  return process;
}

}  // namespace

std::string command_line(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& each : arguments) {
    const bool plain = !each.empty() && each.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789-_=./,:+%@") == std::string::npos;
    if (!line.empty()) line += ' ';
    if (plain) {
      line += each;
      continue;
    }
    line += '\'';
    for (const char letter : each) line += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    line += '\'';
  }
  return line;
}

std::string run_program(const std::vector<std::string>& arguments, std::string_view input, std::atomic<int>& running) {
  const file in = holding(input);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw error(errc::limit, str_cat("a pipe: ", std::strerror(errno)));
  const file out(::fdopen(ends[0], "r"));
  pid_t process = 0;
  try {
    process = start(arguments, ::fileno(in.get()), ends[1]);
  } catch (...) {
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  running.store(process);
  std::string output;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0 || (got < 0 && errno == EINTR);) {
    if (got > 0) output.append(part, static_cast<std::size_t>(got));
  }
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  running.store(0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  throw error(errc::io,
              str_cat(arguments.front(), WIFEXITED(status) ? str_cat(" ended with ", WEXITSTATUS(status))
                                                           : str_cat(" was killed by signal ", WTERMSIG(status))));
}

}  // namespace leat::tools
