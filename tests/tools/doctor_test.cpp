// leat doctor: its advice from machines that are made up, its probes on files that are, and the command on this one.
#include "io/files/file_status.hpp"
#include "stages/observe/probes.hpp"
#include "stages/run/node_placement.hpp"
#include "tests/device/watched_calls.hpp"
#include "tests/support/deny_io_uring.hpp"
#include "tests/support/photos.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/command.hpp"
#include "tools/doctor_advice.hpp"
#include "tools/doctor_json.hpp"
#include "tools/doctor_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tools::finding;
using tools::gpu_facts;
using tools::machine_facts;
using tools::path_facts;
using tools::resource_limit;

using grade = finding::grade;

/// A machine that wants for nothing.
machine_facts good_machine() {
  machine_facts made;
  made.kernel = "6.12.3-amd64";
  made.architecture = "x86_64";
  made.reader = {.backend = {"io_uring", "SINGLE_ISSUER|DEFER_TASKRUN"},
                 .registered_buffers = {"on", ""},
                 .direct = {"on", ""},
                 .huge_pages = {"on", "4 MiB"}};
  made.locked_bytes = {resource_limit::unlimited, resource_limit::unlimited};
  made.files = {65536, 1048576};
  made.huge_pages_setting = "madvise";
  made.memory_bytes = std::uint64_t{256} << 30;
  made.memory_available_bytes = std::uint64_t{200} << 30;
  made.memory_said_by = "MemAvailable";
  made.cores_usable = made.cores_online = 32;
  made.built_with_cuda = true;
  gpu_facts gpu;
  gpu.name = "NVIDIA H200";
  gpu.driver = "580.82.07";
  gpu.driver_cuda = gpu.runtime_cuda = 13000;
  gpu.memory_bytes = std::uint64_t{139} << 30;
  gpu.memory_free_bytes = std::uint64_t{138} << 30;
  gpu.link_gt_s = gpu.link_gt_s_max = 32;
  gpu.link_lanes = gpu.link_lanes_max = 16;
  gpu.numa_node = 0;
  gpu.copy_bytes_per_s = 55.4e9;
  gpu.pinned = true;
  made.gpus = {gpu};
  made.paths = {{.path = "/data",
                 .failure = "",
                 .file_system = "ext4",
                 .alignment_known = true,
                 .direct_memory_alignment = 4,
                 .direct_offset_alignment = 512,
                 .tried_on = "/data/a.tar",
                 .direct = {"on", ""}}};
  return made;
}

void expect_advice(const finding& found, grade how, const std::string& part) {
  EXPECT_EQ(found.how, how) << found.concern << ": " << found.found;
  EXPECT_THAT(found.advice, HasSubstr(part)) << found.concern;
}

TEST(doctor_advice, says_where_photo_packs_are_no_faster_than_jpegs) {
  machine_facts facts = good_machine();
  facts.photo_packs_recoded = true;
  const std::vector<finding> all = tools::examine(facts);
  const auto found =
      std::find_if(all.begin(), all.end(), [](const finding& each) { return each.concern == "photo packs"; });
  ASSERT_NE(found, all.end());
  expect_advice(*found, grade::lower, "libjpeg-turbo");
}

TEST(doctor_advice, has_none_for_a_machine_that_wants_for_nothing) {
  const std::vector<finding> all = tools::examine(good_machine());
  EXPECT_EQ(all.size(), 11U);
  for (const finding& each : all) {
    EXPECT_EQ(each.how, grade::best) << each.concern;
    EXPECT_EQ(each.advice, "") << each.concern;
    EXPECT_NE(each.found, "") << each.concern;
  }
}

TEST(doctor_advice, names_the_kernel_that_would_do_better) {
  machine_facts facts = good_machine();
  facts.kernel = "5.15.0-91-generic";
  expect_advice(tools::check_kernel(facts), grade::lower, "DEFER_TASKRUN");
  facts.kernel = "5.4.0";
  expect_advice(tools::check_kernel(facts), grade::lower, "5.11");
  for (const char* fine : {"6.1.0", "6.18.44", "7.0", "custom"}) {
    facts.kernel = fine;
    EXPECT_EQ(tools::check_kernel(facts).advice, "") << fine;
  }
}

