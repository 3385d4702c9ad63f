// System calls that fail where nobody expects it: each errno at each call of a ring's life, and of the threads' that read
// without one. It stands before liburing and the C library (the linker's --wrap). Whatever is refused, a run gives the same
// batches or an error that says what failed, and the loader ends.
#include "io/ring/ring_state.hpp"
#include "io/ring/uring.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/reader.hpp>
#include <leat/units.hpp>

#include <boost/asio/use_future.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <liburing.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::HasSubstr;
using namespace leat::literals;
using testing::loader;
using testing::loader_options;

enum class fallback_of_test : std::uint8_t { registered, plain, cooperative, without_flags, threads };
constexpr fallback_of_test fallbacks[] = {fallback_of_test::registered, fallback_of_test::plain,
                                          fallback_of_test::cooperative, fallback_of_test::without_flags,
                                          fallback_of_test::threads};

/// What fails: the calls from number `first` on, one or all of them.
struct fault {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
  int code = 0;
  std::uint64_t first = never;
  bool for_ever = false;
  bool made = false;        ///< the call is made, and fails all the same
  bool only_waits = false;  ///< those that would wait
  bool only_enter = true;   ///< of io_uring_enter(2); else also what sets a ring up and what threads read with
};

/// Counts calls and chooses those that fail. Thread: any.
class saboteur {
 public:
  void begin(const fault& given) {
    const std::lock_guard lock(mutex_);
    fault_ = given;
    calls_ = 0;
  }
  /// Setting a ring up with one of these fails, as on an older kernel.
  void forbid_flags(unsigned flags) { forbidden_flags_ = flags; }
  [[nodiscard]] std::uint64_t made() const { return calls_; }
  [[nodiscard]] unsigned forbidden_flags() const { return forbidden_flags_; }

  /// The errno that this call is to fail with, or 0.
  int next(bool is_enter, bool waits = false) {
    const std::lock_guard lock(mutex_);
    if ((fault_.only_enter && !is_enter) || (fault_.only_waits && !waits)) return 0;
    const std::uint64_t number = calls_.fetch_add(1);
    const bool hit = fault_.for_ever ? number >= fault_.first : number == fault_.first;
    return hit ? fault_.code : 0;
  }
  [[nodiscard]] bool makes_the_call() const {
    const std::lock_guard lock(mutex_);
    return fault_.made;
  }

  /// The next so many reads complete with this errno.
  void spoil_reads(int count, int code) {
    spoilt_code_ = code;
    reads_to_spoil_ = count;
  }
  [[nodiscard]] int reads_to_spoil() const { return reads_to_spoil_; }
  void see(io_uring_cqe& completion) {
    const bool is_read = (completion.user_data & io::ring::tag_mask) == io::ring::tag_chunk;
    if (!is_read || completion.res <= 0 || reads_to_spoil_ <= 0) return;
    --reads_to_spoil_;
    completion.res = -spoilt_code_;
  }

 private:
  mutable std::mutex mutex_;
  fault fault_;
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<unsigned> forbidden_flags_{0};
  std::atomic<int> reads_to_spoil_{0};
  std::atomic<int> spoilt_code_{0};
};

saboteur& calls() {
  static saboteur one;
  return one;
}

template <class Call>
int enter(const Call& call, bool waits = false) {
  const int failure = calls().next(true, waits);
  if (failure == 0) return call();
  if (calls().makes_the_call()) static_cast<void>(call());
  return -failure;
}

template <class Call>
int set_up(const Call& call) {
  const int failure = calls().next(false);
  return failure == 0 ? call() : -failure;
}

class ring_faults : public ::testing::Test {
 protected:
  ring_faults()
      : samples_(testing::write_samples(testing::make_samples(3, 40),
                                        {.layout = testing::fake_layout::file_per_member, .disk = {}},
                                        directory_.path())) {}
  ~ring_faults() override { calls().begin({}); }

