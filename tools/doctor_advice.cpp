#include "tools/doctor_advice.hpp"

#include "base/cores_quota.hpp"
#include "base/text.hpp"
#include "io/files/file_status.hpp"
#include "stages/run/node_placement.hpp"
#include "tools/human.hpp"

#include <leat/loading.hpp>

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

namespace leat::tools {
namespace {

using grade = finding::grade;

/// What a loader takes unless told otherwise.
constexpr std::uint64_t budget_bytes = host_bytes_usual;

std::string limit_text(std::uint64_t limit, bool bytes) {
  if (limit == resource_limit::unlimited) return "unlimited";
  return bytes ? bytes_text(limit) : count_text(limit);
}

// "6.18.44-amd64" is {6, 18}.
std::pair<int, int> version_of(const std::string& release) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(release.c_str(), "%d.%d", &major, &minor) < 1) return {0, 0};
  return {major, minor};
}

/// How a limit is called where it can be raised.
struct limit_names {
  const char* shell;    // ulimit -l
  const char* item;     // of limits.conf(5), and of docker's --ulimit
  const char* unit;     // of systemd.exec(5)
  const char* enough;   // for both, and for the shell
  const char* numeric;  // for docker
};

// By the shell where the hard limit allows it, else by root.
std::string raise(const limit_names& names, const resource_limit& limit, std::uint64_t enough) {
  if (limit.hard >= enough)
    return str_cat("`ulimit -", names.shell, " ", names.enough, "` in the shell that starts it");
  return str_cat("\"* hard ", names.item, " ", names.enough, "\" in /etc/security/limits.conf, ", names.unit,
                 "=infinity in a unit, or docker's `--ulimit ", names.item, "=", names.numeric, "`");
}

}  // namespace

finding check_kernel(const machine_facts& facts) {
  finding made{.concern = "kernel", .found = str_cat("Linux ", facts.kernel, ", ", facts.architecture)};
  const auto version = version_of(facts.kernel);
  if (version.first == 0 || version >= std::pair(6, 1)) return made;
  made.how = grade::lower;
  made.advice =
      version < std::pair(5, 11)
          ? "Linux 5.11 is the first whose io_uring leat uses, 6.1 has all of it; until then preadv on threads reads"
          : "Linux 6.1 brings DEFER_TASKRUN (fewer interruptions) and tells O_DIRECT's alignment";
  return made;
}

finding check_io_uring(const machine_facts& facts) {
  finding made{.concern = "io_uring"};
  if (!facts.reader_failure.empty()) {
    made.how = grade::failing;
    made.found = str_cat("reading failed: ", facts.reader_failure);
    made.advice = "what failed is named above; `leat epoch --reader preadv` reads without io_uring";
    return made;
  }
  const fallback& backend = facts.reader.backend;
  if (backend.use != "io_uring") {
    made.how = grade::lower;
    made.found = str_cat("not to be had: leat reads with preadv on threads (3 times the CPU per read)");
    made.advice = backend.why;
    return made;
  }
  made.found = str_cat("allowed: ", backend.why, "; registered buffers ", facts.reader.registered_buffers.use);
  if (facts.reader.registered_buffers.use != "on") {
    made.how = grade::lower;
    made.advice = facts.reader.registered_buffers.why;
  }
  return made;
}

finding check_locked_memory(const machine_facts& facts) {
  finding made{.concern = "memlock"};
  if (facts.may_lock_all) {
    made.found = str_cat("CAP_IPC_LOCK: any amount may be registered (the limit is ",
                         limit_text(facts.locked_bytes.soft, true), ")");
    return made;
  }
  made.found = str_cat(limit_text(facts.locked_bytes.soft, true), " may be registered");
  if (facts.locked_bytes.soft >= budget_bytes) return made;
  made.how = grade::lower;
  str_append(made.found, " of the ", bytes_text(budget_bytes),
             " that a loader has by default; the rest is plain memory");
  made.advice = raise({"l", "memlock", "LimitMEMLOCK", "unlimited", "-1"}, facts.locked_bytes, budget_bytes);
  return made;
}

