#include "tools/doctor_probe.hpp"

#include "base/cores_quota.hpp"
#include "base/memory_available.hpp"
#include "base/numa_nodes.hpp"
#include "base/text.hpp"
#include "base/usable_cores.hpp"
#include "io/arena/arena.hpp"
#include "io/files/file_status.hpp"
#include "io/files/read_error.hpp"
#include "stages/device/open_device.hpp"
#include "stages/observe/probes.hpp"
#include "stages/pixels/photo_pack_layout.hpp"

#include <leat/error.hpp>
#include <leat/reader.hpp>

#include <boost/asio/use_future.hpp>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

namespace leat::tools {
namespace {

namespace fs = std::filesystem;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// The first number of a file, as "16.0 GT/s PCIe"; 0 where there is none.
double first_number(const std::string& path) { return std::strtod(first_line(path).c_str(), nullptr); }

resource_limit limit_of(__rlimit_resource which) {
  rlimit found{};
  if (::getrlimit(which, &found) != 0) return {};
  const auto value = [](rlim_t limit) { return limit == RLIM_INFINITY ? resource_limit::unlimited : limit; };
  return {value(found.rlim_cur), value(found.rlim_max)};
}

// CAP_IPC_LOCK among the effective capabilities, capabilities(7): what the kernel asks before it charges RLIMIT_MEMLOCK.
bool may_lock_all() {
  constexpr unsigned cap_ipc_lock = 14;
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> cap_ipc_lock & 1U) != 0;
  }
  return false;
}

// "always [madvise] never" is madvise.
std::string chosen(const std::string& line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']', open);
  return close == std::string::npos ? std::string() : line.substr(open + 1, close - open - 1);
}

/// The first file there that has bytes; looked for in the order of the directory, and not for long.
std::string some_file(const std::string& path) {
  constexpr int entries_max = 2000;
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return fs::file_size(path, failed) != 0 ? path : std::string();
  int seen = 0;
  for (fs::recursive_directory_iterator each(path, fs::directory_options::skip_permission_denied, failed), end;
       !failed && each != end && ++seen < entries_max; each.increment(failed)) {
    std::error_code unknown;
    if (each->is_regular_file(unknown) && each->file_size(unknown) != 0 && !unknown &&
        ::access(each->path().c_str(), R_OK) == 0) {
      return each->path().string();
    }
  }
  return {};
}

/// As a loader reads.
reader_report read_some(const std::string& path) {
  constexpr std::size_t most = std::size_t{64} << 10;
  reader disk(io::arena::piece_bytes);
  const reader::file file = disk.open(path, asio::use_future).get();
  const std::size_t bytes = std::min<std::uint64_t>(file.size_bytes, most);
  lease memory = disk.lease(reader::lease_bytes(0, bytes), asio::use_future).get();
  static_cast<void>(disk.read(file, 0, bytes, memory, asio::use_future).get());
  return disk.report();
}

void look_at_gpus(machine_facts& facts) {
  const stages::device_list found = stages::list_devices();
  facts.built_with_cuda = found.built_with_cuda;
  if (const char* const connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")) facts.cuda_connections = connections;
  facts.why_no_gpu = found.why_not;
  for (const stages::unusable_device& each : found.unusable) {
    facts.gpus_unusable.push_back({.index = each.which.index, .why = each.why});
  }
  for (const auto& calls : found.devices) {
    const stages::device_facts of_gpu = calls->facts();
    gpu_facts gpu;
    gpu.index = calls->where().index;
    gpu.name = calls->name();
    gpu.driver = find_driver_version();
    gpu.driver_cuda = of_gpu.driver_cuda;
    gpu.runtime_cuda = of_gpu.runtime_cuda;
    gpu.capability = of_gpu.capability;
    gpu.memory_bytes = of_gpu.memory_bytes;
    gpu.memory_free_bytes = of_gpu.memory_free_bytes;
    gpu.pci_address = of_gpu.pci_address;
    measure_copies(*calls, gpu);
    look_at_link(gpu);  // after the copies: an idle link is slowed down to save power
    facts.gpus.push_back(std::move(gpu));
  }
}

}  // namespace

std::uint32_t count_gpus_on_the_bus(const std::string& root) {
  std::uint32_t gpus = 0;
  std::error_code failed;
  for (const auto& each : fs::directory_iterator(root + "/sys/bus/pci/devices", failed)) {
    // Class 0x03....: display controllers, of which 0x0302 has no display.
    if (first_line(each.path() / "vendor") == "0x10de" && first_line(each.path() / "class").starts_with("0x03")) ++gpus;
  }
  return gpus;
}

