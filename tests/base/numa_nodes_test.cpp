// NUMA nodes, on trees of sysfs that are made up.
#include "base/numa_nodes.hpp"

#include "base/core_binding.hpp"
#include "base/text.hpp"
#include "tests/support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class made_sysfs {
 public:
  [[nodiscard]] std::string root() const { return directory_.path().string(); }
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = directory_.path() / "sys" / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void link(const std::string& path, const std::string& target) const {
    const fs::path link = directory_.path() / "sys" / path;
    fs::create_directories(link.parent_path());
    fs::create_directory_symlink(directory_.path() / "sys" / target, link);
  }
  /// The block device that `file` lies on.
  void link_drive_of(const std::string& file, const std::string& target) const {
    struct stat found{};
    ASSERT_EQ(::stat(file.c_str(), &found), 0);
    const std::string link = str_cat("dev/block/", major(found.st_dev), ":", minor(found.st_dev));
    fs::remove(directory_.path() / "sys" / link);
    this->link(link, target);
  }

 private:
  temporary_directory directory_;
};

using numbers = std::vector<std::uint32_t>;

TEST(numa_nodes, reads_lists_as_the_kernel_writes_them) {
  EXPECT_EQ(parse_number_list("0-3,8\n"), (numbers{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_number_list("7"), (numbers{7}));
  EXPECT_EQ(parse_number_list("0,2,4-5"), (numbers{0, 2, 4, 5}));
  EXPECT_EQ(parse_number_list("\n"), numbers()) << "a node without cores";
  for (const char* no_list : {"a", "1-", "-1", "3-1", "1,", ",1", "1,,2", "1-2-3", "0-4294967295", "99999999999"}) {
    EXPECT_EQ(parse_number_list(no_list), std::nullopt) << no_list;
  }
}

TEST(numa_nodes, have_those_of_their_cores_that_the_process_may_use) {
  const made_sysfs made;
  EXPECT_TRUE(find_numa_nodes(made.root(), {0, 1}).empty()) << "where the kernel lists none";
  made.write("devices/system/node/node10/cpulist", "8-9\n");
  made.write("devices/system/node/node0/cpulist", "0-3,12-15\n");
  made.write("devices/system/node/node2/cpulist", "4-7\n");
  made.write("devices/system/node/node3/cpulist", "\n");
  made.write("devices/system/node/online", "0,2-3,10\n");
  made.write("devices/system/node/nodes/cpulist", "0\n");
  EXPECT_THAT(find_numa_nodes(made.root(), {2, 3, 8, 12}),
              ElementsAre(node_cores{0, {2, 3, 12}}, node_cores{2, {}}, node_cores{3, {}}, node_cores{10, {8}}));
}

TEST(numa_nodes, of_this_machine_have_all_cores_of_this_process) {
  const std::vector<node_cores> nodes = find_numa_nodes();
  if (nodes.empty()) GTEST_SKIP() << "this kernel lists no nodes";
  std::size_t cores = 0;
  for (const node_cores& each : nodes) cores += each.cores.size();
  EXPECT_EQ(cores, usable_cores());
}

TEST(numa_nodes, of_a_pci_device_is_its_own_or_that_of_the_bridge_above_it) {
  const made_sysfs made;
  made.write("devices/pci0000:16/0000:16:01.0/0000:17:00.0/numa_node", "1\n");
  made.link("bus/pci/devices/0000:17:00.0", "devices/pci0000:16/0000:16:01.0/0000:17:00.0");
  made.write("devices/pci0000:40/0000:40:01.0/numa_node", "2\n");
  made.write("devices/pci0000:40/0000:40:01.0/0000:4a:00.0/numa_node", "-1\n");
  made.link("bus/pci/devices/0000:4a:00.0", "devices/pci0000:40/0000:40:01.0/0000:4a:00.0");
  made.write("devices/pci0000:00/0000:00:04.0/numa_node", "-1\n");
  made.link("bus/pci/devices/0000:00:04.0", "devices/pci0000:00/0000:00:04.0");
  EXPECT_EQ(node_of_pci_device("0000:17:00.0", made.root()), 1U);
  EXPECT_EQ(node_of_pci_device("0000:4A:00.0", made.root()), 2U) << "as CUDA writes it";
  EXPECT_EQ(node_of_pci_device("0000:00:04.0", made.root()), std::nullopt);
  EXPECT_EQ(node_of_pci_device("0000:99:00.0", made.root()), std::nullopt);
  EXPECT_EQ(node_of_pci_device("", made.root()), std::nullopt);
}

TEST(numa_nodes, have_so_many_devices_of_a_kind) {
  const made_sysfs made;
  const auto add = [&](const std::string& address, const char* vendor, const char* kind, const char* node) {
    for (const auto& [name, text] :
         {std::pair("vendor", vendor), std::pair("class", kind), std::pair("numa_node", node)})
      made.write(str_cat("devices/pci0000:00/", address, "/", name), text);
    made.link(str_cat("bus/pci/devices/", address), str_cat("devices/pci0000:00/", address));
  };
  add("0000:17:00.0", "0x10de", "0x030200", "1");
  add("0000:2a:00.0", "0x10de", "0x030200", "1");
  add("0000:3b:00.0", "0x10de", "0x030200", "0");
  add("0000:18:00.0", "0x10de", "0x068000", "1");  // a switch
  add("0000:19:00.0", "0x8086", "0x030200", "1");
  add("0000:5a:00.0", "0x10de", "0x030200", "-1");
  EXPECT_EQ(devices_beside("0000:2A:00.0", made.root()), 2U);
  EXPECT_EQ(devices_beside("0000:3b:00.0", made.root()), 1U);
  EXPECT_EQ(devices_beside("0000:5a:00.0", made.root()), 0U) << "its node is not known";
  EXPECT_EQ(devices_beside("", made.root()), 0U);
}

TEST(numa_nodes, of_a_file_is_that_of_its_drive_through_partitions_mappings_and_raid) {
  const made_sysfs made;
  const temporary_directory here;
  const std::string file = here.path().string();
  const auto node = [&] { return node_of_file(file, made.root()); };
  EXPECT_EQ(node(), std::nullopt) << "a file system without a block device";
  EXPECT_EQ(node_of_file(file + "/none", made.root()), std::nullopt);

  const std::string a = "devices/pci0000:00/0000:00:04.0";
  const std::string b = "devices/pci0000:80/0000:80:04.0";
  made.write(a + "/numa_node", "0\n");
  made.write(b + "/numa_node", "1\n");
  made.write(a + "/nvme/nvme0/nvme0n1/nvme0n1p2/partition", "2\n");
  made.write(b + "/nvme/nvme1/nvme1n1/size", "9\n");
  made.link_drive_of(file, a + "/nvme/nvme0/nvme0n1/nvme0n1p2");
  EXPECT_EQ(node(), 0U);
  made.link_drive_of(file, b + "/nvme/nvme1/nvme1n1");
  EXPECT_EQ(node(), 1U);

  // A partition of a RAID of two mappings, both at node 1.
  for (const char* mapping : {"dm-0", "dm-1"}) {
    made.link(str_cat("devices/virtual/block/", mapping, "/slaves/nvme1n1"), b + "/nvme/nvme1/nvme1n1");
    made.link(str_cat("devices/virtual/block/md0/slaves/", mapping), str_cat("devices/virtual/block/", mapping));
  }
  made.write("devices/virtual/block/md0/md0p1/partition", "1\n");
  made.link_drive_of(file, "devices/virtual/block/md0/md0p1");
  EXPECT_EQ(node(), 1U);
  made.link("devices/virtual/block/md0/slaves/nvme0n1", a + "/nvme/nvme0/nvme0n1");
  EXPECT_EQ(node(), std::nullopt) << "drives of both nodes";

  // An NVMe drive with several paths.
  made.write("devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1/size", "9\n");
  made.link("devices/virtual/nvme-subsystem/nvme-subsys1/nvme1", b + "/nvme/nvme1");
  made.link_drive_of(file, "devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1");
  EXPECT_EQ(node(), 1U);
}

TEST(core_binding, has_a_thread_run_on_its_cores_alone) {
  const numbers usable = usable_core_numbers();
  ASSERT_FALSE(usable.empty());
  core_binding one({usable.back()});
  numbers bound;
  std::thread([&] {
    one.bind_this_thread();
    bound = usable_core_numbers();
  }).join();
  EXPECT_EQ(bound, numbers{usable.back()});
  EXPECT_EQ(one.failure(), 0);
  EXPECT_EQ(usable_core_numbers(), usable) << "of the thread that made it";
}

TEST(core_binding, to_cores_that_are_not_there_leaves_the_thread_as_it_is) {
  core_binding none({1023});
  if (usable_core_numbers().back() >= 1023) GTEST_SKIP() << "this machine has them";
  numbers bound;
  std::thread([&] {
    none.bind_this_thread();
    bound = usable_core_numbers();
  }).join();
  EXPECT_EQ(bound, usable_core_numbers());
  EXPECT_EQ(none.failure(), EINVAL);
}

}  // namespace
}  // namespace leat::testing
