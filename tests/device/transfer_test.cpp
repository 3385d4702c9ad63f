#include "io/arena.hpp"
#include "io/lease_pool.hpp"
#include "stages/device/device_transfer.hpp"
#include "tests/device/watched_calls.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/error.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat::stages {
namespace {

namespace asio = boost::asio;
using ::testing::ElementsAre;
using testing::execution;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;
using testing::simulated_device;
using testing::simulated_device_options;
using testing::watchdog;
using testing::watched_calls;

constexpr std::size_t batch_bytes = 8192;
constexpr std::size_t finished_bytes = 1024;
constexpr std::size_t block_bytes = finished_bytes + batch_bytes;
constexpr std::uint32_t host_batches = 4;

/// Two outputs of 2 x 3 pixels, which lie one behind the other, each with its flags.
const finish_step two_outputs[] = {
    {{.height = 2, .width = 3, .type = dtype::f32, .order = layout::nchw}, 0, 256, 0},
    {{.height = 2, .width = 3, .type = dtype::f16, .order = layout::nhwc}, 512, 768, 256},
};

/// A transfer between a pool of host memory and a late device, as the loader would have it.
class device_transfers : public ::testing::Test {
 protected:
  struct sent final : transfer_operation {
    io::lease block;
    std::atomic<bool> over = false;
  };

  // Its threads tell what stands below, and end with it.
  ~device_transfers() override {
    operations.clear();
    out.reset();
  }

  /// A transfer that has yet to be told what a batch takes.
  void make(device_transfer_options options = {.batches = 2}, execution when = execution::late, bool can_pin = true) {
    device = std::make_shared<simulated_device>(
        simulated_device_options{.loader = when, .consumer = execution::late, .can_pin = can_pin});
    calls = std::make_shared<watched_calls>(device);
    out = std::make_shared<device_transfer>(calls, options);
  }
  void prepare() {
    out->prepare({.batch_bytes_max = batch_bytes,
                  .finished_bytes_max = finished_bytes,
                  .host_batches = host_batches,
                  .failed =
                      [this](std::exception_ptr why) {
                        failure = std::move(why);
                        told = true;
                      },
                  .wake = [this] { ++wakes; }});
    static_cast<void>(calls->take_log());
  }
  /// Another device and its transfer, ready to send.
  void start(device_transfer_options options = {.batches = 2}, execution when = execution::late, bool can_pin = true) {
    operations.clear();
    make(options, when, can_pin);
    prepare();
  }
  /// As the loader ends, and whoever has its batches. What is left on the device is counted.
  std::size_t end() {
    operations.clear();
    out.reset();
    const simulated_device::counts left = device->count();
    return left.memory + left.pinned + left.events;
  }

  /// Fills a block of host memory with `value` and sends it.
  sent& send(std::uint64_t turn, int value, std::size_t bytes = batch_bytes, std::span<const finish_step> finish = {}) {
    sent& operation = operations.emplace_back();
    operation.block = std::move(*pool.try_lease(lease_bytes));
    std::fill_n(operation.block.data(), lease_bytes, static_cast<std::byte>(value));
    operation.turn = turn;
    operation.memory = &operation.block;
    operation.bytes = bytes;
    operation.rows = 2;
    operation.finish = finish;
    operation.handed_over = [](transfer_operation& each) noexcept { static_cast<sent&>(each).over = true; };
    out->send(operation);
    return operation;
  }
  /// The same, and waits until it is handed over: which takes another thread where its memory is not pinned yet.
  sent& deliver(std::uint64_t turn, int value, std::size_t bytes = batch_bytes,
                std::span<const finish_step> finish = {}) {
    return until_over(send(turn, value, bytes, finish));
  }
  static sent& until_over(sent& operation) {
    while (!operation.over) std::this_thread::yield();
    return operation;
  }

  /// A step in `consumer` that reads a byte of the batch when its turn comes.
  void launch_step(stream consumer, const sent& of, std::byte& seen) {
    device->launch(consumer, [&seen, from = of.landed->data()] { seen = from[17]; });
  }
  /// What ready() completes with.
  static std::string answer_of(sent& one) {
    asio::io_context here;
    std::string answer = "no answer";
    one.landed->ready(completion<void(std::exception_ptr)>(
        asio::bind_executor(here, [&](std::exception_ptr why) { answer = message_of(why); })));
    here.run();
    return answer;
  }

  [[nodiscard]] std::size_t leases_out() const { return pool.count().leases_out; }

