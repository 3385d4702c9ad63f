#include "base/clock.hpp"
#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/device/device_transfer.hpp"
#include "stages/device/picture_operation.hpp"
#include "stages/observe/timeline_track.hpp"
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
#include <chrono>
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
constexpr std::size_t made_bytes = 1024;
constexpr std::size_t block_bytes = made_bytes + batch_bytes;
constexpr std::uint32_t host_batches = 4;

/// Two outputs of 2 x 3 pixels, which lie one behind the other, each with its flags.
const picture_operation planes({.height = 2, .width = 3, .type = dtype::f32, .order = layout::nchw});
const picture_operation halves({.height = 2, .width = 3, .type = dtype::f16, .order = layout::nhwc});
const device_step two_outputs[] = {{.operation = &planes, .from = {0, 256}, .to = 0},
                                   {.operation = &halves, .from = {512, 768}, .to = 256}};

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
    device = std::make_shared<simulated_device>(simulated_device_options{
        .loader = when, .consumer = execution::late, .can_pin = can_pin, .can_write_words = can_write_words});
    calls = std::make_shared<watched_calls>(device);
    out = std::make_shared<device_transfer>(calls, options);
  }
  void prepare() {
    out->prepare({.batch_bytes_max = batch_bytes,
                  .made_bytes_max = made_bytes,
                  .scratch_bytes_max = scratch_bytes,
                  .host_batches = host_batches,
                  .failed =
                      [this](std::exception_ptr why) {
                        failure = std::move(why);
                        told = true;
                      },
                  .host_memory = host,
                  .seen = noted});
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
    return left.memory + left.pinned + left.events + left.words;
  }

  /// Other host memory, where a failure has left some of it out of use for good.
  void make_host() {
    operations.clear();
    out.reset();
    host = std::make_shared<io::arena>(
        io::arena_options{.bytes_max = host_batches * batch_bytes, .pages = io::huge_pages::off});
    pool.emplace(host, io::lease_pool_options{.bytes_max = host_batches * batch_bytes, .name = "batches"});
  }

  /// Fills a block of host memory with `value` and sends it.
  sent& send(std::uint64_t turn, int value, std::size_t bytes = batch_bytes, std::span<const device_step> steps = {},
             batch_timing timing = batch_timing::none) {
    sent& operation = operations.emplace_back();
    operation.timing = timing;
    operation.block = std::move(*pool->try_lease(lease_bytes));
    std::fill_n(operation.block.data(), lease_bytes, static_cast<std::byte>(value));
    operation.number = operation.index = turn;
    operation.memory = &operation.block;
    operation.bytes = bytes;
    operation.rows = 2;
    operation.steps = steps;
    operation.handed_over = [](transfer_operation& each) noexcept { static_cast<sent&>(each).over = true; };
    out->send(operation);
    return operation;
  }
  /// The same, and waits until it is handed over: which takes another thread where its memory is not pinned yet.
  sent& deliver(std::uint64_t turn, int value, std::size_t bytes = batch_bytes, std::span<const device_step> steps = {},
                batch_timing timing = batch_timing::none) {
    return until_over(send(turn, value, bytes, steps, timing));
  }
  static sent& until_over(sent& operation) {
    while (!operation.over) std::this_thread::yield();
    return operation;
  }

  /// A step in `consumer` that reads a byte of the batch when its turn comes.
  void launch_step(stream consumer, const sent& of, std::byte& seen) {
    device->launch(consumer, [&seen, from = of.on_device->data()] { seen = from[17]; });
  }
  /// What ready() completes with.
  static std::string answer_of(sent& one) {
    asio::io_context here;
    std::string answer = "no answer";
    one.on_device->ready(completion<void(std::exception_ptr)>(
        asio::bind_executor(here, [&](std::exception_ptr why) { answer = message_of(why); })));
    here.run();
    return answer;
  }

  [[nodiscard]] std::size_t leases_out() const { return pool->count().leases_out; }

  std::shared_ptr<simulated_device> device;
  std::shared_ptr<watched_calls> calls;
  std::shared_ptr<device_transfer> out;
  std::size_t scratch_bytes = 0;          ///< of operations
  bool can_write_words = true;            ///< of the next device
  std::size_t lease_bytes = batch_bytes;  ///< of the leases that send() takes
  std::exception_ptr failure;             ///< what the loader was told
  std::atomic<bool> told = false;         ///< that it was
  std::shared_ptr<timeline_track> noted = std::make_shared<timeline_track>("device", 16);
  std::shared_ptr<io::arena> host = std::make_shared<io::arena>(
      io::arena_options{.bytes_max = host_batches * batch_bytes, .pages = io::huge_pages::off});
  std::optional<io::lease_pool> pool{
      std::in_place, host, io::lease_pool_options{.bytes_max = host_batches * batch_bytes, .name = "batches"}};
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
    one.on_device->wait_on(consumer);
    one.on_device->wait_on(other);
    one.on_device.reset();
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
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(log[0], "pin");
  const std::string side = log[1].substr(log[1].find("in ") + 3);
  EXPECT_EQ(log[1], "copy 5000 in " + side);
  EXPECT_EQ(log[2], "write 1 in " + side);
  const std::string arrived = log[3].substr(7, log[3].find(" in ") - 7);
  EXPECT_EQ(log[3], "record " + arrived + " in " + side);

  first.on_device->wait_on(consumer);
  first.on_device->wait_on(other);
  EXPECT_THAT(calls->take_log(), ElementsAre("look_at " + c, "wait in " + c + " for " + arrived, "look_at " + o,
                                             "wait in " + o + " for " + arrived));
  first.on_device.reset();
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
  ASSERT_EQ(log.size(), 6U);
  EXPECT_EQ(log[0], "pin");
  EXPECT_EQ(log[1], "wait in " + side + " for " + consumed);
  EXPECT_EQ(log[2], "wait in " + side + " for " + consumed_too);
  EXPECT_EQ(log[3], "copy 8192 in " + side);
  EXPECT_EQ(log[4], "write 2 in " + side);
  EXPECT_THAT(log[5], ::testing::AllOf(::testing::StartsWith("record "), ::testing::EndsWith(" in " + side)));

  for (const stream each : {consumer, other, third}) second.on_device->wait_on(each);
  static_cast<void>(calls->take_log());
  second.on_device.reset();
  log = calls->take_log();
  ASSERT_EQ(log.size(), 7U) << "an event for the third stream, once";
  EXPECT_EQ(log[4], "make_event");
  EXPECT_EQ(log[5], "look_at " + t);
  EXPECT_THAT(log[6], ::testing::AllOf(::testing::StartsWith("record "), ::testing::EndsWith(" in " + t)));
  sent& last = deliver(2, 3);
  for (const stream each : {consumer, other, third}) last.on_device->wait_on(each);
  static_cast<void>(calls->take_log());
  last.on_device.reset();
  EXPECT_EQ(calls->take_log().size(), 6U);
}

