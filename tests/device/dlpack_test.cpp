// Tensors given away as DLPack: what they say of themselves, to a consumer in C; how long the batch's memory stays; and who
// waits for whom on a device.
#include "tests/device/dlpack_consumer.h"
#include "tests/device/watched_calls.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/failures.hpp"
#include "tests/support/fake_dataset.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/dlpack.h>
#include <leat/loading.hpp>
#include <leat/own_samples.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <unistd.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::execution;
using testing::fake_dataset;
using testing::loader;
using testing::loader_options;
using testing::simulated_device;
using testing::simulated_device_options;
using testing::watchdog;

struct call_deleter {
  template <class Managed>
  void operator()(Managed* of) const {
    of->deleter(of);
  }
};
using export_ptr = std::unique_ptr<DLManagedTensorVersioned, call_deleter>;
using old_export_ptr = std::unique_ptr<DLManagedTensor, call_deleter>;

std::uint64_t hash_of(std::span<const std::byte> bytes) {
  return dlpack_hash(bytes.data(), bytes.size(), DLPACK_HASH_START);
}

dataset twelve() {
  return from_function(12, [](std::uint64_t sample) { return std::vector(sample % 4, std::byte(sample)); },
                       {.field = "n", .bytes_max = 4});
}

loader_options four_rows() {
  return {{.batch_size = 4, .shuffle = false, .epochs = 1, .host_bytes_max = std::size_t{16} << 20}, {}};
}

std::string write_pattern(std::span<const std::byte>, const sample_context& context, std::span<std::byte> row) {
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::byte>((context.sample * 5 + i) % 2);
  return {};
}

struct type_of_dlpack {
  dtype type;
  int code;
  int bits;
};

TEST(dlpack, says_to_a_consumer_in_c_what_every_tensor_is) {
  const type_of_dlpack types[] = {{dtype::u8, kDLUInt, 8},      {dtype::i8, kDLInt, 8},     {dtype::u16, kDLUInt, 16},
                                  {dtype::i16, kDLInt, 16},     {dtype::u32, kDLUInt, 32},  {dtype::i32, kDLInt, 32},
                                  {dtype::u64, kDLUInt, 64},    {dtype::i64, kDLInt, 64},   {dtype::f16, kDLFloat, 16},
                                  {dtype::bf16, kDLBfloat, 16}, {dtype::f32, kDLFloat, 32}, {dtype::f64, kDLFloat, 64},
                                  {dtype::boolean, 6, 8}};
  for (const type_of_dlpack& expected : types) {
    loader train(twelve(), four_rows(), custom("n", expected.type, {2, 3}, write_pattern));
    const std::optional<batch> got = train.next_blocking();
    ASSERT_TRUE(got);
    const tensor view = (*got)["n"];
    const export_ptr made((*got)["n"].dlpack());
    dlpack_seen seen{};
    EXPECT_STREQ(dlpack_look(made.get(), &seen), nullptr) << name(expected.type);
    EXPECT_EQ(seen.device_type, kDLCPU);
    EXPECT_EQ(seen.device_id, 0);
    EXPECT_EQ(seen.code, expected.code) << name(expected.type);
    EXPECT_EQ(seen.bits, expected.bits) << name(expected.type);
    EXPECT_EQ(seen.flags, 0U);
    EXPECT_EQ(made->dl_tensor.data, view.data) << "no copy";
    ASSERT_EQ(seen.ndim, 3);
    EXPECT_THAT(std::vector(seen.shape, seen.shape + 3), ElementsAre(4, 2, 3));
    EXPECT_EQ(seen.hash, hash_of(view.as_bytes())) << name(expected.type);
    EXPECT_EQ(made->version.major, 1U);

    const old_export_ptr old((*got)["n"].dlpack_unversioned());
    dlpack_seen seen_so{};
    EXPECT_STREQ(dlpack_look_unversioned(old.get(), &seen_so), nullptr);
    EXPECT_EQ(seen_so.hash, seen.hash);
    EXPECT_EQ(old->dl_tensor.data, view.data);
  }
}