TEST(doctor_advice, hands_on_what_the_reader_said_of_io_uring) {
  machine_facts facts = good_machine();
  facts.reader.registered_buffers = {"off", "RLIMIT_MEMLOCK is 8 MiB"};
  expect_advice(tools::check_io_uring(facts), grade::lower, "RLIMIT_MEMLOCK is 8 MiB");
  facts.reader.backend = {"preadv", "io_uring_setup: EPERM; a container's seccomp profile forbids it"};
  expect_advice(tools::check_io_uring(facts), grade::lower, "seccomp");
  EXPECT_THAT(tools::check_io_uring(facts).found, HasSubstr("preadv"));
  facts.reader_failure = "no file descriptor left";
  expect_advice(tools::check_io_uring(facts), grade::failing, "preadv");
  EXPECT_THAT(tools::check_io_uring(facts).found, HasSubstr("no file descriptor left"));
}

TEST(doctor_advice, says_who_can_raise_a_limit) {
  machine_facts facts = good_machine();
  facts.locked_bytes = {std::uint64_t{8} << 20, resource_limit::unlimited};
  expect_advice(tools::check_locked_memory(facts), grade::lower, "`ulimit -l unlimited`");
  facts.locked_bytes.hard = facts.locked_bytes.soft;
  expect_advice(tools::check_locked_memory(facts), grade::lower, "LimitMEMLOCK=infinity");
  facts.may_lock_all = true;
  EXPECT_EQ(tools::check_locked_memory(facts).how, grade::best);
  facts.files = {1024, 1048576};
  expect_advice(tools::check_files(facts), grade::lower, "`ulimit -n 65536`");
  facts.files = {1024, 4096};
  expect_advice(tools::check_files(facts), grade::lower, "`--ulimit nofile=65536`");
}

TEST(doctor_advice, says_what_stands_in_the_way_of_huge_pages) {
  machine_facts facts = good_machine();
  facts.huge_pages_setting = "never";
  facts.reader.huge_pages = {"off", "transparent huge pages are off; try `echo madvise`"};
  expect_advice(tools::check_huge_pages(facts), grade::lower, "echo madvise");
  facts.huge_pages_setting = "";
  EXPECT_EQ(tools::check_huge_pages(facts).how, grade::lower);
}

TEST(doctor_advice, asks_for_less_where_memory_is_short) {
  machine_facts facts = good_machine();
  facts.memory_available_bytes = std::uint64_t{800} << 20;
  expect_advice(tools::check_memory(facts), grade::lower, "--host-bytes-max 200MiB");
  facts.memory_available_bytes = std::uint64_t{300} << 20;
  expect_advice(tools::check_memory(facts), grade::failing, "--host-bytes-max 75MiB");
}

TEST(doctor_advice, counts_the_cores_that_may_really_be_used) {
  machine_facts facts = good_machine();
  facts.cores_quota = 4.5;
  expect_advice(tools::check_cores(facts), grade::lower, "docker --cpus");
  EXPECT_THAT(tools::check_cores(facts).found, HasSubstr("usable: 4 decode threads, as far"));
  facts.cores_quota = 0.5;
  EXPECT_THAT(tools::check_cores(facts).found, HasSubstr("usable: 1 decode thread, as far"));
  facts.cores_quota = 32;
  EXPECT_EQ(tools::check_cores(facts).how, grade::best);
  facts.cores_usable = 8;
  expect_advice(tools::check_cores(facts), grade::lower, "taskset");
}

