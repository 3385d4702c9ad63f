// How many reads the kernel has at a time, while the depth changes. A program of its own, as it stands before liburing: what is submitted
// and what has completed is counted there.
#include "base/mutex.hpp"
#include "io/arena/arena.hpp"
#include "io/files/file_description.hpp"
#include "io/reader/source_set.hpp"
#include "io/ring/io_threads.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/temporary_directory.hpp"

#include <leat/reader_options.hpp>

#include <gtest/gtest.h>

#include <liburing.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace leat {
namespace {

/// The reads that one ring's kernel has. With IORING_SETUP_DEFER_TASKRUN they complete within the calls that stand below, and nowhere else.
class submissions {
 public:
  void begin() {
    const mutex_lock lock(mutex_);
    most_ = 0;
  }
  [[nodiscard]] std::size_t most() const {
    const mutex_lock lock(mutex_);
    return most_;
  }
  void before(const io_uring& ring) {
    const mutex_lock lock(mutex_);
    const unsigned mask = ring.sq.ring_mask;
    for (unsigned at = ring.sq.sqe_head; at != ring.sq.sqe_tail; ++at) {
      const io_uring_sqe& entry = ring.sq.sqes[at & mask];
      const bool reads_a_file = (entry.opcode == IORING_OP_READ || entry.opcode == IORING_OP_READ_FIXED) &&
                                entry.len >= 4096;  // the wake-up's value is shorter
      if (reads_a_file) in_kernel_.insert(entry.user_data);
    }
    most_ = std::max(most_, in_kernel_.size());
  }
  void waits_for(unsigned completions, const __kernel_timespec* time) {
    const mutex_lock lock(mutex_);
    if (completions < 2 || time == nullptr) return;
    longest_ns_ = std::max<std::int64_t>(longest_ns_, time->tv_sec * 1'000'000'000 + time->tv_nsec);
  }
  /// A wait for more than one completion.
  [[nodiscard]] std::int64_t longest_ns() const {
    const mutex_lock lock(mutex_);
    return longest_ns_;
  }
  void after(const io_uring& ring) {
    const mutex_lock lock(mutex_);
    const unsigned tail = __atomic_load_n(ring.cq.ktail, __ATOMIC_ACQUIRE);
    for (; seen_ != tail; ++seen_) in_kernel_.erase(ring.cq.cqes[seen_ & ring.cq.ring_mask].user_data);
  }

 private:
  mutable mutex mutex_;
  std::multiset<std::uint64_t> in_kernel_ ABSL_GUARDED_BY(mutex_);
  std::size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
  std::int64_t longest_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  unsigned seen_ ABSL_GUARDED_BY(mutex_) = 0;
};
std::atomic<submissions*> counted{nullptr};

constexpr std::size_t reads_at_once = 300;
constexpr std::size_t read_bytes = 4096;

struct one_read : io::set_read {
  std::unique_ptr<std::byte, decltype(&std::free)> memory{nullptr, &std::free};
};

TEST(ring_depth, bounds_the_reads_that_the_kernel_has_and_is_reached) {
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "file").string();
  std::ofstream(path) << std::string(reads_at_once * read_bytes, 'x');
  auto table = std::make_shared<io::file_table>();
  table->add(path);
  const io::file_description file(std::move(table));

