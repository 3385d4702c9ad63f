// CPU quotas of control groups, on files that are made up.
#include "base/cores_quota.hpp"

#include "tests/support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leat::testing {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

TEST(cores_quota, finds_the_tightest_quota_of_a_control_group_and_its_parents) {
  const temporary_directory root;
  const std::filesystem::path top = root.path();
  EXPECT_FALSE(find_cores_quota(top.string()));
  write(top / "proc/self/cgroup", "0::/job/task\n");
  write(top / "sys/fs/cgroup/job/task/cpu.max", "max 100000\n");
  EXPECT_FALSE(find_cores_quota(top.string()));
  write(top / "sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(find_cores_quota(top.string()), 2.5);
  write(top / "sys/fs/cgroup/job/task/cpu.max", "150000 100000\n");
  EXPECT_EQ(find_cores_quota(top.string()), 1.5);
  // Version 1, in a container, where the path is the host's and only the mount's root is there; -1 is no quota.
  write(top / "proc/self/cgroup", "3:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n");
  write(top / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write(top / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(find_cores_quota(top.string()));
  write(top / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(find_cores_quota(top.string()), 3.0);
}

// docker --cpus 2.5 on a machine of 16 cores: two threads run all the time, a third is stopped with them in each period.
TEST(cores_quota, leaves_whole_cores_and_at_least_one) {
  EXPECT_EQ(cores_within(std::nullopt, 16), 16U);
  EXPECT_EQ(cores_within(2.5, 16), 2U);
  EXPECT_EQ(cores_within(0.3, 16), 1U);
  EXPECT_EQ(cores_within(32.0, 16), 16U);
}

}  // namespace
}  // namespace leat::testing