  struct outcome {
    testing::seen_run seen;
    std::uint64_t calls = 0;
  };
  [[nodiscard]] outcome run(fallback_of_test fallback, const fault& what) {
    loader_options options = testing::small_options();
    options.batch_size = 5;
    options.reader.registered_buffers = fallback == fallback_of_test::registered ? choice::automatic : choice::off;
    options.reader.backend = fallback == fallback_of_test::threads ? read_backend::preadv : read_backend::automatic;
    calls().forbid_flags(fallback == fallback_of_test::cooperative ? IORING_SETUP_DEFER_TASKRUN
                         : fallback == fallback_of_test::without_flags
                             ? IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN
                             : 0U);
    dog_.step("fallback " + std::to_string(static_cast<int>(fallback)) + ", errno " + std::to_string(what.code) +
              " at call " + std::to_string(what.first));
    const auto began = std::chrono::steady_clock::now();
    calls().begin(what);
    outcome got{.seen = testing::run_all(samples_, options, testing::label_only())};
    got.calls = calls().made();
    calls().begin({});
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
    return got;
  }

  [[nodiscard]] bool has_io_uring() {
    return run(fallback_of_test::plain, {}).seen.stats.reader.backend.use == "io_uring";
  }

  static void expect_same_or_named(const outcome& got, const testing::seen_run& expected, int code) {
    if (got.seen.failed) {
      EXPECT_THAT(got.seen.message, HasSubstr(::strerrorname_np(code)));
    } else {
      EXPECT_EQ(got.seen.batches, expected.batches);
    }
  }

  const testing::temporary_directory directory_;
  const dataset samples_;
  testing::watchdog dog_{"ring_faults"};
};

// A call in the middle: the first is the probe of a new ring, and after it any run has some, how many depends on the disk.
constexpr std::uint64_t early = 4;
constexpr int transient[] = {EAGAIN, EBUSY, EINTR};
constexpr int final_ones[] = {ENOMEM, EIO, EBADR, EPERM, ENOSYS, EINVAL};

TEST_F(ring_faults, one_call_that_comes_round_again_changes_nothing_wherever_it_is) {
  for (const fallback_of_test fallback : fallbacks) {
    const outcome in_peace = run(fallback, {.only_enter = false});
    ASSERT_FALSE(in_peace.seen.failed) << in_peace.seen.message;
    ASSERT_GT(in_peace.calls, 10U);
    testing::seeded_random draw(static_cast<std::uint64_t>(fallback) + 1);
    for (std::uint64_t k = 0; k < in_peace.calls; k += 1 + draw.below(in_peace.calls / 12)) {
      // No file says EBUSY when it is read.
      const int code =
          fallback == fallback_of_test::threads ? (draw.below(2) == 0 ? EAGAIN : EINTR) : transient[draw.below(3)];
      const outcome got = run(fallback, {.code = code, .first = k, .made = draw.below(2) == 0, .only_enter = false});
      EXPECT_FALSE(got.seen.failed) << got.seen.message;
      EXPECT_EQ(got.seen.batches, in_peace.seen.batches) << ::strerrorname_np(code) << " at call " << k;
    }
  }
}

// What io_uring_enter(2) was never said to return ended the process.
TEST_F(ring_faults, a_ring_that_fails_for_good_is_the_error_of_next) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  for (const fallback_of_test fallback :
       {fallback_of_test::registered, fallback_of_test::cooperative, fallback_of_test::without_flags}) {
    for (const int code : final_ones) {
      for (const bool made : {false, true}) {
        const fault what{.code = code, .first = early, .for_ever = true, .made = made};
        const outcome got = run(fallback, what);
        ASSERT_TRUE(got.seen.failed) << ::strerrorname_np(code);
        EXPECT_EQ(*got.seen.failed, errc::io);
        EXPECT_THAT(got.seen.message, HasSubstr("io_uring_enter: "));
        EXPECT_THAT(got.seen.message, HasSubstr(::strerrorname_np(code)));
      }
    }
  }
}

TEST_F(ring_faults, a_ring_that_is_told_to_try_again_for_ever_fails_after_a_bounded_number_of_calls) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  constexpr std::uint64_t usual = 1000;  // at the most
  for (const int code : transient) {
    const outcome got = run(fallback_of_test::registered, {.code = code, .first = early, .for_ever = true});
    ASSERT_TRUE(got.seen.failed);
    EXPECT_THAT(got.seen.message, HasSubstr(::strerrorname_np(code)));
    // Two seconds of pauses that grow to 20 ms, and half a second in which it is asked for what it has, each half a millisecond.
    EXPECT_LT(got.calls, usual + 2000);
  }
}