finding check_files(const machine_facts& facts) {
  // A ring keeps 1,024 open; threads, pipes and what the trainer opens come besides.
  constexpr std::uint64_t enough = 2048;
  finding made{.concern = "open files", .found = str_cat(limit_text(facts.files.soft, false), " at a time")};
  if (facts.files.soft >= enough) return made;
  made.how = grade::lower;
  str_append(made.found, "; of a dataset with more of them each is opened again in every epoch");
  made.advice = raise({"n", "nofile", "LimitNOFILE", "65536", "65536"}, facts.files, 65536);
  return made;
}

finding check_huge_pages(const machine_facts& facts) {
  const fallback& pages = facts.reader.huge_pages;
  finding made{.concern = "huge pages"};
  if (facts.huge_pages_setting.empty()) {
    made.how = grade::lower;
    made.found = "this kernel has no transparent huge pages: a read of 112 KiB costs 3 times the CPU";
    return made;
  }
  made.found = str_cat(pages.use, " (transparent_hugepage is ", facts.huge_pages_setting, ")");
  if (pages.use == "on") return made;
  made.how = grade::lower;
  made.advice = pages.why;
  return made;
}

finding check_memory(const machine_facts& facts) {
  finding made{.concern = "memory",
               .found = str_cat(bytes_text(facts.memory_available_bytes), " available (", facts.memory_said_by, ") of ",
                                bytes_text(facts.memory_bytes), "; a source that fits in half of it is read buffered")};
  if (facts.memory_available_bytes >= 2 * budget_bytes) return made;
  made.how = facts.memory_available_bytes < budget_bytes ? grade::failing : grade::lower;
  made.advice = str_cat("a loader takes up to ", bytes_text(budget_bytes), ": give it less (--host-bytes-max ",
                        std::max<std::uint64_t>(facts.memory_available_bytes / 4 >> 20, 1), "MiB), or free some");
  return made;
}

finding check_cores(const machine_facts& facts) {
  finding made{.concern = "cores"};
  const std::uint32_t working = cores_within(facts.cores_quota, facts.cores_usable);
  made.found = str_cat(
      facts.cores_usable, " of ", facts.cores_online, " usable: ", working < facts.cores_usable ? "" : "as many ",
      working < facts.cores_usable ? counted(working, "decode thread", "decode threads") : "decode threads",
      ", as far as the budget goes");
  if (working < facts.cores_usable) {
    made.how = grade::lower;
    str_append(made.found, "; the control group has a quota of ", absl::StrFormat("%.3g", *facts.cores_quota));
    made.advice =
        "more threads than the quota has cores are stopped in the middle of each period; raise it (docker --cpus) "
        "where "
        "decode is the bottleneck";
  } else if (facts.cores_usable < facts.cores_online) {
    made.how = grade::lower;
    made.advice =
        "this process is confined (taskset, cpuset, SLURM): ask for more cores where decode is the bottleneck";
  }
  return made;
}

finding check_numa(const machine_facts& facts) {
  // As a loader chooses, and in its words.
  const auto chosen_for = [&](const gpu_facts* gpu) {
    stages::node_facts known{.nodes = facts.numa_nodes};
    if (gpu != nullptr && gpu->numa_node >= 0) known.of_device = static_cast<std::uint32_t>(gpu->numa_node);
    if (!facts.paths.empty()) known.of_drive = facts.paths.front().numa_node;
    return stages::choose_node(numa::automatic, known);
  };
  finding made{.concern = "NUMA"};
  if (facts.numa_nodes.size() <= 1) {
    made.found = chosen_for(nullptr).why;
    return made;
  }
  made.found = counted(facts.numa_nodes.size(), "node", "nodes");
  std::string_view before = ": ";
  for (const node_cores& each : facts.numa_nodes) {
    str_append(made.found, std::exchange(before, ", "), each.node, " (", counted(each.cores.size(), "core", "cores"),
               ")");
  }
  const auto add = [&](std::string_view whose, const stages::node_choice& chosen) {
    str_append(made.found, "; threads and memory of a loader", whose, " are bound to ",
               chosen.node ? str_cat("node ", *chosen.node) : std::string("none"), ": ", chosen.why);
  };
  for (const gpu_facts& gpu : facts.gpus) {
    const stages::node_choice chosen = chosen_for(&gpu);
    add(str_cat(" to cuda:", gpu.index), chosen);
    if (chosen.node || gpu.numa_node < 0 || !made.advice.empty()) continue;
    made.how = grade::lower;
    made.advice = str_cat("cuda:", gpu.index, ": give this process some cores of node ", gpu.numa_node,
                          ", where its loader then binds threads and memory");
  }
  if (facts.gpus.empty()) add("", chosen_for(nullptr));
  return made;
}

