#include "base/memory_available.hpp"

#include "tests/support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace leat::io {
namespace {

using ::testing::HasSubstr;

// A machine made of files.
class memory_available_test : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_.path() / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  [[nodiscard]] memory_available find() const { return find_memory_available(root_.path().string()); }

  leat::testing::temporary_directory root_;
};

TEST_F(memory_available_test, is_what_the_machine_has_where_no_group_limits_it) {
  put("proc/meminfo", "MemTotal: 100000 kB\nMemFree: 1 kB\nMemAvailable:   40000 kB\n");
  put("proc/self/cgroup", "0::/user.slice\n");
  put("sys/fs/cgroup/user.slice/memory.max", "max\n");
  put("sys/fs/cgroup/user.slice/memory.current", "5000\n");
  EXPECT_EQ(find().bytes, 40'000U * 1024);
  EXPECT_EQ(find().said_by, "MemAvailable");
}

TEST_F(memory_available_test, counts_the_tightest_group_of_version_2_and_its_parents) {
  put("proc/meminfo", "MemAvailable: 40000000 kB\n");
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.current", "300\n");
  put("sys/fs/cgroup/a/memory.max", "1000000\n");
  put("sys/fs/cgroup/a/memory.current", "600000\n");
  put("sys/fs/cgroup/a/memory.stat", "anon 100000\ninactive_file 300000\nactive_file 200000\n");
  EXPECT_EQ(find().bytes, 900'000U) << "page cache can be given up";
  EXPECT_THAT(find().said_by, HasSubstr("/a"));
}

TEST_F(memory_available_test, counts_groups_of_version_1) {
  put("proc/meminfo", "MemAvailable: 40000000 kB\n");
  put("proc/self/cgroup", "5:cpu:/x\n4:memory:/docker/abc\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2000000\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "500000\n");
  put("sys/fs/cgroup/memory/docker/abc/memory.stat", "total_inactive_file 100000\n");
  EXPECT_EQ(find().bytes, 1'600'000U);
}

TEST_F(memory_available_test, takes_a_containers_own_root_where_the_hosts_path_does_not_exist) {
  put("proc/meminfo", "MemAvailable: 40000000 kB\n");
  put("proc/self/cgroup", "0::/kubepods/pod1/c2\n");
  put("sys/fs/cgroup/memory.max", "500000\n");
  put("sys/fs/cgroup/memory.current", "100000\n");
  EXPECT_EQ(find().bytes, 400'000U);
}

TEST_F(memory_available_test, is_nothing_known_where_nothing_says) { EXPECT_EQ(find().bytes, 0U); }

TEST(memory_available, knows_something_of_this_machine) {
  const memory_available here = find_memory_available();
  EXPECT_GT(here.bytes, std::uint64_t{1} << 20);
}

}  // namespace
}  // namespace leat::io
