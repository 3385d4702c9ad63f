#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace leat::testing {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// In the child: nothing but system calls until exec.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                         command::start begin) {
  const int pending = begin == command::start::interrupted ? SIGINT : begin == command::start::hung_up ? SIGHUP : 0;
  sigset_t blocked;
  ::sigemptyset(&blocked);
  // A signal that is held stays pending over exec.
  if (pending != 0) ::sigaddset(&blocked, pending);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  if (pending != 0) ::kill(::getpid(), pending);
  ::signal(SIGHUP, begin == command::start::hang_up_ignored ? SIG_IGN : SIG_DFL);
  ::execve(arguments[0], arguments.data(), environment.data());
  ::_exit(127);
}

// What can be read now, or the end.
bool read_some(int file, std::string& text) {
  std::array<char, 4096> block;
  const ssize_t got = ::read(file, block.data(), block.size());
  if (got > 0) text.append(block.data(), static_cast<std::size_t>(got));
  // A terminal whose other side is closed says EIO.
  return got > 0 || (got < 0 && errno == EINTR);
}

}  // namespace

nlohmann::json ended::json() const {
  nlohmann::json object = nlohmann::json::parse(out, nullptr, false);
  EXPECT_TRUE(object.is_object()) << "standard output is no JSON object:\n" << out << "\nstandard error:\n" << err;
  return object.is_object() ? object : nlohmann::json::object();
}

command::command(const std::vector<std::string>& arguments, streams how, const std::vector<std::string>& environment,
                 start begin) {
  const char* const path = std::getenv("LEAT_COMMAND");
  if (path == nullptr)
    throw std::runtime_error("LEAT_COMMAND is not set; run this by ctest, or set it to the leat command");
  std::vector<std::string> texts{path};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);

  std::vector<std::string> settings;
  for (char** entry = environ; *entry != nullptr; ++entry) settings.emplace_back(*entry);
  settings.insert(settings.begin(), environment.begin(), environment.end());  // The first of a name is the one found.
  std::vector<char*> variables;
  for (std::string& setting : settings) variables.push_back(setting.data());
  variables.push_back(nullptr);

  if (how == streams::terminal) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 100;
    pid_ = ::forkpty(&out_, nullptr, nullptr, &size);
    if (pid_ < 0) fail("forkpty");
    if (pid_ == 0) become(words, variables, begin);
    return;
  }
  int out[2];
  int err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) fail("pipe2");
  if (how == streams::unread) ::close(std::exchange(out[0], -1));
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) {
    ::dup2(nothing, 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    become(words, variables, begin);
  }
  ::close(nothing);
  ::close(out[1]);
  ::close(err[1]);
  out_ = out[0];
  err_ = err[0];
}

command::~command() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

void command::signal(int number) const { ASSERT_EQ(::kill(pid_, number), 0) << "no such process any more"; }

void command::read_until(const std::string& text) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (read_.find(text) == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "'" << text << "' did not come; this did:\n" << read_;
    pollfd file{out_, POLLIN, 0};
    if (::poll(&file, 1, 1000) <= 0) continue;
    ASSERT_TRUE(read_some(out_, read_)) << "the output ended without '" << text << "':\n" << read_;
  }
}

ended command::wait() {
  ended result;
  result.out = std::move(read_);
  bool out_open = out_ >= 0;
  bool err_open = err_ >= 0;
  while (out_open || err_open) {
    pollfd files[] = {{out_open ? out_ : -1, POLLIN, 0}, {err_open ? err_ : -1, POLLIN, 0}};
    if (::poll(files, 2, -1) < 0) continue;
    if (files[0].revents != 0) out_open = read_some(out_, result.out);
    if (files[1].revents != 0) err_open = read_some(err_, result.err);
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid");
  }
  pid_ = -1;
  result.killed = WIFSIGNALED(status);
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

ended run(const std::vector<std::string>& arguments) { return command(arguments).wait(); }

ended run_into(const std::string& out_path, const std::vector<std::string>& arguments) {
  // The shell's redirection, which is how people do it.
  std::string line;
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  const std::string err_path =
      out_path == "/dev/full" ? ::testing::TempDir() + "leat-err." + std::to_string(::getpid()) : out_path + ".err";
  const std::string whole = "\"$LEAT_COMMAND\"" + line + " >'" + out_path + "' 2>'" + err_path + "'";
  const int status = std::system(whole.c_str());
  ended result;
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.err = text_of(err_path);
  ::unlink(err_path.c_str());
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void expect_one_line(const ended& process, const std::string& prefix) {
  const std::vector<std::string> lines = lines_of(process.err);
  ASSERT_EQ(lines.size(), 1U) << process.err;
  EXPECT_THAT(lines[0], ::testing::StartsWith(prefix));
  EXPECT_EQ(process.err.back(), '\n');
}

}  // namespace leat::testing