std::string find_driver_version(const std::string& root) {
  std::istringstream words(first_line(root + "/proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    unsigned major = 0;
    unsigned minor = 0;
    if (std::sscanf(word.c_str(), "%u.%u", &major, &minor) == 2) return word;
  }
  return {};
}

void look_at_link(gpu_facts& gpu, const std::string& root) {
  std::string address = gpu.pci_address;  // sysfs writes it in lower case
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const std::string device = root + "/sys/bus/pci/devices/" + address;
  gpu.link_gt_s = first_number(device + "/current_link_speed");
  gpu.link_gt_s_max = first_number(device + "/max_link_speed");
  gpu.link_lanes = static_cast<int>(first_number(device + "/current_link_width"));
  gpu.link_lanes_max = static_cast<int>(first_number(device + "/max_link_width"));
  const std::optional<std::uint32_t> node = node_of_pci_device(gpu.pci_address, root);
  gpu.numa_node = node ? static_cast<int>(*node) : -1;
}

path_facts look_at_path(const std::string& path) {
  path_facts found{.path = path};
  const auto failed = [&found](const error& problem) {
    found.failure = problem.what();
    found.failure_kind = problem.code();
    return found;
  };
  io::file_status status{};
  if (const int failure = io::look_at(path.c_str(), status); failure != 0)
    return failed(io::explain_open(failure, path));
  found.file_system = io::file_system_of(status.device_major, status.device_minor);
  // What reading does there nobody knows.
  if (io::is_made_up(found.file_system)) return found;
  if (::access(path.c_str(), status.is_directory() ? R_OK | X_OK : R_OK) != 0) {
    return failed(io::explain_open(errno, path));
  }
  found.numa_node = node_of_file(path);
  found.tried_on = some_file(path);
  if (found.tried_on.empty()) return found;
  // Of a file: a directory has no alignment.
  if (io::look_at(found.tried_on.c_str(), status) == 0) {
    found.alignment_known = (status.mask & io::file_status::mask_direct) != 0;
    found.direct_memory_alignment = found.alignment_known ? status.direct_memory_alignment : 0;
    found.direct_offset_alignment = found.alignment_known ? status.direct_offset_alignment : 0;
  }
  try {
    found.direct = read_some(found.tried_on).direct;
  } catch (const error& problem) {
    return failed(problem);
  }
  return found;
}

void measure_copies(stages::device_calls& device, gpu_facts& gpu, double seconds) {
  // Larger than any processor's share of its caches, and what a large batch has.
  constexpr std::size_t bytes = std::size_t{64} << 20;
  constexpr int copies = 4;
  const auto memory = std::make_shared<io::arena>(io::arena_options{.bytes_max = bytes});
  const io::arena::region region = memory->reserve(bytes);
  memory->populate(region, region.bytes);

  std::byte* block = nullptr;
  stream side;
  stages::device_event passed = stages::device_event::none;
  stages::device_status status = stages::device_ok;
  // The first that fails is told; what was made until then is undone.
  const auto good = [&](stages::device_status next, const char* call) {
    status = next;
    if (status != stages::device_ok) gpu.why = str_cat(call, ": ", device.describe(status));
    return status == stages::device_ok;
  };
  const stages::device_status pinning = device.pin(region.bytes);
  gpu.pinned = pinning == stages::device_ok;
  if (!gpu.pinned) gpu.why = str_cat("cudaHostRegister: ", device.describe_pinning(pinning));
  if (good(device.make_stream(side), "cudaStreamCreateWithPriority") &&
      good(device.take_memory(bytes, block, side), "taking device memory") &&
      good(device.make_event(passed), "cudaEventCreateWithFlags")) {
    using clock = std::chrono::steady_clock;
    const clock::time_point begin = clock::now();
    double best = 0;
    bool going = true;
    while (going) {
      const clock::time_point start = clock::now();
      for (int i = 0; i < copies && going; ++i) {
        going = good(device.copy(block, region.bytes.data(), bytes, side), "cudaMemcpyAsync");
      }
      going = going && good(device.record(passed, side), "cudaEventRecord") &&
              good(device.synchronize(passed), "cudaEventSynchronize");
      const std::chrono::duration<double> took = clock::now() - start;
      if (going) best = std::max(best, copies * static_cast<double>(bytes) / std::max(took.count(), 1e-9));
      going = going && std::chrono::duration<double>(clock::now() - begin).count() < seconds;
    }
    gpu.copy_bytes_per_s = status == stages::device_ok ? best : 0;
    static_cast<void>(device.finish(side));
  }
  if (passed != stages::device_event::none) static_cast<void>(device.free_event(passed));
  if (block != nullptr) static_cast<void>(device.free_memory(block, side));
  if (side != stream()) static_cast<void>(device.free_stream(side));
  if (gpu.pinned) static_cast<void>(device.unpin(region.bytes));
}

machine_facts look_at_machine(const std::vector<std::string>& paths) {
  machine_facts facts;
  utsname system{};
  if (::uname(&system) == 0) {
    facts.kernel = system.release;
    facts.architecture = system.machine;
  }
  try {
    facts.reader = read_some("/proc/self/exe");
  } catch (const error& problem) {
    facts.reader_failure = problem.what();
  }
  facts.locked_bytes = limit_of(RLIMIT_MEMLOCK);
  facts.may_lock_all = may_lock_all();
  facts.files = limit_of(RLIMIT_NOFILE);
  facts.huge_pages_setting = chosen(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  const memory_available memory = find_memory_available();
  facts.memory_available_bytes = memory.bytes;
  facts.memory_said_by = memory.said_by;
  facts.memory_bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  facts.cores_usable = usable_cores();
  facts.built_with_probes = stages::probe::are_in;
  facts.photo_packs_recoded = pixels::photo_packs_are_recoded();
  facts.cores_online = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.cores_quota = find_cores_quota();
  facts.numa_nodes = find_numa_nodes();
  facts.gpus_on_the_bus = count_gpus_on_the_bus();
  for (const std::string& path : paths) facts.paths.push_back(look_at_path(path));
  look_at_gpus(facts);
  return facts;
}

}  // namespace leat::tools