// What stats().placement says of a loader there.
std::string placement_of(const machine_facts& facts, std::optional<std::uint32_t> of_device,
                         std::optional<std::uint32_t> of_drive) {
  const stages::node_choice chosen =
      stages::choose_node(numa::automatic, {.nodes = facts.numa_nodes, .of_device = of_device, .of_drive = of_drive});
  return (chosen.node ? "node " + std::to_string(*chosen.node) : "none") + ": " + chosen.why;
}

TEST(doctor_advice, says_of_nodes_what_a_loader_says) {
  machine_facts facts = good_machine();
  EXPECT_EQ(tools::check_numa(facts).found, "this kernel lists no NUMA nodes");
  facts.numa_nodes = {{0, {0, 1}}};
  EXPECT_EQ(tools::check_numa(facts).found, "one node");
  facts.numa_nodes = {{0, {0, 1}}, {1, {2}}};
  facts.gpus[0].numa_node = 1;
  EXPECT_EQ(tools::check_numa(facts).how, grade::best);
  EXPECT_EQ(tools::check_numa(facts).found,
            "2 nodes: 0 (2 cores), 1 (1 core); threads and memory of a loader to cuda:0 are bound to node 1: the "
            "device is there");
  facts.gpus[0].numa_node = -1;
  EXPECT_EQ(tools::check_numa(facts).how, grade::best);
  EXPECT_THAT(tools::check_numa(facts).found, HasSubstr("bound to " + placement_of(facts, {}, {})));
  facts.gpus.clear();
  EXPECT_THAT(tools::check_numa(facts).found,
              HasSubstr("of a loader are bound to none: of neither device nor drive the node is known"));
  facts.paths[0].numa_node = 0;
  EXPECT_THAT(tools::check_numa(facts).found, HasSubstr("bound to " + placement_of(facts, {}, 0)));
}

TEST(doctor_advice, says_where_a_gpu_is_out_of_reach) {
  machine_facts facts = good_machine();
  facts.numa_nodes = {{0, {0, 1}}, {1, {}}};
  facts.gpus[0].numa_node = 1;
  expect_advice(tools::check_numa(facts), grade::lower, "cuda:0: give this process some cores of node 1");
  EXPECT_THAT(tools::check_numa(facts).found, HasSubstr("1 (0 cores)"));
  EXPECT_THAT(tools::check_numa(facts).found,
              HasSubstr("bound to none: the device is at node 1, where this process may use no core"));
}

TEST(doctor_advice, knows_what_a_path_can_do) {
  path_facts path = good_machine().paths[0];
  EXPECT_THAT(tools::check_path(path).found, AllOf(HasSubstr("ext4"), HasSubstr("512"), HasSubstr("O_DIRECT works")));
  path.direct = {"off", "squashfs has no O_DIRECT"};
  expect_advice(tools::check_path(path), grade::lower, "squashfs has no O_DIRECT");
  path.file_system = "tmpfs";
  EXPECT_EQ(tools::check_path(path).advice, "") << "nothing is faster than memory";
  path.tried_on = "";
  EXPECT_THAT(tools::check_path(path).found, HasSubstr("no file to try"));
  path.failure = "Permission denied";
  path.failure_kind = errc::permission;
  expect_advice(tools::check_path(path), grade::failing, "may read");
  path.failure = "no such file";
  path.failure_kind = errc::not_found;
  expect_advice(tools::check_path(path), grade::failing, "check the path");
  path.failure = "EIO";
  path.failure_kind = errc::io;
  EXPECT_EQ(tools::check_path(path).how, grade::failing);
  EXPECT_EQ(tools::check_path(path).advice, "") << "no other user would read it either";
  path.path = "bad\nname";
  EXPECT_THAT(tools::check_path(path).concern, HasSubstr("bad\\nname"));
}