// A timed batch has two records in its own stream beside these, and one where it ends, as the batch before it has.
TEST_F(device_transfers, time_a_batch_by_events_around_its_copy_and_at_the_ends_of_two_steps) {
  using namespace std::chrono_literals;
  start({.batches = 2});
  const stream consumer = device->make_consumer();
  const std::string c = watched_calls::number(consumer);
  const auto records_in = [](const std::vector<std::string>& log, const std::string& in) {
    return std::count_if(log.begin(), log.end(), [&](const std::string& call) {
      return call.starts_with("record ") && call.ends_with(" in " + in);
    });
  };
  const auto step = [&](sent& of, std::chrono::milliseconds takes) {
    of.on_device->wait_on(consumer);
    device->launch(consumer, [takes] { std::this_thread::sleep_for(takes); });
    static_cast<void>(calls->take_log());
    of.on_device.reset();
  };

  sent& before = deliver(0, 1, batch_bytes, {}, batch_timing::before);
  auto log = calls->take_log();
  ASSERT_EQ(log.size(), 4U) << "no record more";
  const std::string side = log[1].substr(log[1].find("in ") + 3);
  step(before, 1ms);
  EXPECT_EQ(records_in(calls->take_log(), c), 2);

  sent& timed = deliver(1, 2, batch_bytes, {}, batch_timing::timed);
  log = calls->take_log();
  ASSERT_EQ(log.size(), 6U);
  EXPECT_THAT(log[1], ::testing::StartsWith("record "));
  EXPECT_EQ(log[2], "copy 8192 in " + side);
  EXPECT_EQ(records_in(log, side), 3);
  step(timed, 20ms);
  EXPECT_EQ(records_in(calls->take_log(), c), 2);

  // Nobody waits for what has not passed.
  step(deliver(2, 3), 0ms);
  EXPECT_EQ(out->times().batches, 0U);
  EXPECT_EQ(calls->counts().count("elapsed_ns"), 0U);
  const auto let_all_pass = [&] {
    device->finish_everything();
    out->collect();
  };
  let_all_pass();
  step(deliver(3, 4), 0ms);
  EXPECT_EQ(calls->counts().at("elapsed_ns"), 3U);
  const device_times times = out->times();
  EXPECT_EQ(times.batches, 1U);
  EXPECT_EQ(times.rows, 2U);
  EXPECT_GE(times.step_ns, 20'000'000U);
  // It is in the timeline, from when it was queued.
  const std::vector<timeline_span> spans = noted->spans();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].of, activity::copy);
  EXPECT_EQ(spans[0].end_ns - spans[0].begin_ns, times.copy_ns);
  EXPECT_LE(spans[0].begin_ns, now_ns());
  EXPECT_EQ(spans[0].batch, 1U);
  let_all_pass();
  EXPECT_EQ(calls->counts().count("synchronize"), 0U);

  // The pair is given up where one of the two is read by no stream, where the second never comes, and where it is not the next.
  for (std::uint64_t turn = 4; turn < 40; turn += 3) {
    sent& first = deliver(turn, 5, batch_bytes, {}, batch_timing::before);
    if (turn % 2 != 0) first.on_device->wait_on(consumer);
    first.on_device.reset();
    const bool comes = turn % 4 < 2;
    sent& second = deliver(turn + 1, 6, batch_bytes, {}, comes ? batch_timing::timed : batch_timing::none);
    if (turn % 2 == 0) second.on_device->wait_on(consumer);
    second.on_device.reset();
    let_all_pass();
    deliver(turn + 2, 7, batch_bytes, {}, batch_timing::timed).on_device.reset();
    let_all_pass();
  }
  EXPECT_EQ(out->times().batches, 1U);
  // And the next whole one counts again.
  for (std::uint64_t turn = 40; turn < 43; ++turn) {
    step(deliver(turn, 8, batch_bytes, {},
                 turn == 40   ? batch_timing::before
                 : turn == 41 ? batch_timing::timed
                              : batch_timing::none),
         0ms);
    let_all_pass();
  }
  EXPECT_EQ(out->times().batches, 2U);
}

