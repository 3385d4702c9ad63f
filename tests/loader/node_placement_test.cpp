// A loader that binds its threads and memory to a NUMA node: of this machine, and of two that are made up.
#include "base/numa_nodes.hpp"
#include "base/text.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <sched.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace leat {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using testing::fake_dataset;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;

using cores = std::vector<std::uint32_t>;

cores cores_of(pid_t thread) {
  cores found;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return found;
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) found.push_back(core);
  }
  return found;
}

// Of the threads whose name begins so: a thread that is bound binds itself before it takes its name.
std::vector<cores> cores_now(std::string_view name) {
  std::vector<cores> all;
  for (const fs::directory_entry& task : fs::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    if (comm.starts_with(name)) all.push_back(cores_of(std::atoi(task.path().filename().c_str())));
  }
  return all;
}

// The same, once there are as many.
std::vector<cores> cores_of_threads(std::string_view name, std::size_t count) {
  std::vector<cores> all;
  while (all.size() < count) all = cores_now(name);
  return all;
}

// Two nodes that share this process's cores: the last one is node 1's, all others node 0's.
class two_nodes {
 public:
  two_nodes() {
    cores first = usable_core_numbers();
    last_ = first.back();
    first.pop_back();
    write("devices/system/node/node0/cpulist", joined(first, ","));
    write("devices/system/node/node1/cpulist", std::to_string(last_));
  }
  [[nodiscard]] std::string root() const { return directory_.path().string(); }
  [[nodiscard]] cores of_node_1() const { return {last_}; }
  /// Has `file` lie on a drive at node 1.
  void put_at_node_1(const fs::path& file) const {
    write("devices/pci0000:80/numa_node", "1");
    struct stat found{};
    ASSERT_EQ(::stat(file.c_str(), &found), 0);
    const fs::path drives = directory_.path() / "sys/dev/block";
    fs::create_directories(drives);
    fs::create_directory_symlink(directory_.path() / "sys/devices/pci0000:80",
                                 drives / str_cat(major(found.st_dev), ":", minor(found.st_dev)));
  }

 private:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = directory_.path() / "sys" / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }

  testing::temporary_directory directory_;
  std::uint32_t last_ = 0;
};

loader_options options_on(const std::string& sysfs_root, numa node) {
  loader_options options = testing::small_options();
  options.sysfs_root = sysfs_root;
  options.numa = node;
  options.decode_threads = 1;
  options.reader.io_threads = 2;
  return options;
}

TEST(numa_of_a_loader, is_off_with_one_node_and_leaves_its_threads_alone) {
  const testing::watchdog dog("NUMA");
  const testing::temporary_directory root;
  fs::create_directories(root.path() / "sys/devices/system/node/node0");
  std::ofstream(root.path() / "sys/devices/system/node/node0/cpulist") << "0-1023\n";
  const fake_dataset set(testing::make_samples(1, 40));
  loader train(set, options_on(root.path().string(), numa::automatic), testing::label_only());
  EXPECT_EQ(train.stats().placement.use, "off");
  EXPECT_EQ(train.stats().placement.why, "one node");
  EXPECT_THAT(cores_of_threads("leat-io-", 2), Each(usable_core_numbers()));
  EXPECT_THAT(cores_of_threads("leat-decode-", 1), Each(usable_core_numbers()));
}

TEST(numa_of_a_loader, binds_it_to_a_node_of_this_machine) {
  const testing::watchdog dog("NUMA");
  const std::vector<node_cores> nodes = find_numa_nodes();
  if (nodes.empty() || nodes.front().cores.empty()) GTEST_SKIP() << "this kernel lists no node with our cores";
  const fake_dataset set(testing::make_samples(1, 40));
  const int number = static_cast<int>(nodes.front().node);
  loader train(set, options_on({}, numa_node(number)), testing::label_only());
  EXPECT_EQ(train.stats().placement.use, str_cat("node ", number));
  EXPECT_THAT(train.stats().placement.why, ::testing::StartsWith("asked for"));
  EXPECT_THAT(cores_of_threads("leat-io-", 2), Each(nodes.front().cores));
  EXPECT_THAT(cores_of_threads("leat-decode-", 1), Each(nodes.front().cores));
  EXPECT_TRUE(train.next_blocking());
}