TEST(doctor_advice, sends_nobody_to_a_file_system_that_the_kernel_makes_up) {
  path_facts path = good_machine().paths[0];
  for (const char* type : {"proc", "sysfs", "devtmpfs", "cgroup2"}) {
    path.file_system = type;
    const finding found = tools::check_path(path);
    EXPECT_EQ(found.how, grade::failing) << type;
    EXPECT_THAT(found.found, AllOf(StartsWith(type), HasSubstr("no place for data")));
    EXPECT_EQ(found.advice, "") << "there is no permission that would help";
  }
  for (const char* type : {"ext4", "xfs", "tmpfs", "overlay", "nfs4", "fuse.sshfs", "9p", ""}) {
    EXPECT_FALSE(io::is_made_up(type)) << type;
  }
}

TEST(doctor_advice, tells_a_machine_without_gpus_from_one_that_hides_them) {
  machine_facts facts = good_machine();
  facts.gpus.clear();
  facts.why_no_gpu = "no driver";
  EXPECT_EQ(tools::check_no_gpu(facts).how, grade::best);
  EXPECT_THAT(tools::check_no_gpu(facts).found, HasSubstr("none on the PCI bus"));
  facts.gpus_on_the_bus = 8;
  expect_advice(tools::check_no_gpu(facts), grade::lower, "driver");
  EXPECT_THAT(tools::check_no_gpu(facts).found, AllOf(HasSubstr("8 NVIDIA devices"), HasSubstr("no driver")));
  facts.built_with_cuda = false;
  expect_advice(tools::check_no_gpu(facts), grade::lower, "LEAT_CUDA=ON");
  EXPECT_EQ(tools::examine(facts).back().concern, "GPU");
}

TEST(doctor_advice, names_each_gpu_that_cannot_be_used_beside_one_that_can) {
  machine_facts facts = good_machine();
  facts.gpus_unusable = {{1, "making a context on cuda:1: out of memory"}, {3, "all CUDA-capable devices are busy"}};
  const finding busy = tools::check_unusable_gpu(facts, facts.gpus_unusable[1]);
  EXPECT_EQ(busy.concern, "cuda:3");
  EXPECT_THAT(busy.found, HasSubstr("devices are busy"));
  expect_advice(busy, grade::lower, "`--device cuda:0` is there");
  const std::vector<finding> all = tools::examine(facts);
  ASSERT_GE(all.size(), 3U);
  EXPECT_EQ(all[all.size() - 3].concern, "cuda:0");
  EXPECT_EQ(all[all.size() - 3].how, grade::best);
  EXPECT_EQ(all[all.size() - 2].concern, "cuda:1");
  EXPECT_EQ(all[all.size() - 1].concern, "cuda:3");
  const auto told = tools::as_json(facts, all);
  EXPECT_EQ(told.at("gpus").size(), 1U);
  EXPECT_EQ(told.at("gpus_unusable").at(1).at("device"), "cuda:3");
  EXPECT_EQ(told.at("gpus_unusable").at(1).at("why"), "all CUDA-capable devices are busy");
  // None that can: what is said of each is all that there is to say.
  facts.gpus.clear();
  expect_advice(tools::check_unusable_gpu(facts, facts.gpus_unusable[0]), grade::lower, "nvidia-smi");
  EXPECT_THAT(tools::check_unusable_gpu(facts, facts.gpus_unusable[0]).advice, Not(HasSubstr("--device")));
  for (const finding& each : tools::examine(facts)) EXPECT_NE(each.concern, "GPU");
}

TEST(doctor_advice, warns_where_all_streams_share_one_hardware_queue) {
  machine_facts facts = good_machine();
  facts.cuda_connections = "1";
  expect_advice(tools::check_connections(facts), grade::lower, "one queue");
  EXPECT_THAT(tools::check_connections(facts).found, HasSubstr("CUDA_DEVICE_MAX_CONNECTIONS=1"));
  EXPECT_EQ(tools::examine(facts).back().concern, "GPU queues");
  EXPECT_EQ(tools::as_json(facts, {}).at("cuda_device_max_connections"), "1");
  facts.cuda_connections = "8";
  EXPECT_EQ(tools::check_connections(facts).how, grade::best);
  facts.cuda_connections = "1";
  facts.gpus.clear();
  EXPECT_EQ(tools::examine(facts).back().concern, "GPU") << "without a GPU nothing is in its queues";
}

