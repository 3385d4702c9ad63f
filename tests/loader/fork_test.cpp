// Loaders and readers on both sides of fork(): nothing of the library lives in a pool of the process, whose threads would have
// stayed in the parent.
#include "base/sanitizers.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/reader.hpp>

#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::label_only;
using testing::labels;
using testing::loader;
using testing::loader_options;
using testing::small_options;
using testing::watchdog;

loader_options on_the_host() {
  loader_options options = small_options();
  options.device_calls = nullptr;  // A device is not to be used on both sides of a fork().
  options.device = host;
  return options;
}

/// What `work` returns in a child, which it has 30 s for.
template <class Work>
int in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);  // A hang ends in a signal.
    int wrong = 100;
    try {
      wrong = work();
    } catch (...) {
    }
    ::_exit(wrong);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Every call that blocks, on a loader of the caller's own.
int load_by_every_call(const dataset& samples) {
  using namespace std::chrono_literals;
  loader train(samples, on_the_host(), label_only());
  std::uint64_t rows = 0;
  for (const batch& got : train.blocking()) rows += got.valid_rows();
  if (rows != samples.size()) return 1;
  if (!train.next_blocking()) return 2;
  if (!train.next(boost::asio::use_future).get()) return 3;
  if (!train.next_blocking(20s)) return 4;
  for (auto got = train.try_next();; got = train.try_next()) {
    if (got) break;
    if (got.status() == next_status::end_of_epoch) return 5;
  }
  train.skip_epoch();
  if (train.next_blocking()) return 6;
  loader second(samples, on_the_host(), label_only());
  rows = 0;
  while (const auto got = second.next(boost::asio::use_future).get()) rows += got->valid_rows();
  return rows == samples.size() ? 0 : 7;
}

TEST(after_fork, a_child_loads_with_a_loader_of_its_own_whatever_the_parent_has_called) {
  if (LEAT_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer starts no thread after a fork";
  const watchdog dog("a loader in a child");
  // Real files: the lock of a fake disk may be held by a thread that the child does not have.
  const testing::temporary_directory directory;
  const dataset samples = testing::write_samples(labels(64), {}, directory.path());
  ASSERT_EQ(load_by_every_call(samples), 0);
  // While a loader of the parent is at work, and another has ended.
  loader train(samples, on_the_host(), label_only());
  ASSERT_TRUE(train.next_blocking());
  ASSERT_TRUE(train.next(boost::asio::use_future).get());
  EXPECT_EQ(in_child([&] { return load_by_every_call(samples); }), 0);
  EXPECT_EQ(in_child([&] {
              // And its child.
              const int own = load_by_every_call(samples);
              return own != 0 ? own : in_child([&] { return load_by_every_call(samples); });
            }),
            0);
  EXPECT_EQ(train.next_blocking()->index(), 2U) << "the parent goes on";
  ASSERT_EQ(load_by_every_call(samples), 0);
}

TEST(after_fork, a_child_reads_with_a_reader_of_its_own_whatever_the_parent_has_called) {
  if (LEAT_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer starts no thread after a fork";
  const watchdog dog("a reader in a child");
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "bytes").string();
  std::ofstream(path) << std::string(10000, 'x');
  const auto read_all = [&] {
    reader disk(std::size_t{1} << 20);
    const reader::file file = disk.open(path, boost::asio::use_future).get();
    leat::lease memory = disk.lease(reader::lease_bytes(0, 10000), boost::asio::use_future).get();
    const auto bytes = disk.read(file, 0, 10000, memory, boost::asio::use_future).get();
    return bytes.size() == 10000 && bytes.back() == std::byte{'x'} ? 0 : 1;
  };
  ASSERT_EQ(read_all(), 0);
  EXPECT_EQ(in_child(read_all), 0);
}

}  // namespace
}  // namespace leat
