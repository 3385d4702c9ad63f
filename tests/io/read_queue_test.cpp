// A queue of reads on the ring, on its preadv twin and on a disk that is as difficult as disks may be.
#include "base/sanitizers.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/reader/read_queue_state.hpp"
#include "tests/support/allocation_counter.hpp"
#include "tests/support/fake_disk.hpp"
#include "tests/support/held_file.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_loop.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/read_queue.hpp>
#include <leat/units.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

using namespace leat::literals;
using boost::asio::deferred;
using boost::asio::use_future;
using ::testing::HasSubstr;
namespace asio = boost::asio;

struct way_to_read {
  const char* name;
  reader_options options;
};

class read_queue_test : public ::testing::TestWithParam<way_to_read> {
 protected:
  static constexpr std::size_t file_bytes = 9'000'001;

  read_queue_test() {
    contents_.resize(file_bytes);
    fill_seeded(42, 0, contents_);
    std::ofstream(path("big"), std::ios::binary)
        .write(reinterpret_cast<const char*>(contents_.data()), static_cast<std::streamsize>(contents_.size()));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  [[nodiscard]] bool is_right(std::span<const std::byte> data, std::uint64_t offset, std::uint64_t bytes) const {
    return data.size() == bytes && std::memcmp(data.data(), contents_.data() + offset, bytes) == 0;
  }

  temporary_directory directory_;
  std::vector<std::byte> contents_;
  watchdog hang_{"read_queue_test"};
};

INSTANTIATE_TEST_SUITE_P(, read_queue_test,
                         ::testing::Values(way_to_read{"ring", {}},
                                           way_to_read{"ring_unregistered", {.registered_buffers = choice::off}},
                                           way_to_read{"ring_at_depth_3", {.queue_depth = 3}},
                                           way_to_read{"buffered", {.direct = choice::off}},
                                           way_to_read{"preadv", {.backend = read_backend::preadv}}),
                         [](const auto& each) { return std::string(each.param.name); });

/// Reads `count` ranges of a file, as many at a time as the queue takes, and checks each.
struct many_reads {
  const std::vector<std::byte>& contents;
  std::uint64_t count = 300;
  std::uint64_t bytes_max = 60'000;
  std::uint64_t seed = 1;
  std::uint64_t wrong = 0;
  std::uint64_t given_back = 0;
  std::uint64_t bunches = 0;
};

asio::awaitable<void> read_many(read_queue& queue, reader::file file, std::span<std::byte> memory, many_reads& what) {
  const std::size_t slots = queue.room();
  const std::size_t slot_bytes = memory.size() / slots / 4096 * 4096;
  std::vector<std::uint64_t> idle;
  for (std::uint64_t k = 0; k < slots; ++k) idle.push_back(k);
  std::vector<read_request> next;
  seeded_random random(what.seed);
  std::uint64_t pushed = 0;
  for (;;) {
    for (; !idle.empty() && pushed < what.count; ++pushed, idle.pop_back()) {
      const std::uint64_t offset = random.below(what.contents.size());
      const std::uint64_t bytes = 1 + random.below(std::min(what.contents.size() - offset, what.bytes_max));
      next.push_back({file, offset, bytes, memory.subspan(idle.back() * slot_bytes, slot_bytes), idle.back()});
    }
    queue.push(next);
    next.clear();
    const std::span<const read_completion> ended = co_await queue.completed(deferred);
    if (ended.empty()) break;
    ++what.bunches;
    for (const read_completion& each : ended) {
      ++what.given_back;
      if (each.failure != 0 || each.data.size() != each.bytes ||
          std::memcmp(each.data.data(), what.contents.data() + each.offset, each.bytes) != 0) {
        ++what.wrong;
      }
      idle.push_back(each.tag);
    }
  }
}

TEST_P(read_queue_test, gives_back_each_read_once_with_its_tag_and_its_bytes) {
  reader disk(16_MiB, GetParam().options);
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(4_MiB, use_future).get();
  read_queue queue = disk.queue({.reads_max = 32});
  for (const bool elsewhere : {false, true}) {
    many_reads what{contents_};
    asio::io_context context;
    if (elsewhere) {
      auto done = asio::co_spawn(context, read_many(queue, file, memory.bytes(), what), use_future);
      context.run();
      done.get();
    } else {
      asio::co_spawn(queue.get_executor(), read_many(queue, file, memory.bytes(), what), use_future).get();
    }
    EXPECT_EQ(what.wrong, 0U);
    EXPECT_EQ(what.given_back, what.count);
    EXPECT_EQ(queue.size(), 0U);
    EXPECT_EQ(queue.room(), 32U);
  }
}

TEST_P(read_queue_test, reads_8_MiB_into_any_part_of_a_lease_and_into_memory_of_anybodys) {
  reader disk(64_MiB, GetParam().options);
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(40_MiB, use_future).get();
  const std::unique_ptr<std::byte, decltype(&std::free)> own(static_cast<std::byte*>(std::aligned_alloc(4096, 12_MiB)),
                                                             &std::free);
  read_queue queue = disk.queue({.reads_max = 4});
  const auto part = memory.bytes();
  queue.push({file, 5, 8_MiB, part.subspan(3 * 4096, 8_MiB + 4096), 0});
  queue.push({file, 4096, 8_MiB, part.subspan(20_MiB, 8_MiB), 1});
  queue.push({file, 100, 200, part.last(4096), 2});
  queue.push({file, 77, 8'500'000, {own.get(), 12_MiB}, 3});
  std::vector<int> seen(4);
  for (std::size_t left = 4; left != 0;) {
    const std::span<const read_completion> completed = queue.completed(use_future).get();
    for (const read_completion& each : completed) {
      EXPECT_EQ(each.failure, 0) << each.tag;
      EXPECT_TRUE(is_right(each.data, each.offset, each.bytes)) << each.tag;
      ++seen[each.tag];
      --left;
    }
  }
  EXPECT_EQ(seen, std::vector<int>(4, 1));
}

TEST_P(read_queue_test, has_the_failure_of_each_read_as_a_value_and_in_words) {
  std::ofstream(path("gone")) << "here, still";
  reader disk(16_MiB, GetParam().options);
  const reader::file file = disk.open(path("big"), use_future).get();
  const reader::file gone = disk.open(path("gone"), use_future).get();
  std::filesystem::remove(path("gone"));
  leat::lease memory = disk.lease(1_MiB, use_future).get();
  read_queue queue = disk.queue({.reads_max = 8});
  const auto slot = [&](std::size_t k) { return memory.bytes().subspan(k * 64_KiB, 64_KiB); };
  const read_request asked[] = {{file, 4096, 5000, slot(0), 0},
                                {file, file_bytes - 10, 100, slot(1), 1},
                                {gone, 0, 5, slot(2), 2},
                                {file, file_bytes + 100'000, 100, slot(3), 3},
                                {file, file_bytes, 0, slot(4), 4}};
  queue.push(asked);
  std::map<std::uint64_t, read_completion> ended;
  while (ended.size() < 5) {
    const std::span<const read_completion> completed = queue.completed(use_future).get();
    for (const read_completion& each : completed) ended[each.tag] = each;
  }
  EXPECT_TRUE(is_right(ended[0].data, 4096, 5000));
  EXPECT_EQ(ended[1].failure, ENODATA);
  EXPECT_TRUE(is_right(ended[1].data, file_bytes - 10, 10)) << "what the file has is there";
  EXPECT_THAT(queue.explain(ended[1]).what(), HasSubstr(std::to_string(file_bytes)));
  EXPECT_EQ(ended[2].failure, ENOENT);
  EXPECT_THAT(queue.explain(ended[2]).what(), HasSubstr(path("gone")));
  EXPECT_EQ(queue.explain(ended[2]).code(), errc::not_found);
  EXPECT_EQ(ended[3].failure, ENODATA);
  EXPECT_TRUE(ended[3].data.empty());
  EXPECT_EQ(ended[4].failure, 0) << "a read of nothing";
}

TEST_P(read_queue_test, refuses_what_can_never_be_read_and_takes_none_of_it) {
  reader disk(16_MiB, GetParam().options);
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(64_KiB, use_future).get();
  EXPECT_THROW(static_cast<void>(disk.queue({.reads_max = 0})), error);
  read_queue queue = disk.queue({.reads_max = 2});
  const auto refusal = [&](std::vector<read_request> asked) -> std::string {
    try {
      queue.push(asked);
    } catch (const error& refused) {
      EXPECT_EQ(queue.size(), 0U);
      return refused.what();
    }
    return "none";
  };
  const std::span<std::byte> all = memory.bytes();
  EXPECT_THAT(refusal({{file, 0, 100, all}, {file, 4000, 200, all.first(4096)}}),
              HasSubstr("read 1 cannot be made: its memory has 4096 bytes and lease_bytes(4000, 200) is 8192"));
  EXPECT_THAT(refusal({{file, 0, 100, all.subspan(512)}}), HasSubstr("multiple of 4096"));
  EXPECT_THAT(refusal({{reader::file{}, 0, 100, all}}), HasSubstr("not opened by this reader"));
  EXPECT_THAT(refusal({{file, ~std::uint64_t{0}, 100, all}}), HasSubstr("2^64"));
  EXPECT_THAT(refusal({3, {file, 0, 100, all}}), HasSubstr("a queue of 2 reads holds 0, and 3 more do not fit"));
  EXPECT_EQ(refusal({}), "none");
  EXPECT_TRUE(queue.completed(use_future).get().empty()) << "nothing is under way";
}

TEST_P(read_queue_test, lets_go_of_who_waits_when_that_is_cancelled_and_loses_nothing) {
  std::ofstream(path("held")) << "a file";
  reader disk(16_MiB, GetParam().options);
  const reader::file slow = disk.open(path("held"), use_future).get();
  leat::lease memory = disk.lease(4096, use_future).get();
  read_queue queue = disk.queue();
  held_file held(path("held"));
  if (!held.held()) GTEST_SKIP() << "no leases on this file system";
  queue.push({slow, 0, 6, memory.bytes(), 7});
  asio::io_context context;
  asio::cancellation_signal cancel;
  int aborted = 0;
  queue.completed(asio::bind_executor(
      context, asio::bind_cancellation_slot(cancel.slot(),
                                            [&](std::exception_ptr failure, std::span<const read_completion> ended) {
                                              EXPECT_TRUE(ended.empty());
                                              try {
                                                if (failure) std::rethrow_exception(failure);
                                              } catch (const boost::system::system_error& told) {
                                                if (told.code() == asio::error::operation_aborted) ++aborted;
                                              }
                                            })));
  EXPECT_THROW(static_cast<void>(queue.completed(use_future).get()), error) << "somebody waits already";
  cancel.emit(asio::cancellation_type::total);
  context.run();
  EXPECT_EQ(aborted, 1);
  EXPECT_EQ(queue.size(), 1U);
  held.let_go();
  const auto ended = queue.completed(use_future).get();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].tag, 7U);
  EXPECT_EQ(ended[0].failure, 0);
}