TEST(doctor_advice, holds_a_gpus_rate_against_its_link) {
  machine_facts facts = good_machine();
  gpu_facts& gpu = facts.gpus[0];
  EXPECT_THAT(tools::check_gpu(facts, gpu).found, AllOf(StartsWith("NVIDIA H200"), HasSubstr("55.4 GB/s from pinned"),
                                                        HasSubstr("PCIe 32 GT/s x16"), HasSubstr("580.82.07")));
  gpu.link_gt_s = 2.5;  // an idle link is slow; it was fast while it was measured
  EXPECT_EQ(tools::check_gpu(facts, gpu).how, grade::best);
  gpu.copy_bytes_per_s = 20e9;
  expect_advice(tools::check_gpu(facts, gpu), grade::lower, "58.0 GB/s");
  gpu.link_lanes = 8;
  expect_advice(tools::check_gpu(facts, gpu), grade::lower, "8 of 16 PCIe lanes");
  gpu.pinned = false;
  gpu.why = "cudaHostRegister: memlock";
  expect_advice(tools::check_gpu(facts, gpu), grade::lower, "cudaHostRegister: memlock");
  gpu.pinned = true;
  gpu.driver_cuda = 12040;
  expect_advice(tools::check_gpu(facts, gpu), grade::failing, "CUDA 12.4 and this build is of 13.0");
  gpu.copy_bytes_per_s = 0;
  gpu.why = "cudaMalloc: out of memory";
  expect_advice(tools::check_gpu(facts, gpu), grade::failing, "nvidia-smi");
}

TEST(doctor_advice, knows_what_pcie_carries) {
  // nvbandwidth measures 55.4 GB/s on 32 GT/s x16, 26 on 16 x16 and 12.8 on 8 x16.
  EXPECT_NEAR(tools::link_bytes_per_s(32, 16), 57e9, 2e9);
  EXPECT_NEAR(tools::link_bytes_per_s(16, 16), 28.5e9, 1e9);
  EXPECT_NEAR(tools::link_bytes_per_s(8, 16), 14.3e9, 0.5e9);
  EXPECT_EQ(tools::link_bytes_per_s(0, 0), 0);
}

// --- probes, on files that are made up -----------------------------------------------------------------------------------

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(doctor_probe, counts_gpus_and_reads_driver_and_link) {
  const temporary_directory root;
  const std::filesystem::path top = root.path();
  EXPECT_EQ(tools::count_gpus_on_the_bus(top.string()), 0U);
  const std::filesystem::path bus = top / "sys/bus/pci/devices";
  const auto add = [&](const char* address, const char* vendor, const char* kind) {
    write(bus / address / "vendor", vendor);
    write(bus / address / "class", kind);
  };
  add("0000:17:00.0", "0x10de\n", "0x030200\n");
  add("0000:18:00.0", "0x10de\n", "0x068000\n");  // an NVSwitch
  add("0000:00:02.0", "0x8086\n", "0x030000\n");  // somebody else's
  EXPECT_EQ(tools::count_gpus_on_the_bus(top.string()), 1U);

  EXPECT_EQ(tools::find_driver_version(top.string()), "");
  write(top / "proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (dvs-builder@U22)\n");
  EXPECT_EQ(tools::find_driver_version(top.string()), "580.82.07");

  gpu_facts gpu;
  gpu.pci_address = "0000:17:00.0";
  tools::look_at_link(gpu, top.string());
  EXPECT_EQ(gpu.link_lanes, 0) << "not said";
  EXPECT_EQ(gpu.numa_node, -1);
  write(bus / "0000:17:00.0/current_link_speed", "16.0 GT/s PCIe\n");
  write(bus / "0000:17:00.0/max_link_speed", "32.0 GT/s PCIe\n");
  write(bus / "0000:17:00.0/current_link_width", "8\n");
  write(bus / "0000:17:00.0/max_link_width", "16\n");
  write(bus / "0000:17:00.0/numa_node", "1\n");
  tools::look_at_link(gpu, top.string());
  EXPECT_EQ(gpu.link_gt_s, 16);
  EXPECT_EQ(gpu.link_gt_s_max, 32);
  EXPECT_EQ(gpu.link_lanes, 8);
  EXPECT_EQ(gpu.link_lanes_max, 16);
  EXPECT_EQ(gpu.numa_node, 1);
}