  std::shared_ptr<simulated_device> device;
  std::shared_ptr<watched_calls> calls;
  std::shared_ptr<device_transfer> out;
  int wakes = 0;
  std::size_t lease_bytes = batch_bytes;  ///< of the leases that send() takes
  std::exception_ptr failure;             ///< what the loader was told
  std::atomic<bool> told = false;         ///< that it was
  io::lease_pool pool{std::make_shared<io::arena>(
                          io::arena_options{.bytes_max = host_batches * batch_bytes, .pages = io::huge_pages::off}),
                      {.bytes_max = host_batches * batch_bytes, .name = "batches"}};
  const watchdog watch{"a transfer"};
  std::deque<sent> operations;
};

TEST_F(device_transfers, take_all_memory_and_events_at_the_start_and_none_in_the_loop) {
  start();
  const auto before = calls->counts();
  EXPECT_EQ(before.at("take_memory"), 2U);
  const stream consumer = device->make_consumer();
  const stream other = device->make_consumer();
  for (std::uint64_t turn = 0; turn < 20; ++turn) {
    sent& one = deliver(turn, static_cast<int>(turn));
    ASSERT_TRUE(one.over);
    one.landed->wait_on(consumer);
    one.landed->wait_on(other);
    one.landed.reset();
    out->collect();
    if (turn % 3 == 2) device->finish_all(consumer);
    if (leases_out() == host_batches) {
      device->finish_all(consumer);
      device->finish_all(other);
      out->collect();
    }
  }
  const auto after = calls->counts();
  for (const char* call : {"take_memory", "make_event", "make_stream"})
    EXPECT_EQ(after.at(call), before.at(call)) << call;
  EXPECT_EQ(after.at("pin"), host_batches) << "each piece of host memory once";
  EXPECT_EQ(after.count("finish"), 0U);
  EXPECT_EQ(after.count("synchronize"), 0U);
}

// The sequence of calls of a batch, exactly.
TEST_F(device_transfers, make_these_calls_for_a_batch_and_no_others) {
  start({.batches = 1});
  const stream consumer = device->make_consumer();
  const stream other = device->make_consumer();
  const stream third = device->make_consumer();
  const std::string c = watched_calls::number(consumer);
  const std::string o = watched_calls::number(other);
  const std::string t = watched_calls::number(third);

  sent& first = deliver(0, 1, 5000);
  auto log = calls->take_log();
  ASSERT_EQ(log.size(), 3U);
  EXPECT_EQ(log[0], "pin");
  const std::string side = log[1].substr(log[1].find("in ") + 3);
  EXPECT_EQ(log[1], "copy 5000 in " + side);
  const std::string arrived = log[2].substr(7, log[2].find(" in ") - 7);
  EXPECT_EQ(log[2], "record " + arrived + " in " + side);

  first.landed->wait_on(consumer);
  first.landed->wait_on(other);
  EXPECT_THAT(calls->take_log(), ElementsAre("look_at " + c, "wait in " + c + " for " + arrived, "look_at " + o,
                                             "wait in " + o + " for " + arrived));
  first.landed.reset();
  log = calls->take_log();
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(log[0], "look_at " + c);
  const std::string consumed = log[1].substr(7, log[1].find(" in ") - 7);
  EXPECT_EQ(log[1], "record " + consumed + " in " + c);
  EXPECT_EQ(log[2], "look_at " + o);
  const std::string consumed_too = log[3].substr(7, log[3].find(" in ") - 7);
  EXPECT_EQ(log[3], "record " + consumed_too + " in " + o);

  sent& second = deliver(1, 2);
  log = calls->take_log();
  ASSERT_EQ(log.size(), 5U);
  EXPECT_EQ(log[0], "pin");
  EXPECT_EQ(log[1], "wait in " + side + " for " + consumed);
  EXPECT_EQ(log[2], "wait in " + side + " for " + consumed_too);
  EXPECT_EQ(log[3], "copy 8192 in " + side);
  EXPECT_THAT(log[4], ::testing::EndsWith(" in " + side));

  for (const stream each : {consumer, other, third}) second.landed->wait_on(each);
  static_cast<void>(calls->take_log());
  second.landed.reset();
  log = calls->take_log();
  ASSERT_EQ(log.size(), 7U) << "an event for the third stream, once";
  EXPECT_EQ(log[4], "make_event");
  EXPECT_EQ(log[5], "look_at " + t);
  EXPECT_THAT(log[6], ::testing::AllOf(::testing::StartsWith("record "), ::testing::EndsWith(" in " + t)));
  sent& last = deliver(2, 3);
  for (const stream each : {consumer, other, third}) last.landed->wait_on(each);
  static_cast<void>(calls->take_log());
  last.landed.reset();
  EXPECT_EQ(calls->take_log().size(), 6U);
}

// Between the copy and the event, so that who waits for the batch waits for its pictures.
TEST_F(device_transfers, finish_pictures_between_the_copy_and_the_event) {
  start({.batches = 1});
  const stream consumer = device->make_consumer();
  sent& pictures = deliver(0, 7, batch_bytes, two_outputs);
  auto log = calls->take_log();
  ASSERT_EQ(log.size(), 5U);
  const std::string side = log[1].substr(log[1].find("in ") + 3);
  EXPECT_EQ(log[1], "copy 8192 in " + side);
  EXPECT_EQ(log[2], "finish_pictures 2 in " + side);
  EXPECT_EQ(log[3], "finish_pictures 2 in " + side);
  EXPECT_THAT(log[4], ::testing::StartsWith("record "));

  pictures.landed->wait_on(consumer);
  std::vector<float> seen(2 * 18);
  device->launch(consumer, [&, from = pictures.landed->finished()] {
    std::memcpy(seen.data(), from, seen.size() * sizeof seen[0]);
  });
  device->finish_all(consumer);
  EXPECT_THAT(seen, ::testing::Each(7.0F));
  EXPECT_EQ(pictures.landed->data() - pictures.landed->finished(), std::ptrdiff_t{finished_bytes});
}

TEST_F(device_transfers, hand_over_at_once_and_keep_host_memory_until_its_copy_has_passed) {
  start();
  const stream consumer = device->make_consumer();
  sent& one = deliver(0, 1);
  EXPECT_TRUE(one.over);
  EXPECT_FALSE(one.block);
  EXPECT_EQ(leases_out(), 1U);
  out->collect();
  EXPECT_EQ(leases_out(), 1U) << "a late device has not copied yet";
  one.landed->wait_on(consumer);
  std::byte seen{0};
  launch_step(consumer, one, seen);
  device->finish_all(consumer);
  EXPECT_EQ(seen, std::byte{1});
  out->collect();
  EXPECT_EQ(leases_out(), 0U);
}

TEST_F(device_transfers, copy_in_the_order_of_turns_whatever_comes_first) {
  start();
  sent& third = send(2, 3);
  sent& second = send(1, 2);
  EXPECT_FALSE(second.over || third.over);
  sent& first = deliver(0, 1);
  until_over(second);
  EXPECT_FALSE(third.over) << "two blocks, both with the consumer";
  EXPECT_EQ(wakes, 0);
  first.landed.reset();
  EXPECT_EQ(wakes, 1) << "somebody waits for the block";
  EXPECT_FALSE(third.over) << "and is served on the I/O thread";
  out->go_on();
  until_over(third);
}

// Pinning takes milliseconds, and whoever calls meanwhile is not to feel it.
TEST_F(device_transfers, pin_beside_the_io_thread_and_with_nothing_locked) {
  start();
  const stream consumer = device->make_consumer();
  sent& first = deliver(0, 1);
  calls->hold("pin");
  sent& second = send(1, 2);  // This thread plays the I/O thread.
  calls->wait_until_held();
  EXPECT_FALSE(second.over);
  first.landed->wait_on(consumer);
  first.landed.reset();
  out->collect();
  EXPECT_EQ(out->report().pinned.use, "on");
  sent& third = send(2, 3);
  calls->let_go();
  until_over(second);
  until_over(third);
  EXPECT_EQ(device->count().pinned, 3U);
}

// A copy from pageable memory waits, on the thread that asks for it, for what its stream holds: here for a trainer's step.
TEST_F(device_transfers, copy_from_pageable_memory_without_the_io_thread_waiting) {
  start({.batches = 1});
  const stream consumer = device->make_consumer();
  calls->fail("pin", 1, 2);
  sent& first = deliver(0, 1);
  first.landed->wait_on(consumer);
  std::byte seen{0};
  launch_step(consumer, first, seen);
  first.landed.reset();
  calls->fail("pin", 1, 2);
  sent& second = deliver(1, 2);
  EXPECT_EQ(seen, std::byte{1}) << "the step before it has been waited for";
  EXPECT_EQ(device->count().copies_pageable, 2U);
  EXPECT_THAT(device->waiting_threads(), ElementsAre("leat-send"));
  second.landed->wait_on(consumer);
  launch_step(consumer, second, seen);
  device->finish_all(consumer);
  EXPECT_EQ(seen, std::byte{2});
}

TEST_F(device_transfers, starving_wakes_a_thread_that_brings_memory_home) {
  start();
  deliver(0, 1);
  EXPECT_EQ(leases_out(), 1U);
  out->starve(true);
  while (leases_out() != 0) std::this_thread::yield();
  deliver(1, 2);
  while (leases_out() != 0) std::this_thread::yield();
  out->starve(false);
  EXPECT_GE(calls->counts().at("synchronize"), 2U);
}

TEST_F(device_transfers, ready_completes_when_the_bytes_are_there) {
  start();
  sent& one = deliver(0, 7);
  asio::io_context here;
  std::optional<std::byte> seen;
  one.landed->ready(completion<void(std::exception_ptr)>(asio::bind_executor(here, [&](std::exception_ptr why) {
    EXPECT_EQ(message_of(why), "");
    seen = one.landed->data()[batch_bytes - 1];
  })));
  here.run();
  EXPECT_EQ(seen, std::byte{7});
  EXPECT_EQ(leases_out(), 0U);
  bool again = false;
  one.landed->ready(
      completion<void(std::exception_ptr)>(asio::bind_executor(here, [&](std::exception_ptr) { again = true; })));
  here.restart();
  here.run();
  EXPECT_TRUE(again);
}

TEST_F(device_transfers, ready_may_outlive_its_batch_and_its_loader) {
  start();
  asio::io_context here;
  int completed = 0;
  for (std::uint64_t turn = 0; turn < 2; ++turn) {
    deliver(turn, 1).landed->ready(
        completion<void(std::exception_ptr)>(asio::bind_executor(here, [&](std::exception_ptr why) {
          EXPECT_EQ(message_of(why), "");
          ++completed;
        })));
    operations.back().landed.reset();
  }
  out->drain();
  out.reset();
  here.run();
  EXPECT_EQ(completed, 2);
}

TEST_F(device_transfers, ready_can_be_cancelled_and_the_copy_goes_on) {
  start();
  sent& one = deliver(0, 7);
  asio::io_context here;
  int aborted = 0;
  int completed = 0;
  for (int round = 0; round < 50; ++round) {
    asio::cancellation_signal signal;
    one.landed->ready(completion<void(std::exception_ptr)>(asio::bind_cancellation_slot(
        signal.slot(),
        asio::bind_executor(here, [&](std::exception_ptr why) { ++(why == nullptr ? completed : aborted); }))));
    signal.emit(asio::cancellation_type::total);
    here.restart();
    here.run();
  }
  EXPECT_EQ(aborted + completed, 50);
  out->drain();
  EXPECT_EQ(leases_out(), 0U);
}

// --- what fails ---------------------------------------------------------------------------------------------------------

TEST_F(device_transfers, say_what_would_do_where_no_batch_fits) {
  make({.batches = 3, .bytes_max = block_bytes - 1});
  try {
    prepare();
    FAIL();
  } catch (const error& problem) {
    EXPECT_EQ(problem.code(), errc::limit);
    EXPECT_THAT(problem.what(), HasSubstr("give at least"));
    EXPECT_THAT(problem.what(), HasSubstr("9216"));
  }
}

TEST_F(device_transfers, say_what_would_do_where_the_device_is_full) {
  const auto message_where_room_is_for = [&](std::size_t batches) {
    make({.batches = 3});
    calls->fail("take_memory", batches + 1, 2);
    return message_of(errc::limit, [&] { prepare(); });
  };
  const std::string full =
      "cudaMalloc of a batch of 9216 bytes on simulated device (cuda:0): out of memory (cudaErrorMemoryAllocation)";
  for (const std::size_t batches : {0U, 2U}) {
    EXPECT_EQ(message_where_room_is_for(batches),
              full + "; it had room for " + std::to_string(batches) + " of 3 batches");
  }
  // Any other refusal says nothing of room.
  make();
  calls->fail("take_memory", 1, 999);
  EXPECT_THAT(message_of(errc::device, [&] { prepare(); }), HasSubstr("error 999"));
}

TEST_F(device_transfers, take_fewer_batches_where_more_do_not_fit) {
  start({.batches = 3, .bytes_max = 2 * block_bytes + 1});
  EXPECT_EQ(out->report().batches, 2U);
  EXPECT_EQ(out->report().bytes, 2 * block_bytes);
}

TEST_F(device_transfers, give_back_what_they_took_when_any_call_of_the_start_fails) {
  for (const auto& [call, times] :
       {std::pair{"make_stream", 1}, std::pair{"take_memory", 2}, std::pair{"make_event", 10}}) {
    for (int nth = 1; nth <= times; ++nth) {
      make();
      calls->fail(call, static_cast<std::size_t>(nth), 2);
      try {
        prepare();
        ADD_FAILURE() << call << ' ' << nth;
      } catch (const error& problem) {
        EXPECT_EQ(problem.code(), call == std::string("take_memory") ? errc::limit : errc::device);
        EXPECT_THAT(problem.what(), HasSubstr("cuda"));
        EXPECT_THAT(problem.what(), HasSubstr("simulated device (cuda:0): out of memory"));
      }
      out.reset();
      const simulated_device::counts left = device->count();
      EXPECT_EQ(left.memory + left.events + left.streams, 0U) << call << ' ' << nth;
    }
  }
}

TEST_F(device_transfers, go_on_from_pageable_memory_and_say_why) {
  start();
  calls->fail("pin", 1, 2);
  sent& one = deliver(0, 5);
  EXPECT_TRUE(one.over);
  EXPECT_EQ(one.failure, nullptr);
  EXPECT_EQ(out->report().pinned.use, "off");
  EXPECT_THAT(out->report().pinned.why, HasSubstr("cudaHostRegister of 8192 bytes: no host memory"));
  EXPECT_EQ(device->count().copies_pageable, 1U);
  deliver(1, 6);
  EXPECT_EQ(out->report().pinned.use, "partly");
  out->drain();
  EXPECT_EQ(device->count().pinned, 0U);
  EXPECT_EQ(out->report().pinned.use, "partly") << "of what there was";
}

TEST_F(device_transfers, say_that_memory_is_pinned_when_some_has_been) {
  start();
  EXPECT_EQ(out->report().pinned.use, "not yet");
  deliver(0, 5);
  EXPECT_EQ(out->report().pinned.use, "on");
  out->drain();
  EXPECT_EQ(out->report().pinned.use, "on");
}

TEST_F(device_transfers, fail_this_batch_and_all_later_ones_when_a_call_of_the_loop_fails) {
  for (const char* const call : {"wait", "copy", "finish_pictures", "record"}) {
    SCOPED_TRACE(call);
    start({.batches = 1});
    const stream consumer = device->make_consumer();
    sent& good = deliver(0, 1);
    good.landed->wait_on(consumer);
    good.landed.reset();
    calls->fail(call, 1, 999);
    sent& bad = deliver(1, 2, batch_bytes, two_outputs);
    sent& later = deliver(2, 3);
    EXPECT_TRUE(bad.over && later.over);
    EXPECT_THAT(message_of(bad.failure), HasSubstr("on simulated device (cuda:0): error 999"));
    EXPECT_EQ(message_of(later.failure), message_of(bad.failure));
    EXPECT_EQ(bad.landed, nullptr);
    out->drain();
    operations.clear();
    EXPECT_EQ(leases_out(), 0U);
    EXPECT_EQ(end(), 0U);
  }
}

// A call that is refused says nothing of the copy, which may be reading: its memory is not given out before the stream ended.
TEST_F(device_transfers, keep_host_memory_whose_copy_nobody_can_ask_about) {
  start({.batches = 2});
  sent& flying = deliver(0, 1);
  EXPECT_EQ(leases_out(), 1U);
  calls->fail("query", 1, 999);
  out->collect();
  EXPECT_EQ(leases_out(), 1U);
  EXPECT_THAT(message_of(failure), HasSubstr("cudaEventQuery"));
  sent& later = deliver(1, 2);
  EXPECT_THAT(message_of(later.failure), HasSubstr("cudaEventQuery"));
  flying.landed.reset();
  later.block = {};
  EXPECT_EQ(leases_out(), 1U);
  out->drain();
  EXPECT_EQ(leases_out(), 0U);
}

// As above, asked on the thread that waits for who starves.
TEST_F(device_transfers, keep_host_memory_whose_copy_nobody_can_wait_for) {
  start({.batches = 2});
  sent& flying = deliver(0, 1);
  calls->fail("synchronize", 1, 999);
  out->starve(true);
  while (!told) std::this_thread::yield();
  EXPECT_EQ(message_of(failure), "cudaEventSynchronize on simulated device (cuda:0): error 999");
  EXPECT_EQ(leases_out(), 1U);
  sent& later = deliver(1, 2);
  EXPECT_EQ(message_of(later.failure), message_of(failure));
  later.block = {};
  flying.landed.reset();
  out->starve(false);
  EXPECT_EQ(leases_out(), 1U) << "the copy may read it";
  EXPECT_EQ(device->count().pinned, 1U);
  out->drain();
  EXPECT_EQ(leases_out(), 0U);
  EXPECT_EQ(end(), 0U);
}

TEST_F(device_transfers, complete_ready_with_the_reason_where_nobody_can_wait_for_its_copy) {
  start();
  sent& one = deliver(0, 7);
  calls->fail("synchronize", 1, 999);
  EXPECT_EQ(answer_of(one), "cudaEventSynchronize on simulated device (cuda:0): error 999");
  EXPECT_EQ(leases_out(), 1U);
}

// A pageable copy waits on the CPU for the consumer of what it overwrites. Where that fails it is not made.
TEST_F(device_transfers, overwrite_nothing_whose_consumer_nobody_can_wait_for) {
  start({.batches = 1}, execution::early, false);
  const stream consumer = device->make_consumer();
  sent& first = deliver(0, 1);
  first.landed->wait_on(consumer);
  std::byte seen{0};
  launch_step(consumer, first, seen);
  first.landed.reset();
  calls->fail("synchronize", 1, 999);
  sent& second = deliver(1, 2);
  EXPECT_EQ(message_of(second.failure),
            "cudaEventSynchronize of a batch's end on simulated device (cuda:0): error 999");
  EXPECT_TRUE(second.block) << "not taken: nothing reads it";
  EXPECT_EQ(device->count().copies, 1U);
  device->finish_all(consumer);
  EXPECT_EQ(seen, std::byte{1});
  EXPECT_EQ(end(), 0U);
}

// The stream may be the consumer's own mistake: the batch is held as before, and the loader goes on.
TEST_F(device_transfers, leave_a_batch_as_it_is_where_its_consumers_stream_cannot_be_looked_at) {
  start();
  const stream consumer = device->make_consumer();
  sent& one = deliver(0, 1);
  for (const bool release : {false, true}) {
    calls->fail("look_at", 1, 400);
    EXPECT_EQ(
        message_of(errc::device, [&] { release ? one.landed->release_on(consumer) : one.landed->wait_on(consumer); }),
        "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream on simulated device (cuda:0): error 400");
    EXPECT_NE(one.landed->data(), nullptr);
  }
  one.landed->wait_on(consumer);
  one.landed->release_on(consumer);
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  EXPECT_EQ(deliver(2, 3).failure, nullptr);
}

// At its end there is nobody to hold it any more.
TEST_F(device_transfers, never_use_a_block_again_whose_end_could_not_be_told) {
  const auto end_with = [&](const char* call, std::size_t nth) {
    start({.batches = 2});
    sent& one = deliver(0, 1);
    one.landed->wait_on(device->make_consumer());
    one.landed->wait_on(device->make_consumer());
    one.landed->wait_on(device->make_consumer());  // for whom there is no event yet
    calls->fail(call, nth, 400);
    one.landed.reset();
    const std::string message = message_of(deliver(1, 2).failure);
    operations.clear();
    out.reset();
    EXPECT_EQ(device->count().memory, 1U) << call << ": a consumer may read it";
    device->finish_everything();
    return message;
  };
  EXPECT_EQ(end_with("look_at", 1),
            "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream on simulated device (cuda:0): error 400");
  EXPECT_EQ(end_with("look_at", 2),
            "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream on simulated device (cuda:0): error 400");
  EXPECT_EQ(end_with("make_event", 1), "cudaEventCreateWithFlags on simulated device (cuda:0): error 400");
}

// Copies of batches that are smaller than the largest: more of them fly than were counted on.
TEST_F(device_transfers, make_an_event_for_one_copy_more_or_say_that_it_cannot_be_made) {
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    start({.batches = 1});
    lease_bytes = batch_bytes / 2;
    const std::size_t copies = 1 + host_batches;
    for (std::uint64_t turn = 0; turn < copies; ++turn) deliver(turn, 1, 64).landed.reset();
    if (fails) calls->fail("make_event", 1, 2);
    sent& more = deliver(copies, 2, 64);
    EXPECT_EQ(message_of(more.failure),
              fails ? "cudaEventCreateWithFlags on simulated device (cuda:0): out of memory (cudaErrorMemoryAllocation)"
                    : "");
    EXPECT_EQ(static_cast<bool>(more.block), fails) << "not taken: nothing reads it";
    EXPECT_EQ(end(), 0U);
    EXPECT_EQ(leases_out(), 0U);
  }
}