// Between the copy and the event, so that who waits for the batch waits for its pictures.
TEST_F(device_transfers, run_operations_between_the_copy_and_the_event) {
  start({.batches = 1});
  const stream consumer = device->make_consumer();
  sent& pictures = deliver(0, 7, batch_bytes, two_outputs);
  auto log = calls->take_log();
  ASSERT_EQ(log.size(), 8U);
  const std::string side = log[1].substr(log[1].find("in ") + 3);
  EXPECT_EQ(log[1], "copy 8192 in " + side);
  EXPECT_EQ(log[2], "write 1 in " + side) << "the host memory goes home before the kernels have run";
  const std::string copied = log[3].substr(7, log[3].find(" in ") - 7);
  EXPECT_EQ(log[3], "record " + copied + " in " + side);
  const std::string working = log[4].substr(8, log[4].find(" for ") - 8);
  EXPECT_EQ(log[4], "wait in " + working + " for " + copied);
  EXPECT_NE(working, side) << "the next copy goes on beside them";
  EXPECT_EQ(log[5], "launch the kernel that finishes pictures in " + working);
  EXPECT_EQ(log[6], "launch the kernel that finishes pictures in " + working);
  EXPECT_THAT(log[7], ::testing::AllOf(::testing::StartsWith("record "), ::testing::EndsWith(" in " + working)));

  pictures.on_device->wait_on(consumer);
  std::vector<float> seen(2 * 18);
  device->launch(consumer, [&, from = pictures.on_device->made()] {
    std::memcpy(seen.data(), from, seen.size() * sizeof seen[0]);
  });
  device->finish_all(consumer);
  EXPECT_THAT(seen, ::testing::Each(7.0F));
  EXPECT_EQ(pictures.on_device->data() - pictures.on_device->made(), std::ptrdiff_t{made_bytes});

  // Who waits for the batch waits for its operations, and the next copy for who does. Where nobody does it waits for the operations.
  pictures.on_device.reset();
  static_cast<void>(calls->take_log());
  sent& unseen = deliver(1, 7, batch_bytes, two_outputs);
  log = calls->take_log();
  EXPECT_TRUE(log[1].starts_with("wait in " + side)) << log[1];
  EXPECT_EQ(log[2], "copy 8192 in " + side);
  unseen.on_device.reset();
  static_cast<void>(calls->take_log());
  static_cast<void>(deliver(2, 7, batch_bytes, two_outputs));
  log = calls->take_log();
  ASSERT_EQ(log.size(), 10U);
  EXPECT_EQ(log[1], "record " + copied + " in " + working);
  EXPECT_EQ(log[2], "wait in " + side + " for " + copied);
  EXPECT_EQ(log[3], "copy 8192 in " + side);
}

// A stream that has not waited for the batch says nothing of its operations, which the next copy would then overtake.
TEST_F(device_transfers, have_a_stream_that_only_releases_a_batch_wait_for_its_operations) {
  start({.batches = 1});
  const stream consumer = device->make_consumer();
  const std::string c = watched_calls::number(consumer);
  sent& unread = deliver(0, 7, batch_bytes, two_outputs);
  auto log = calls->take_log();
  ASSERT_EQ(log.size(), 8U);
  const std::string arrived = log[7].substr(7, log[7].find(" in ") - 7);
  unread.on_device->release_on(consumer);
  log = calls->take_log();
  ASSERT_EQ(log.size(), 4U);
  EXPECT_EQ(log[0], "look_at " + c);
  EXPECT_EQ(log[1], "wait in " + c + " for " + arrived);
  EXPECT_EQ(log[2], "look_at " + c);
  const std::string consumed = log[3].substr(7, log[3].find(" in ") - 7);
  EXPECT_EQ(log[3], "record " + consumed + " in " + c);
  static_cast<void>(deliver(1, 7, batch_bytes, two_outputs));
  log = calls->take_log();
  EXPECT_THAT(log[1], ::testing::AllOf(::testing::StartsWith("wait in "), ::testing::EndsWith(" for " + consumed)));
  EXPECT_TRUE(log[2].starts_with("copy 8192 in ")) << log[2];
}

TEST_F(device_transfers, never_use_a_block_again_for_which_a_stream_that_releases_it_could_not_wait) {
  start({.batches = 1});
  const stream consumer = device->make_consumer();
  sent& unread = deliver(0, 7, batch_bytes, two_outputs);
  calls->fail("wait", 1, 400);
  EXPECT_THAT(message_of(errc::device, [&] { unread.on_device->release_on(consumer); }),
              HasSubstr("cudaStreamWaitEvent of release_on()"));
  EXPECT_THAT(message_of(deliver(1, 2).failure), HasSubstr("cudaStreamWaitEvent of release_on()"));
}

