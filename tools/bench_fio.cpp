#include "tools/bench_fio.hpp"

#include "io/text.hpp"

#include <leat/error.hpp>
#include <leat/units.hpp>

#include <sys/wait.h>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>

extern "C" char** environ;

namespace leat::tools {

using namespace leat::literals;

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

std::vector<std::string> fio_arguments(const std::vector<std::string>& paths, const read_row& like, bool huge) {
  std::string files;
  for (const std::string& path : paths) {
    if (!files.empty()) files += ':';
    for (const char letter : path)
      files += letter == ':' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
  }
  const read_settings& asked = like.asked;
  const std::uint32_t quarter = std::max(1U, asked.depth / 4);
  const bool random = asked.pattern == read_pattern::random;
  std::vector<std::string> made = {
      "fio", "--name=leat", "--filename=" + files, "--readonly", random ? "--rw=randread" : "--rw=read",
      io::str_cat("--bs=", asked.block_bytes), io::str_cat("--direct=", like.rungs.direct.use == "on" ? 1 : 0),
      "--ioengine=io_uring", io::str_cat("--iodepth=", asked.depth), io::str_cat("--iodepth_batch_submit=", quarter),
      io::str_cat("--iodepth_batch_complete_min=", quarter), io::str_cat("--iodepth_batch_complete_max=", asked.depth),
      "--registerfiles=1", "--fixedbufs=1", "--nonvectored=1", "--time_based=1",
      io::str_cat("--runtime=", static_cast<std::uint64_t>(asked.seconds * 1000), "ms"),
      // Jobs that are processes lead sessions of their own, and would outlive Ctrl-C.
      "--thread", "--output-format=json"};
  if (random) {
    for (const char* each : {"--blockalign=4096", "--norandommap=1", "--randrepeat=0"}) made.emplace_back(each);
  }
  if (random && paths.size() > 1) made.emplace_back("--file_service_type=random");
  if (asked.threads > 1) {
    made.push_back(io::str_cat("--numjobs=", asked.threads));
    made.emplace_back("--group_reporting");
  }
  if (huge) {
    for (const char* each : {"--mem=mmaphuge", "--hugepage-size=2m"}) made.emplace_back(each);
  }
  return made;
}

std::uint64_t fio_huge_pages(const read_row& like) noexcept {
  return (like.asked.block_bytes * like.asked.depth / 2_MiB + 1) * like.asked.threads;
}

std::uint64_t free_huge_pages() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    std::uint64_t pages = 0;
    if (std::sscanf(line.c_str(), "HugePages_Free: %" SCNu64, &pages) == 1) return pages;
  }
  return 0;
}

fio_figures parse_fio(std::string_view output) {
  try {
    const std::size_t begin = output.find('{');
    if (begin == std::string_view::npos) throw error(errc::io, "it said nothing");
    const auto job = nlohmann::json::parse(output.substr(begin)).at("jobs").at(0);
    const auto& read = job.at("read");
    if (job.at("error").get<int>() != 0) throw error(errc::io, std::strerror(job.at("error").get<int>()));
    const double gib = static_cast<double>(read.at("io_bytes").get<std::uint64_t>()) / (1 << 30);
    const double wall_s = read.at("runtime").get<double>() * 1e-3;
    // Of several jobs it gives the share of their run times together.
    const double busy = (job.at("usr_cpu").get<double>() + job.at("sys_cpu").get<double>()) / 100;
    const double cpu_s = busy * job.at("job_runtime").get<double>() * 1e-3;
    if (!(gib > 0) || !(wall_s > 0)) throw error(errc::io, "it read nothing");
    return {.gib_per_s = gib / wall_s, .cpu_s_per_gib = cpu_s / gib, .huge_pages = false};
  } catch (const nlohmann::json::exception& failure) {
    throw error(errc::io, io::str_cat("its output is not understood: ", failure.what()));
  }
}

fio_figures run_fio(const std::vector<std::string>& arguments, std::atomic<int>& running) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw error(errc::limit, io::str_cat("--fio: pipe: ", std::strerror(errno)));
  std::vector<char*> words;
  for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  // Its signals are its own: ours are blocked, and some ignored. And so is its group: a terminal's Ctrl-C is for us.
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
  ::close(ends[1]);
  if (failure != 0) {
    ::close(ends[0]);
    if (failure == ENOENT) {
      throw error(errc::not_found, "--fio: fio is not installed; `apt install fio` or `dnf install fio`, then again");
    }
    throw error(errc::io, io::str_cat("--fio: fio does not start: ", std::strerror(failure)));
  }
  running.store(process);
  std::string output;
  char part[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], part, sizeof part)) > 0 || (got < 0 && errno == EINTR);) {
    if (got > 0) output.append(part, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  running.store(0);
  try {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      throw error(errc::io, WIFEXITED(status) ? io::str_cat("it ended with ", WEXITSTATUS(status))
                                              : io::str_cat("it was killed by signal ", WTERMSIG(status)));
    }
    return parse_fio(output);
  } catch (const error& wrong) {
    throw error(errc::io,
                io::str_cat("--fio: fio failed: ", wrong.what(), "; see what it says to: ", command_line(arguments)));
  }
}

}  // namespace leat::tools