// Its bytes may never have come: ready() must not say that they have, to whoever asks later.
TEST_F(device_transfers, ready_fails_for_a_copy_of_which_nobody_knows_whether_it_arrived) {
  start();
  sent& asked_about = deliver(0, 1);
  calls->fail("query", 1, 999);
  out->collect();
  EXPECT_THAT(answer_of(asked_about), HasSubstr("cudaEventQuery"));

  start();
  sent& drained = deliver(0, 1);
  calls->fail("finish", 1, 999);
  out->drain();
  EXPECT_THAT(answer_of(drained), HasSubstr("cudaStreamSynchronize"));
  device->finish_everything();  // it did go on

  start();
  sent& lost = deliver(0, 1);
  device->lose(719);
  out->collect();
  EXPECT_THAT(answer_of(lost), HasSubstr("error 719"));
}

TEST_F(device_transfers, leave_host_memory_to_copies_whose_end_nobody_can_wait_for) {
  start({.batches = 1});
  deliver(0, 1);
  calls->fail("finish", 1, 999);
  out->drain();
  EXPECT_EQ(leases_out(), 1U) << "out of use for good";
  EXPECT_EQ(device->count().pinned, 1U);
  device->finish_everything();  // it did go on
}

// Their memory stays pinned and mapped; what is not being copied is unpinned before its pages go.
TEST_F(device_transfers, unpin_all_but_what_copies_may_still_read) {
  start({.batches = 2});
  sent& passed = deliver(0, 1);
  deliver(1, 2);
  ASSERT_EQ(device->count().pinned, 2U);
  passed.landed.reset();
  device->finish_everything();
  out->collect();
  ASSERT_EQ(leases_out(), 0U);
  passed.block = {};
  deliver(2, 3);
  calls->fail("finish", 1, 999);
  out->drain();
  EXPECT_EQ(leases_out(), 1U);
  EXPECT_EQ(device->count().pinned, 1U);
  device->finish_everything();
}

