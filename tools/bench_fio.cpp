#include "tools/bench_fio.hpp"

#include "base/parse_json.hpp"
#include "base/text.hpp"

#include <leat/error.hpp>
#include <leat/units.hpp>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace leat::tools {

using namespace leat::literals;

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
      str_cat("--bs=", asked.block_bytes), str_cat("--direct=", like.fallbacks.direct.use == "on" ? 1 : 0),
      "--ioengine=io_uring", str_cat("--iodepth=", asked.depth), str_cat("--iodepth_batch_submit=", quarter),
      str_cat("--iodepth_batch_complete_min=", quarter), str_cat("--iodepth_batch_complete_max=", asked.depth),
      "--registerfiles=1", "--fixedbufs=1", "--nonvectored=1", "--time_based=1",
      str_cat("--runtime=", static_cast<std::uint64_t>(asked.seconds * 1000), "ms"),
      // Jobs that are processes lead sessions of their own, and would outlive Ctrl-C.
      "--thread", "--output-format=json"};
  if (asked.ramp_seconds > 0) {
    made.push_back(str_cat("--ramp_time=", static_cast<std::uint64_t>(asked.ramp_seconds * 1000), "ms"));
  }
  // Of several files fio takes the sum.
  if (asked.size_bytes > 0) made.push_back(str_cat("--size=", asked.size_bytes * paths.size()));
  if (random) {
    for (const char* each : {"--blockalign=4096", "--norandommap=1", "--randrepeat=0"}) made.emplace_back(each);
  }
  if (random && paths.size() > 1) made.emplace_back("--file_service_type=random");
  if (asked.threads > 1) {
    made.push_back(str_cat("--numjobs=", asked.threads));
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
    const auto job = parse_json_or_discard(output.substr(begin)).at("jobs").at(0);
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
    throw error(errc::io, str_cat("its output is not understood: ", failure.what()));
  }
}

fio_figures run_fio(const std::vector<std::string>& arguments, std::atomic<int>& running) {
  try {
    return parse_fio(run_program(arguments, {}, running));
  } catch (const error& wrong) {
    if (wrong.code() == errc::not_found) {
      throw error(errc::not_found, "--fio: fio is not installed; `apt install fio` or `dnf install fio`, then again");
    }
    throw error(errc::io,
                str_cat("--fio: fio failed: ", wrong.what(), "; see what it says to: ", command_line(arguments)));
  }
}

}  // namespace leat::tools