finding check_path(const path_facts& path) {
  finding made{.concern = str_cat("path ", one_line(path.path))};
  if (!path.failure.empty()) {
    made.how = grade::failing;
    made.found = one_line(path.failure);
    // Of what a drive or a mount does there is no more to say than what was seen.
    if (path.failure_kind == errc::permission) made.advice = "give a directory or a file that this user may read";
    if (path.failure_kind == errc::not_found)
      made.advice = "check the path; for data to come give a directory that is there";
    return made;
  }
  if (io::is_made_up(path.file_system)) {
    made.how = grade::failing;
    made.found = str_cat(path.file_system, ", which the kernel makes up: no place for data");
    return made;
  }
  made.found = path.file_system.empty() ? "unknown file system" : path.file_system;
  if (path.alignment_known && path.direct_offset_alignment != 0) {
    str_append(made.found, ", O_DIRECT aligned to ", path.direct_offset_alignment, " (memory ",
               path.direct_memory_alignment, ")");
  }
  if (path.tried_on.empty()) {
    str_append(made.found, "; there is no file to try");
    return made;
  }
  if (path.direct.use == "on") {
    str_append(made.found, ": O_DIRECT works, for what does not fit in memory");
    return made;
  }
  if (path.file_system == "tmpfs" || path.file_system == "ramfs") {
    str_append(made.found, ": in memory already");
    return made;
  }
  str_append(made.found, ": read through the page cache");
  made.how = grade::lower;
  made.advice = str_cat(one_line(path.direct.why), "; a local ext4 or xfs reads cold data with a tenth of the CPU");
  return made;
}

namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(last * share))];
}

finding check_latency(const io::store_facts& store) {
  finding made{.concern = "  latency"};
  const double median = quantile(store.latencies_s, 0.5);
  const double p99 = quantile(store.latencies_s, 0.99);
  made.found = str_cat("median ", seconds_text(median), ", p99 ", seconds_text(p99), " of ",
                       counted(store.latencies_s.size(), "small range", "small ranges"),
                       " on one connection; the first answer took ", seconds_text(store.first_s));
  if (median < 0.2) return made;
  made.how = grade::lower;
  made.advice = "it is far away: train in the region where the objects are, or keep them here (--cache DIR)";
  return made;
}

finding check_rates(const io::store_facts& store) {
  finding made{.concern = "  rate"};
  for (const io::measured_rate& each : store.by_blocks) {
    if (!made.found.empty()) made.found += ", ";
    str_append(made.found, rate_text(each.bytes_per_s()), " by ",
               counted(each.connections, "connection", "connections"));
  }
  str_append(made.found, " (", bytes_text(store.by_blocks.back().bytes_each), " at a time)");
  return made;
}

finding check_order(const io::store_facts& store) {
  constexpr double gib = 1 << 30;
  const io::measured_rate& samples = store.by_samples;
  const io::measured_rate& blocks = store.by_blocks.back();
  finding made{.concern = "  order"};
  const auto requests = [&](const io::measured_rate& rate) {
    return count_text(static_cast<std::uint64_t>(std::ceil(gib / static_cast<double>(rate.bytes_each))));
  };
  made.found = str_cat(
      "sample by sample (", bytes_text(samples.bytes_each), " each), as an exact order reads without a cache: ",
      count_text(static_cast<std::uint64_t>(samples.fetches_per_s())), " samples/s, ", rate_text(samples.bytes_per_s()),
      ", ", requests(samples), " requests a GiB; by blocks, as a cache fetches: ", rate_text(blocks.bytes_per_s()),
      ", ", requests(blocks), " requests a GiB");
  const double gain = samples.bytes_per_s() > 0 ? blocks.bytes_per_s() / samples.bytes_per_s() : 0;
  if (gain < 1.5) return made;
  made.how = grade::lower;
  made.advice = absl::StrFormat(
      "blocks come %.1f times as fast: give a cache with room for the set (--cache DIR --cache-bytes SIZE), and "
      "--shuffle-blocks 16, whose first batches want the blocks of 16 shards and not of all",
      gain);
  return made;
}

}  // namespace