TEST(dlpack, of_ragged_outputs_is_the_bytes_and_their_offsets_and_null_where_there_are_none) {
  // Rows of 0, 1, 2, 3 bytes; and a batch of one empty row.
  loader_options options = four_rows();
  options.batch_size = 5;
  options.batches_max = 1;
  {
    loader train(twelve(), options, bytes("n"));
    const std::optional<batch> got = train.next_blocking();
    const export_ptr all((*got)["n"].dlpack());
    const export_ptr offsets((*got)["n.offsets"].dlpack());
    dlpack_seen seen{};
    ASSERT_STREQ(dlpack_look(all.get(), &seen), nullptr);
    EXPECT_EQ(seen.ndim, 1);
    EXPECT_EQ(seen.shape[0], 6);
    ASSERT_STREQ(dlpack_look(offsets.get(), &seen), nullptr);
    EXPECT_EQ(seen.shape[0], 6);
    const auto* const values = static_cast<const std::int64_t*>(offsets->dl_tensor.data);
    EXPECT_THAT(std::vector(values, values + 6), ElementsAre(0, 0, 1, 3, 6, 6));
  }
  options.batch_size = 1;
  loader train(twelve(), options, bytes("n"));
  const std::optional<batch> got = train.next_blocking();
  const export_ptr nothing((*got)["n"].dlpack());
  dlpack_seen seen{};
  EXPECT_STREQ(dlpack_look(nothing.get(), &seen), nullptr);
  EXPECT_EQ(seen.shape[0], 0);
  EXPECT_EQ(nothing->dl_tensor.data, nullptr);
}

TEST(dlpack, keeps_the_memory_of_a_batch_that_has_ended_until_its_deleter_has_run) {
  const watchdog dog("kept");
  loader train(fake_dataset(testing::make_samples(1, 45)), testing::small_options(), testing::all_fields());
  std::optional<batch> first = train.next_blocking();
  ASSERT_TRUE(first);
  export_ptr pixels((*first)["jpg"].dlpack());
  export_ptr classes((*first)["cls"].dlpack());
  dlpack_seen before{};
  ASSERT_STREQ(dlpack_look(pixels.get(), &before), nullptr);
  first.reset();
  EXPECT_EQ(train.stats().batches_out, 1U);
  for (std::uint64_t left = train.batches(); left > 1; --left) ASSERT_TRUE(train.next_blocking());
  dlpack_seen after{};
  ASSERT_STREQ(dlpack_look(pixels.get(), &after), nullptr);
  EXPECT_EQ(after.hash, before.hash) << "somebody has written into it";
  pixels.reset();
  EXPECT_EQ(train.stats().batches_out, 1U) << "the other tensor holds it too";
  classes.reset();
  EXPECT_EQ(train.stats().batches_out, 0U);
}

TEST(dlpack, of_a_batch_that_is_still_there_leaves_the_batch_as_it_is) {
  loader train(twelve(), four_rows(), bytes("n"));
  std::optional<batch> got = train.next_blocking();
  const void* const data = (*got)["n"].data;
  {
    const export_ptr made((*got)["n"].dlpack());
  }
  EXPECT_EQ((*got)["n"].data, data);
  EXPECT_EQ((*got)["n"].where, host);
  EXPECT_EQ(got->bytes("n", 3).size(), 3U);
  got->wait_on(stream());
  const batch moved = std::move(*got);
  const export_ptr again(moved["n"].dlpack());
  EXPECT_EQ(again->dl_tensor.data, data);
}

TEST(dlpack, may_be_deleted_on_any_thread_and_after_the_loader) {
  export_ptr last;
  std::uint64_t expected = 0;
  {
    loader train(twelve(), four_rows(), custom("n", dtype::i32, {5}, write_pattern));
    const std::optional<batch> got = train.next_blocking();
    last.reset((*got)["n"].dlpack());
    expected = hash_of((*got)["n"].as_bytes());
  }
  dlpack_seen seen{};
  ASSERT_STREQ(dlpack_look(last.get(), &seen), nullptr);
  EXPECT_EQ(seen.hash, expected);
  EXPECT_EQ(dlpack_delete_elsewhere(last.release()), 0);
}

