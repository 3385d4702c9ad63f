#include "base/start_thread.hpp"

#include "base/control_groups.hpp"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace leat {
namespace {

// The number in the first line of a file; 0 where there is none ("max").
std::size_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  return file >> number ? number : 0;
}

std::size_t pids_max() {
  std::size_t least = 0;
  for (const control_group& group : control_groups("", "pids")) {
    const std::size_t here = number_in(group.directory + "/pids.max");
    if (here != 0 && (least == 0 || here < least)) least = here;
  }
  return least;
}

std::size_t threads_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    std::size_t threads = 0;
    if (key == "Threads:" && status >> threads) return threads;
  }
  return 0;
}

}  // namespace

thread_counts count_threads() {
  thread_counts counts;
  counts.here = threads_of_process();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) counts.of_user_max = limit.rlim_cur;
  counts.of_container_max = pids_max();
  return counts;
}

error cannot_start(const thread_name& which, const std::error_code& why, const thread_counts& counts) {
  std::string text = "cannot start " + std::string(which.what);
  if (which.of > 1) text += " " + std::to_string(which.number + 1) + " of " + std::to_string(which.of);
  text += ": " + why.message();
  std::string limits;
  if (counts.here != 0) limits += "this process has " + std::to_string(counts.here) + " threads";
  const auto add = [&limits](std::string_view who, std::size_t most) {
    if (most == 0) return;
    limits += limits.empty() ? "" : ", ";
    limits += std::string(who) + " may have " + std::to_string(most) + " in all";
  };
  add("its user", counts.of_user_max);
  add("its container", counts.of_container_max);
  if (!limits.empty()) text += " (" + limits + ")";
  text += "; raise `ulimit -u` or the container's limit of pids, or free some memory";
  if (!which.remedy.empty()) text += ", " + std::string(which.remedy);
  return {errc::limit, text};
}

}  // namespace leat