std::vector<finding> check_store(const io::store_facts& store) {
  finding made{.concern = str_cat("object ", one_line(store.address))};
  if (!store.server.empty()) made.found = str_cat("at ", store.server);
  if (!store.keys_from.empty())
    str_append(made.found, ", region ", store.region, ", keys from: ", one_line(store.keys_from));
  const std::string before = made.found.empty() ? "" : str_cat(made.found, "; ");
  if (!store.failure.empty()) {
    made.how = grade::failing;
    made.found = before + one_line(store.failure);
    if (store.failure_kind == errc::permission)
      made.advice =
          "these keys may not read it: check the bucket's policy, or give others (AWS_PROFILE); --anonymous reads "
          "without";
    if (store.failure_kind == errc::not_found) made.advice = "check bucket, name and endpoint";
    return {made};
  }
  made.found = str_cat(before, bytes_text(store.size_bytes));
  if (!store.is_versioned) {
    made.how = grade::lower;
    str_append(made.found, ", and the server tells no ETag and no Last-Modified of some seconds ago");
    made.advice = "neither a cache nor an index is kept of it, since another object in its place would not be noticed";
  }
  std::vector<finding> all = {made};
  if (!store.latencies_s.empty()) all.push_back(check_latency(store));
  if (store.by_blocks.empty()) return all;
  all.push_back(check_rates(store));
  if (store.by_samples.fetches > 0) all.push_back(check_order(store));
  str_append(all.back().found, "; ", bytes_text(store.bytes), " were read for all this");
  return all;
}

finding check_no_gpu(const machine_facts& facts) {
  finding made{.concern = "GPU", .found = "none on the PCI bus: batches stay on the host"};
  if (facts.gpus_on_the_bus == 0) return made;
  made.how = grade::lower;
  made.found = str_cat(counted(facts.gpus_on_the_bus, "NVIDIA device", "NVIDIA devices"),
                       " on the PCI bus, and batches stay on the host: ", one_line(facts.why_no_gpu));
  made.advice =
      facts.built_with_cuda
          ? "install NVIDIA's driver, or let the container have the GPU (docker's `--gpus all`); nvidia-smi tells"
          : "build leat where nvcc is, with -DLEAT_CUDA=ON";
  return made;
}

double link_bytes_per_s(double gt_s, int lanes) noexcept {
  // 8b/10b up to 5 GT/s, 128b/130b above. Packets' headers take about 8 % more.
  const double coding = gt_s > 5.5 ? 128.0 / 130.0 : 0.8;
  return gt_s * 1e9 * lanes / 8 * coding * 0.92;
}

