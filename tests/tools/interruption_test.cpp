// Ctrl-C before anything has begun: the answer of each command.
#include "tools/interruption.hpp"

#include "tests/support/photos.hpp"
#include "tests/tools/command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::AnyOf;

/// From here on each poll(2) of this process is interrupted. Whether that can be had.
bool interrupt_every_poll() {
  sock_filter instructions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
#ifdef SYS_poll
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_poll, 1, 0),
#endif
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ppoll, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINTR),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(instructions)), instructions};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

TEST(interruption, ends_where_the_kernel_interrupts_every_poll) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::alarm(20);  // else it is waited for in vain
        if (!interrupt_every_poll()) std::_Exit(77);
        {
          const tools::interruption stop;
        }
        std::_Exit(0);
      },
      [](int status) { return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77); }, "");
}

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
    for (const auto begin : {command::start::interrupted, command::start::hung_up}) {
      const bool by_key = begin == command::start::interrupted;
      command process(arguments, command::streams::pipes, {}, begin);
      const ended result = process.wait();
      EXPECT_FALSE(result.killed);
      EXPECT_EQ(result.exit_code, by_key ? 130 : 129) << result.err;
      expect_one_line(result, "leat " + arguments[0] + ": stopped by " + (by_key ? "Ctrl-C" : "SIGHUP"));
    }
  }
  for (const auto& left : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_EQ(left.path().filename(), "made") << left.path();
  }
}

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

void wait_for_a_file_in(const std::filesystem::path& directory) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (names_in(directory).empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "nothing was begun";
    std::this_thread::yield();
  }
}

// A closed terminal, `kill`: most runs that are ended end so.
TEST(interruption, a_command_that_is_hung_up_or_terminated_leaves_nothing_unfinished) {
  const temporary_directory directory;
  const std::filesystem::path from = directory.path() / "from", to = directory.path() / "to";
  std::filesystem::create_directory(from);
  // A file of holes: it takes seconds to pack and no disk.
  std::ofstream(from / "a.jpg").put('a');
  std::filesystem::resize_file(from / "a.jpg", std::uintmax_t{4} << 30);
  for (const int signal : {SIGHUP, SIGTERM}) {
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"pack", from.string(), (to / "p.tar").string()},
          {"make-photos", (to / "made").string(), "--count", "100000"}}) {
      SCOPED_TRACE(arguments[0] + " and signal " + std::to_string(signal));
      std::filesystem::create_directory(to);
      command process(arguments);
      wait_for_a_file_in(to);
      process.signal(signal);
      const ended result = process.wait();
      EXPECT_EQ(result.exit_code, 128 + signal);
      EXPECT_FALSE(result.killed);
      expect_one_line(result, "leat " + arguments[0] + ": stopped by " + (signal == SIGHUP ? "SIGHUP" : "SIGTERM"));
      EXPECT_THAT(names_in(to), ::testing::IsEmpty());
      std::filesystem::remove_all(to);
    }
  }
}

TEST(interruption, a_pack_into_zarr_that_is_ended_leaves_nothing_and_one_that_is_killed_no_group) {
  const temporary_directory directory;
  const std::filesystem::path from = directory.path() / "from", to = directory.path() / "to";
  std::filesystem::create_directory(from);
  // A file of holes: it takes seconds to pack.
  std::ofstream(from / "r.bin").put('a');
  std::filesystem::resize_file(from / "r.bin", std::uintmax_t{8} << 30);
  std::ofstream(from / "r.json") << R"({"fields": [{"name": "x", "dtype": "u8", "shape": [65536]}]})";
  const std::vector<std::string> arguments = {"pack", (from / "r.bin").string(), (to / "o.zarr").string(), "--to",
                                              "zarr"};
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    SCOPED_TRACE(signal);
    std::filesystem::create_directory(to);
    command process(arguments);
    wait_for_a_file_in(to);
    process.signal(signal);
    const ended result = process.wait();
    if (signal == SIGKILL) {
      EXPECT_TRUE(result.killed);
      EXPECT_THAT(names_in(to), ::testing::ElementsAre(".o.zarr.partial"));
      EXPECT_FALSE(std::filesystem::exists(to / ".o.zarr.partial" / "zarr.json"));
    } else {
      EXPECT_EQ(result.exit_code, 128 + signal);
      EXPECT_THAT(result.err, ::testing::HasSubstr("the folder begun was removed"));
      EXPECT_THAT(names_in(to), ::testing::IsEmpty());
    }
    std::filesystem::remove_all(to);
  }
}

TEST(interruption, a_command_under_nohup_does_not_mind_a_closed_terminal) {
  const photo_folder photos;
  const temporary_directory directory;
  const std::string lines = (directory.path() / "lines").string();
  command process({"epoch", photos.path().string(), "--batch-size", "5", "--epochs", "1000000", "--batches", lines},
                  command::streams::pipes, {}, command::start::hang_up_ignored);
  wait_for_a_file_in(directory.path());
  process.signal(SIGHUP);
  const auto written = [&] { return std::filesystem::file_size(lines); };
  const std::uintmax_t before = written();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (written() <= before + 10'000 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_GT(written(), before + 10'000) << "it goes on";
  process.signal(SIGINT);
  const ended result = process.wait();
  EXPECT_EQ(result.exit_code, 130);
  expect_one_line(result, "leat epoch: stopped by Ctrl-C");
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
  EXPECT_THAT(result.exit_code, AnyOf(130, 2)) << result.err.substr(0, 300);
  expect_one_line(result, "leat inspect: ");
}

}  // namespace
}  // namespace leat::testing
