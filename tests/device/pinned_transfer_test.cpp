// Batches that stay on the host in pinned memory. A trainer's copies are kernels that read a batch when their turn comes, mostly long after
// it has ended: they have to find its bytes.
#include "stages/device/pinned_transfer.hpp"

#include "base/sanitizers.hpp"
#include "stages/device/open_device.hpp"
#include "tests/device/device_reader.hpp"
#include "tests/device/watched_calls.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/dlpack.h>
#include <leat/loading.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using testing::execution;
using testing::fake_dataset;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::loader;
using testing::loader_options;
using testing::simulated_device;
using testing::simulated_device_options;
using testing::watchdog;
using testing::watched_calls;

using digests = std::vector<std::string>;

const std::vector<testing::fake_sample>& pictures() {
  static const std::vector<testing::fake_sample> made = testing::make_samples(3, 45);
  return made;
}

struct pinned_host {
  explicit pinned_host(const simulated_device_options& how = {.loader = execution::early, .consumer = execution::early})
      : device(std::make_shared<simulated_device>(how)), calls(std::make_shared<watched_calls>(device)) {
    options = testing::small_options();
    options.device_calls = calls;
    options.pinned = true;
    options.prefetch_batches = 3;
  }

  std::shared_ptr<simulated_device> device;
  std::shared_ptr<watched_calls> calls;
  loader_options options;
};