finding check_gpu(const machine_facts& facts, const gpu_facts& gpu) {
  finding made{.concern = str_cat("cuda:", gpu.index), .found = gpu.name};
  if (gpu.memory_bytes != 0) {
    str_append(made.found, ", ", bytes_text(gpu.memory_free_bytes), " of ", bytes_text(gpu.memory_bytes), " free");
  }
  if (!gpu.driver.empty()) str_append(made.found, ", driver ", gpu.driver);
  if (gpu.link_lanes != 0) {
    str_append(made.found, absl::StrFormat(", PCIe %.3g GT/s x%d", gpu.link_gt_s, gpu.link_lanes));
  }
  if (gpu.numa_node >= 0 && facts.numa_nodes.size() > 1) str_append(made.found, ", NUMA node ", gpu.numa_node);
  if (gpu.copy_bytes_per_s <= 0) {
    made.how = grade::failing;
    str_append(made.found, "; copying to it failed: ", one_line(gpu.why));
    made.advice = "batches will not get there; `nvidia-smi` says in which state it is";
    return made;
  }
  str_append(made.found, "; ", rate_text(gpu.copy_bytes_per_s),
             gpu.pinned ? " from pinned memory" : " from pageable memory");
  if (!gpu.pinned) {
    made.how = grade::lower;
    made.advice = str_cat("memory cannot be pinned: ", one_line(gpu.why));
  } else if (gpu.driver_cuda != 0 && gpu.driver_cuda < gpu.runtime_cuda / 1000 * 1000) {
    made.how = grade::failing;
    made.advice = absl::StrFormat("the driver knows CUDA %d.%d and this build is of %d.%d: install a newer driver",
                                  gpu.driver_cuda / 1000, gpu.driver_cuda % 1000 / 10, gpu.runtime_cuda / 1000,
                                  gpu.runtime_cuda % 1000 / 10);
  } else if (gpu.link_lanes != 0 && gpu.link_lanes < gpu.link_lanes_max) {
    made.how = grade::lower;
    made.advice = absl::StrFormat("it has %d of %d PCIe lanes: another slot, or its riser, would give the rest",
                                  gpu.link_lanes, gpu.link_lanes_max);
  } else if (const double most = link_bytes_per_s(std::max(gpu.link_gt_s, gpu.link_gt_s_max), gpu.link_lanes);
             gpu.copy_bytes_per_s < 0.7 * most) {
    made.how = grade::lower;
    made.advice = str_cat("its link carries ", rate_text(most),
                          gpu.numa_node >= 0 && facts.numa_nodes.size() > 1
                              ? ": is this process on the GPU's NUMA node?"
                              : ": is somebody else copying, or the link shared or throttled?");
  }
  return made;
}

finding check_unusable_gpu(const machine_facts& facts, const gpu_failure& gpu) {
  finding made{.concern = str_cat("cuda:", gpu.index), .how = grade::lower};
  made.found = str_cat("it cannot be used, and batches for it stay on the host: ", one_line(gpu.why));
  made.advice = "`nvidia-smi` says in which state it is and who has it";
  if (!facts.gpus.empty()) {
    str_append(made.advice, "; until then `--device cuda:", facts.gpus.front().index, "` is there");
  }
  return made;
}

finding check_connections(const machine_facts& facts) {
  // 8 where it is not set; from 1 to 32, "CUDA Environment Variables" of the CUDA programming guide.
  finding made{.concern = "GPU queues", .found = str_cat("CUDA_DEVICE_MAX_CONNECTIONS=", facts.cuda_connections)};
  if (facts.cuda_connections != "1") return made;
  made.how = grade::lower;
  made.advice =
      "all streams share one queue, and a step may wait until a batch is copied: unset it, or set 8, unless the "
      "trainer asks for 1";
  return made;
}

std::vector<finding> examine(const machine_facts& facts) {
  std::vector<finding> all = {check_kernel(facts), check_io_uring(facts),   check_locked_memory(facts),
                              check_files(facts),  check_huge_pages(facts), check_memory(facts),
                              check_cores(facts),  check_numa(facts)};
  if (facts.photo_packs_recoded) {
    all.push_back(
        {.concern = "photo packs",
         .how = grade::lower,
         .found = "coded again for libjpeg-turbo, row by row: slower than JPEGs",
         .advice =
             "the libjpeg-turbo that is loaded is none whose inner structure leat knows (2 and 3, jpegint.h beside "
             "jpeglib.h): build and run with the same one of them"});
  }
  all.push_back({.concern = "static probes",
                 .found = facts.built_with_probes ? "in: bpftrace -l 'usdt:*:leat:*' -p PID lists them"
                                                  : "left out: leat was built without <sys/sdt.h>"});
  for (const path_facts& each : facts.paths) all.push_back(check_path(each));
  for (const io::store_facts& each : facts.stores) {
    for (finding& made : check_store(each)) all.push_back(std::move(made));
  }
  if (facts.gpus.empty() && facts.gpus_unusable.empty()) all.push_back(check_no_gpu(facts));
  for (const gpu_facts& each : facts.gpus) all.push_back(check_gpu(facts, each));
  if (!facts.gpus.empty() && !facts.cuda_connections.empty()) all.push_back(check_connections(facts));
  for (const gpu_failure& each : facts.gpus_unusable) all.push_back(check_unusable_gpu(facts, each));
  return all;
}

}  // namespace leat::tools
