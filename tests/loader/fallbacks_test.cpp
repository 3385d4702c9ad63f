// The loader where something is missing: the same bytes come out, and stats() says which fallback is in use and why.
#include "base/numa_nodes.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/deny_io_uring.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <fcntl.h>
#include <grp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace leat {
namespace {

using testing::fake_layout;
using testing::loader;
using testing::loader_options;
using testing::seen_run;

constexpr std::size_t sample_count = 45;

// Loose files: more of them than descriptors that RLIMIT_NOFILE = 64 allows.
class files {
 public:
  explicit files(const std::filesystem::path& parent = std::filesystem::temp_directory_path())
      : directory_(parent),
        samples_(testing::write_samples(testing::make_samples(1, sample_count),
                                        {.layout = fake_layout::file_per_member, .disk = {}}, directory_.path())) {
    std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);  // for a plain user too
  }
  [[nodiscard]] seen_run run(const reader_options& reader = {}, numa node = numa::automatic) const {
    loader_options options = testing::small_options();
    options.numa = node;
    options.reader = reader;
    return testing::run_all(samples_, options, testing::all_fields());
  }

 private:
  testing::temporary_directory directory_;
  dataset samples_;
};

constexpr int skipped = 77;

/// Runs `body` in a process of its own; it returns what is wrong, or nothing, or "skip: why".
void in_a_child(const std::function<std::string()>& body) {
  const auto run = [&] {
    const testing::watchdog dog("a child of the fallbacks' tests");
    std::string wrong;
    try {
      wrong = body();
    } catch (const std::exception& thrown) {
      wrong = thrown.what();
    }
    std::fprintf(stderr, "%s\n", wrong.c_str());
    // Not exit(): the destructors of statics are no business of a child that has become somebody else.
    std::fflush(stderr);
    std::_Exit(wrong.empty() ? 0 : wrong.starts_with("skip") ? skipped : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fine = [](int status) {
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == skipped);
  };
  EXPECT_EXIT(run(), fine, "");
}

std::string difference(const seen_run& got, const seen_run& expected) {
  if (got.failed) return "failed: " + got.message;
  return got.batches == expected.batches ? "" : "the batches differ";
}

std::string lacks(const fallback& in_use, std::string_view use, std::string_view why) {
  if (in_use.use == use && in_use.why.find(why) != std::string::npos) return "";
  return "in use: " + in_use.use + " (" + in_use.why + "); expected " + std::string(use) + " (" + std::string(why) +
         ")";
}

TEST(fallbacks, where_a_filter_denies_io_uring_threads_read) {
  for (const int code : {EPERM, ENOSYS}) {
    in_a_child([code]() -> std::string {
      const files here;
      const seen_run expected = here.run();
      if (!testing::deny_io_uring(code)) return "skip: no seccomp here";
      const seen_run got = here.run();
      if (std::string wrong = lacks(got.stats.reader.backend, "preadv", "io_uring_setup"); !wrong.empty()) return wrong;
      return difference(got, expected);
    });
  }
}

TEST(fallbacks, where_io_uring_is_insisted_on_and_denied_the_loader_is_not_built) {
  in_a_child([]() -> std::string {
    const files here;
    if (!testing::deny_io_uring(EPERM)) return "skip: no seccomp here";
    const seen_run refused = here.run({.backend = read_backend::io_uring});
    if (!refused.failed) return "no error";
    return *refused.failed == errc::unsupported ? "" : refused.message;
  });
}

TEST(fallbacks, where_a_container_denies_mbind_the_loader_says_so_and_loads) {
  const std::vector<node_cores> nodes = find_numa_nodes();
  if (nodes.empty() || nodes.front().cores.empty()) GTEST_SKIP() << "this kernel lists no node with our cores";
  in_a_child([node = static_cast<int>(nodes.front().node)]() -> std::string {
    const files here;
    const seen_run expected = here.run();
    if (!testing::deny_mbind(EPERM)) return "skip: no seccomp here";
    const seen_run got = here.run({}, numa_node(node));
    if (std::string wrong = lacks(got.stats.placement, "node " + std::to_string(node), "CAP_SYS_NICE"); !wrong.empty())
      return wrong;
    return difference(got, expected);
  });
}

TEST(fallbacks, where_a_plain_user_may_lock_64_kib_nothing_is_registered) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a plain user";
  in_a_child([]() -> std::string {
    const files here;
    const seen_run expected = here.run();
    const rlimit tight{64 << 10, 64 << 10};
    if (::setrlimit(RLIMIT_MEMLOCK, &tight) != 0) return "setrlimit";
    if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) return "setuid";
    ::prctl(PR_SET_DUMPABLE, 1);  // /proc/self stays ours
    const seen_run got = here.run();
    const reader_report& report = got.stats.reader;
    if (report.backend.use == "io_uring") {
      if (report.registered_buffers.use == "on") return "registered in spite of 64 KiB";
      if (report.registered_buffers.why.find("ulimit -l") == std::string::npos) return report.registered_buffers.why;
    }
    return difference(got, expected);
  });
}

TEST(fallbacks, where_64_descriptors_are_all_there_are_files_take_turns) {
  in_a_child([]() -> std::string {
    const files here;
    const seen_run expected = here.run();
    const rlimit tight{64, 64};
    if (::setrlimit(RLIMIT_NOFILE, &tight) != 0) return "setrlimit";
    for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
      for (const std::uint32_t io_threads : {1U, 2U}) {
        const seen_run got = here.run({.backend = backend, .io_threads = io_threads});
        if (std::string wrong = difference(got, expected); !wrong.empty()) return wrong;
      }
    }
    return "";
  });
}

