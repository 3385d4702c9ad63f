#include "io/ring/io_threads.hpp"

#include "io/arena/lease_pool.hpp"
#include "io/files/file_description.hpp"
#include "tests/support/held_file.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/units.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

using namespace leat::literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct waited_read : io::read_operation {
  waited_read() {
    done = [](io::read_operation& told) noexcept { static_cast<waited_read&>(told).ended.set_value(); };
  }
  io::lease memory;
  std::promise<void> ended;
};

class io_threads_test : public ::testing::TestWithParam<read_backend> {
 protected:
  io_threads_test()
      : arena_(std::make_shared<io::arena>(io::arena_options{.bytes_max = 32_MiB})),
        pool_(arena_, {.bytes_max = 32_MiB}) {}

  [[nodiscard]] std::string path(const char* name) const { return (directory_.path() / name).string(); }
  void start(io::io_threads& threads, io::source& source, waited_read& read) {
    read.memory = std::move(*pool_.try_lease(io::aligned_bytes(read.offset, read.bytes)));
    read.into = io::target_of(read.memory);
    struct call {
      io::source& source;
      waited_read& read;
    };
    threads.loop(0).post(
        [](void* argument) noexcept {
          const std::unique_ptr<call> what(static_cast<call*>(argument));
          io::read_operation* const one[] = {&what->read};
          what->source.start(one);
        },
        new call{source, read});
  }

  temporary_directory directory_;
  std::shared_ptr<io::arena> arena_;
  io::lease_pool pool_;
  watchdog hang_{"io_threads_test"};
};

INSTANTIATE_TEST_SUITE_P(, io_threads_test, ::testing::Values(read_backend::automatic, read_backend::preadv),
                         [](const auto& each) { return each.param == read_backend::preadv ? "preadv" : "ring"; });

TEST_P(io_threads_test, reads_the_same_bytes_buffered_and_direct_and_counts_them) {
  std::vector<std::byte> contents(1'000'003);
  fill_seeded(9, 0, contents);
  std::ofstream(path("f"), std::ios::binary)
      .write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
  for (const std::uint64_t epoch_bytes : {std::uint64_t{1}, std::uint64_t{1} << 50}) {
    io::io_threads threads({.backend = GetParam()}, arena_);
    threads.set_epoch_bytes(epoch_bytes);
    auto table = std::make_shared<io::file_table>();
    table->add(path("f"), contents.size());
    const io::file_description files(table);
    auto source = files.connect(threads.loop(0));
    waited_read read;
    read.offset = 3;
    read.bytes = 1'000'000;
    start(threads, *source, read);
    read.ended.get_future().wait();
    EXPECT_EQ(read.failure, 0);
    ASSERT_EQ(read.data.size(), 1'000'000U);
    EXPECT_TRUE(std::equal(read.data.begin(), read.data.end(), contents.begin() + 3));
    EXPECT_GT(read.started_ns, 0U);
    source.reset();
    const io::io_counters count = threads.count();
    EXPECT_EQ(count.reads, 1U);
    EXPECT_EQ(count.in_flight, 0U);
    EXPECT_GE(count.bytes_read, 1'000'000U);
    EXPECT_EQ(count.opens, 1U);
    EXPECT_EQ(threads.report().direct.use, epoch_bytes == 1 ? "off" : "on") << threads.report().direct.why;
  }
}