TEST_F(device_transfers, never_use_a_block_again_whose_consumer_could_not_be_recorded) {
  start({.batches = 2});
  const stream consumer = device->make_consumer();
  sent& one = deliver(0, 1);
  one.landed->wait_on(consumer);
  calls->fail("record", 1, 400);
  EXPECT_THROW(one.landed->release_on(consumer), error);
  sent& next = deliver(1, 2);
  EXPECT_THAT(message_of(next.failure), HasSubstr("cudaEventRecord of a batch's end"));
}

// cudaFree() need not wait for the device: what somebody may still use is not freed, unless nothing runs there any more.
TEST_F(device_transfers, free_no_block_that_may_be_in_use) {
  const auto blocks_left_when = [&](const std::function<void()>& happens) {
    start({.batches = 2});
    happens();
    operations.clear();
    out->drain();
    out.reset();
    const std::size_t left = device->count().memory;
    device->finish_everything();
    return left;
  };
  EXPECT_EQ(blocks_left_when([&] { deliver(0, 1); }), 0U);
  EXPECT_EQ(blocks_left_when([&] {
              deliver(0, 1).landed->wait_on(device->make_consumer());
              calls->fail("record", 1, 400);
            }),
            1U)
      << "a consumer that could not be recorded";
  EXPECT_EQ(blocks_left_when([&] {
              deliver(0, 1).landed->wait_on(device->make_consumer());
              operations.clear();
              calls->fail("synchronize", 1, 400);
            }),
            1U)
      << "a consumer whose end could not be waited for";
  EXPECT_EQ(blocks_left_when([&] {
              deliver(0, 1);
              calls->fail("finish", 1, 999);
            }),
            2U)
      << "copies whose end could not be waited for";
  EXPECT_EQ(blocks_left_when([&] {
              deliver(0, 1).landed->wait_on(device->make_consumer());
              device->lose(719);
            }),
            0U)
      << "a lost device";
}