/// What outlives its loader is unpinned by a thread that nobody joins.
void wait_until_unpinned(const pinned_host& with) {
  while (with.device->count().pinned != 0 || with.device->count().events != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct two_runs {
  digests seen;    ///< by the trainer's copies
  digests stated;  ///< by the batches
};

/// Two epochs, from each batch of which two streams copy. Batches end at once, or some later, or after the loader.
two_runs run(pinned_host& with, std::uint64_t seed) {
  testing::seeded_random random(seed);
  two_runs made;
  testing::device_reader reader(*with.device);
  const stream streams[] = {with.device->make_consumer(), stream()};
  std::vector<batch> kept;
  {
    loader train(fake_dataset(pictures()), with.options, testing::all_fields());
    for (std::uint32_t epoch = 0; epoch < with.options.epochs; ++epoch) {
      while (std::optional<batch> got = train.next_blocking()) {
        EXPECT_EQ((*got)["cls"].where, host);
        for (const stream each : streams) {
          made.stated.push_back(got->content_digest()->hex());
          reader.read(*got, each);
        }
        kept.push_back(std::move(*got));
        if (kept.size() > random.below(3)) kept.erase(kept.begin());
      }
    }
  }
  kept.clear();
  with.device->finish_everything();
  made.seen = reader.seen();
  return made;
}

TEST(pinned_batches, copies_that_are_queued_when_a_batch_ends_find_its_bytes) {
  testing::for_each_seed(20, [](std::uint64_t seed) {
    const watchdog dog("queued copies");
    pinned_host with({.seed = seed, .loader = execution::random, .consumer = execution::random});
    const two_runs both = run(with, seed);
    EXPECT_EQ(both.seen, both.stated);
    wait_until_unpinned(with);
  });
}

// It bites: where a batch's memory is returned before they have passed, some find another batch's.
TEST(pinned_batches, would_be_overwritten_if_nobody_waited_for_copies) {
  if (LEAT_ADDRESS_SANITIZER) GTEST_SKIP() << "memory that has been returned is not to be read";
  bool differs = false;
  for (std::uint64_t seed = 1; seed <= 20 && !differs; ++seed) {
    const watchdog dog("nobody waits");
    pinned_host with(
        {.seed = seed, .loader = execution::late, .consumer = execution::late, .left_out = {.host_for_copy = true}});
    const two_runs both = run(with, seed);
    differs = both.seen != both.stated;
  }
  EXPECT_TRUE(differs);
}

TEST(pinned_batches, are_pinned_once_for_each_piece_of_memory_by_a_thread_of_their_own) {
  const watchdog dog("once");
  pinned_host with;
  with.options.epochs = 4;
  {
    loader train(fake_dataset(pictures()), with.options, testing::all_fields());
    const std::uint32_t shares = train.plan().batches;
    EXPECT_EQ(testing::run_epochs(train, with.options.epochs).size(), 4 * train.batches());
    EXPECT_LE(with.calls->counts()["pin"], shares);
    EXPECT_GE(with.calls->counts()["pin"], 1U);
    EXPECT_EQ(with.device->count().pinned, with.calls->counts()["pin"]);
    EXPECT_EQ(train.stats().device.use.use, "host");
    EXPECT_EQ(train.stats().device.pinned.use, "on");
  }
  EXPECT_EQ(with.calls->threads_of("pin"), std::set<std::string>{"leat-pin"});
  EXPECT_EQ(with.calls->counts()["unpin"], with.calls->counts()["pin"]);
  EXPECT_EQ(with.device->count().pinned, 0U);
}

TEST(pinned_batches, stay_pageable_with_the_reason_where_pinning_is_refused) {
  const watchdog dog("refused");
  pinned_host with({.loader = execution::early, .consumer = execution::early, .can_pin = false});
  const two_runs both = run(with, 1);
  EXPECT_EQ(both.seen, both.stated);
  EXPECT_EQ(with.calls->counts()["record_all"], 0U);
  EXPECT_EQ(with.calls->counts()["unpin"], 0U);

  pinned_host some;
  some.calls->fail("pin", 1, 999);
  loader train(fake_dataset(pictures()), some.options, testing::all_fields());
  static_cast<void>(testing::run_epochs(train, 2));
  EXPECT_EQ(train.stats().device.pinned.use, "partly");
  EXPECT_THAT(train.stats().device.pinned.why, HasSubstr("error 999"));
}

TEST(pinned_batches, that_outlive_their_loader_are_unpinned_behind_their_copies_and_make_nobody_wait) {
  const watchdog dog("outlive");
  pinned_host with({.loader = execution::late, .consumer = execution::late});
  const stream side = with.device->make_consumer();
  testing::device_reader reader(*with.device);
  std::optional<batch> kept;
  {
    loader train(fake_dataset(pictures()), with.options, testing::all_fields());
    kept = train.next_blocking();
  }
  ASSERT_TRUE(kept);
  EXPECT_EQ(with.device->count().pinned, 1U);
  const std::string stated = kept->content_digest()->hex();
  reader.read(*kept, side);
  EXPECT_NE(reader.seen(), digests{stated});
  with.calls->hold("synchronize");
  kept.reset();  // in Python this thread holds the GIL
  with.calls->wait_until_held();
  EXPECT_EQ(with.device->count().pinned, 1U);
  with.calls->let_go();
  wait_until_unpinned(with);
  EXPECT_EQ(reader.seen(), digests{stated}) << "memory is unpinned and unmapped behind the copy";
  EXPECT_EQ(with.calls->threads_of("synchronize"), std::set<std::string>{"leat-pin-last"});
}

TEST(pinned_batches, are_of_several_loaders_and_each_unpins_its_own) {
  const watchdog dog("several");
  pinned_host with;
  loader first(fake_dataset(pictures()), with.options, testing::all_fields());
  {
    loader second(fake_dataset(pictures()), with.options, testing::all_fields());
    const auto one = first.next_blocking();
    const auto other = second.next_blocking();
    ASSERT_TRUE(one && other);
    EXPECT_EQ(one->content_digest(), other->content_digest());
    EXPECT_GE(with.device->count().pinned, 2U);
  }
  EXPECT_GE(with.device->count().pinned, 1U);
  static_cast<void>(testing::run_epochs(first, 1));
  first.stop();
  EXPECT_EQ(with.device->count().pinned, 0U);
}

TEST(pinned_batches, end_in_a_child_of_fork_without_a_call) {
  pinned_host with;
  loader train(fake_dataset(pictures()), with.options, testing::all_fields());
  std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  const std::size_t before = with.calls->counts()["record_all"];
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);  // not a watchdog, which is a thread: ThreadSanitizer allows none after a fork
    got.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(with.calls->counts()["record_all"], before);
  got.reset();
  EXPECT_EQ(with.calls->counts()["record_all"], before + 1);
  EXPECT_EQ(testing::run_epochs(train, 1).size(), train.batches() - 1);
}

TEST(pinned_batches, whose_end_falls_into_a_capture_are_returned_after_it) {
  const watchdog dog("capture");
  pinned_host with;
  const stream side = with.device->make_consumer();
  loader train(fake_dataset(pictures()), with.options, testing::all_fields());
  with.device->begin_capture(side);
  static_cast<void>(train.next_blocking());
  EXPECT_GE(with.device->count().captures_broken, 1U);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_LE(with.device->count().captures_broken, 4U) << "each attempt breaks what is captured then";
  with.device->end_capture(side);
  EXPECT_EQ(testing::run_epochs(train, 2).size(), 2 * train.batches() - 1);
}

// An event of leat's, on a thread of leat's, would break a capture that the trainer has begun.
TEST(pinned_batches, that_nobody_was_handed_are_returned_without_an_event) {
  const watchdog dog("dropped");
  pinned_host with;
  with.options.epochs = 6;
  std::size_t handed_out = 0;
  {
    loader train(fake_dataset(pictures()), with.options, testing::all_fields());
    for (std::uint32_t epoch = 0; epoch + 1 < with.options.epochs; ++epoch) {
      if (std::optional<batch> got = train.next_blocking()) ++handed_out;
      train.skip_epoch();
    }
    while (train.stats().batches_ready == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    train.stop();
  }
  EXPECT_EQ(with.calls->counts()["record_all"], handed_out);
  char here[16] = {};
  ::pthread_getname_np(::pthread_self(), here, sizeof here);
  EXPECT_EQ(with.calls->threads_of("record_all"), std::set<std::string>{here});
  EXPECT_EQ(with.device->count().pinned, 0U);
  EXPECT_EQ(with.device->count().events, 0U);
}

// Nobody knows then who still reads them.
TEST(pinned_batches, end_the_loader_where_nobody_can_tell_when_copies_have_passed) {
  const watchdog dog("lost");
  const std::pair<const char*, const char*> calls[] = {
      {"record_all", "cuCtxRecordEvent"}, {"make_event", "cudaEventCreateWithFlags"}, {"query", "cudaEventQuery"}};
  for (const auto& [refused, named] : calls) {
    pinned_host with;
    std::string message;
    {
      loader train(fake_dataset(pictures()), with.options, testing::all_fields());
      std::optional<batch> got = train.next_blocking();
      with.calls->refuse(refused, 999);
      got.reset();
      message = testing::message_of(errc::device, [&] {
        for (;;) static_cast<void>(train.next_blocking());
      });
    }
    EXPECT_THAT(message, HasSubstr(named));
    EXPECT_THAT(message, HasSubstr("error 999"));
    EXPECT_EQ(with.calls->counts()["unpin"], 0U) << "it stays pinned, and mapped, until the process ends";
    const std::weak_ptr<testing::watched_calls> kept = with.calls;
    with.options.device_calls.reset();
    with.calls.reset();
    EXPECT_FALSE(kept.expired()) << "its end would call the device";
  }
}

TEST(pinned_batches, are_tensors_of_the_cpu_to_dlpack) {
  const watchdog dog("dlpack");
  pinned_host with;
  loader train(fake_dataset(pictures()), with.options, testing::all_fields());
  std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  DLManagedTensorVersioned* const made = (*got)["cls"].dlpack();
  EXPECT_EQ(made->dl_tensor.device.device_type, kDLCPU);
  got.reset();
  EXPECT_EQ(with.calls->counts()["record_all"], 0U) << "the tensor holds the memory";
  made->deleter(made);
  EXPECT_EQ(with.calls->counts()["record_all"], 1U);
}

// As where a loader fails while it is made.
TEST(pinned_batches, leave_nothing_behind_before_the_first) {
  pinned_host with;
  {
    const auto alone = std::make_shared<stages::pinned_transfer>(with.calls);
    alone->prepare({.host_batches = 2, .failed = {}});
  }
  with.options.host_bytes_max = 1;
  EXPECT_THROW(loader(fake_dataset(pictures()), with.options, testing::all_fields()), error);
  EXPECT_THAT(with.calls->take_log(), IsEmpty());
}

TEST(pinned_batches, are_pageable_without_cuda_and_say_why) {
  const watchdog dog("without");
  loader_options options = testing::small_options();
  options.device_calls = nullptr;
  options.pinned = true;
  const stages::opened_device there = stages::open_for_pinning();
  if (there.calls != nullptr) GTEST_SKIP() << "CUDA is there: " << there.calls->name();
  loader train(fake_dataset(pictures()), options, testing::all_fields());
  EXPECT_EQ(testing::run_epochs(train, 2).size(), 2 * train.batches());
  const loader_stats seen = train.stats();
  EXPECT_EQ(seen.device.use.use, "host");
  EXPECT_EQ(seen.device.pinned.use, "off");
  EXPECT_EQ(seen.device.pinned.why, there.why_not);
}

}  // namespace
}  // namespace leat
