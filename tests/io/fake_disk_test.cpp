#include "tests/support/fake_disk.hpp"

#include "tests/support/null_disk.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/test_loop.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

using ::testing::HasSubstr;

struct free_memory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

// A read with memory of its own, which remembers what came.
struct recorded_read : io::read_operation {
  recorded_read(std::uint32_t of_file, std::uint64_t at, std::uint64_t count) {
    const std::uint64_t room = io::aligned_bytes(at, count);
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(io::alignment_max_bytes, room)));
    if (!memory && room > 0) throw std::bad_alloc();
    file = of_file;
    offset = at;
    bytes = count;
    into = {{memory.get(), room}, io::read_target::no_piece};
    done = [](io::read_operation& operation) noexcept {
      auto& self = static_cast<recorded_read&>(operation);
      ++self.times_done;
      self.got.assign(self.data.begin(), self.data.end());
      if (self.when_done) self.when_done(self);
    };
  }

  std::unique_ptr<std::byte, free_memory> memory;
  std::function<void(recorded_read&)> when_done;
  int times_done = 0;
  std::vector<std::byte> got;
};

struct recorded_open : io::open_operation {
  explicit recorded_open(std::uint32_t of_file) {
    file = of_file;
    done = [](io::open_operation& operation) noexcept { ++static_cast<recorded_open&>(operation).times_done; };
  }
  int times_done = 0;
};

using reads = std::vector<std::unique_ptr<recorded_read>>;

void start_all(io::source& source, const reads& all) {
  std::vector<io::read_operation*> pointers;
  for (const auto& each : all) pointers.push_back(each.get());
  source.start(pointers);
}

