#include "tools/child.hpp"

#include "base/start_process.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>

#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

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

pid_t start(const std::vector<std::string>& arguments, int standard_input, int standard_output) {
  pid_t process = 0;
  const int failure =
      start_process(arguments, {.input = standard_input, .output = standard_output, .errors = false}, process);
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