TEST_P(read_queue_test, gives_every_read_back_once_when_all_are_cancelled) {
  for_each_seed(5, [&](std::uint64_t seed) {
    seeded_random random(seed);
    reader disk(64_MiB, GetParam().options);
    const reader::file file = disk.open(path("big"), use_future).get();
    leat::lease memory = disk.lease(50 * 256_KiB, use_future).get();
    read_queue queue = disk.queue({.reads_max = 50});
    std::vector<int> given(50);
    for (std::uint64_t k = 0; k < 50; ++k) {
      queue.push({file, random.below(file_bytes - 200'000), 200'000, memory.bytes().subspan(k * 256_KiB, 256_KiB), k});
      if (k == seed * 7 % 50) queue.cancel();
    }
    queue.cancel();
    for (std::size_t left = 50; left != 0;) {
      const std::span<const read_completion> completed = queue.completed(use_future).get();
      for (const read_completion& each : completed) {
        --left;
        ++given[each.tag];
        EXPECT_TRUE(each.failure == ECANCELED || (each.failure == 0 && is_right(each.data, each.offset, each.bytes)));
      }
    }
    EXPECT_EQ(given, std::vector<int>(50, 1));
    EXPECT_TRUE(queue.completed(use_future).get().empty());
  });
}

asio::awaitable<void> push_and_leave(reader& disk, reader::file file, std::span<std::byte> memory, bool throws) {
  read_queue queue = disk.queue({.reads_max = 64});
  for (std::uint64_t k = 0; k < 64; ++k)
    queue.push({file, k * 65'536, 131'072, memory.subspan(k * 128_KiB, 128_KiB), k});
  if (throws) throw std::runtime_error("left early");
  const auto ended = co_await queue.completed(deferred);
  EXPECT_FALSE(ended.empty());
}

TEST_P(read_queue_test, waits_at_its_end_until_the_kernel_has_let_go) {
  reader disk(32_MiB, GetParam().options);
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(64 * 128_KiB, use_future).get();
  const auto untouched = [&] {
    // Nobody writes there any more, while the drive is busy with others.
    std::memset(memory.data(), 0x5A, memory.size());
    leat::lease other = disk.lease(1_MiB, use_future).get();
    for (int i = 0; i < 10; ++i) disk.read(file, 0, 1_MiB, other, use_future).get();
    return std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0 && *memory.data() == std::byte{0x5A};
  };
  for (int round = 0; round < 4; ++round) {
    {
      read_queue queue = disk.queue({.reads_max = 64});
      for (std::uint64_t k = 0; k < 64; ++k) {
        queue.push({file, k * 65'536, 131'072, memory.bytes().subspan(k * 128_KiB, 128_KiB), k});
      }
    }
    EXPECT_TRUE(untouched()) << "destroyed by another thread";
    auto left =
        asio::co_spawn(disk.get_executor(), push_and_leave(disk, file, memory.bytes(), round % 2 == 0), use_future);
    if (round % 2 == 0) {
      EXPECT_THROW(left.get(), std::runtime_error);
    } else {
      left.get();
    }
    EXPECT_TRUE(untouched()) << "destroyed on its own executor";
  }
}

TEST_P(read_queue_test, waits_at_its_end_for_a_read_that_cannot_be_called_back) {
  reader disk(16_MiB, GetParam().options);
  leat::lease memory = disk.lease(4096, use_future).get();
  for (const bool own : {false, true}) {
    const std::string name = path(own ? "held by one" : "held by another");
    std::ofstream(name) << "a file";
    const reader::file slow = disk.open(name, use_future).get();
    held_file held(name);
    if (!held.held()) GTEST_SKIP() << "no leases on this file system";
    auto queue = std::make_unique<read_queue>(disk.queue());
    queue->push({slow, 0, 6, memory.bytes()});
    std::atomic<bool> gone{false};
    std::thread opener([&] {
      // It may have been taken back before it came to the door.
      while (!held.somebody_waits() && !gone) std::this_thread::yield();
      held.let_go();
    });
    if (own) {
      asio::post(disk.get_executor(), [&] {
        queue.reset();
        gone = true;
      });
    } else {
      queue.reset();
      gone = true;
    }
    opener.join();
    while (!gone) std::this_thread::yield();
  }
}

TEST_P(read_queue_test, ends_with_ecanceled_what_is_under_way_when_the_reader_stops_and_what_comes_later) {
  reader disk(64_MiB, GetParam().options);
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(32 * 1_MiB, use_future).get();
  read_queue queue = disk.queue({.reads_max = 40});
  for (std::uint64_t k = 0; k < 32; ++k) queue.push({file, k, 1'000'000, memory.bytes().subspan(k * 1_MiB, 1_MiB), k});
  auto waiting = queue.completed(use_future);
  disk.stop();
  queue.push({file, 0, 100, memory.bytes().first(4096), 32});
  std::size_t given = waiting.get().size();
  int last = -1;
  for (;;) {
    const auto ended = queue.completed(use_future).get();
    if (ended.empty()) break;
    given += ended.size();
    for (const read_completion& each : ended) {
      EXPECT_TRUE(each.failure == 0 || each.failure == ECANCELED);
      if (each.tag == 32) last = each.failure;
    }
  }
  EXPECT_EQ(given, 33U);
  EXPECT_EQ(last, ECANCELED);
}

TEST_P(read_queue_test, allocates_nothing_for_a_read) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  reader disk(16_MiB, GetParam().options);
  const reader::file file = disk.open(path("big"), use_future).get();
  leat::lease memory = disk.lease(4_MiB, use_future).get();
  read_queue queue = disk.queue({.reads_max = 64});
  const auto run = [&](std::uint64_t count) {
    many_reads what{contents_, count, 20'000};
    const allocation_counter counted(allocation_counter::scope::all_threads);
    asio::co_spawn(queue.get_executor(), read_many(queue, file, memory.bytes(), what), use_future).get();
    EXPECT_EQ(what.wrong, 0U);
    return std::pair(counted.count().allocations, what.bunches);
  };
  run(5'000);  // warm
  const auto [few, few_bunches] = run(500);
  const auto [many, many_bunches] = run(10'500);
  // What the coroutine and its vectors ask for is the same for both, and Asio asks twice for a handler. 10,000 reads more ask
  // for nothing; preadv's threads, which tell of them, post to the loop, and once for a run of theirs.
  const bool threads = disk.report().backend.use == "preadv";
  EXPECT_LE(many, few + (threads ? 4 : 2) * many_bunches + 20) << few << " in " << few_bunches << ", " << many_bunches;
}

TEST_P(read_queue_test, serves_several_queues_from_several_threads_at_once) {
  reader_options several = GetParam().options;
  several.io_threads = 3;
  reader disk(64_MiB, several);
  const reader::file file = disk.open(path("big"), use_future).get();
  struct user {
    user(reader& of, const std::vector<std::byte>& contents, std::uint64_t seed)
        : queue(of.queue({.reads_max = 16})),
          memory(of.lease(2_MiB, use_future).get()),
          what{contents, 400, 60'000, seed} {}
    read_queue queue;
    leat::lease memory;
    many_reads what;
    asio::io_context context;
    std::thread thread;
  };
  std::vector<std::unique_ptr<user>> users;
  for (std::uint64_t k = 0; k < 5; ++k) {
    user& one = *users.emplace_back(std::make_unique<user>(disk, contents_, k));
    asio::co_spawn(one.context, read_many(one.queue, file, one.memory.bytes(), one.what), use_future);
    one.thread = std::thread([&one] { one.context.run(); });
  }
  for (auto& one : users) {
    one->thread.join();
    EXPECT_EQ(one->what.wrong, 0U);
    EXPECT_EQ(one->what.given_back, 400U);
  }
}

TEST_P(read_queue_test, is_an_error_and_no_hang_in_a_child_after_fork) {
  if (LEAT_THREAD_SANITIZER) GTEST_SKIP() << "ThreadSanitizer does not follow a fork of several threads";
  auto disk = std::make_unique<reader>(16_MiB, GetParam().options);
  const reader::file file = disk->open(path("big"), use_future).get();
  leat::lease memory = disk->lease(4096, use_future).get();
  auto queue = std::make_unique<read_queue>(disk->queue());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int wrong = 1;
    try {
      queue->push({file, 0, 100, memory.bytes()});
    } catch (const error& refused) {
      wrong = refused.code() == errc::usage ? 0 : 2;
    }
    queue.reset();
    disk.reset();
    ::_exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  queue.reset();
}

// ---- On the fake disk ---------------------------------------------------------------------------------------------

/// A queue without a reader around it.
class fake_host final : public io::read_queue_host {
 public:
  fake_host(const fake_disk& disk, io::lease_pool& pool, io::connector& loop)
      : disk_(disk), pool_(pool), source_(disk.connect(loop)) {}
  [[nodiscard]] bool knows(std::uint32_t file) const noexcept override { return file == 0; }
  [[nodiscard]] io::read_target target_at(std::span<std::byte> memory) const noexcept override {
    return pool_.target_at(memory);
  }
  [[nodiscard]] error explain(const read_completion& /*failed*/) const override {
    return {errc::io, disk_.file_name(0)};
  }
  [[nodiscard]] io::source& source_of(std::uint32_t /*file*/) override { return *source_; }
  void on_idle(io::read_queue_state& /*queue*/) noexcept override { ++idle; }
  void forget(io::read_queue_state& /*queue*/) noexcept override { ++forgotten; }

  int idle = 0;
  int forgotten = 0;

 private:
  const fake_disk& disk_;
  io::lease_pool& pool_;
  std::unique_ptr<io::source> source_;
};

TEST(read_queue_on_a_fake_disk, gives_every_read_back_once_whatever_fails_and_is_cancelled_and_when) {
  for_each_seed(12, [&](std::uint64_t seed) {
    seeded_random random(seed);
    fault_plan faults;
    faults.io_error = 0.1;
    faults.timed_out = 0.05;
    faults.short_read = 0.3;
    fake_disk disk({.seed = seed, .faults = faults});
    const std::uint64_t size = 1'000'000;
    disk.add_seeded_file("fake", size);
    const auto arena = std::make_shared<io::arena>(io::arena_options{.bytes_max = 16_MiB});
    io::lease_pool pool(arena, {.bytes_max = 16_MiB, .as_one = true});
    io::lease memory = std::move(*pool.try_lease(40 * 32_KiB));
    test_loop loop;
    fake_host host(disk, pool, loop);
    const auto queue = std::make_shared<io::read_queue_state>(host, loop, loop.loop().get_executor(), 40);

    std::vector<std::uint64_t> idle;
    for (std::uint64_t k = 0; k < 40; ++k) idle.push_back(k);
    std::map<std::uint64_t, std::uint64_t> under_way;
    bool waiting = false;
    bool cancelled = false;
    const auto wait = [&] {
      waiting = true;
      queue->wait(io::read_queue_state::wait_completion(asio::bind_executor(
          loop.loop().get_executor(), [&](std::exception_ptr failure, std::span<const read_completion> ended) {
            waiting = false;
            ASSERT_EQ(failure, nullptr);
            for (const read_completion& each : ended) {
              const auto found = under_way.find(each.tag);
              ASSERT_NE(found, under_way.end()) << "given back twice";
              EXPECT_EQ(found->second, each.offset);
              under_way.erase(found);
              idle.push_back(each.tag);
              if (each.failure == ECANCELED) {
                EXPECT_TRUE(cancelled);
              } else if (each.failure == 0) {
                const std::vector<std::byte> right = disk.bytes(0, each.offset, each.bytes);
                EXPECT_TRUE(std::equal(right.begin(), right.end(), each.data.begin(), each.data.end()));
              } else {
                EXPECT_EQ(each.failure, disk.drawn_failure(0, each.offset));
              }
            }
          })));
    };
    const auto step = [&] {
      for (std::uint64_t n = random.below(4); n != 0 && !idle.empty(); --n) {
        const std::uint64_t slot = idle.back();
        idle.pop_back();
        const std::uint64_t offset = random.below(size - 5'000);
        under_way.emplace(slot, offset);
        const read_request one{
            {.number = 0}, offset, 1 + random.below(5'000), memory.bytes().subspan(slot * 32_KiB, 32_KiB), slot};
        queue->push({&one, 1});
      }
      if (random.chance(0.02)) {
        cancelled = true;
        queue->cancel();
      }
      if (!waiting && random.chance(0.7)) wait();
    };
    for (int i = 0; i < 400; ++i) {
      // On the loop's thread, and from elsewhere.
      if (random.chance(0.5)) {
        asio::post(loop.loop().get_executor(), step);
      } else {
        step();
      }
      loop.run_turn();
    }
    while (!under_way.empty()) {
      loop.run();
      if (!waiting && !under_way.empty()) wait();
    }
    loop.run();
    EXPECT_EQ(queue->size(), 0U);
    EXPECT_GT(host.idle, 0);
    std::thread closing([&] { queue->close(); });
    while (host.forgotten == 0) {
      loop.run_turn();
      std::this_thread::yield();
    }
    closing.join();
  });
}

}  // namespace
}  // namespace leat::testing