  submissions counts;
  counted = &counts;
  {
    reader_options options;
    options.direct = choice::off;
    options.queue_depth = 200;
    io::io_threads threads(options, std::make_shared<io::arena>(io::arena_options{.bytes_max = 4 << 20}));
    if (threads.report().backend.use != "io_uring") {
      counted = nullptr;
      GTEST_SKIP() << "no io_uring here: " << threads.report().backend.why;
    }
    io::connector* const loops[] = {&threads.loop(0)};
    io::source_set sources(loops);
    static_cast<void>(sources.add(file));
    std::vector<one_read> reads(reads_at_once);
    std::vector<io::read_operation*> all;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      reads[i].memory.reset(static_cast<std::byte*>(std::aligned_alloc(read_bytes, read_bytes)));
      reads[i].offset = i * read_bytes;
      reads[i].bytes = read_bytes;
      reads[i].into = {{reads[i].memory.get(), read_bytes}, io::read_target::no_piece};
      reads[i].ended = [](io::set_read& ended) noexcept { EXPECT_EQ(ended.failure, 0); };
      all.push_back(&reads[i]);
    }
    testing::seeded_random random(1);
    std::vector<std::uint32_t> depths{200, 1, 64, 7, 200};
    for (int i = 0; i < 20; ++i) depths.push_back(static_cast<std::uint32_t>(1 + random.below(200)));
    for (const std::uint32_t depth : depths) {
      threads.set_queue_depth(depth);
      counts.begin();
      sources.start(0, all);
      sources.drain();
      EXPECT_EQ(counts.most(), depth);
    }
    threads.set_queue_depth(0);  // by bytes again
    counts.begin();
    sources.start(0, all);
    sources.drain();
    EXPECT_EQ(counts.most(), 128U);
  }
  counted = nullptr;
}

// What is posted to the loop meanwhile, as stop(), waits as long.
TEST(ring_depth, of_large_reads_waits_no_longer_for_several_than_eight_take_at_1_gb_a_second) {
  constexpr std::size_t bytes = std::size_t{16} << 20;
  constexpr std::uint32_t at_once = 10;
  const testing::temporary_directory directory;
  const std::string path = (directory.path() / "file").string();
  std::ofstream(path) << "x";
  std::filesystem::resize_file(path, at_once * bytes);
  auto table = std::make_shared<io::file_table>();
  table->add(path);
  const io::file_description file(std::move(table));

  submissions counts;
  counted = &counts;
  {
    reader_options options;
    options.direct = choice::off;
    options.queue_depth = at_once;
    io::io_threads threads(options, std::make_shared<io::arena>(io::arena_options{.bytes_max = 4 << 20}));
    if (threads.report().backend.use != "io_uring") {
      counted = nullptr;
      GTEST_SKIP() << "no io_uring here: " << threads.report().backend.why;
    }
    io::connector* const loops[] = {&threads.loop(0)};
    io::source_set sources(loops);
    static_cast<void>(sources.add(file));
    std::vector<one_read> reads(at_once);
    reads[0].memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));  // nobody looks at it
    std::vector<io::read_operation*> all;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      reads[i].offset = i * bytes;
      reads[i].bytes = bytes;
      reads[i].into = {{reads[0].memory.get(), bytes}, io::read_target::no_piece};
      reads[i].ended = [](io::set_read& ended) noexcept { EXPECT_EQ(ended.failure, 0); };
      all.push_back(&reads[i]);
    }
    sources.start(0, all);
    sources.drain();
  }
  counted = nullptr;
  EXPECT_EQ(counts.most(), at_once);
  EXPECT_EQ(counts.longest_ns(), 8 * std::int64_t{bytes});
}

}  // namespace

// The linker has io/ring/uring.cpp call these, and gives us liburing's own by the other name.
extern "C" {
int __real_io_uring_submit_and_get_events(io_uring* ring);
int __real_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned wanted,
                                            __kernel_timespec* time, sigset_t* signals);
int __real_io_uring_get_events(io_uring* ring);

int __wrap_io_uring_submit_and_get_events(io_uring* ring) {
  submissions* const counts = counted;
  if (counts != nullptr) counts->before(*ring);
  const int result = __real_io_uring_submit_and_get_events(ring);
  if (counts != nullptr) counts->after(*ring);
  return result;
}
int __wrap_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** first, unsigned wanted,
                                            __kernel_timespec* time, sigset_t* signals) {
  submissions* const counts = counted;
  if (counts != nullptr) {
    counts->before(*ring);
    counts->waits_for(wanted, time);
  }
  const int result = __real_io_uring_submit_and_wait_timeout(ring, first, wanted, time, signals);
  if (counts != nullptr) counts->after(*ring);
  return result;
}
int __wrap_io_uring_get_events(io_uring* ring) {
  const int result = __real_io_uring_get_events(ring);
  if (submissions* const counts = counted) counts->after(*ring);
  return result;
}
}

}  // namespace leat