// The kernel has no such node, or it has: then it is another than these cores'. Either way the loader says what came of it.
TEST(numa_of_a_loader, binds_all_its_threads_to_the_node_that_is_asked_for_and_no_other) {
  const testing::watchdog dog("NUMA");
  const two_nodes made;
  const cores before = usable_core_numbers();
  const testing::temporary_directory directory;
  const dataset files = testing::write_samples(testing::make_samples(1, 40), {}, directory.path());
  for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
    loader_options options = options_on(made.root(), numa_node(1));
    options.decode_threads = 3;
    options.reader.backend = backend;
    loader train(files, options, testing::all_fields());
    EXPECT_TRUE(train.next_blocking());
    EXPECT_THAT(cores_of_threads("leat-io-", 2), Each(made.of_node_1()));
    EXPECT_THAT(cores_of_threads("leat-decode-", 3), Each(made.of_node_1()));
    if (backend == read_backend::preadv) EXPECT_THAT(cores_of_threads("leat-read-", 1), Each(made.of_node_1()));
    EXPECT_EQ(usable_core_numbers(), before) << "of the trainer's thread";
    const fallback said = train.stats().placement;
    EXPECT_EQ(said.use, "node 1");
    if (find_numa_nodes().size() == 1) EXPECT_THAT(said.why, AllOf(HasSubstr("mbind"), HasSubstr("EINVAL")));
  }
}

TEST(numa_of_a_loader, starts_no_more_decode_threads_than_the_node_has_cores) {
  const two_nodes made;
  const fake_dataset set(testing::labels(40));
  loader_options options = options_on(made.root(), numa_node(1));
  options.decode_threads = 0;
  EXPECT_EQ(loader(set, options, testing::label_only()).plan().decode_threads, 1U);
}

TEST(numa_of_a_loader, is_by_itself_the_node_of_the_drive_and_takes_no_cores_away) {
  const testing::watchdog dog("NUMA");
  const two_nodes made;
  const testing::temporary_directory directory;
  const dataset files = testing::write_samples(testing::make_samples(1, 40), {}, directory.path());
  EXPECT_EQ(loader(files, options_on(made.root(), numa::automatic), testing::label_only()).stats().placement.why,
            "of neither device nor drive the node is known");
  made.put_at_node_1(directory.path());
  for (const std::uint32_t threads : {1U, 2U}) {
    loader_options options = options_on(made.root(), numa::automatic);
    options.decode_threads = threads;
    loader train(files, options, testing::label_only());
    EXPECT_EQ(train.stats().placement.use, "node 1");
    EXPECT_THAT(train.stats().placement.why, HasSubstr("the drive of the dataset"));
    EXPECT_THAT(cores_of_threads("leat-io-", 2), Each(made.of_node_1()));
    // Node 1 has one core.
    EXPECT_THAT(cores_of_threads("leat-decode-", threads),
                Each(threads == 1 ? made.of_node_1() : usable_core_numbers()));
  }
}

TEST(numa_of_a_loader, that_is_not_there_is_refused_with_those_that_are) {
  const two_nodes made;
  const fake_dataset set(testing::labels(8));
  EXPECT_THAT(testing::message_of(
                  errc::usage,
                  [&] { const loader refused(set, options_on(made.root(), numa_node(99)), testing::label_only()); }),
              AllOf(HasSubstr("no NUMA node 99"), HasSubstr("1: give one of them")));
}

TEST(numa_of_a_loader, changes_no_byte) {
  const testing::watchdog dog("NUMA");
  const two_nodes made;
  const auto samples = testing::make_samples(3, 60);
  std::vector<std::vector<testing::seen_batch>> seen;
  for (const numa node : {numa::off, numa_node(1), numa::automatic}) {
    const fake_dataset set(samples);
    loader train(set, options_on(made.root(), node), testing::all_fields());
    seen.push_back(testing::run_epochs(train, 2));
  }
  EXPECT_EQ(seen[1], seen[0]);
  EXPECT_EQ(seen[2], seen[0]);
}

}  // namespace
}  // namespace leat