TEST(doctor_probe, looks_at_paths_as_a_reader_would) {
  const photo_folder photos;
  const path_facts folder = tools::look_at_path(photos.path().string());
  EXPECT_EQ(folder.failure, "");
  EXPECT_NE(folder.file_system, "");
  EXPECT_THAT(folder.tried_on, StartsWith(photos.path().string()));
  EXPECT_NE(folder.direct.use, "");
  const path_facts file = tools::look_at_path(photos.files().front().string());
  EXPECT_EQ(file.tried_on, photos.files().front().string());
  EXPECT_EQ(file.direct.use, folder.direct.use);

  const temporary_directory empty;
  write(empty.path() / "sub/nothing", "");
  EXPECT_EQ(tools::look_at_path(empty.path().string()).tried_on, "");
  const path_facts missing = tools::look_at_path((empty.path() / "missing").string());
  EXPECT_THAT(missing.failure, HasSubstr("no such file"));
  EXPECT_EQ(missing.failure_kind, errc::not_found);
}

// Reading may do anything there: it answers, waits or switches.
TEST(doctor_probe, reads_nothing_of_a_file_system_that_the_kernel_makes_up) {
  for (const char* path : {"/proc", "/proc/self", "/proc/cpuinfo"}) {
    const path_facts found = tools::look_at_path(path);
    EXPECT_EQ(found.file_system, "proc") << path;
    EXPECT_EQ(found.failure, "") << path;
    EXPECT_EQ(found.tried_on, "") << path;
  }
}

TEST(doctor_probe, measures_copies_and_leaves_the_device_as_it_was) {
  const auto device = std::make_shared<simulated_device>();
  gpu_facts gpu;
  tools::measure_copies(*device, gpu, 0.01);
  EXPECT_GT(gpu.copy_bytes_per_s, 0);
  EXPECT_TRUE(gpu.pinned);
  EXPECT_EQ(gpu.why, "");
  const simulated_device::counts left = device->count();
  EXPECT_EQ(left.memory + left.pinned + left.streams + left.events, 0U);
  EXPECT_EQ(left.copies_pageable, 0U);
}

TEST(doctor_probe, says_which_call_failed_and_still_leaves_the_device_as_it_was) {
  for (const char* call : {"take_memory", "make_stream", "make_event", "copy", "record", "synchronize", "pin"}) {
    const auto device = std::make_shared<simulated_device>();
    watched_calls watched(device);
    watched.fail(call, 1, 999);
    gpu_facts gpu;
    tools::measure_copies(watched, gpu, 0.01);
    EXPECT_THAT(gpu.why, HasSubstr("error 999")) << call;
    if (std::string(call) == "pin") {
      EXPECT_FALSE(gpu.pinned);
      EXPECT_GT(gpu.copy_bytes_per_s, 0) << "from pageable memory";
    } else {
      EXPECT_EQ(gpu.copy_bytes_per_s, 0) << call;
    }
    const simulated_device::counts left = device->count();
    EXPECT_EQ(left.memory + left.pinned + left.streams + left.events, 0U) << call;
  }
}

TEST(doctor_probe, says_that_it_is_the_hosts_memory_which_cannot_be_pinned) {
  simulated_device device({.can_pin = false});
  gpu_facts gpu;
  tools::measure_copies(device, gpu, 0.01);
  EXPECT_EQ(gpu.why, "cudaHostRegister: no host memory to be had (cudaErrorMemoryAllocation)");
}