TEST(dlpack, may_be_deleted_by_many_threads_while_the_batch_ends) {
  for (int round = 0; round < 20; ++round) {
    loader train(twelve(), four_rows(), bytes("n"));
    std::optional<batch> got = train.next_blocking();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([made = export_ptr((*got)["n"].dlpack())]() mutable { made.reset(); });
    }
    if (round % 2 == 0) got->release_on(stream());
    got.reset();
    threads.clear();
    EXPECT_EQ(train.stats().batches_out, 0U);
  }
}

TEST(dlpack, of_a_released_batch_is_refused) {
  loader train(twelve(), four_rows(), bytes("n"));
  std::optional<batch> got = train.next_blocking();
  const batch_tensor view = (*got)["n"];
  const export_ptr before(view.dlpack());
  got->release_on(stream());
  EXPECT_EQ(testing::message_of(errc::usage, [&] { static_cast<void>(view.dlpack()); }),
            "this batch was given back by release_on(): its memory belongs to a later batch");
  EXPECT_THROW(static_cast<void>(view.dlpack_unversioned()), error);
  EXPECT_THROW(static_cast<void>((*got)["n"]), error);
  dlpack_seen seen{};
  EXPECT_STREQ(dlpack_look(before.get(), &seen), nullptr) << "and what was given before is still there";
  EXPECT_EQ(got->ids().size(), 4U);
}

// --- on a device ------------------------------------------------------------------------------------------------------

struct on_device {
  explicit on_device(const simulated_device_options& how = {}, std::uint32_t batches = 2)
      : device(std::make_shared<simulated_device>(how)), calls(std::make_shared<testing::watched_calls>(device)) {
    options = four_rows();
    options.device_calls = calls;
    options.device_batches = batches;
    options.epochs = 20;
  }

  std::shared_ptr<simulated_device> device;
  std::shared_ptr<testing::watched_calls> calls;
  loader_options options;
};

std::vector<std::string> of_consumer(const std::vector<std::string>& log, stream consumer) {
  std::vector<std::string> made;
  const std::string in = " in " + testing::watched_calls::number(consumer);
  for (const std::string& call : log) {
    const bool record = call.starts_with("record") && call.ends_with(in);
    if (record || call.starts_with("wait" + in + " ")) made.push_back(call.substr(0, call.find(' ')));
  }
  return made;
}

TEST(dlpack, on_a_device_names_it_and_has_the_consumers_stream_wait_and_be_waited_for) {
  on_device with;
  loader train(twelve(), with.options, bytes("n"));
  const stream consumer = with.device->make_consumer();
  std::optional<batch> got = train.next_blocking();
  ASSERT_TRUE(got);
  const void* const data = (*got)["n"].data;
  static_cast<void>(with.calls->take_log());
  export_ptr made((*got)["n"].dlpack(consumer));
  EXPECT_THAT(of_consumer(with.calls->take_log(), consumer), ElementsAre("wait"));
  EXPECT_EQ(made->dl_tensor.data, data);
  dlpack_seen seen{};
  ASSERT_STREQ(dlpack_look(made.get(), &seen), nullptr);
  EXPECT_EQ(seen.device_type, kDLCUDA);
  EXPECT_EQ(seen.device_id, 0);
  got.reset();
  EXPECT_THAT(of_consumer(with.calls->take_log(), consumer), ElementsAre()) << "the block is not home yet";
  made.reset();
  EXPECT_THAT(of_consumer(with.calls->take_log(), consumer), ElementsAre("record"));
}