// A process that is stopped and goes on, again and again; a profiler's timer. A ring that nobody gave anything was ended by 250 of these.
TEST_F(ring_faults, a_wait_that_a_signal_ends_is_no_refusal_however_often) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  io::uring idle(8, 8, 0);
  calls().begin({.code = EINTR, .first = 0, .for_ever = true, .only_waits = true});
  for (int signals = 0; signals < 1000; ++signals) idle.submit_and_wait(2, 100'000'000, 0);
  EXPECT_EQ(idle.failure(), 0);
  EXPECT_GE(calls().made(), 1000U);
  const outcome got =
      run(fallback_of_test::plain, {.code = EINTR, .first = 0, .for_ever = true, .made = true, .only_waits = true});
  EXPECT_FALSE(got.seen.failed) << got.seen.message;
  EXPECT_EQ(got.seen.batches, run(fallback_of_test::plain, {}).seen.batches);
}

TEST_F(ring_faults, any_call_that_fails_once_or_for_ever_gives_the_same_batches_or_is_named) {
  std::vector<outcome> in_peace;
  for (const fallback_of_test fallback : fallbacks) in_peace.push_back(run(fallback, {.only_enter = false}));
  testing::for_each_seed(80, [&](std::uint64_t seed) {
    testing::seeded_random draw(seed);
    const fallback_of_test fallback = fallbacks[draw.below(std::size(fallbacks))];
    const outcome& expected = in_peace[static_cast<std::size_t>(fallback)];
    // One of those that are tried again takes two seconds where it stays: few of them.
    const bool comes_round = draw.below(3) == 0;
    const int code = comes_round ? transient[draw.below(3)] : final_ones[draw.below(6)];
    const bool for_ever = draw.below(comes_round ? 10 : 2) == 0;
    const fault what{.code = code,
                     .first = draw.below(expected.calls),
                     .for_ever = for_ever,
                     .made = draw.below(2) == 0,
                     .only_enter = false};
    expect_same_or_named(run(fallback, what), expected.seen, code);
  });
}

// A file system without reads that do not wait says EAGAIN to all reads of what was opened with O_NONBLOCK.
TEST_F(ring_faults, reads_that_say_eagain_to_a_descriptor_that_does_not_wait_are_made_again_through_one_that_does) {
  if (!has_io_uring()) GTEST_SKIP() << "no io_uring here";
  const outcome in_peace = run(fallback_of_test::plain, {});
  for (const int count : {1, 5, 30}) {
    calls().spoil_reads(count, EAGAIN);
    const outcome got = run(fallback_of_test::plain, {});
    EXPECT_FALSE(got.seen.failed) << got.seen.message;
    EXPECT_EQ(got.seen.batches, in_peace.seen.batches);
    EXPECT_EQ(calls().reads_to_spoil(), 0);
    calls().spoil_reads(0, 0);
  }
}

// A read that the kernel still has when the ring fails may be written to at any time: its memory is never anybody else's.
TEST_F(ring_faults, memory_that_the_kernel_may_still_write_to_is_not_given_out_again) {
  using boost::asio::use_future;
  const std::string path = (directory_.path() / "pipe").string();
  std::ofstream(path) << std::string(4096, 'f');
  reader disk(1_MiB, {.direct = choice::off});
  if (disk.report().backend.use != "io_uring") GTEST_SKIP() << "no io_uring here";
  const reader::file file = disk.open(path, use_future).get();
  // The ring opens it when it is first read: by then it is a pipe that nobody writes to, so that the read stays in the kernel.
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int writer = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer, 0);

  leat::lease memory = disk.lease(8192, use_future).get();
  auto stuck = disk.read(file, 0, 4096, memory, use_future);
  ASSERT_EQ(stuck.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  calls().begin({.code = EIO, .first = 0, .for_ever = true});
  const auto failed_by_ring = [](auto&& operation) {
    try {
      operation.get();
    } catch (const error& failure) {
      EXPECT_EQ(failure.code(), errc::io);
      return std::string(failure.what());
    }
    return std::string();
  };
  const auto other = disk.open((directory_.path() / "other").string(), use_future);  // something that wakes the ring
  EXPECT_THAT(failed_by_ring(stuck), HasSubstr("io_uring_enter: "));
  EXPECT_THAT(failed_by_ring(disk.read(file, 0, 4096, memory, use_future)), HasSubstr("EIO"));
  memory.reset();
  EXPECT_THAT(failed_by_ring(disk.lease(4096, use_future)), HasSubstr("the kernel may still write"));
  calls().begin({});
  ::close(writer);
}

}  // namespace