/// An operation that is none of the library's: through its scratch it makes of each row of `from` the sum of its bytes.
struct sum_arguments {
  const std::byte* from;
  std::uint32_t* scratch;
  std::uint32_t* to;
  std::uint32_t rows;
};
constexpr std::size_t summed_bytes = 100;
const device_kernel sum_kernel = {.name = "the kernel that sums",
                                  .argument_bytes = sizeof(sum_arguments),
                                  .run_on_host = [](const void* given) noexcept {
                                    const auto& of = *static_cast<const sum_arguments*>(given);
                                    for (std::uint32_t r = 0; r < of.rows; ++r) {
                                      of.scratch[r] = 0;
                                      for (std::size_t i = 0; i < summed_bytes; ++i)
                                        of.scratch[r] += static_cast<unsigned>(of.from[r * summed_bytes + i]);
                                    }
                                    std::copy_n(of.scratch, of.rows, of.to);
                                  }};
class sum_operation final : public device_operation {
 public:
  [[nodiscard]] std::size_t decoded_row_bytes() const noexcept override { return summed_bytes; }
  [[nodiscard]] std::size_t scratch_bytes(std::uint32_t rows) const noexcept override {
    return rows * sizeof(std::uint32_t);
  }
  [[nodiscard]] failed_call launch(device_calls& calls, const operands& of, stream in) const noexcept override {
    const sum_arguments arguments{of.from[0], reinterpret_cast<std::uint32_t*>(of.scratch),
                                  reinterpret_cast<std::uint32_t*>(of.to), of.rows};
    return {calls.launch(sum_kernel, &arguments, in), sum_kernel.name, {}};
  }
  void make_row(std::span<const std::byte* const> /*from*/, std::uint32_t /*row*/, std::byte* /*to*/,
                std::byte* /*scratch*/) const noexcept override {}
};

TEST_F(device_transfers, run_any_operation_and_give_it_the_scratch_that_it_asked_for) {
  const sum_operation sum;
  scratch_bytes = sum.scratch_bytes(2);
  const device_step step[] = {{.operation = &sum, .from = {300}, .to = 512}};
  start({.batches = 1});
  const stream consumer = device->make_consumer();
  for (std::uint64_t turn = 0; turn < 3; ++turn) {
    sent& summed = deliver(turn, static_cast<int>(turn) + 1, batch_bytes, step);
    summed.on_device->wait_on(consumer);
    std::uint32_t seen[2] = {};
    device->launch(consumer, [&, from = summed.on_device->made() + 512] { std::memcpy(seen, from, sizeof seen); });
    device->finish_all(consumer);
    EXPECT_THAT(seen, ::testing::Each(summed_bytes * (turn + 1)));
    summed.on_device.reset();
  }
  EXPECT_EQ(end(), 0U);
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
  one.on_device->wait_on(consumer);
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
  first.on_device.reset();
  until_over(third);
}

// Queries and enqueues may wait for the driver's locks, and for room in a stream. This thread plays the I/O thread.
TEST_F(device_transfers, call_nothing_on_the_io_thread) {
  for (const bool words : {true, false}) {
    SCOPED_TRACE(words);
    can_write_words = words;
    start({.batches = 1});
    std::thread([] {}).join();
    ::pthread_setname_np(::pthread_self(), "leat-io-0");
    for (std::uint64_t turn = 0; turn < 3; ++turn) {
      sent& one = deliver(turn, 1);
      out->collect();
      out->starve(true);
      while (leases_out() != 0) std::this_thread::yield();
      out->starve(false);
      one.on_device.reset();  // nobody reads it
    }
    for (const char* call : {"pin", "copy", "write", "record", "wait", "query", "synchronize", "look_at"}) {
      EXPECT_FALSE(calls->threads_of(call).contains("leat-io-0")) << call;
    }
    ::pthread_setname_np(::pthread_self(), "leat-test");
  }
}