// --- consumers' streams -------------------------------------------------------------------------------------------------

// CUDA lets it wait, and refuses to record it when the batch ends.
TEST_F(device_transfers, refuse_a_stream_of_another_device_before_anything_waits) {
  start();
  simulated_device another({.index = 3});
  const stream foreign = another.make_consumer();
  sent& one = deliver(0, 1);
  for (const bool release : {false, true}) {
    try {
      release ? one.landed->release_on(foreign) : one.landed->wait_on(foreign);
      FAIL();
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      EXPECT_THAT(refused.what(), HasSubstr("cuda:3, and the batch lies on cuda:0"));
    }
  }
  EXPECT_NE(one.landed->data(), nullptr) << "held as before";
  one.landed->release_on(device->make_consumer());
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  EXPECT_EQ(deliver(2, 3).failure, nullptr);
}

// Which has begun before the batch came, or ends after it has gone.
TEST_F(device_transfers, refuse_a_stream_that_is_being_captured_and_leave_capture_and_batch_as_they_are) {
  start();
  const stream captured = device->make_consumer();
  const stream other = device->make_consumer();
  sent& one = deliver(0, 1);
  one.landed->wait_on(captured);
  device->begin_capture(captured);
  device->launch(captured, [] {});
  for (const auto& call : {std::function<void()>([&] { one.landed->wait_on(captured); }),
                           std::function<void()>([&] { one.landed->release_on(captured); }),
                           std::function<void()>([&] { one.landed->release_on(other); })}) {
    try {
      call();
      FAIL();
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      EXPECT_THAT(refused.what(), HasSubstr("before the capture, or after it"));
    }
  }
  EXPECT_NE(one.landed->data(), nullptr);
  EXPECT_EQ(device->end_capture(captured), 1U);
  one.landed->release_on(captured);
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  EXPECT_EQ(deliver(2, 3).failure, nullptr);
}