// A picture that the device itself has finished lies elsewhere in the block than the bytes that were copied there.
TEST(dlpack, on_a_device_of_a_finished_picture_is_what_was_made_there) {
  const auto device = std::make_shared<simulated_device>();
  loader_options options = testing::small_options();
  options.device_calls = device;
  const stream consumer = device->make_consumer();
  const fake_dataset fake(testing::make_samples(1, 45));
  loader on_host(fake, testing::small_options(), testing::all_fields());
  loader train(fake, options, testing::all_fields());
  for (int i = 0; i < 3; ++i) {
    const std::optional<batch> expected = on_host.next_blocking();
    std::optional<batch> got = train.next_blocking();
    ASSERT_TRUE(expected && got);
    export_ptr pixels((*got)["jpg"].dlpack(consumer));
    got.reset();
    const tensor here = (*expected)["jpg"];
    EXPECT_EQ(pixels->dl_tensor.dtype.code, kDLFloat);
    EXPECT_THAT(std::vector(pixels->dl_tensor.shape, pixels->dl_tensor.shape + 4), ElementsAreArray(here.shape));
    std::uint64_t seen = 0;
    device->launch(consumer, [&seen, data = pixels->dl_tensor.data, size = here.bytes()] {
      seen = dlpack_hash(data, size, DLPACK_HASH_START);
    });
    device->finish_all(consumer);
    EXPECT_EQ(seen, hash_of(here.as_bytes()));
  }
}

TEST(dlpack, on_a_device_means_the_default_stream_unless_told_and_none_where_told_so) {
  on_device with;
  loader train(twelve(), with.options, bytes("n"));
  std::optional<batch> got = train.next_blocking();
  static_cast<void>(with.calls->take_log());
  export_ptr made((*got)["n"].dlpack(std::nullopt));
  EXPECT_THAT(of_consumer(with.calls->take_log(), stream()), ElementsAre());
  const export_ptr other((*got)["n"].dlpack());
  EXPECT_THAT(of_consumer(with.calls->take_log(), stream()), ElementsAre("wait"));
}

TEST(dlpack, release_on_waits_for_the_tensors_that_are_out) {
  on_device with;
  loader train(twelve(), with.options, bytes("n"));
  const stream reader = with.device->make_consumer();
  const stream trainer = with.device->make_consumer();
  std::optional<batch> got = train.next_blocking();
  export_ptr made((*got)["n"].dlpack(reader));
  static_cast<void>(with.calls->take_log());
  got->release_on(trainer);
  EXPECT_THAT(of_consumer(with.calls->take_log(), trainer), ElementsAre("wait"));
  made.reset();
  const auto log = with.calls->take_log();
  EXPECT_THAT(of_consumer(log, reader), ElementsAre("record"));
  EXPECT_THAT(of_consumer(log, trainer), ElementsAre("record"));
}

TEST(dlpack, release_on_is_refused_as_without_tensors_where_none_is_out_any_more) {
  on_device with;
  loader train(twelve(), with.options, bytes("n"));
  const stream captured = with.device->make_consumer();
  std::optional<batch> got = train.next_blocking();
  export_ptr((*got)["n"].dlpack(captured)).reset();
  with.device->begin_capture(captured);
  EXPECT_THROW(got->release_on(stream()), error) << "a stream that reads it is being captured";
  EXPECT_EQ(with.device->end_capture(captured), 0U);
  EXPECT_GT((*got)["n"].bytes(), 0U) << "the batch is held as before";
  got->release_on(stream());
  got.reset();
  EXPECT_TRUE(train.next_blocking()) << "the loader is well";
}

// Neither threads nor the driver are there: what a child does with its parent's tensors is to let go of them.
TEST(dlpack, may_be_deleted_in_a_child_of_fork) {
  on_device with;
  loader train(twelve(), with.options, bytes("n"));
  loader on_host(twelve(), four_rows(), bytes("n"));
  std::optional<batch> got = train.next_blocking();
  std::optional<batch> host_got = on_host.next_blocking();
  export_ptr made((*got)["n"].dlpack());
  export_ptr host_made((*host_got)["n"].dlpack());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);  // not a watchdog, which is a thread: ThreadSanitizer allows none after a fork
    bool refused = false;
    try {
      static_cast<void>((*got)["n"].dlpack());
    } catch (const error& problem) {
      refused = problem.code() == errc::usage;
    }
    got.reset();
    host_got.reset();
    made.reset();
    host_made.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // The parent's are as they were.
  dlpack_seen seen{};
  EXPECT_STREQ(dlpack_look(host_made.get(), &seen), nullptr);
  got.reset();
  made.reset();
  EXPECT_EQ(train.stats().batches_out, 0U);
}