void start_one(io::source& source, recorded_read& read) {
  io::read_operation* const pointer = &read;
  source.start({&pointer, 1});
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

// Random extents of random files; none ends beyond its file.
reads random_reads(const fake_disk& disk, seeded_random& random, std::size_t count) {
  reads all;
  while (all.size() < count) {
    const auto file = static_cast<std::uint32_t>(random.below(disk.files()));
    const std::uint64_t size = disk.size_bytes(file);
    const std::uint64_t offset = random.below(size);
    const std::uint64_t bytes = 1 + random.below(std::min<std::uint64_t>(size - offset, 10'000));
    all.push_back(std::make_unique<recorded_read>(file, offset, bytes));
  }
  return all;
}

fake_disk_options quiet(std::uint64_t seed = 1) {
  fake_disk_options options{.seed = seed, .order = delivery::in_order};
  options.faults.short_read = options.faults.again = options.faults.held_back = 0;
  return options;
}

TEST(fake_disk, delivers_every_read_once_with_its_bytes_under_any_seed) {
  for_each_seed(300, [](std::uint64_t seed) {
    fake_disk disk({.seed = seed});
    disk.add_file("small", bytes_of("forty-two bytes, written down in a string."));
    disk.add_seeded_file("big", std::uint64_t{1} << 40);
    disk.add_seeded_file("odd", 12'345);
    test_loop loop;
    const auto source = disk.connect(loop);
    seeded_random random(seed);
    const reads all = random_reads(disk, random, 1 + random.below(40));
    start_all(*source, all);
    for (const auto& each : all) ASSERT_EQ(each->times_done, 0) << "done() was called within start()";
    loop.run();
    for (const auto& each : all) {
      ASSERT_EQ(each->times_done, 1);
      ASSERT_EQ(each->failure, 0);
      ASSERT_EQ(each->got, disk.bytes(each->file, each->offset, each->bytes));
    }
    const fake_disk_counters seen = disk.count();
    EXPECT_EQ(seen.reads, all.size());
    EXPECT_EQ(seen.reads_in_flight, 0U);
    EXPECT_EQ(seen.bytes_in_flight, 0U);
    EXPECT_EQ(seen.reads_in_flight_max, all.size());
    EXPECT_EQ(seen.failed + seen.cancelled, 0U);
  });
}

std::vector<std::uint64_t> order_of_delivery(std::uint64_t seed) {
  fake_disk disk({.seed = seed});
  disk.add_seeded_file("file", 1'000'000);
  test_loop loop;
  const auto source = disk.connect(loop);
  std::vector<std::uint64_t> order;
  reads all;
  for (std::uint64_t i = 0; i < 50; ++i) {
    all.push_back(std::make_unique<recorded_read>(0, i * 1000, 1000));
    all.back()->when_done = [&order](recorded_read& read) { order.push_back(read.offset / 1000); };
  }
  start_all(*source, all);
  loop.run();
  return order;
}

TEST(fake_disk, gives_one_order_per_seed_and_many_orders_in_all) {
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::vector<std::uint64_t> order = order_of_delivery(seed);
    EXPECT_EQ(order, order_of_delivery(seed));
    orders.insert(order);
  }
  // Some seeds may deliver in order, in one bunch; most do not.
  EXPECT_GT(orders.size(), 40U);
}

TEST(fake_disk, delivers_in_order_where_told) {
  fake_disk disk(quiet());
  disk.add_seeded_file("file", 1'000'000);
  test_loop loop;
  const auto source = disk.connect(loop);
  std::vector<std::uint64_t> order;
  reads all;
  for (std::uint64_t i = 0; i < 10; ++i) {
    all.push_back(std::make_unique<recorded_read>(0, i, 1));
    all.back()->when_done = [&order](recorded_read& read) { order.push_back(read.offset); };
  }
  start_all(*source, all);
  EXPECT_EQ(loop.run_turn(), 1U);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(fake_disk, reads_short_and_tries_again_on_the_way) {
  fake_disk_options options{.seed = 3};
  options.faults.short_read = 0.7;
  options.faults.again = 0.7;
  fake_disk disk(options);
  disk.add_seeded_file("file", 100'000);
  test_loop loop;
  const auto source = disk.connect(loop);
  seeded_random random(3);
  const reads all = random_reads(disk, random, 100);
  start_all(*source, all);
  loop.run();
  for (const auto& each : all) {
    EXPECT_EQ(each->failure, 0);
    EXPECT_EQ(each->got, disk.bytes(0, each->offset, each->bytes));
  }
  EXPECT_GT(disk.count().short_reads, 20U);
  EXPECT_GT(disk.count().retries, 20U);
}

// Asks for 30 reads at once, then for 200 one after the other. Returns how many of the 30 come after 100 of the 200.
std::size_t late_arrivals(std::uint64_t seed, double held_back) {
  fake_disk_options options{.seed = seed};
  options.faults.held_back = held_back;
  fake_disk disk(options);
  disk.add_seeded_file("file", 1'000'000);
  test_loop loop;
  const auto source = disk.connect(loop);
  seeded_random random(seed);
  const reads all = random_reads(disk, random, 30);
  const reads chain = random_reads(disk, random, 200);
  std::size_t done_of_all = 0;
  std::size_t done_of_chain = 0;
  std::size_t late = 0;
  for (const auto& each : all) {
    each->when_done = [&](recorded_read&) {
      ++done_of_all;
      if (done_of_chain >= 100) ++late;
    };
  }
  for (const auto& each : chain) {
    each->when_done = [&](recorded_read&) {
      if (++done_of_chain < chain.size()) start_one(*source, *chain[done_of_chain]);
    };
  }
  start_all(*source, all);
  start_one(*source, *chain[0]);
  loop.run();
  EXPECT_EQ(done_of_all, all.size());
  EXPECT_EQ(done_of_chain, chain.size());
  return late;
}

TEST(fake_disk, holds_some_reads_back_until_everything_else_has_come) {
  std::size_t late = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(late_arrivals(seed, 0), 0U);
    late += late_arrivals(seed, 0.02);
  }
  EXPECT_GT(late, 0U);
}

TEST(fake_disk, fails_a_damaged_place_for_as_often_as_told) {
  fake_disk disk(quiet());
  disk.add_seeded_file("file", 100'000);
  disk.add_fault({.file = 0, .offset = 5000, .bytes = 10, .failure = EIO, .times = 1});
  disk.add_fault({.file = 0, .offset = 90'000, .failure = ENOENT});
  test_loop loop;
  const auto source = disk.connect(loop);
  const auto failure_at = [&](std::uint64_t offset, std::uint64_t bytes) {
    recorded_read read(0, offset, bytes);
    start_one(*source, read);
    loop.run();
    EXPECT_EQ(read.got.empty(), read.failure != 0);
    return read.failure;
  };
  EXPECT_EQ(failure_at(4000, 1000), 0) << "ends before the damage";
  EXPECT_EQ(failure_at(5010, 1000), 0) << "begins behind it";
  EXPECT_EQ(failure_at(4000, 1001), EIO);
  EXPECT_EQ(failure_at(4000, 1001), 0) << "it was to be hurt once";
  EXPECT_EQ(failure_at(90'000, 1), ENOENT);
  EXPECT_EQ(failure_at(90'000, 1), ENOENT);
  EXPECT_EQ(disk.count().failed, 3U);
}

TEST(fake_disk, tries_eagain_again_until_it_passes_or_the_tries_are_used_up) {
  fake_disk disk(quiet());
  disk.add_seeded_file("file", 100);
  disk.add_seeded_file("worse", 100);
  disk.add_fault({.file = 0, .offset = 0, .failure = EAGAIN, .times = fake_disk::tries_max - 1});
  disk.add_fault({.file = 1, .offset = 0, .failure = EINTR});
  test_loop loop;
  const auto source = disk.connect(loop);
  recorded_read better(0, 0, 100);
  recorded_read worse(1, 0, 100);
  start_one(*source, better);
  start_one(*source, worse);
  loop.run();
  EXPECT_EQ(better.failure, 0);
  EXPECT_EQ(better.got, disk.bytes(0, 0, 100));
  EXPECT_EQ(worse.failure, EINTR);
  EXPECT_EQ(disk.count().retries, 2 * (fake_disk::tries_max - 1));
}

TEST(fake_disk, fails_reads_by_chance_the_same_way_every_time) {
  for_each_seed(50, [](std::uint64_t seed) {
    fake_disk_options options{.seed = seed};
    options.faults.io_error = 0.1;
    options.faults.not_found = 0.1;
    options.faults.timed_out = 0.1;
    fake_disk disk(options);
    disk.add_seeded_file("file", 1'000'000);
    test_loop loop;
    const auto source = disk.connect(loop);
    seeded_random random(seed);
    std::set<int> seen;
    for (int round = 0; round < 2; ++round) {
      const reads all = random_reads(disk, random, 60);
      start_all(*source, all);
      loop.run();
      for (const auto& each : all) {
        ASSERT_EQ(each->times_done, 1);
        ASSERT_EQ(each->failure, disk.drawn_failure(0, each->offset));
        seen.insert(each->failure);
      }
    }
    EXPECT_EQ(seen, (std::set<int>{0, EIO, ENOENT, ETIMEDOUT}));
  });
}

TEST(fake_disk, keeps_its_damage_on_another_schedule_where_told) {
  const auto damage = [](std::uint64_t seed, std::uint64_t damage_seed) {
    fake_disk_options options{.seed = seed};
    options.faults.io_error = 0.5;
    options.faults.damage_seed = damage_seed;
    const fake_disk disk(options);
    std::vector<int> failures;
    for (std::uint64_t offset = 0; offset < 100; ++offset) failures.push_back(disk.drawn_failure(0, offset));
    return failures;
  };
  EXPECT_EQ(damage(1, 7), damage(2, 7));
  EXPECT_NE(damage(1, 0), damage(2, 0));
}

TEST(fake_disk, shows_poison_to_who_looks_too_early) {
  for_each_seed(50, [](std::uint64_t seed) {
    fake_disk disk({.seed = seed});
    disk.add_seeded_file("file", 100'000);
    test_loop loop;
    const auto source = disk.connect(loop);
    recorded_read read(0, 1000, 5000);
    start_one(*source, read);
    const std::span<const std::byte> memory = read.into.bytes;
    EXPECT_EQ(std::adjacent_find(memory.begin(), memory.end(), std::not_equal_to<>()), memory.end());
    loop.run();
    EXPECT_EQ(read.got, disk.bytes(0, 1000, 5000));
  });
}

TEST(fake_disk, says_that_the_file_ends_early) {
  fake_disk disk({.seed = 9});
  disk.add_seeded_file("file", 1000);
  test_loop loop;
  const auto source = disk.connect(loop);
  recorded_read to_the_end(0, 900, 100);
  recorded_read beyond(0, 900, 101);
  start_one(*source, to_the_end);
  start_one(*source, beyond);
  loop.run();
  EXPECT_EQ(to_the_end.failure, 0);
  EXPECT_EQ(beyond.failure, ENODATA);
  const error explained = source->explain(beyond);
  EXPECT_EQ(explained.code(), errc::io);
  EXPECT_THAT(explained.what(), HasSubstr("file: the file ends at 1000, and bytes up to 1001 were expected (ENODATA)"));
  EXPECT_EQ(beyond.got, disk.bytes(0, 900, 100)) << "what there is comes";
}

TEST(fake_disk, never_delivers_some_reads_until_they_are_cancelled) {
  fake_disk_options options{.seed = 5};
  options.faults.never = 1;
  fake_disk disk(options);
  disk.add_seeded_file("drawn", 10'000);
  test_loop loop;
  const auto source = disk.connect(loop);
  recorded_read read(0, 100, 5000);
  start_one(*source, read);
  EXPECT_EQ(loop.run(), 0U) << "a disk with nothing to deliver leaves the loop alone";
  EXPECT_EQ(read.times_done, 0);
  source->cancel(read);
  EXPECT_EQ(read.times_done, 0) << "done() was called within cancel()";
  source->cancel(read);  // says nothing new
  loop.run();
  EXPECT_EQ(read.times_done, 1);
  EXPECT_EQ(read.failure, ECANCELED);
  EXPECT_TRUE(read.data.empty());
  EXPECT_EQ(disk.count().cancels, 1U);
  EXPECT_EQ(disk.count().cancelled, 1U);
}

TEST(fake_disk, never_delivers_a_read_of_a_dead_place_in_the_list) {
  fake_disk disk(quiet());
  disk.add_seeded_file("listed", 10'000);
  disk.add_fault({.file = 0, .offset = 500, .failure = read_fault::never, .times = 1});
  test_loop loop;
  const auto source = disk.connect(loop);
  recorded_read dead(0, 0, 1000);
  recorded_read other(0, 0, 1000);
  start_one(*source, dead);
  loop.run();
  EXPECT_EQ(dead.times_done, 0);
  start_one(*source, other);
  loop.run();
  EXPECT_EQ(other.times_done, 1) << "it was to be dead once";
  source->cancel(dead);
  loop.run();
  EXPECT_EQ(dead.failure, ECANCELED);
}

TEST(fake_disk, may_write_after_a_cancel_and_never_after_done) {
  bool wrote_late = false;
  bool was_faster = false;
  for_each_seed(200, [&](std::uint64_t seed) {
    fake_disk disk({.seed = seed});
    disk.add_seeded_file("file", 1'000'000);
    test_loop loop;
    const auto source = disk.connect(loop);
    seeded_random random(seed);
    const reads all = random_reads(disk, random, 20);
    constexpr std::byte mine{0xFF};  // the poison is never that
    std::vector<std::vector<std::byte>> at_cancel(all.size());
    std::size_t done = 0;
    for (const auto& each : all) {
      each->when_done = [&](recorded_read& read) {
        ++done;
        std::fill(read.into.bytes.begin(), read.into.bytes.end(), mine);
      };
    }
    start_all(*source, all);
    for (std::uint64_t turns = random.below(6); turns > 0; --turns) loop.run_turn();
    std::vector<bool> asked(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]->times_done > 0 || random.chance(0.3)) continue;
      source->cancel(*all[i]);
      asked[i] = true;
      at_cancel[i].assign(all[i]->into.bytes.begin(), all[i]->into.bytes.end());
    }
    while (loop.run_turn() > 0) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto now = all[i]->into.bytes;
        wrote_late = wrote_late || (asked[i] && all[i]->times_done == 0 &&
                                    !std::equal(now.begin(), now.end(), at_cancel[i].begin(), at_cancel[i].end()));
      }
    }
    ASSERT_EQ(done, all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i]->times_done, 1);
      if (all[i]->failure == 0) {
        ASSERT_EQ(all[i]->got, disk.bytes(0, all[i]->offset, all[i]->bytes));
        was_faster = was_faster || asked[i];
      } else {
        ASSERT_TRUE(asked[i]);
        ASSERT_EQ(all[i]->failure, ECANCELED);
      }
      const auto memory = all[i]->into.bytes;
      ASSERT_TRUE(std::all_of(memory.begin(), memory.end(), [&](std::byte each) { return each == mine; }))
          << "written after done()";
    }
  });
  if (number_from_environment<std::uint64_t>("LEAT_SEED", 0) == 0 && seed_count(200) >= 200) {
    EXPECT_TRUE(wrote_late);
    EXPECT_TRUE(was_faster);
  }
}

TEST(fake_disk, lets_done_start_and_cancel_reads) {
  for_each_seed(50, [](std::uint64_t seed) {
    fake_disk disk({.seed = seed});
    disk.add_seeded_file("file", 1'000'000);
    test_loop loop;
    const auto source = disk.connect(loop);
    seeded_random random(seed);
    reads all = random_reads(disk, random, 100);
    std::size_t started = 4;
    for (const auto& each : all) {
      each->when_done = [&](recorded_read&) {
        if (started < all.size()) start_one(*source, *all[started++]);
        recorded_read& other = *all[random.below(started)];
        if (other.times_done == 0 && random.chance(0.2)) source->cancel(other);
      };
    }
    for (std::size_t i = 0; i < 4; ++i) start_one(*source, *all[i]);
    loop.run();
    ASSERT_EQ(started, all.size());
    for (const auto& each : all) {
      ASSERT_EQ(each->times_done, 1);
      if (each->failure == 0) {
        ASSERT_EQ(each->got, disk.bytes(0, each->offset, each->bytes));
      } else {
        ASSERT_EQ(each->failure, ECANCELED);
      }
    }
    EXPECT_LE(disk.count().reads_in_flight_max, 5U);
  });
}

TEST(fake_disk, may_be_let_go_by_the_last_done) {
  test_loop loop;
  auto disk = std::make_unique<fake_disk>();
  disk->add_seeded_file("file", 1000);
  std::unique_ptr<io::source> source = disk->connect(loop);
  recorded_read read(0, 0, 1000);
  read.when_done = [&](recorded_read&) { source.reset(); };
  start_one(*source, read);
  disk.reset();  // a source keeps what it needs
  loop.run();
  EXPECT_EQ(read.failure, 0);
  EXPECT_EQ(source, nullptr);
}

TEST(fake_disk, opens_files_late_and_tells_size_and_version) {
  fake_disk disk({.seed = 2});
  disk.add_file("first", bytes_of("12345"));
  disk.add_seeded_file("second", 77);
  disk.add_missing_file("missing");
  test_loop loop;
  const auto source = disk.connect(loop);
  recorded_open first(0), second(1), missing(2);
  for (recorded_open* each : {&first, &second, &missing}) source->start(*each);
  EXPECT_EQ(first.times_done + second.times_done + missing.times_done, 0);
  loop.run();
  EXPECT_EQ(first.size_bytes, 5U);
  EXPECT_EQ(second.size_bytes, 77U);
  EXPECT_EQ(missing.failure, ENOENT);
  EXPECT_EQ(source->explain(missing).code(), errc::not_found);
  EXPECT_THAT(source->explain(missing).what(), HasSubstr("missing: no such file (ENOENT); "));

  disk.replace_file(0, bytes_of("another"));
  recorded_open again(0);
  source->start(again);
  loop.run();
  EXPECT_EQ(again.size_bytes, 7U);
  EXPECT_NE(again.version, first.version);
}

TEST(fake_disk, serves_several_loops_at_once) {
  fake_disk disk({.seed = 4});
  disk.add_seeded_file("file", 1'000'000);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&disk, i] {
      test_loop loop;
      const auto source = disk.connect(loop);
      seeded_random random(i);
      for (int round = 0; round < 20; ++round) {
        const reads all = random_reads(disk, random, 10);
        start_all(*source, all);
        loop.run();
        for (const auto& each : all) EXPECT_EQ(each->got, disk.bytes(0, each->offset, each->bytes));
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(disk.count().reads, 600U);
  EXPECT_EQ(disk.count().sources, 3U);
  EXPECT_EQ(disk.count().reads_in_flight, 0U);
}

TEST(fake_disk, refuses_an_alignment_that_is_none) {
  EXPECT_THROW(fake_disk({.alignment_bytes = 3}), error);
  EXPECT_THROW(fake_disk({.alignment_bytes = 8192}), error);
}

// What a user does wrong ends the program, with a sentence.
class fake_disk_death : public ::testing::Test {
 protected:
  fake_disk_death() {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    disk_.add_seeded_file("file", 100'000);
    source_ = disk_.connect(loop_);
  }

  void finish(recorded_read& read) {
    if (read.times_done == 0) source_->cancel(read);
    loop_.run();
  }

  fake_disk disk_{{.seed = 1}};
  test_loop loop_;
  std::unique_ptr<io::source> source_;
};

TEST_F(fake_disk_death, memory_of_two_reads_names_both) {
  recorded_read first(0, 100, 200);
  recorded_read second(0, 300, 400);
  second.into = first.into;
  start_one(*source_, first);
  EXPECT_DEATH(start_one(*source_, second),
               "memory lent twice: read of 400 bytes at 300 of file .* belong to read of 200 bytes at 100 of file");
  finish(first);
}

TEST_F(fake_disk_death, memory_shared_between_two_disks_is_found_by_a_common_watch) {
  const auto watch = std::make_shared<memory_watch>();
  fake_disk one({.seed = 1, .watch = watch});
  fake_disk other({.seed = 2, .watch = watch});
  one.add_seeded_file("one", 8192);
  other.add_seeded_file("other", 8192);
  const auto source = one.connect(loop_);
  const auto other_source = other.connect(loop_);
  recorded_read first(0, 0, 8192);
  recorded_read second(0, 4096, 4096);
  second.into.bytes = first.into.bytes.subspan(4096);
  start_one(*source, first);
  EXPECT_DEATH(start_one(*other_source, second), "memory lent twice");
  loop_.run();
}

TEST_F(fake_disk_death, memory_too_small_or_not_aligned) {
  recorded_read small(0, 4095, 2);
  small.into.bytes = small.into.bytes.first(4096);
  EXPECT_DEATH(start_one(*source_, small), "its memory has 4096 bytes, and 8192 are needed");
  recorded_read skewed(0, 4095, 2);
  skewed.bytes = 1;
  skewed.into.bytes = skewed.into.bytes.subspan(512);
  EXPECT_DEATH(start_one(*source_, skewed), "its memory is not aligned to 4096 bytes");
}

TEST_F(fake_disk_death, memory_written_in_flight) {
  recorded_read read(0, 0, 4096);
  start_one(*source_, read);
  read.memory.get()[4000] = ~read.memory.get()[0];
  EXPECT_DEATH(loop_.run(), "read of 4096 bytes at 0 of file: its memory was written by somebody else");
  read.memory.get()[4000] = read.memory.get()[0];
  loop_.run();
}

TEST_F(fake_disk_death, operation_changed_in_flight) {
  recorded_read read(0, 0, 4096);
  start_one(*source_, read);
  read.offset = 1;
  EXPECT_DEATH(loop_.run(), "the operation was changed while it was in flight");
  read.offset = 0;
  loop_.run();
}

TEST_F(fake_disk_death, operation_started_twice) {
  recorded_read read(0, 0, 4096);
  start_one(*source_, read);
  EXPECT_DEATH(start_one(*source_, read), "the operation is in flight already");
  loop_.run();
}

TEST_F(fake_disk_death, cancel_of_a_read_that_is_done) {
  recorded_read read(0, 0, 4096);
  start_one(*source_, read);
  loop_.run();
  EXPECT_DEATH(source_->cancel(read), "not in flight: not started, or done already");
}

TEST_F(fake_disk_death, source_destroyed_with_operations_in_flight) {
  recorded_read read(0, 512, 100);
  start_one(*source_, read);
  EXPECT_DEATH(source_.reset(), "destroyed with operations in flight:\n  read of 100 bytes at 512 of file");
  finish(read);
}

TEST_F(fake_disk_death, source_used_on_two_threads) {
  recorded_read read(0, 0, 4096);
  start_one(*source_, read);
  loop_.run();
  EXPECT_DEATH(
      {
        std::thread other([&] { start_one(*source_, read); });
        other.join();
      },
      "on another thread than its loop's");
}

TEST_F(fake_disk_death, file_that_is_not_there) {
  recorded_read read(7, 0, 4096);
  EXPECT_DEATH(start_one(*source_, read), "file 7 was asked for; there are 1");
}

TEST(seeded_bytes, are_the_same_whichever_part_is_asked) {
  std::vector<std::byte> whole(1000);
  fill_seeded(7, 0, whole);
  for (std::size_t begin = 0; begin < 40; ++begin) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{100}}) {
      std::vector<std::byte> part(count);
      fill_seeded(7, begin, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
    }
  }
  std::vector<std::byte> other(1000);
  fill_seeded(8, 0, other);
  EXPECT_NE(whole, other);
}

TEST(null_disk, completes_everything_in_the_next_turn_and_writes_nothing) {
  null_disk disk({.files = 2, .file_bytes = 10'000});
  test_loop loop;
  const auto source = disk.connect(loop);
  recorded_read first(0, 0, 10'000);
  recorded_read second(1, 5000, 5000);
  recorded_read beyond(1, 5000, 5001);
  recorded_read cancelled(0, 1, 1);
  std::fill(first.into.bytes.begin(), first.into.bytes.end(), std::byte{0x5A});
  recorded_open open(1);
  for (recorded_read* each : {&first, &second, &beyond, &cancelled}) start_one(*source, *each);
  source->start(open);
  source->cancel(cancelled);
  EXPECT_EQ(first.times_done, 0);
  EXPECT_EQ(loop.run_turn(), 1U);
  EXPECT_EQ(first.failure, 0);
  EXPECT_EQ(first.got, std::vector<std::byte>(10'000, std::byte{0x5A}));
  EXPECT_EQ(second.failure, 0);
  EXPECT_EQ(second.data.data(), second.into.bytes.data() + 5000 - 4096);
  EXPECT_EQ(beyond.failure, ENODATA);
  EXPECT_EQ(cancelled.failure, ECANCELED);
  EXPECT_EQ(open.size_bytes, 10'000U);
}

TEST(null_disk, lets_done_start_the_next_read_and_let_it_go) {
  null_disk disk({.file_bytes = 4096, .write_zeros = true});
  test_loop loop;
  auto source = disk.connect(loop);
  recorded_read first(0, 0, 4096);
  recorded_read second(0, 0, 4096);
  first.when_done = [&](recorded_read&) { start_one(*source, second); };
  second.when_done = [&](recorded_read&) { source.reset(); };
  start_one(*source, first);
  loop.run();
  EXPECT_EQ(second.times_done, 1);
  EXPECT_EQ(second.got, std::vector<std::byte>(4096));
}

}  // namespace
}  // namespace leat::testing