TEST_F(device_transfers, fail_in_words_when_a_batch_ends_inside_a_capture) {
  start({.batches = 1});
  const stream captured = device->make_consumer();
  sent& one = deliver(0, 1);
  one.landed->wait_on(captured);
  device->begin_capture(captured);
  one.landed.reset();
  EXPECT_EQ(device->end_capture(captured), 0U);
  EXPECT_THAT(message_of(deliver(1, 2).failure), HasSubstr("was being captured into a graph"));
}

TEST_F(device_transfers, refuse_a_stream_of_another_context) {
  start();
  sent& one = deliver(0, 1);
  const stream foreign = device->make_consumer();
  device->make_foreign(foreign);
  EXPECT_THAT(message_of(errc::usage, [&] { one.landed->wait_on(foreign); }),
              HasSubstr("another CUDA context of cuda:0"));
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
}

// A thread's id is given to the next one. What the first put into its stream is not in the second's.
TEST_F(device_transfers, wait_for_the_default_stream_of_a_thread_that_has_ended) {
  start({.batches = 1}, execution::early);
  sent& one = deliver(0, 1);
  std::byte seen{0};
  std::thread([&] {
    one.landed->wait_on(simulated_device::per_thread());
    launch_step(simulated_device::per_thread(), one, seen);
  }).join();
  std::thread([&] { one.landed.reset(); }).join();
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  device->finish_everything();
  EXPECT_EQ(seen, std::byte{1});
}