extern "C" {
int __real_io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* params);
int __real_io_uring_submit_and_wait(io_uring* ring, unsigned count);
int __real_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** cqe, unsigned count, __kernel_timespec* time,
                                            sigset_t* mask);
int __real_io_uring_submit_and_get_events(io_uring* ring);
int __real_io_uring_get_events(io_uring* ring);
unsigned __real_io_uring_peek_batch_cqe(io_uring* ring, io_uring_cqe** completions, unsigned count);
int __real_io_uring_register_files_sparse(io_uring* ring, unsigned count);
int __real_io_uring_register_buffers_sparse(io_uring* ring, unsigned count);
int __real_io_uring_register_buffers_update_tag(io_uring* ring, unsigned offset, const iovec* memory, const __u64* tags,
                                                unsigned count);
int __real_io_uring_unregister_buffers(io_uring* ring);
io_uring_probe* __real_io_uring_get_probe_ring(io_uring* ring);
ssize_t __real_pread(int file, void* into, std::size_t bytes, off_t offset);
int __real_open(const char* path, int flags, ...);

int __wrap_io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* params) {
  if ((params->flags & calls().forbidden_flags()) != 0) return -EINVAL;  // as an older kernel says
  return set_up([&] { return __real_io_uring_queue_init_params(entries, ring, params); });
}
int __wrap_io_uring_submit_and_wait(io_uring* ring, unsigned count) {
  return enter([&] { return __real_io_uring_submit_and_wait(ring, count); });
}
int __wrap_io_uring_submit_and_wait_timeout(io_uring* ring, io_uring_cqe** cqe, unsigned count, __kernel_timespec* time,
                                            sigset_t* mask) {
  return enter([&] { return __real_io_uring_submit_and_wait_timeout(ring, cqe, count, time, mask); }, true);
}
int __wrap_io_uring_submit_and_get_events(io_uring* ring) {
  return enter([&] { return __real_io_uring_submit_and_get_events(ring); });
}
unsigned __wrap_io_uring_peek_batch_cqe(io_uring* ring, io_uring_cqe** completions, unsigned count) {
  const unsigned found = __real_io_uring_peek_batch_cqe(ring, completions, count);
  for (unsigned i = 0; i < found; ++i) calls().see(*completions[i]);
  return found;
}
int __wrap_io_uring_get_events(io_uring* ring) {
  return enter([&] { return __real_io_uring_get_events(ring); });
}
int __wrap_io_uring_register_files_sparse(io_uring* ring, unsigned count) {
  return set_up([&] { return __real_io_uring_register_files_sparse(ring, count); });
}
int __wrap_io_uring_register_buffers_sparse(io_uring* ring, unsigned count) {
  return set_up([&] { return __real_io_uring_register_buffers_sparse(ring, count); });
}
int __wrap_io_uring_register_buffers_update_tag(io_uring* ring, unsigned offset, const iovec* memory, const __u64* tags,
                                                unsigned count) {
  return set_up([&] { return __real_io_uring_register_buffers_update_tag(ring, offset, memory, tags, count); });
}
int __wrap_io_uring_unregister_buffers(io_uring* ring) {
  return set_up([&] { return __real_io_uring_unregister_buffers(ring); });
}
io_uring_probe* __wrap_io_uring_get_probe_ring(io_uring* ring) {
  return calls().next(false) == 0 ? __real_io_uring_get_probe_ring(ring) : nullptr;
}
ssize_t __wrap_pread(int file, void* into, std::size_t bytes, off_t offset) {
  if (const int failure = calls().next(false); failure != 0) {
    errno = failure;
    return -1;
  }
  return __real_pread(file, into, bytes, offset);
}
int __wrap_open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  if (const int failure = calls().next(false); failure != 0) {
    errno = failure;
    return -1;
  }
  return __real_open(path, flags, mode);
}
}

}  // namespace leat