TEST(fallbacks, on_tmpfs_whatever_is_asked_of_o_direct_the_bytes_are_the_same_or_the_error_is_clear) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const testing::watchdog dog("tmpfs");
  const files here("/dev/shm");
  const files there;
  const seen_run expected = there.run();
  EXPECT_EQ(difference(here.run(), expected), "");
  EXPECT_EQ(difference(here.run({.direct = choice::off}), expected), "");
  EXPECT_EQ(difference(here.run({.backend = read_backend::preadv}), expected), "");
  const seen_run direct = here.run({.direct = choice::on});
  if (direct.failed) {  // Linux gives tmpfs O_DIRECT since 6.6, and not everywhere
    EXPECT_EQ(direct.failed, errc::unsupported);
    EXPECT_NE(direct.message.find("O_DIRECT"), std::string::npos) << direct.message;
  } else {
    EXPECT_EQ(difference(direct, expected), "");
  }
}

TEST(fallbacks, a_loader_that_insists_on_o_direct_is_not_built_where_there_is_none) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const testing::watchdog dog("O_DIRECT insisted on");
  const testing::temporary_directory directory("/dev/shm");
  const dataset samples = testing::write_samples(
      testing::make_samples(1, 20), {.layout = fake_layout::file_per_member, .disk = {}}, directory.path());
  for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
    loader_options options = testing::small_options();
    options.reader.backend = backend;
    options.reader.direct = choice::on;
    const std::string message =
        testing::message_of(errc::unsupported, [&] { const loader train(samples, options, testing::label_only()); });
    EXPECT_NE(message.find(directory.path().string()), std::string::npos) << message;
    EXPECT_NE(message.find("use reader_options::direct = automatic"), std::string::npos) << message;
  }
}

// Its first file can be read with O_DIRECT, so it is built; a later one is a symbolic link to memory.
TEST(fallbacks, a_loader_that_insists_on_o_direct_ends_at_the_file_that_has_none_under_every_policy) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const testing::watchdog dog("a folder over two file systems");
  const testing::temporary_directory directory;
  const testing::temporary_directory elsewhere("/dev/shm");
  const dataset samples = testing::write_samples(
      testing::make_samples(1, 40), {.layout = fake_layout::file_per_member, .disk = {}}, directory.path());
  const std::string moved = (directory.path() / "20.cls").string();
  ASSERT_TRUE(std::filesystem::exists(moved)) << moved;
  const auto run = [&](const reader_options& reader, corrupt_policy policy) {
    loader_options options = testing::small_options();
    options.shuffle = false;
    options.reader = reader;
    options.on_corrupt = policy;
    return testing::run_all(samples, options, testing::label_only());
  };
  const seen_run expected = run({}, corrupt_policy::raise);
  if (run({.direct = choice::on}, corrupt_policy::raise).failed) GTEST_SKIP() << "no O_DIRECT here";
  std::filesystem::copy_file(moved, elsewhere.path() / "20.cls");
  std::filesystem::remove(moved);
  std::filesystem::create_symlink(elsewhere.path() / "20.cls", moved);
  for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
    for (const corrupt_policy policy : {corrupt_policy::raise, corrupt_policy::skip, corrupt_policy::substitute}) {
      const seen_run refused = run({.backend = backend, .direct = choice::on}, policy);
      EXPECT_EQ(refused.failed, errc::unsupported);
      EXPECT_NE(refused.message.find(moved), std::string::npos) << refused.message;
      EXPECT_NE(refused.message.find("use reader_options::direct = automatic"), std::string::npos) << refused.message;
      EXPECT_EQ(refused.stats.quarantined, 0U);
    }
    EXPECT_EQ(difference(run({.backend = backend}, corrupt_policy::raise), expected), "");
  }
}

TEST(fallbacks, every_fallback_can_be_forced_and_is_reported) {
  const testing::watchdog dog("forced fallbacks");
  const files here;
  const seen_run best = here.run();
  const auto report_of = [&](const reader_options& asked) {
    const seen_run got = here.run(asked);
    EXPECT_EQ(difference(got, best), "");
    const reader_report& report = got.stats.reader;
    for (const fallback* each : {&report.backend, &report.registered_buffers, &report.direct, &report.huge_pages}) {
      EXPECT_FALSE(each->use.empty());
      EXPECT_FALSE(each->why.empty()) << each->use;
    }
    return report;
  };
  EXPECT_EQ(report_of({.backend = read_backend::preadv}).backend.use, "preadv");
  EXPECT_EQ(report_of({.registered_buffers = choice::off}).registered_buffers.use, "off");
  EXPECT_EQ(report_of({.huge_pages = choice::off}).huge_pages.use, "off");
  EXPECT_EQ(report_of({.direct = choice::off}).direct.use, "off");
  // An epoch of a few KiB fits in memory: buffered by choice, and it says so.
  const reader_report automatic = report_of({});
  EXPECT_EQ(automatic.direct.use, "off");
  EXPECT_NE(automatic.direct.why.find("half"), std::string::npos) << automatic.direct.why;
  const seen_run direct = here.run({.direct = choice::on});
  if (direct.failed) {
    EXPECT_EQ(direct.failed, errc::unsupported) << direct.message;
  } else {
    EXPECT_EQ(direct.stats.reader.direct.use, "on");
    EXPECT_EQ(difference(direct, best), "");
  }
  if (best.stats.reader.backend.use == "io_uring") {
    EXPECT_EQ(report_of({.backend = read_backend::io_uring}).backend.use, "io_uring");
  }
}

}  // namespace
}  // namespace leat