TEST_F(device_transfers, bring_memory_home_by_a_query_where_streams_cannot_write) {
  can_write_words = false;
  start({.batches = 2}, execution::late);
  sent& one = deliver(0, 1);
  out->collect();
  while (calls->counts()["query"] == 0) std::this_thread::yield();
  EXPECT_EQ(leases_out(), 1U) << "a late device has not copied yet";
  one.on_device->wait_on(device->make_consumer());
  device->finish_everything();
  while (leases_out() != 0) {
    out->collect();
    std::this_thread::yield();
  }
  EXPECT_THAT(calls->threads_of("query"), ElementsAre("leat-copies"));
  EXPECT_EQ(calls->counts()["synchronize"], 0U);
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
  first.on_device->wait_on(consumer);
  first.on_device.reset();
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
  first.on_device->wait_on(consumer);
  std::byte seen{0};
  launch_step(consumer, first, seen);
  first.on_device.reset();
  calls->fail("pin", 1, 2);
  sent& second = deliver(1, 2);
  EXPECT_EQ(seen, std::byte{1}) << "the step before it has been waited for";
  EXPECT_EQ(device->count().copies_pageable, 2U);
  EXPECT_THAT(device->waiting_threads(), ElementsAre("leat-send"));
  second.on_device->wait_on(consumer);
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
  one.on_device->ready(completion<void(std::exception_ptr)>(asio::bind_executor(here, [&](std::exception_ptr why) {
    EXPECT_EQ(message_of(why), "");
    seen = one.on_device->data()[batch_bytes - 1];
  })));
  here.run();
  EXPECT_EQ(seen, std::byte{7});
  EXPECT_EQ(leases_out(), 0U);
  bool again = false;
  one.on_device->ready(
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
    deliver(turn, 1).on_device->ready(
        completion<void(std::exception_ptr)>(asio::bind_executor(here, [&](std::exception_ptr why) {
          EXPECT_EQ(message_of(why), "");
          ++completed;
        })));
    operations.back().on_device.reset();
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
    one.on_device->ready(completion<void(std::exception_ptr)>(asio::bind_cancellation_slot(
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
      "device memory for a batch of 9216 bytes on simulated device (cuda:0): out of memory (cudaErrorMemoryAllocation)";
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
  for (const char* const call : {"wait", "copy", "write", "launch", "record"}) {
    SCOPED_TRACE(call);
    start({.batches = 1});
    const stream consumer = device->make_consumer();
    sent& good = deliver(0, 1);
    good.on_device->wait_on(consumer);
    good.on_device.reset();
    calls->fail(call, 1, 999);
    sent& bad = deliver(1, 2, batch_bytes, two_outputs);
    sent& later = deliver(2, 3);
    EXPECT_TRUE(bad.over && later.over);
    EXPECT_THAT(message_of(bad.failure), HasSubstr("on simulated device (cuda:0): error 999"));
    EXPECT_EQ(message_of(later.failure), message_of(bad.failure));
    EXPECT_EQ(bad.on_device, nullptr);
    const bool copied =
        call == std::string_view("launch") || call == std::string_view("record") || call == std::string_view("write");
    out->drain();
    operations.clear();
    EXPECT_EQ(leases_out(), copied ? 2U : 1U) << "those whose copies are in the queue";
    make_host();
  }
}

// A call that is refused says nothing of the copy, which may be reading: from then on nothing is called, reused, freed or unpinned.
TEST_F(device_transfers, leave_all_as_it_is_where_nobody_can_tell_whether_a_copy_has_passed) {
  for (const bool starving : {false, true}) {
    SCOPED_TRACE(starving);
    can_write_words = starving;
    start({.batches = 2});
    sent& flying = deliver(0, 1);
    calls->fail(starving ? "synchronize" : "query", 1, 999);
    if (starving) {
      out->starve(true);
    } else {
      out->collect();
    }
    while (!told) std::this_thread::yield();
    told = false;
    EXPECT_EQ(message_of(failure), std::string(starving ? "cudaEventSynchronize" : "cudaEventQuery") +
                                       " on simulated device (cuda:0): error 999");
    sent& later = deliver(1, 2);
    EXPECT_EQ(message_of(later.failure), message_of(failure));
    static_cast<void>(calls->take_log());
    later.block = {};
    EXPECT_THROW(flying.on_device->wait_on(device->make_consumer()), error);
    flying.on_device.reset();
    device->finish_everything();  // it did go on
    out->collect();
    out->starve(false);
    operations.clear();
    out->drain();
    EXPECT_EQ(leases_out(), 1U) << "the copy may read it";
    EXPECT_EQ(device->count().pinned, 1U);
    out.reset();
    EXPECT_EQ(device->count().memory, 2U);
    EXPECT_THAT(calls->take_log(), ::testing::IsEmpty());
    make_host();
  }
}

TEST_F(device_transfers, complete_ready_with_the_reason_where_nobody_can_wait_for_its_copy) {
  start();
  sent& one = deliver(0, 7);
  calls->fail("synchronize", 1, 999);
  EXPECT_EQ(answer_of(one), "cudaEventSynchronize on simulated device (cuda:0): error 999");
  EXPECT_EQ(answer_of(one), "cudaEventSynchronize on simulated device (cuda:0): error 999");
  EXPECT_EQ(leases_out(), 1U);
}

// Whatever fails meanwhile: nobody will call for them any more.
TEST_F(device_transfers, complete_every_ready_when_something_else_fails) {
  start({.batches = 1});
  sent& one = deliver(0, 7);
  calls->hold("synchronize");
  asio::io_context here;
  std::string answer = "no answer";
  one.on_device->ready(completion<void(std::exception_ptr)>(
      asio::bind_executor(here, [&](std::exception_ptr why) { answer = message_of(why); })));
  calls->wait_until_held();
  sent& other = send(1, 2);
  one.on_device->wait_on(device->make_consumer());
  calls->fail("record", 1, 400);
  one.on_device.reset();
  until_over(other);
  while (!told) std::this_thread::yield();
  calls->let_go();
  here.run();
  EXPECT_TRUE(answer.empty() || answer.find("cudaEventRecord of a batch's end") != std::string::npos) << answer;
}

// A pageable copy waits on the CPU for the consumer of what it overwrites. Where that fails it is not made.
TEST_F(device_transfers, overwrite_nothing_whose_consumer_nobody_can_wait_for) {
  start({.batches = 1}, execution::early, false);
  const stream consumer = device->make_consumer();
  sent& first = deliver(0, 1);
  first.on_device->wait_on(consumer);
  std::byte seen{0};
  launch_step(consumer, first, seen);
  first.on_device.reset();
  calls->fail("synchronize", 1, 999);
  sent& second = deliver(1, 2);
  EXPECT_EQ(message_of(second.failure),
            "cudaEventSynchronize of a batch's end on simulated device (cuda:0): error 999");
  EXPECT_TRUE(second.block) << "not taken: nothing reads it";
  EXPECT_EQ(device->count().copies, 1U);
  device->finish_all(consumer);
  EXPECT_EQ(seen, std::byte{1});
}

// The stream may be the consumer's own mistake: the batch is held as before, and the loader goes on.
TEST_F(device_transfers, leave_a_batch_as_it_is_where_its_consumers_stream_cannot_be_looked_at) {
  start();
  const stream consumer = device->make_consumer();
  sent& one = deliver(0, 1);
  for (const bool release : {false, true}) {
    calls->fail("look_at", 1, 400);
    EXPECT_EQ(message_of(errc::device,
                         [&] { release ? one.on_device->release_on(consumer) : one.on_device->wait_on(consumer); }),
              "cudaStreamIsCapturing or cuStreamGetCtx of a consumer's stream on simulated device (cuda:0): error 400");
    EXPECT_NE(one.on_device->data(), nullptr);
  }
  one.on_device->wait_on(consumer);
  one.on_device->release_on(consumer);
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  EXPECT_EQ(deliver(2, 3).failure, nullptr);
}

// At its end there is nobody to hold it any more.
TEST_F(device_transfers, never_use_a_block_again_whose_end_could_not_be_told) {
  const auto end_with = [&](const char* call, std::size_t nth) {
    start({.batches = 2});
    sent& one = deliver(0, 1);
    one.on_device->wait_on(device->make_consumer());
    one.on_device->wait_on(device->make_consumer());
    one.on_device->wait_on(device->make_consumer());  // for whom there is no event yet
    calls->fail(call, nth, 400);
    one.on_device.reset();
    const std::string message = message_of(deliver(1, 2).failure);
    operations.clear();
    out.reset();
    EXPECT_EQ(device->count().memory, 2U) << call << ": a consumer may read it";
    device->finish_everything();
    make_host();
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
    for (std::uint64_t turn = 0; turn < copies; ++turn) deliver(turn, 1, 64).on_device.reset();
    if (fails) calls->fail("make_event", 1, 2);
    sent& more = deliver(copies, 2, 64);
    EXPECT_EQ(message_of(more.failure),
              fails ? "cudaEventCreateWithFlags on simulated device (cuda:0): out of memory (cudaErrorMemoryAllocation)"
                    : "");
    EXPECT_EQ(static_cast<bool>(more.block), fails) << "not taken: nothing reads it";
    if (fails) continue;
    EXPECT_EQ(end(), 0U);
    EXPECT_EQ(leases_out(), 0U);
  }
}

// Its bytes may never have come: ready() must not say that they have, to whoever asks later.
TEST_F(device_transfers, ready_fails_for_a_copy_of_which_nobody_knows_whether_it_arrived) {
  can_write_words = false;
  start();
  sent& asked_about = deliver(0, 1);
  calls->fail("query", 1, 999);
  out->collect();
  while (!told) std::this_thread::yield();
  EXPECT_THAT(answer_of(asked_about), HasSubstr("cudaEventQuery"));

  start();
  sent& drained = deliver(0, 1);
  calls->fail("finish", 1, 999);
  out->drain();
  EXPECT_THAT(answer_of(drained), HasSubstr("cudaStreamSynchronize"));
  device->finish_everything();  // it did go on

  make_host();
  start();
  sent& lost = deliver(0, 1);
  device->lose(719);
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

TEST_F(device_transfers, never_use_a_block_again_whose_consumer_could_not_be_recorded) {
  start({.batches = 2});
  const stream consumer = device->make_consumer();
  sent& one = deliver(0, 1);
  one.on_device->wait_on(consumer);
  calls->fail("record", 1, 400);
  EXPECT_THROW(one.on_device->release_on(consumer), error);
  sent& next = deliver(1, 2);
  EXPECT_THAT(message_of(next.failure), HasSubstr("cudaEventRecord of a batch's end"));
}

// The next loader comes and goes beside a training run, which is not to wait for it.
TEST_F(device_transfers, end_without_waiting_for_consumers_and_free_blocks_behind_them) {
  start({.batches = 2});
  const stream consumer = device->make_consumer();
  std::byte seen[2] = {};
  for (std::uint64_t turn = 0; turn < 2; ++turn) {
    sent& one = deliver(turn, static_cast<int>(turn) + 1);
    one.on_device->wait_on(consumer);
    launch_step(consumer, one, seen[turn]);
  }
  operations.clear();
  out->drain();
  const std::size_t waits = device->count().waits_for_device;
  static_cast<void>(calls->take_log());
  out.reset();
  EXPECT_EQ(device->count().waits_for_device, waits) << "beyond the copies' own";
  EXPECT_THAT(seen, ::testing::Each(std::byte{0})) << "a late consumer has read nothing yet";
  EXPECT_EQ(device->count().memory + device->count().events, 0U) << "all of it is given back";
  device->finish_everything();
  EXPECT_THAT(seen, ElementsAre(std::byte{1}, std::byte{2})) << "and was there until it had been read";
}

// Whether somebody still uses it nobody can tell.
TEST_F(device_transfers, free_nothing_after_a_failure) {
  const auto blocks_left_when = [&](const std::function<void()>& happens) {
    make_host();
    start({.batches = 2});
    happens();
    operations.clear();
    out->drain();
    static_cast<void>(calls->take_log());
    out.reset();
    EXPECT_THAT(calls->take_log(), ::testing::IsEmpty());
    const std::size_t left = device->count().memory;
    device->finish_everything();
    return left;
  };
  EXPECT_EQ(blocks_left_when([&] {
              deliver(0, 1).on_device->wait_on(device->make_consumer());
              calls->fail("record", 1, 400);
            }),
            2U)
      << "a consumer that could not be recorded";
  EXPECT_EQ(blocks_left_when([&] {
              deliver(0, 1);
              calls->fail("finish", 1, 999);
            }),
            2U)
      << "copies whose end could not be waited for";
  EXPECT_EQ(blocks_left_when([&] {
              deliver(0, 1).on_device->wait_on(device->make_consumer());
              device->lose(719);
            }),
            2U)
      << "a lost device: handles may be gone";
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
      release ? one.on_device->release_on(foreign) : one.on_device->wait_on(foreign);
      FAIL();
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      EXPECT_THAT(refused.what(), HasSubstr("cuda:3, and the batch lies on cuda:0"));
    }
  }
  EXPECT_NE(one.on_device->data(), nullptr) << "held as before";
  one.on_device->release_on(device->make_consumer());
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  EXPECT_EQ(deliver(2, 3).failure, nullptr);
}

// Which has begun before the batch came, or ends after it has gone.
TEST_F(device_transfers, refuse_a_stream_that_is_being_captured_and_leave_capture_and_batch_as_they_are) {
  start();
  const stream captured = device->make_consumer();
  const stream other = device->make_consumer();
  sent& one = deliver(0, 1);
  one.on_device->wait_on(captured);
  device->begin_capture(captured);
  device->launch(captured, [] {});
  for (const auto& call : {std::function<void()>([&] { one.on_device->wait_on(captured); }),
                           std::function<void()>([&] { one.on_device->release_on(captured); }),
                           std::function<void()>([&] { one.on_device->release_on(other); })}) {
    try {
      call();
      FAIL();
    } catch (const error& refused) {
      EXPECT_EQ(refused.code(), errc::usage);
      EXPECT_THAT(refused.what(), HasSubstr("before the capture, or after it"));
    }
  }
  EXPECT_NE(one.on_device->data(), nullptr);
  EXPECT_EQ(device->end_capture(captured), 1U);
  one.on_device->release_on(captured);
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  EXPECT_EQ(deliver(2, 3).failure, nullptr);
}

TEST_F(device_transfers, fail_in_words_when_a_batch_ends_inside_a_capture) {
  start({.batches = 1});
  const stream captured = device->make_consumer();
  sent& one = deliver(0, 1);
  one.on_device->wait_on(captured);
  device->begin_capture(captured);
  one.on_device.reset();
  EXPECT_EQ(device->end_capture(captured), 0U);
  EXPECT_THAT(message_of(deliver(1, 2).failure), HasSubstr("was being captured into a graph"));
}

// Somebody captures a stream that the default stream waits for: nothing can be recorded there, which would break that capture. It can be
// when it is over.
TEST_F(device_transfers, park_a_block_whose_consumer_cannot_be_recorded_during_somebodys_capture) {
  start({.batches = 1});
  const stream trainers = device->make_blocking_consumer();
  sent& one = deliver(0, 1);
  one.on_device->wait_on(stream());
  std::byte seen{0};
  launch_step(stream(), one, seen);
  device->begin_capture(trainers);
  device->launch(trainers, [] {});
  one.on_device.reset();
  sent& next = send(1, 2);
  calls->hold("look_at");
  calls->wait_until_held();  // it is tried again
  EXPECT_FALSE(next.over) << "the only block is kept from use";
  calls->let_go();
  EXPECT_EQ(device->end_capture(trainers), 1U);
  until_over(next);
  EXPECT_EQ(next.failure, nullptr);
  EXPECT_FALSE(told);
  device->finish_everything();
  EXPECT_EQ(seen, std::byte{1}) << "the copy has waited for the step";
  EXPECT_EQ(device->count().captures_broken, 0U);
}

// Of its streams only the default one is kept from being recorded: the others may be gone when the capture is over, and the thread that
// records then has another default stream of its own.
TEST_F(device_transfers, record_the_other_streams_of_a_parked_block_at_once) {
  start({.batches = 1});
  const stream trainers = device->make_blocking_consumer();
  const stream other = device->make_consumer();
  sent& one = deliver(0, 1);
  std::byte seen[2] = {};
  one.on_device->wait_on(stream());
  one.on_device->wait_on(simulated_device::per_thread());
  one.on_device->wait_on(other);
  launch_step(simulated_device::per_thread(), one, seen[0]);
  launch_step(other, one, seen[1]);
  device->begin_capture(trainers);
  static_cast<void>(calls->take_log());
  one.on_device.reset();
  const std::vector<std::string> log = calls->take_log();
  EXPECT_EQ(
      std::count_if(log.begin(), log.end(), [](const std::string& each) { return each.rfind("record ", 0) == 0; }), 2);
  static_cast<void>(device->free_stream(other));
  sent& next = send(1, 2);
  device->end_capture(trainers);
  until_over(next);
  EXPECT_EQ(message_of(next.failure), "");
  device->finish_everything();
  EXPECT_THAT(seen, ::testing::Each(std::byte{1}));
}

TEST_F(device_transfers, refuse_the_default_stream_while_one_that_waits_for_it_is_captured) {
  start({.batches = 1});
  const stream trainers = device->make_blocking_consumer();
  sent& one = deliver(0, 1);
  device->begin_capture(trainers);
  EXPECT_THAT(message_of(errc::usage, [&] { one.on_device->wait_on(stream()); }), HasSubstr("before the capture"));
  device->end_capture(trainers);
  one.on_device->wait_on(stream());
  one.on_device.reset();
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  EXPECT_EQ(device->count().captures_broken, 0U);
}

// A loader that ends meanwhile cannot tell when its block has been read: it is left.
TEST_F(device_transfers, keep_a_parked_block_where_the_loader_ends_before_the_capture) {
  start({.batches = 2});
  const stream trainers = device->make_blocking_consumer();
  deliver(0, 1).on_device->wait_on(stream());
  device->begin_capture(trainers);
  operations.clear();
  out.reset();
  EXPECT_EQ(device->count().memory, 1U);
  EXPECT_EQ(device->count().captures_broken, 0U);
  device->end_capture(trainers);
}

TEST_F(device_transfers, refuse_a_stream_of_another_context) {
  start();
  sent& one = deliver(0, 1);
  const stream foreign = device->make_consumer();
  device->make_foreign(foreign);
  EXPECT_THAT(message_of(errc::usage, [&] { one.on_device->wait_on(foreign); }),
              HasSubstr("another CUDA context of cuda:0"));
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
}

// A thread's id is given to the next one. What the first put into its stream is not in the second's.
TEST_F(device_transfers, wait_for_the_default_stream_of_a_thread_that_has_ended) {
  start({.batches = 1}, execution::early);
  sent& one = deliver(0, 1);
  std::byte seen{0};
  std::thread([&] {
    one.on_device->wait_on(simulated_device::per_thread());
    launch_step(simulated_device::per_thread(), one, seen);
  }).join();
  std::thread([&] { one.on_device.reset(); }).join();
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
    if (ends) one.on_device->wait_on(consumer);
    calls->hold(ends ? "record" : "wait");
    std::thread trainer([&] { ends ? one.on_device.reset() : one.on_device->wait_on(consumer); });
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
    one.on_device->wait_on(simulated_device::per_thread());
    launch_step(simulated_device::per_thread(), one, seen);
  }).join();
  one.on_device->wait_on(simulated_device::per_thread());  // Another one.
  one.on_device.reset();
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
  device->finish_everything();
  EXPECT_EQ(seen, std::byte{1});
}

TEST_F(device_transfers, leave_the_loader_alone_when_a_consumers_own_stream_is_wrong) {
  start();
  sent& one = deliver(0, 1);
  calls->fail("wait", 1, 400);
  EXPECT_THROW(one.on_device->wait_on(device->make_consumer()), error);
  EXPECT_EQ(deliver(1, 2).failure, nullptr);
}

// As after cudaDeviceReset(): all handles are gone, and to use one is undefined.
TEST_F(device_transfers, use_no_handle_once_the_loss_of_the_device_was_noticed) {
  for (const char* const noticed_by : {"wait_on", "ready", "starving", "record"}) {
    SCOPED_TRACE(noticed_by);
    make_host();
    start();
    told = false;
    const stream consumer = device->make_consumer();
    sent& one = deliver(0, 1);
    sent& other = deliver(1, 1);
    one.on_device->wait_on(consumer);
    device->lose(719);
    if (noticed_by == std::string_view("wait_on")) {
      EXPECT_THROW(other.on_device->wait_on(consumer), error);
    } else if (noticed_by == std::string_view("ready")) {
      EXPECT_THAT(answer_of(other), HasSubstr("error 719"));
    } else if (noticed_by == std::string_view("starving")) {
      out->starve(true);
    } else {
      one.on_device.reset();
    }
    while (!told) std::this_thread::yield();
    static_cast<void>(calls->take_log());
    EXPECT_THAT(message_of(deliver(2, 2).failure), HasSubstr("error 719"));
    EXPECT_THAT(message_of(errc::device, [&] { other.on_device->wait_on(consumer); }), HasSubstr("error 719"));
    EXPECT_THAT(answer_of(other), HasSubstr("error 719"));
    operations.clear();
    out.reset();
    EXPECT_THAT(calls->take_log(), ::testing::IsEmpty());
  }
}

TEST_F(device_transfers, forget_what_waits_for_its_turn_when_drained) {
  start({.batches = 1});
  sent& first = deliver(0, 1);
  sent& waiting = send(1, 2);
  out->drain();
  EXPECT_TRUE(first.over);
  EXPECT_FALSE(waiting.over);
  first.on_device.reset();
  operations.clear();
  EXPECT_EQ(leases_out(), 0U);
}

}  // namespace
}  // namespace leat::stages