// One folder over two file systems: the third of its files is a symbolic link to memory.
TEST_P(io_threads_test, reads_a_file_without_o_direct_buffered_or_refuses_it_by_name_wherever_it_stands) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const temporary_directory elsewhere("/dev/shm");
  constexpr std::size_t bytes = 20'003;
  const auto path_of = [&](int i) { return path(("f" + std::to_string(i)).c_str()); };
  auto table = std::make_shared<io::file_table>();
  std::vector<std::vector<std::byte>> contents(5, std::vector<std::byte>(bytes));
  for (int i = 0; i < 5; ++i) {
    std::vector<std::byte>& own = contents[static_cast<std::size_t>(i)];
    fill_seeded(static_cast<std::uint64_t>(i), 0, own);
    std::string place = path_of(i);
    if (i == 2) {
      place = (elsewhere.path() / "f2").string();
      std::filesystem::create_symlink(place, path_of(i));
    }
    std::ofstream(place, std::ios::binary)
        .write(reinterpret_cast<const char*>(own.data()), static_cast<std::streamsize>(own.size()));
    table->add(path_of(i), bytes);
  }
  for (const choice direct : {choice::automatic, choice::on}) {
    io::io_threads threads({.backend = GetParam(), .direct = direct}, arena_);
    threads.set_epoch_bytes(std::uint64_t{1} << 50);
    const io::file_description files(table);
    auto source = files.connect(threads.loop(0));
    for (std::uint32_t i = 0; i < 5; ++i) {
      waited_read read;
      read.file = i;
      read.offset = 1000;
      read.bytes = 19'003;
      start(threads, *source, read);
      read.ended.get_future().wait();
      if (direct == choice::on && i == 0 && read.failure == EOPNOTSUPP) GTEST_SKIP() << "no O_DIRECT here at all";
      if (direct == choice::on && i == 2) {
        EXPECT_EQ(read.failure, EOPNOTSUPP);
        const error why = source->explain(read);
        EXPECT_EQ(why.code(), errc::unsupported);
        EXPECT_THAT(why.what(), HasSubstr(path_of(2)));
        EXPECT_THAT(why.what(), HasSubstr("O_DIRECT"));
        continue;
      }
      EXPECT_EQ(read.failure, 0) << i;
      ASSERT_EQ(read.data.size(), 19'003U);
      EXPECT_TRUE(std::equal(read.data.begin(), read.data.end(), contents[i].begin() + 1000)) << i;
    }
    source.reset();
    if (direct == choice::on) EXPECT_EQ(threads.report().direct.use, "on");
  }
}

TEST_P(io_threads_test, tells_of_a_read_that_outlives_its_timeout_while_the_kernel_has_it) {
  std::ofstream(path("held")) << std::string(100, 'h');
  held_file held(path("held"));
  if (!held.held()) GTEST_SKIP() << "no leases on this file system";
  io::io_threads threads({.backend = GetParam(), .direct = choice::off, .read_timeout = std::chrono::milliseconds(50)},
                         arena_);
  std::promise<std::string> told;
  threads.on_overdue([&](const error& late) { told.set_value(late.what()); });
  auto table = std::make_shared<io::file_table>();
  table->add(path("held"));
  const io::file_description files(table);
  auto source = files.connect(threads.loop(0));
  waited_read read;
  read.bytes = 100;
  start(threads, *source, read);
  EXPECT_THAT(told.get_future().get(), HasSubstr(path("held")));
  if (threads.report().backend.use == "preadv") {
    // A thread in open(2) keeps it: it is named until the file is let go of.
    EXPECT_THAT(threads.overdue(), ElementsAre(HasSubstr(path("held"))));
    held.let_go();
  }
  read.ended.get_future().wait();
  EXPECT_EQ(read.failure, ETIMEDOUT);
  source.reset();
}

// What was a file when the dataset was opened. Without a writer an open waits for one, and with one a read does.
TEST_P(io_threads_test, says_of_a_file_that_has_become_a_pipe_that_it_is_none) {
  for (const bool has_writer : {false, true}) {
    for (const choice direct : {choice::off, choice::automatic}) {
      SCOPED_TRACE(std::string(has_writer ? "with" : "without") + " a writer, direct " +
                   (direct == choice::off ? "off" : "automatic"));
      const std::string name = path(has_writer ? "written" : "pipe");
      ::unlink(name.c_str());
      ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
      const int writer = has_writer ? ::open(name.c_str(), O_RDWR | O_CLOEXEC) : -1;
      std::ofstream(path("file")) << std::string(100, 'f');
      io::io_threads threads({.backend = GetParam(), .direct = direct}, arena_);
      auto table = std::make_shared<io::file_table>();
      table->add(name, 100);
      table->add(path("file"), 100);
      const io::file_description files(table);
      auto source = files.connect(threads.loop(0));
      waited_read read, neighbour;
      read.bytes = neighbour.bytes = 100;
      neighbour.file = 1;
      start(threads, *source, read);
      start(threads, *source, neighbour);
      read.ended.get_future().wait();
      neighbour.ended.get_future().wait();
      EXPECT_EQ(neighbour.failure, 0);
      // Of an empty pipe without a writer the ring learns no more than that it ends.
      EXPECT_THAT(read.failure, ::testing::AnyOf(ESPIPE, ENODATA));
      EXPECT_THAT(source->explain(read).what(), HasSubstr(name));
      if (writer >= 0) ::close(writer);
      source.reset();
    }
  }
}