// CUDA makes a caller wait whose stream's queue is full. That is the trainer's business and not the I/O thread's.
TEST_F(device_transfers, keep_the_io_thread_from_waiting_with_who_waits_for_room_in_a_stream) {
  for (const bool ends : {false, true}) {
    SCOPED_TRACE(ends);
    start();
    const stream consumer = device->make_consumer();
    sent& one = deliver(0, 1);
    if (ends) one.landed->wait_on(consumer);
    calls->hold(ends ? "record" : "wait");
    std::thread trainer([&] { ends ? one.landed.reset() : one.landed->wait_on(consumer); });
    calls->wait_until_held();
    out->collect();
    EXPECT_EQ(out->report().pinned.use, "on");
    calls->let_go();
    trainer.join();
    EXPECT_EQ(deliver(1, 2).failure, nullptr);
  }
}

// Each thread means another stream by it. What the one put there before is waited for all the same.
TEST_F(device_transfers, wait_for_a_threads_default_stream_wherever_the_batch_ends) {
  start({.batches = 1}, execution::early);
  sent& one = deliver(0, 1);
  std::byte seen{0};
  std::thread([&] {
    one.landed->wait_on(simulated_device::per_thread());
    launch_step(simulated_device::per_thread(), one, seen);
  }).join();
  one.landed->wait_on(simulated_device::per_thread());  // Another one.
  one.landed.reset();
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  device->finish_everything();
  EXPECT_EQ(seen, std::byte{1});
}