TEST(doctor_probe, says_that_io_uring_is_forbidden_where_it_is) {
  const auto in_a_container = [] {
    if (!deny_io_uring(EPERM)) std::_Exit(0);
    const machine_facts facts = tools::look_at_machine({});
    const finding found = tools::check_io_uring(facts);
    if (facts.reader.backend.use != "preadv" || found.how != grade::lower) std::_Exit(1);
    std::fprintf(stderr, "%s: %s\n", found.found.c_str(), found.advice.c_str());
    std::_Exit(found.advice.find("seccomp") != std::string::npos ? 0 : 2);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(in_a_container(), ::testing::ExitedWithCode(0), "");
}

TEST(doctor_advice, holds_samples_against_blocks_and_a_store_against_what_it_tells) {
  io::store_facts store{.address = "s3://bucket/a.tar",
                        .keys_from = "AWS_ACCESS_KEY_ID",
                        .region = "eu-west-1",
                        .server = "https://bucket.s3.eu-west-1.amazonaws.com",
                        .size_bytes = std::uint64_t{1} << 30,
                        .is_versioned = true,
                        .first_s = 0.09,
                        .latencies_s = {0.02, 0.03, 0.03, 0.2}};
  for (const std::uint32_t connections : {1U, 4U, 16U}) {
    store.by_blocks.push_back({.connections = connections,
                               .bytes_each = 4 << 20,
                               .fetches = 10,
                               .bytes = std::uint64_t{50'000'000} * connections,
                               .seconds = 1});
  }
  store.by_samples = {.connections = 16, .bytes_each = 102'400, .fetches = 1'000, .bytes = 102'400'000, .seconds = 1};
  std::vector<finding> all = tools::check_store(store);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_THAT(all[0].found, HasSubstr("keys from: AWS_ACCESS_KEY_ID; 1.00 GiB"));
  EXPECT_EQ(all[0].how, grade::best);
  EXPECT_THAT(all[1].found, StartsWith("median 30.0 ms, p99 200 ms of 4 small ranges"));
  EXPECT_THAT(all[2].found, StartsWith("50.0 MB/s by 1 connection, 200 MB/s by 4 connections, 800 MB/s by 16"));
  EXPECT_THAT(all[3].found, AllOf(HasSubstr("1,000 samples/s, 102 MB/s, 10,486 requests a GiB"),
                                  HasSubstr("800 MB/s, 256 requests a GiB")));
  expect_advice(all[3], grade::lower, "blocks come 7.8 times as fast");
  store.by_samples.bytes = 700'000'000;
  EXPECT_EQ(tools::check_store(store)[3].how, grade::best);
  store.latencies_s = {0.3};
  expect_advice(tools::check_store(store)[1], grade::lower, "it is far away");
  store.is_versioned = false;
  expect_advice(tools::check_store(store)[0], grade::lower, "neither a cache nor an index");
  store.failure = "403 Forbidden, AccessDenied";
  store.failure_kind = errc::permission;
  all = tools::check_store(store);
  ASSERT_EQ(all.size(), 1U);
  expect_advice(all[0], grade::failing, "these keys may not read it");
}

// --- the command ----------------------------------------------------------------------------------------------------------

TEST(doctor, says_all_of_it_in_json) {
  const photo_folder photos;
  const ended process = run({"doctor", photos.path().string(), "--json"});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  const json found = process.json();
  EXPECT_EQ(found.at("paths").size(), 1U);
  EXPECT_EQ(found.at("paths").at(0).at("path"), photos.path().string());
  EXPECT_THAT(found.at("reader").at("backend").at("use").get<std::string>(),
              ::testing::AnyOf(std::string("io_uring"), std::string("preadv")));
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur != RLIM_INFINITY) EXPECT_EQ(found.at("open_files").at("soft"), files.rlim_cur);
  EXPECT_GE(found.at("cores_usable").get<int>(), 1);
  if (found.at("gpus").empty()) EXPECT_NE(found.at("why_no_gpu"), "");
  for (const json& each : found.at("gpus_unusable")) EXPECT_NE(each.at("why"), "");
  std::vector<std::string> concerns;
  for (const json& each : found.at("findings")) {
    concerns.push_back(each.at("concern"));
    EXPECT_NE(each.at("found"), "") << each;
    if (each.at("grade") == "best") EXPECT_EQ(each.at("advice"), "") << each;
  }
  for (const char* concern : {"kernel", "io_uring", "memlock", "open files", "huge pages", "memory", "cores", "NUMA"})
    EXPECT_THAT(concerns, ::testing::Contains(concern));
}