TEST_P(io_threads_test, reads_that_hang_hold_nobody_else) {
  constexpr std::size_t count = 16;
  auto table = std::make_shared<io::file_table>();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = path(std::to_string(i).c_str());
    std::ofstream(name) << "file";
    table->add(name);
  }
  io::io_threads threads({.backend = GetParam(), .preadv_threads = 3}, arena_);
  const io::file_description files(table);
  auto source = files.connect(threads.loop(0));
  held_file first(path("0"));
  held_file fourth(path("3"));
  if (!first.held() || !fourth.held()) GTEST_SKIP() << "no leases on this file system";
  const auto hangs = [](std::size_t i) { return i == 0 || i == 3; };

  std::deque<waited_read> reads(count);
  std::vector<io::read_operation*> all;
  for (std::size_t i = 0; i < count; ++i) {
    waited_read& read = reads[i];
    read.file = static_cast<std::uint32_t>(i);
    read.bytes = 4;
    read.memory = std::move(*pool_.try_lease(io::aligned_bytes(0, 4)));
    read.into = io::target_of(read.memory);
    all.push_back(&read);
  }
  // All at once, so that a thread takes several.
  struct call {
    io::source& source;
    std::vector<io::read_operation*>& reads;
  } what{*source, all};
  threads.loop(0).post(
      [](void* argument) noexcept {
        const auto& asked = *static_cast<call*>(argument);
        asked.source.start(asked.reads);
      },
      &what);
  for (std::size_t i = 0; i < count; ++i) {
    if (!hangs(i)) reads[i].ended.get_future().wait();
  }
  while (!first.somebody_waits() || !fourth.somebody_waits()) std::this_thread::yield();
  first.let_go();
  fourth.let_go();
  for (std::size_t i = 0; i < count; ++i) {
    if (hangs(i)) reads[i].ended.get_future().wait();
    EXPECT_EQ(reads[i].failure, 0) << i;
  }
  source.reset();
}

TEST_P(io_threads_test, opens_no_more_files_than_it_may_and_finds_those_it_has_open) {
  constexpr int count = 200;
  auto table = std::make_shared<io::file_table>();
  for (int i = 0; i < count; ++i) {
    const std::string name = path(std::to_string(i).c_str());
    std::ofstream(name) << "file " << i;
    table->add(name);
  }
  io::io_threads threads({.backend = GetParam()}, arena_);
  const io::file_description files(table);
  auto source = files.connect(threads.loop(0));
  for (int round = 0; round < 2; ++round) {
    std::deque<waited_read> reads(count);
    for (int i = 0; i < count; ++i) {
      waited_read& read = reads[static_cast<std::size_t>(i)];
      read.file = static_cast<std::uint32_t>(i);
      read.bytes = 5 + std::to_string(i).size();
      start(threads, *source, read);
    }
    for (int i = 0; i < count; ++i) {
      waited_read& read = reads[static_cast<std::size_t>(i)];
      read.ended.get_future().wait();
      ASSERT_EQ(read.failure, 0);
      const auto* const text = reinterpret_cast<const char*>(read.data.data());
      EXPECT_EQ(std::string(text, read.data.size()), "file " + std::to_string(i));
    }
  }
  source.reset();
  EXPECT_EQ(threads.count().opens, static_cast<std::uint64_t>(count)) << "the second round found them open";
}

}  // namespace
}  // namespace leat::testing