TEST(dlpack, a_stream_that_cannot_wait_is_an_error_and_nothing_was_given) {
  on_device with;
  loader train(twelve(), with.options, bytes("n"));
  std::optional<batch> got = train.next_blocking();
  with.calls->fail("wait", 1, 999);
  const std::string message =
      testing::message_of(errc::device, [&] { static_cast<void>((*got)["n"].dlpack(with.device->make_consumer())); });
  EXPECT_NE(message.find("error 999"), std::string::npos) << message;
  const export_ptr made((*got)["n"].dlpack());  // and the next one is
  EXPECT_NE(made, nullptr);
}

// A kernel of the consumer reads the tensor when its turn comes, which is after the deleter has run: what it sees has to be
// what the batch held. With more batches than blocks each block is written again and again.
void consume_at_random(std::uint64_t seed) {
  const watchdog dog("dlpack on a device");
  testing::seeded_random random(seed);
  const auto any = [&] { return static_cast<execution>(random.below(3)); };
  const on_device with({.seed = seed, .loader = any(), .consumer = any()},
                       static_cast<std::uint32_t>(1 + random.below(3)));
  const stream streams[] = {with.device->make_consumer(), with.device->make_consumer()};
  std::deque<std::uint64_t> seen;  // A deque: what kernels write to stays where it is.
  std::vector<std::uint64_t> expected;
  std::vector<export_ptr> kept;
  std::vector<std::jthread> deleters;
  {
    loader train(twelve(), with.options, custom("n", dtype::i32, {7}, [](auto, const auto& context, auto row) {
                   for (std::size_t i = 0; i < row.size(); ++i)
                     row[i] = static_cast<std::byte>(context.sample * 31 + context.epoch * 7 + i);
                   return std::string();
                 }));
    for (std::uint64_t left = 6 + random.below(20); left != 0; --left) {
      std::optional<batch> got = train.next_blocking();
      if (!got) got = train.next_blocking();
      ASSERT_TRUE(got);
      std::vector<std::byte> bytes;
      for (const std::uint64_t sample : got->ids())
        for (std::size_t i = 0; i < 28; ++i)
          bytes.push_back(static_cast<std::byte>(sample * 31 + got->epoch() * 7 + i));
      for (std::uint64_t readers = 1 + random.below(2); readers != 0; --readers) {
        const stream in = streams[random.below(2)];
        export_ptr made((*got)["n"].dlpack(in));
        std::uint64_t& into = seen.emplace_back();
        expected.push_back(hash_of(bytes));
        with.device->launch(in, [&into, data = made->dl_tensor.data, size = bytes.size()] {
          into = dlpack_hash(data, size, DLPACK_HASH_START);
        });
        kept.push_back(std::move(made));
      }
      if (random.below(4) == 0) got->release_on(streams[random.below(2)]);
      got.reset();
      // The last batch's block is the consumer's; who keeps them all gets no more.
      while (kept.size() >= with.options.device_batches || (!kept.empty() && random.below(2) == 0)) {
        if (random.below(2) == 0) deleters.emplace_back([made = std::move(kept.front())]() mutable { made.reset(); });
        kept.erase(kept.begin());
      }
    }
  }
  kept.clear();  // Some have outlived their loader.
  deleters.clear();
  for (const stream each : streams) with.device->finish_all(each);
  EXPECT_THAT(std::vector(seen.begin(), seen.end()), ElementsAreArray(expected));
  const simulated_device::counts left = with.device->count();
  EXPECT_EQ(left.memory + left.pinned + left.events, 0U);
}

TEST(dlpack, on_a_device_is_read_before_its_memory_is_written_again_at_every_seed) {
  testing::for_each_seed(60, consume_at_random);
}

}  // namespace
}  // namespace leat
