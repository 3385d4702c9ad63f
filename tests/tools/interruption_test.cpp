// Ctrl-C before anything has begun: the answer of each command.
#include "tests/support/photos.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AnyOf;

TEST(interruption, a_signal_that_is_there_before_the_program_is_answered_in_order_by_every_command) {
  const photo_folder photos;
  const std::string folder = photos.path().string();
  const temporary_directory directory;
  const auto file = [&](const char* name) { return (directory.path() / name).string(); };
  const std::vector<std::vector<std::string>> commands = {{"epoch", folder, "--epochs", "1000000"},
                                                          {"inspect", folder},
                                                          {"show", folder, "-o", file("sheet.html")},
                                                          {"pack", folder, file("p.tar")},
                                                          {"make-photos", file("made")},
                                                          {"doctor", folder}};
  for (const std::vector<std::string>& arguments : commands) {
    SCOPED_TRACE(arguments[0]);
    command process(arguments, command::streams::pipes, {}, command::start::interrupted);
    const ended result = process.wait();
    EXPECT_FALSE(result.killed);
    EXPECT_EQ(result.exit_code, 130) << result.err;
    expect_one_line(result, "leat " + arguments[0] + ": stopped by Ctrl-C");
  }
  for (const auto& left : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_EQ(left.path().filename(), "made") << left.path();
  }
}

// A line of /proc/PID/status as a number.
std::uint64_t status_of(pid_t process, const std::string& name) {
  for (const std::string& line : lines_of(text_of("/proc/" + std::to_string(process) + "/status"))) {
    if (line.rfind(name + ":", 0) == 0) return std::stoull(line.substr(name.size() + 1), nullptr, 16);
  }
  return 0;
}

TEST(interruption, signals_are_held_before_the_options_are_read) {
  // So many words take the parser a while, and it is at them when the signals are held already.
  std::vector<std::string> arguments{"inspect"};
  for (int i = 0; i < 20'000; ++i) arguments.push_back("/no/such/" + std::to_string(i));
  command process(arguments);
  // Who starts a process may hold signals until exec(), and a sanitizer while it begins; in main() they ignore SIGPIPE.
  const auto is_in_main = [&] {
    constexpr auto bit = [](int signal) { return std::uint64_t{1} << (signal - 1); };
    std::error_code none;
    return std::filesystem::read_symlink("/proc/" + std::to_string(process.pid()) + "/exe", none).filename() ==
               "leat" &&
           (status_of(process.pid(), "SigIgn") & bit(SIGPIPE)) != 0 &&
           (status_of(process.pid(), "SigBlk") & bit(SIGINT)) != 0;
  };
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!is_in_main()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    std::this_thread::yield();
  }
  process.signal(SIGINT);
  const ended result = process.wait();
  EXPECT_FALSE(result.killed);
  // Or it was through with them, and had found that there are no such files.
  EXPECT_THAT(result.exit_code, AnyOf(130, 1)) << result.err.substr(0, 300);
  expect_one_line(result, "leat inspect: ");
}

}  // namespace
}  // namespace leat::testing
