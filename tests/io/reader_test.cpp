#include "base/sanitizers.hpp"
#include "tests/support/held_file.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/reader.hpp>
#include <leat/units.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

using namespace leat::literals;
using boost::asio::use_awaitable;
using boost::asio::use_future;
using ::testing::HasSubstr;

class reader_test : public ::testing::TestWithParam<read_backend> {
 protected:
  static constexpr std::size_t file_bytes = 3'000'001;

  reader_test() {
    contents_.resize(file_bytes);
    fill_seeded(42, 0, contents_);
    std::ofstream(path("big"), std::ios::binary)
        .write(reinterpret_cast<const char*>(contents_.data()), static_cast<std::streamsize>(contents_.size()));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] reader_options options() const { return {.backend = GetParam()}; }
  [[nodiscard]] bool is_right(std::span<const std::byte> data, std::uint64_t offset, std::uint64_t bytes) const {
    return data.size() == bytes &&
           std::equal(data.begin(), data.end(), contents_.begin() + static_cast<std::ptrdiff_t>(offset));
  }

  temporary_directory directory_;
  std::vector<std::byte> contents_;
  watchdog hang_{"reader_test"};
};

INSTANTIATE_TEST_SUITE_P(, reader_test, ::testing::Values(read_backend::automatic, read_backend::preadv),
                         [](const auto& each) { return each.param == read_backend::preadv ? "preadv" : "ring"; });

