// What happens where something is missing: each fallback is reached as a user reaches it, by a limit or a filter on the
// process, and the same bytes come out.
#include "base/sanitizers.hpp"
#include "tests/support/deny_io_uring.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/reader.hpp>
#include <leat/units.hpp>

#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

using namespace leat::literals;
using boost::asio::use_future;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;

// Files whose bytes are a function of their number.
class photo_like_files {
 public:
  photo_like_files(int count, const std::filesystem::path& where) : directory_(where) {
    std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);  // for a plain user too
    for (int i = 0; i < count; ++i) {
      std::vector<std::byte> bytes(size_of(i));
      fill_seeded(static_cast<std::uint64_t>(i), 0, bytes);
      std::ofstream(path_of(i), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
  }
  [[nodiscard]] static std::size_t size_of(int i) { return 1 + static_cast<std::size_t>(i) * 773 % 100'000; }
  [[nodiscard]] std::string path_of(int i) const { return (directory_.path() / std::to_string(i)).string(); }

 private:
  temporary_directory directory_;
};

/// Reads `count` of the files, `at_once` at a time, and looks at every byte. Returns what is wrong, or nothing.
std::string read_all(reader& disk, const photo_like_files& files, int count, std::size_t at_once) {
  std::vector<reader::request> requests;
  std::vector<leat::lease> memory(at_once);
  std::vector<int> numbers;
  const auto flush = [&]() -> std::string {
    disk.read(std::span(requests), use_future).get();
    for (std::size_t k = 0; k < requests.size(); ++k) {
      std::vector<std::byte> right(photo_like_files::size_of(numbers[k]));
      fill_seeded(static_cast<std::uint64_t>(numbers[k]), 0, right);
      if (!std::equal(right.begin(), right.end(), requests[k].data.begin(), requests[k].data.end())) {
        return "file " + std::to_string(numbers[k]) + " came out wrong";
      }
    }
    requests.clear();
    numbers.clear();
    return {};
  };
  for (int i = 0; i < count; ++i) {
    const reader::file file = disk.open(files.path_of(i), use_future).get();
    const std::size_t slot = requests.size();
    memory[slot] = disk.lease(reader::lease_bytes(0, file.size_bytes), use_future).get();
    requests.push_back({file, 0, file.size_bytes, &memory[slot], {}, 0});
    numbers.push_back(i);
    if (requests.size() == at_once) {
      if (std::string wrong = flush(); !wrong.empty()) return wrong;
    }
  }
  return flush();
}

/// Runs `body` in a process of its own, which ends with 0 if it returns nothing; 77 means that it could not be tried.
void in_a_child(const std::function<std::string()>& body) {
  const auto run = [&] {
    std::string wrong;
    try {
      wrong = body();
    } catch (const std::exception& failed) {
      wrong = failed.what();
    }
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::exit(wrong.empty() ? 0 : wrong == "skip" ? 77 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

TEST(fallbacks, reads_through_io_uring_where_it_is_allowed) {
  const photo_like_files files(50, std::filesystem::temp_directory_path());
  reader disk(16_MiB);
  EXPECT_EQ(read_all(disk, files, 50, 20), "");
  const reader_report report = disk.report();
  if (report.backend.use != "io_uring") GTEST_SKIP() << report.backend.why;
  EXPECT_EQ(report.registered_buffers.use, "on") << report.registered_buffers.why;
  EXPECT_THAT(report.backend.why, HasSubstr("SINGLE_ISSUER"));
}

TEST(fallbacks, falls_to_preadv_where_a_filter_answers_eperm_or_enosys_or_einval) {
  const photo_like_files files(50, std::filesystem::temp_directory_path());
  for (const int code : {EPERM, ENOSYS, EINVAL, EACCES}) {
    in_a_child([&]() -> std::string {
      if (!deny_io_uring(code)) return "skip";
      reader disk(16_MiB);
      const reader_report report = disk.report();
      if (report.backend.use != "preadv") return "in use: " + report.backend.use;
      if (report.backend.why.find("io_uring_setup") == std::string::npos) return "no reason: " + report.backend.why;
      return read_all(disk, files, 50, 20);
    });
  }
}

TEST(fallbacks, says_what_to_do_where_io_uring_was_insisted_on_and_is_forbidden) {
  in_a_child([]() -> std::string {
    if (!deny_io_uring(EPERM)) return "skip";
    try {
      reader disk(16_MiB, {.backend = read_backend::io_uring});
    } catch (const error& refused) {
      const std::string what = refused.what();
      if (refused.code() != errc::unsupported) return "another code";
      return what.find("EPERM") != std::string::npos && what.find("seccomp") != std::string::npos ? "" : what;
    }
    return "no error";
  });
}

TEST(fallbacks, takes_want_of_descriptors_for_an_error_and_not_for_want_of_io_uring) {
  in_a_child([]() -> std::string {
    if (!deny_io_uring(EMFILE)) return "skip";
    try {
      reader disk(16_MiB);
    } catch (const error& refused) {
      return refused.code() == errc::limit ? "" : refused.what();
    }
    return "no error";
  });
}

TEST(fallbacks, reads_into_unregistered_memory_where_memlock_is_64_KiB_for_a_plain_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const photo_like_files files(50, std::filesystem::temp_directory_path());
  in_a_child([&]() -> std::string {
    const rlimit tight{std::size_t{64} << 10, std::size_t{64} << 10};
    if (::setrlimit(RLIMIT_MEMLOCK, &tight) != 0) return "setrlimit";
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return "setuid";
    reader disk(16_MiB);
    const std::string wrong = read_all(disk, files, 50, 20);
    if (!wrong.empty()) return wrong;
    const reader_report report = disk.report();
    if (report.backend.use != "io_uring") return {};  // no ring, nothing to register
    if (report.registered_buffers.use != "off") return "registered: " + report.registered_buffers.use;
    const std::string why = report.registered_buffers.why;
    return why.find("64 KiB") != std::string::npos && why.find("ulimit -l") != std::string::npos ? "" : why;
  });
}

TEST(fallbacks, fails_where_registered_buffers_are_insisted_on_and_memlock_is_64_KiB) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const photo_like_files files(2, std::filesystem::temp_directory_path());
  in_a_child([&]() -> std::string {
    const rlimit tight{std::size_t{64} << 10, std::size_t{64} << 10};
    if (::setrlimit(RLIMIT_MEMLOCK, &tight) != 0) return "setrlimit";
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return "setuid";
    try {
      reader disk(16_MiB, {.registered_buffers = choice::on});
      return read_all(disk, files, 2, 1).empty() ? "it read" : "it read wrong";
    } catch (const error& refused) {
      if (refused.code() == errc::unsupported) return {};  // no ring at all
      const std::string what = refused.what();
      return refused.code() == errc::limit && what.find("ulimit -l") != std::string::npos ? "" : what;
    }
  });
}

TEST(fallbacks, reads_500_files_with_64_descriptors) {
  const photo_like_files files(500, std::filesystem::temp_directory_path());
  for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
    in_a_child([&]() -> std::string {
      const rlimit tight{64, 64};
      if (::setrlimit(RLIMIT_NOFILE, &tight) != 0) return "setrlimit";
      reader disk(32_MiB, {.backend = backend});
      return read_all(disk, files, 500, 250);
    });
  }
}

TEST(fallbacks, waits_for_a_descriptor_that_others_give_back) {
  if (LEAT_ADDRESS_SANITIZER) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const photo_like_files files(60, std::filesystem::temp_directory_path());
  in_a_child([&]() -> std::string {
    const rlimit tight{64, 64};
    if (::setrlimit(RLIMIT_NOFILE, &tight) != 0) return "setrlimit";
    reader disk(32_MiB, {.backend = read_backend::preadv});
    // All that is left goes to somebody else.
    std::vector<int> hoard;
    for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) {
      hoard.push_back(fd);
    }
    const reader::file file = disk.open(files.path_of(7), use_future).get();
    leat::lease memory = disk.lease(reader::lease_bytes(0, file.size_bytes), use_future).get();
    auto reading = disk.read(file, 0, file.size_bytes, memory, use_future);
    if (reading.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready) return "it did not wait";
    for (const int fd : hoard) ::close(fd);
    reading.get();
    return read_all(disk, files, 60, 30);
  });
}

TEST(fallbacks, reads_from_tmpfs_buffered_and_says_why) {
  if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const photo_like_files files(50, "/dev/shm");
  for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
    reader disk(16_MiB, {.backend = backend});
    EXPECT_EQ(read_all(disk, files, 50, 20), "");
    EXPECT_EQ(disk.report().direct.use, "off");
    EXPECT_THAT(disk.report().direct.why, HasSubstr("tmpfs"));
  }
}

TEST(fallbacks, fails_rather_than_falls_back_where_direct_is_on) {
  if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const photo_like_files files(5, "/dev/shm");
  for (const read_backend backend : {read_backend::automatic, read_backend::preadv}) {
    reader disk(16_MiB, {.backend = backend, .direct = choice::on});
    try {
      static_cast<void>(read_all(disk, files, 5, 5));
      FAIL() << "it read";
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::unsupported);
      EXPECT_THAT(refused.what(), HasSubstr("/dev/shm"));
      EXPECT_THAT(refused.what(), HasSubstr("O_DIRECT"));
    }
  }
}

TEST(fallbacks, refuses_options_that_cannot_be) {
  EXPECT_THROW(reader(1_MiB, {.io_threads = 1000}), error);
  EXPECT_THROW(reader(1_MiB, {.queue_depth = 5000}), error);
  EXPECT_THROW(reader(1_MiB, {.preadv_threads = 0}), error);
  EXPECT_THROW(reader(1_MiB, {.read_timeout = std::chrono::milliseconds(0)}), error);
  EXPECT_THROW(reader(1_MiB, {.backend = read_backend::preadv, .registered_buffers = choice::on}), error);
}

}  // namespace
}  // namespace leat::testing