TEST_F(device_transfers, leave_the_loader_alone_when_a_consumers_own_stream_is_wrong) {
  start();
  sent& one = deliver(0, 1);
  calls->fail("wait", 1, 400);
  EXPECT_THROW(one.landed->wait_on(device->make_consumer()), error);
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
}

TEST_F(device_transfers, bring_all_host_memory_home_when_the_device_is_lost) {
  for (const bool starving : {false, true}) {
    SCOPED_TRACE(starving);
    start();
    const stream consumer = device->make_consumer();
    sent& one = deliver(0, 1);
    one.landed->wait_on(consumer);
    device->lose(719);
    if (!starving) out->collect();
    if (starving) out->starve(true);
    while (leases_out() != 0) std::this_thread::yield();
    EXPECT_THAT(message_of(deliver(1, 2).failure), HasSubstr("error 719"));
    EXPECT_THROW(one.landed->wait_on(consumer), error);
    operations.clear();
    out.reset();
    EXPECT_EQ(device->count().memory + device->count().events + device->count().streams, 1U) << "the consumer's stream";
  }
}

TEST_F(device_transfers, forget_what_waits_for_its_turn_when_drained) {
  start({.batches = 1});
  sent& first = deliver(0, 1);
  sent& waiting = send(1, 2);
  out->drain();
  EXPECT_TRUE(first.over);
  EXPECT_FALSE(waiting.over);
  first.landed.reset();
  EXPECT_EQ(wakes, 0) << "nobody is there any more to be woken";
  operations.clear();
  EXPECT_EQ(leases_out(), 0U);
}

}  // namespace
}  // namespace leat::stages