asio::awaitable<void> read_as_documented(reader& disk, std::string path, std::vector<std::byte>& out) {
  const reader::file weights = co_await disk.open(path, use_awaitable);
  leat::lease memory = co_await disk.lease(disk.lease_bytes(1'000, 1'000'000), use_awaitable);
  const std::span<const std::byte> bytes = co_await disk.read(weights, 1'000, 1'000'000, memory, use_awaitable);
  out.assign(bytes.begin(), bytes.end());
}

TEST_P(reader_test, reads_as_its_documentation_says) {
  reader disk(16_MiB, options());
  boost::asio::io_context context;
  std::vector<std::byte> out;
  auto done = boost::asio::co_spawn(context, read_as_documented(disk, path("big"), out), use_future);
  context.run();
  done.get();
  EXPECT_TRUE(is_right(out, 1'000, 1'000'000));
}

TEST_P(reader_test, serves_coroutines_on_its_own_executor) {
  reader disk(16_MiB, options());
  std::vector<std::byte> out;
  boost::asio::co_spawn(disk.get_executor(), read_as_documented(disk, path("big"), out), use_future).get();
  EXPECT_TRUE(is_right(out, 1'000, 1'000'000));
}

TEST_P(reader_test, tells_size_version_and_alignment) {
  reader disk(16_MiB, options());
  const reader::file file = disk.open(path("big"), use_future).get();
  EXPECT_EQ(file.size_bytes, file_bytes);
  EXPECT_GE(file.alignment, 1U);
  EXPECT_LE(file.alignment, 4096U);
  const reader::file same = disk.open(path("big"), use_future).get();
  EXPECT_EQ(same.number, file.number);
  EXPECT_EQ(same.version, file.version);
}

TEST_P(reader_test, explains_what_cannot_be_opened) {
  reader disk(16_MiB, options());
  try {
    static_cast<void>(disk.open(path("none"), use_future).get());
    FAIL();
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::not_found);
    EXPECT_THAT(failed.what(), HasSubstr(path("none")));
    EXPECT_THAT(failed.what(), HasSubstr("ENOENT"));
  }
  try {
    static_cast<void>(disk.open(directory_.path().string(), use_future).get());
    FAIL();
  } catch (const error& failed) {
    EXPECT_THAT(failed.what(), HasSubstr("EISDIR"));
  }
  EXPECT_THROW(static_cast<void>(disk.open("", use_future).get()), error);
}

TEST_P(reader_test, fails_a_batch_with_its_first_failure_and_gives_each_request_its_own) {
  reader disk(16_MiB, options());
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease a = disk.lease(8_KiB, use_future).get();
  leat::lease b = disk.lease(12_KiB, use_future).get();
  leat::lease c = disk.lease(8_KiB, use_future).get();
  reader::request batch[] = {
      {file, 0, 4096, &a, {}, 0}, {file, file_bytes - 10, 100, &b, {}, 0}, {file, 4000, 200, &c, {}, 0}};
  try {
    disk.read(std::span(batch), use_future).get();
    FAIL() << "it read past the end";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::io);
    EXPECT_THAT(failed.what(), HasSubstr("3000001"));
  }
  EXPECT_EQ(batch[0].failure, 0);
  EXPECT_EQ(batch[1].failure, ENODATA);
  EXPECT_EQ(batch[1].data.size(), 10U);
  EXPECT_TRUE(is_right(batch[2].data, 4000, 200));
}

TEST_P(reader_test, refuses_requests_that_cannot_be) {
  reader disk(16_MiB, options());
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease small = disk.lease(4096, use_future).get();
  leat::lease none;
  EXPECT_THROW(disk.read(file, 0, 5000, small, use_future).get(), error);
  EXPECT_THROW(disk.read(file, 4000, 200, small, use_future).get(), error) << "widened it takes two blocks";
  EXPECT_THROW(disk.read(file, 0, 100, none, use_future).get(), error);
  EXPECT_THROW(disk.read(reader::file{}, 0, 100, small, use_future).get(), error);
  EXPECT_THROW(static_cast<void>(disk.lease(17_MiB, use_future).get()), error);
  EXPECT_NO_THROW(disk.read(std::span<reader::request>(), use_future).get()) << "a batch of nothing";
}

TEST_P(reader_test, reads_with_several_io_threads) {
  reader_options several = options();
  several.io_threads = 3;
  reader disk(32_MiB, several);
  const reader::file file = disk.open(path("big"), use_future).get();
  std::deque<leat::lease> memory;
  std::vector<std::future<std::span<const std::byte>>> reading;
  for (std::uint64_t i = 0; i < 60; ++i) {
    memory.push_back(disk.lease(reader::lease_bytes(i * 40'000, 50'000), use_future).get());
    reading.push_back(disk.read(file, i * 40'000, 50'000, memory.back(), use_future));
  }
  for (std::uint64_t i = 0; i < 60; ++i) EXPECT_TRUE(is_right(reading[i].get(), i * 40'000, 50'000));
}

TEST_P(reader_test, ends_every_read_once_under_random_cancellation_from_several_threads) {
  reader disk(64_MiB, options());
  const reader::file file = disk.open(path("big"), use_future).get();
  for_each_seed(3, [&](std::uint64_t seed) {
    std::atomic<int> right{0};
    std::atomic<int> aborted{0};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        seeded_random random(seed * 100 + t);
        boost::asio::io_context context;
        std::deque<boost::asio::cancellation_signal> signals(150);
        std::deque<leat::lease> memory;
        for (auto& signal : signals) {
          const std::uint64_t offset = random.below(file_bytes);
          const std::uint64_t bytes = 1 + random.below(std::min<std::uint64_t>(file_bytes - offset, 60'000));
          memory.push_back(disk.lease(reader::lease_bytes(offset, bytes), use_future).get());
          disk.read(file, offset, bytes, memory.back(),
                    boost::asio::bind_executor(
                        context, boost::asio::bind_cancellation_slot(
                                     signal.slot(),
                                     [&, offset, bytes](std::exception_ptr failed, std::span<const std::byte> data) {
                                       if (!failed) {
                                         (is_right(data, offset, bytes) ? right : wrong).fetch_add(1);
                                         return;
                                       }
                                       try {
                                         std::rethrow_exception(failed);
                                       } catch (const boost::system::system_error&) {
                                         aborted.fetch_add(1);
                                       } catch (...) {
                                         wrong.fetch_add(1);
                                       }
                                     })));
          if (random.chance(0.3)) signals[random.below(signals.size())].emit(boost::asio::cancellation_type::total);
          context.restart();
          context.poll();
        }
        context.restart();
        context.run();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(right.load() + aborted.load(), 450);
  });
}

// On the reader's own thread, to which the read is still on its way: it is cancelled, and nothing that it has not got yet is
// looked at.
TEST_P(reader_test, cancels_a_read_that_has_not_begun) {
  reader disk(8_MiB, options());
  const reader::file big = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(64_KiB, use_future).get();
  leat::lease other = disk.lease(64_KiB, use_future).get();
  for (const bool batch : {false, true}) {
    asio::cancellation_signal cancel;
    std::atomic<bool> there{false};
    std::atomic<bool> asked{false};
    asio::post(disk.get_executor(), [&] {
      there = true;
      while (!asked) std::this_thread::yield();
      cancel.emit(asio::cancellation_type::total);
    });
    while (!there) std::this_thread::yield();
    std::promise<std::exception_ptr> ended;
    std::vector<reader::request> requests = {{big, 0, 4096, &memory, {}, 0}, {big, 8192, 4096, &other, {}, 0}};
    if (batch) {
      disk.read(requests, asio::bind_cancellation_slot(
                              cancel.slot(), [&](std::exception_ptr failure) { ended.set_value(std::move(failure)); }));
    } else {
      disk.read(big, 0, 4096, memory,
                asio::bind_cancellation_slot(cancel.slot(),
                                             [&](std::exception_ptr failure, std::span<const std::byte> /*data*/) {
                                               ended.set_value(std::move(failure));
                                             }));
    }
    asked = true;
    const std::exception_ptr failure = ended.get_future().get();
    ASSERT_NE(failure, nullptr);
    try {
      std::rethrow_exception(failure);
    } catch (const boost::system::system_error& told) {
      EXPECT_EQ(told.code(), asio::error::operation_aborted);
    }
    EXPECT_TRUE(is_right(disk.read(big, 0, 4096, memory, use_future).get(), 0, 4096)) << "and the next one is not";
  }
}

TEST_P(reader_test, stop_returns_every_lease_while_reads_are_in_flight) {
  for_each_seed(10, [&](std::uint64_t seed) {
    seeded_random random(seed);
    std::deque<leat::lease> memory;
    std::vector<std::future<std::span<const std::byte>>> reading;
    std::optional<reader> disk(std::in_place, 64_MiB, options());
    const reader::file file = disk->open(path("big"), use_future).get();
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t offset = random.below(file_bytes - 100'000);
      memory.push_back(disk->lease(reader::lease_bytes(offset, 100'000), use_future).get());
      reading.push_back(disk->read(file, offset, 100'000, memory.back(), use_future));
    }
    if (random.chance(0.5)) disk->stop();
    // Stopped, or destroyed on the spot: all of them have ended, and nobody writes to the leases any more.
    std::optional<std::future<leat::lease>> late;
    if (random.chance(0.5)) {
      disk->stop();
      late = disk->lease(4096, use_future);
      EXPECT_THROW(late->get(), error);
      EXPECT_THROW(disk->read(file, 0, 100, memory.front(), use_future).get(), error);
      EXPECT_THROW(static_cast<void>(disk->open(path("big"), use_future).get()), error);
    }
    disk.reset();
    for (auto& each : reading) {
      // Its handler was posted, and runs on a thread of Asio's own when that gets to it.
      ASSERT_EQ(each.wait_for(std::chrono::seconds(60)), std::future_status::ready);
      try {
        EXPECT_EQ(each.get().size(), 100'000U);
      } catch (const error& stopped) {
        EXPECT_EQ(stopped.code(), errc::cancelled);
      }
    }
  });
}

TEST_P(reader_test, gives_up_a_read_that_outlives_its_timeout_and_names_the_file) {
  std::ofstream(path("held")) << std::string(100, 'h');
  held_file held(path("held"));
  if (!held.held()) GTEST_SKIP() << "no leases on this file system";
  reader_options impatient = options();
  impatient.read_timeout = std::chrono::milliseconds(100);
  reader disk(16_MiB, impatient);
  const reader::file slow = disk.open(path("held"), use_future).get();
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(4096, use_future).get();
  leat::lease other = disk.lease(reader::lease_bytes(0, 10'000), use_future).get();
  auto stuck = disk.read(slow, 0, 100, memory, use_future);
  EXPECT_TRUE(is_right(disk.read(file, 0, 10'000, other, use_future).get(), 0, 10'000)) << "others are not held up";
  // A thread in open(2) cannot be called back; it is let go once the timeout has passed for certain.
  if (GetParam() == read_backend::preadv) {
    EXPECT_EQ(stuck.wait_for(std::chrono::milliseconds(400)), std::future_status::timeout)
        << "the thread still has the memory";
    held.let_go();
  }
  try {
    stuck.get();
    FAIL() << "it read";
  } catch (const error& late) {
    EXPECT_THAT(late.what(), HasSubstr(path("held")));
    EXPECT_THAT(late.what(), HasSubstr("ETIMEDOUT"));
    EXPECT_THAT(late.what(), HasSubstr("0.1 s"));
  }
}

TEST_P(reader_test, takes_a_read_back_from_the_kernel_when_it_is_cancelled) {
  if (GetParam() == read_backend::preadv) GTEST_SKIP() << "a thread in a system call cannot be called back";
  std::ofstream(path("pipe")) << std::string(100, 'f');
  int keep = -1;
  {
    reader_options buffered = options();
    buffered.direct = choice::off;  // a pipe has no O_DIRECT, and is found to be one
    reader disk(16_MiB, buffered);
    if (disk.report().backend.use != "io_uring") GTEST_SKIP() << "no io_uring here";
    const reader::file pipe = disk.open(path("pipe"), use_future).get();
    // A file until now. With a writer it opens; without bytes it blocks.
    ASSERT_EQ(::unlink(path("pipe").c_str()), 0);
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    keep = ::open(path("pipe").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(keep, 0);
    leat::lease memory = disk.lease(4096, use_future).get();
    boost::asio::thread_pool pool(1);
    boost::asio::cancellation_signal signal;
    std::promise<std::exception_ptr> ended;
    boost::asio::post(pool, [&] {
      disk.read(pipe, 0, 100, memory,
                boost::asio::bind_executor(
                    pool, boost::asio::bind_cancellation_slot(
                              signal.slot(), [&](std::exception_ptr failed, std::span<const std::byte>) {
                                ended.set_value(failed);
                              })));
    });
    std::future<std::exception_ptr> result = ended.get_future();
    EXPECT_EQ(result.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    boost::asio::post(pool, [&] { signal.emit(boost::asio::cancellation_type::total); });
    EXPECT_TRUE(result.get());
    pool.join();
  }
  ::close(keep);
}

TEST_P(reader_test, is_an_error_and_no_hang_in_a_child_after_fork) {
  if (LEAT_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer does not follow a fork of several threads";
  auto disk = std::make_unique<reader>(16_MiB, options());
  const reader::file file = disk->open(path("big"), use_future).get();
  leat::lease memory = disk->lease(4096, use_future).get();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = 0;
    try {
      disk->read(file, 0, 100, memory, use_future).get();
      wrong = 1;
    } catch (const error& refused) {
      wrong = refused.code() == errc::usage ? 0 : 2;
    }
    disk.reset();  // does not wait for threads that are not there
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(is_right(disk->read(file, 0, 100, memory, use_future).get(), 0, 100)) << "the parent goes on";
}

}  // namespace
}  // namespace leat::testing
