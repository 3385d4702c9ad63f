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
  void after(const io_uring& ring) {
    const mutex_lock lock(mutex_);
    const unsigned tail = __atomic_load_n(ring.cq.ktail, __ATOMIC_ACQUIRE);
    for (; seen_ != tail; ++seen_) in_kernel_.erase(ring.cq.cqes[seen_ & ring.cq.ring_mask].user_data);
  }

 private:
  mutable mutex mutex_;
  std::multiset<std::uint64_t> in_kernel_ ABSL_GUARDED_BY(mutex_);
  std::size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
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
  if (counts != nullptr) counts->before(*ring);
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