// Of these files, or where the library is shared of what this process has of it.
std::string elf_notes() {
  std::vector<std::string> files = {std::getenv("LEAT_COMMAND")};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && line.find("libleat", path) != std::string::npos) {
      files.push_back(line.substr(path));
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::string notes;
  for (const std::string& each : files) {
    std::FILE* const pipe = ::popen(("readelf -n '" + each + "' 2>&1").c_str(), "r");
    if (pipe == nullptr) return {};
    std::array<char, 4096> part{};
    for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) != 0;) notes.append(part.data(), n);
    if (::pclose(pipe) != 0) return {};
  }
  return notes;
}

TEST(probes, are_in_the_notes_of_the_library_with_their_arguments) {
  const json found = run({"doctor", "--json"}).json();
  EXPECT_EQ(found.at("built_with_probes"), stages::probe::are_in);
  if (!stages::probe::are_in) GTEST_SKIP() << "built without <sys/sdt.h> (systemtap-sdt-dev)";
  const std::string notes = elf_notes();
  if (notes.empty()) GTEST_SKIP() << "no readelf";
  const std::map<std::string, std::ptrdiff_t> arguments = {
      {"batch_planned", 3}, {"read_submitted", 3},    {"read_completed", 4}, {"sample_decoded", 3},
      {"batch_ready", 3},   {"batch_handed_over", 3}, {"stall_begin", 1},    {"stall_end", 2}};
  std::map<std::string, std::ptrdiff_t> seen;
  std::string provider;
  std::string name;
  const auto value_of = [](const std::string& line, const std::string& key) {
    const std::size_t at = line.find(key);
    return at == std::string::npos ? std::string() : line.substr(at + key.size());
  };
  for (const std::string& line : lines_of(notes)) {
    if (std::string is = value_of(line, "Provider: "); !is.empty()) provider = std::move(is);
    if (std::string is = value_of(line, "Name: "); !is.empty()) name = std::move(is);
    const std::string given = value_of(line, "Arguments: ");
    if (provider == "leat" && !given.empty()) seen[name] = std::count(given.begin(), given.end(), '@');
  }
  EXPECT_EQ(seen, arguments);
}

TEST(doctor, says_what_it_found_and_what_would_help_to_a_person) {
  const temporary_directory empty;
  const ended process = run({"doctor", empty.path().string()});
  EXPECT_EQ(process.exit_code, 0) << process.err;
  EXPECT_THAT(process.out, AllOf(HasSubstr("io_uring"), HasSubstr("huge pages"), HasSubstr("there is no file to try"),
                                 Not(HasSubstr("\x1b["))));
}

TEST(doctor, says_of_proc_that_it_is_no_place_for_data_and_nothing_of_permission) {
  const ended process = run({"doctor", "/proc"});
  EXPECT_EQ(process.exit_code, 1);
  EXPECT_THAT(process.out, AllOf(HasSubstr("proc, which the kernel makes up: no place for data"),
                                 Not(HasSubstr("may read")), Not(HasSubstr("nothing to be had"))));
}

TEST(doctor, fails_where_leat_would) {
  const ended process = run({"doctor", "/nonexistent/data"});
  EXPECT_EQ(process.exit_code, 1);
  EXPECT_THAT(process.out, HasSubstr("no such file"));
}

}  // namespace
}  // namespace leat::testing
