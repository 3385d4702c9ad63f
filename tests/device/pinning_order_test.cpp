// Memory that batches leave from, and that rows are read straight into: faulted in, pinned for the device, registered with
// io_uring; and undone the other way round. liburing's calls are written down as they are made (the linker's --wrap) and the
// device's with them.
#include "base/mutex.hpp"
#include "io/arena/arena.hpp"
#include "tests/device/device_reader.hpp"
#include "tests/device/watched_calls.hpp"
#include "tests/loader/running.hpp"
#include "tests/support/raw_files.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/simulated_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/watchdog.hpp"

#include <leat/loading.hpp>
#include <leat/open_records.hpp>
#include <leat/reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <liburing.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

using testing::execution;
using ::testing::HasSubstr;
using testing::loader;
using testing::loader_options;
using testing::simulated_device;
using testing::simulated_device_options;
using testing::watchdog;
using testing::watched_calls;

constexpr std::size_t record_bytes = 65536;
constexpr std::size_t record_count = 192;

/// What was done to which memory, in its order, and what is wrong about that. Thread: any.
class ledger {
 public:
  void begin() {
    const mutex_lock lock(mutex_);
    done_with_.clear();
    registered_.clear();
    wrong_.clear();
    registrations_ = unregistrations_ = unpinned_ = 0;
  }

  /// The device has pinned it, or has refused to.
  void pinned(std::span<const std::byte> memory) {
    const mutex_lock lock(mutex_);
    unsigned char resident[1] = {};
    ::mincore(const_cast<std::byte*>(memory.data()), 1, resident);
    if ((resident[0] & 1) == 0) wrong_.emplace_back("pinned before it was faulted in");
    if (is_registered(memory)) wrong_.emplace_back("pinned while it was registered");
    done_with_.push_back(memory);
  }
  void registering(const io_uring* ring, std::span<const std::byte> memory) {
    const mutex_lock lock(mutex_);
    ++registrations_;
    registered_[ring].push_back(memory);
    if (!on_device_) return;
    std::size_t covered = 0;
    for (const auto& each : done_with_) covered += common(each, memory);
    if (covered < memory.size()) wrong_.emplace_back("registered before all of it was pinned");
  }
  void unregistered(const io_uring* ring, bool by_itself) {
    const mutex_lock lock(mutex_);
    registered_.erase(ring);
    if (by_itself) ++unregistrations_;
  }
  void unpinning(std::span<const std::byte> memory) {
    const mutex_lock lock(mutex_);
    ++unpinned_;
    if (is_registered(memory)) wrong_.emplace_back("unpinned while it was registered");
  }

  void expect_on_device(bool on_device) {
    const mutex_lock lock(mutex_);
    on_device_ = on_device;
  }
  [[nodiscard]] std::vector<std::string> wrong() const {
    const mutex_lock lock(mutex_);
    return wrong_;
  }
  [[nodiscard]] std::size_t registrations() const {
    const mutex_lock lock(mutex_);
    return registrations_;
  }
  [[nodiscard]] std::size_t unregistrations() const {
    const mutex_lock lock(mutex_);
    return unregistrations_;
  }
  [[nodiscard]] std::size_t unpinned() const {
    const mutex_lock lock(mutex_);
    return unpinned_;
  }

 private:
  static std::size_t common(std::span<const std::byte> a, std::span<const std::byte> b) {
    const std::byte* const from = std::max(a.data(), b.data());
    const std::byte* const to = std::min(a.data() + a.size(), b.data() + b.size());
    return from < to ? static_cast<std::size_t>(to - from) : 0;
  }
  [[nodiscard]] bool is_registered(std::span<const std::byte> memory) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const auto& [ring, ranges] : registered_) {
      for (const auto& each : ranges) {
        if (common(each, memory) != 0) return true;
      }
    }
    return false;
  }

  mutable mutex mutex_;
  bool on_device_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<std::span<const std::byte>> done_with_ ABSL_GUARDED_BY(mutex_);
  std::map<const io_uring*, std::vector<std::span<const std::byte>>> registered_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> wrong_ ABSL_GUARDED_BY(mutex_);
  std::size_t registrations_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t unregistrations_ ABSL_GUARDED_BY(mutex_) = 0;
  std::size_t unpinned_ ABSL_GUARDED_BY(mutex_) = 0;
};

ledger& book() {
  static ledger one;
  return one;
}

/// A file of records that are read straight to their rows, and a device that is watched.
class pinning_order : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::write_file(root.path() / "r.json", R"({"fields": [{"name": "bin", "dtype": "u8", "shape": [65536]}]})");
    std::string content(record_count * record_bytes, '\0');
    for (std::size_t i = 0; i < content.size(); i += 512) content[i] = static_cast<char>(i / 512 % 251);
    records = open_records(testing::write_file(root.path() / "r.bin", content));
    loader_options options = options_for(2);
    options.reader.registered_buffers = choice::on;
    options.device_calls = nullptr;
    options.epochs = 1;
    const testing::seen_run tried = testing::run_all(*records, options, {array("bin")});
    if (tried.failed) GTEST_SKIP() << "no registered buffers here: " << tried.message;
  }

  void start(const simulated_device_options& how) {
    device = std::make_shared<simulated_device>(how);
    calls = std::make_shared<watched_calls>(device);
    calls->on_pin = [](std::span<std::byte> memory) { book().pinned(memory); };
    calls->on_unpin = [](std::span<std::byte> memory) { book().unpinning(memory); };
    book().expect_on_device(true);
    book().begin();
  }
  /// Four batches of memory, and enough of them for each piece to be read into again.
  [[nodiscard]] loader_options options_for(std::uint32_t batch_size) const {
    loader_options options;
    options.batch_size = batch_size;
    options.drop_last = true;
    options.seed = 7;
    options.epochs = static_cast<std::uint32_t>((24 * batch_size + record_count - 1) / record_count);
    options.decode_threads = 1;
    options.prefetch_batches = 3;
    options.host_bytes_max = std::size_t{64} << 20;
    options.digests = true;
    options.device_calls = calls;
    return options;
  }

  /// Takes all that comes; what a kernel of the consumer's finds of each batch is what the batch says.
  void take_all(loader& train, std::uint32_t epochs) {
    const stream one = device->make_consumer();
    testing::device_reader reader(*device);
    std::vector<std::string> stated;
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
      while (std::optional<batch> got = train.next_blocking()) {
        stated.push_back(got->content_digest()->hex());
        got->wait_on(one);
        reader.read(*got, one);
      }
    }
    device->finish_all(one);
    EXPECT_EQ(reader.seen(), stated);
  }

  const testing::temporary_directory root;
  std::optional<dataset> records;
  std::shared_ptr<simulated_device> device;
  std::shared_ptr<watched_calls> calls;
};

// Batches of which a piece of the arena holds several, and such as share a piece with their neighbours.
TEST_F(pinning_order, memory_is_pinned_and_then_registered_and_let_go_of_the_other_way_round) {
  for (const std::uint32_t batch_size : {1U, 2U, 32U, 96U}) {
    for (const std::uint32_t io_threads : {1U, 2U}) {
      for (const choice registered : {choice::automatic, choice::on}) {
        SCOPED_TRACE(batch_size);
        const watchdog dog("pinned and then registered");
        start({.seed = batch_size});
        loader_options options = options_for(batch_size);
        options.reader.io_threads = io_threads;
        options.reader.registered_buffers = registered;
        {
          loader train(*records, options, {array("bin")});
          take_all(train, options.epochs);
          EXPECT_EQ(train.stats().reader.registered_buffers.use, "on");
          EXPECT_THAT(train.stats().reader.registered_buffers.why, HasSubstr("after it was pinned"));
        }
        EXPECT_THAT(book().wrong(), ::testing::IsEmpty());
        EXPECT_GE(book().registrations(), 1U);
        EXPECT_EQ(book().unregistrations(), io_threads);
        EXPECT_GE(book().unpinned(), 1U);
        EXPECT_EQ(device->count().pinned, 0U);
      }
    }
  }
}

// All memory that there is has been read into before any of it is pinned: not even where registered buffers are insisted on
// does a read wait for the device, or fail.
TEST_F(pinning_order, the_first_batches_are_read_while_the_device_pins) {
  constexpr std::uint32_t batch_size = 32;
  constexpr std::size_t shares = 4;
  const watchdog dog("while the device pins");
  start({});
  calls->hold("pin");
  loader_options options = options_for(batch_size);
  options.reader.registered_buffers = choice::on;
  loader train(*records, options, {array("bin")});
  ASSERT_EQ(train.plan().batches, shares);
  calls->wait_until_held();
  while (train.stats().bytes_read < shares * batch_size * record_bytes) std::this_thread::yield();
  EXPECT_EQ(book().registrations(), 0U);
  calls->let_go();
  take_all(train, options.epochs);
  EXPECT_GE(book().registrations(), 1U);
  train.stop();
  EXPECT_THAT(book().wrong(), ::testing::IsEmpty());
  EXPECT_EQ(book().unpinned(), shares);
}

TEST_F(pinning_order, what_cannot_be_pinned_is_registered_once_that_is_known) {
  for (const std::uint32_t batch_size : {2U, 96U}) {
    for (const std::size_t refused : {0U, 2U}) {  // 0: all
      SCOPED_TRACE(batch_size);
      const watchdog dog("cannot be pinned");
      start({.can_pin = refused != 0});
      if (refused != 0) calls->fail("pin", refused, 999);
      const loader_options options = options_for(batch_size);
      {
        loader train(*records, options, {array("bin")});
        take_all(train, options.epochs);
        EXPECT_EQ(train.stats().device.pinned.use, refused == 0 ? "off" : "partly");
      }
      EXPECT_THAT(book().wrong(), ::testing::IsEmpty());
      EXPECT_GE(book().registrations(), 1U);
      EXPECT_EQ(book().unregistrations(), 1U);
      EXPECT_EQ(device->count().pinned, 0U);
    }
  }
}

// While copies fly, or memory is being pinned; with batches that outlive the loader.
TEST_F(pinning_order, holds_whenever_the_loader_ends) {
  testing::for_each_seed(30, [this](std::uint64_t seed) {
    const watchdog dog("whenever the loader ends");
    testing::seeded_random random(seed);
    const auto any = [&] { return static_cast<execution>(random.below(3)); };
    start({.seed = seed, .loader = any(), .consumer = any()});
    const stream one = device->make_consumer();
    std::vector<batch> kept;
    {
      loader_options options = options_for(random.below(2) == 0 ? 2 : 48);
      options.device_batches = 4;
      options.reader.io_threads = static_cast<std::uint32_t>(1 + random.below(2));
      loader train(*records, options, {array("bin")});
      for (std::uint64_t left = random.below(12); left != 0; --left) {
        std::optional<batch> got = train.next_blocking();
        if (!got) continue;
        if (random.below(2) == 0) got->wait_on(one);
        if (random.below(3) == 0 && kept.size() < 3) kept.push_back(std::move(*got));
      }
      if (random.below(2) == 0) train.stop();
    }
    EXPECT_THAT(book().wrong(), ::testing::IsEmpty());
    EXPECT_EQ(device->count().pinned, 0U);
    kept.clear();
    device->finish_all(one);
  });
}

TEST_F(pinning_order, holds_where_the_device_is_lost) {
  const watchdog dog("lost");
  start({});
  {
    loader_options options = options_for(2);
    loader train(*records, options, {array("bin")});
    const stream one = device->make_consumer();
    for (int i = 0; i < 12; ++i) {
      std::optional<batch> got = train.next_blocking();
      ASSERT_TRUE(got);
      got->wait_on(one);
    }
    EXPECT_GE(book().registrations(), 1U);
    device->lose(700);
    EXPECT_ANY_THROW({
      for (;;) static_cast<void>(train.next_blocking());
    });
  }
  EXPECT_THAT(book().wrong(), ::testing::IsEmpty());
  EXPECT_EQ(book().unregistrations(), 1U);
  EXPECT_EQ(book().unpinned(), 0U) << "it stays pinned, and mapped, until the process ends";
}

// Nobody pins: what is read into is registered by the first read, and let go of with the ring.
TEST_F(pinning_order, is_nobodys_business_on_the_host) {
  const watchdog dog("host");
  start({});
  book().expect_on_device(false);
  loader_options options = options_for(64);
  options.device_calls = nullptr;
  {
    loader train(*records, options, {array("bin")});
    ASSERT_TRUE(train.next_blocking());
    EXPECT_GE(book().registrations(), 1U);
    EXPECT_EQ(train.stats().reader.registered_buffers.why, "each 4 MiB when first read into");
  }
  EXPECT_EQ(book().unregistrations(), 0U);
  EXPECT_THAT(book().wrong(), ::testing::IsEmpty());
}

}  // namespace

// The linker has io/ring/uring.cpp call these, and gives us liburing's own by the other name.
extern "C" {
int __real_io_uring_register_buffers_update_tag(io_uring* ring, unsigned offset, const iovec* memory, const __u64* tags,
                                                unsigned count);
int __real_io_uring_unregister_buffers(io_uring* ring);
void __real_io_uring_queue_exit(io_uring* ring);

int __wrap_io_uring_register_buffers_update_tag(io_uring* ring, unsigned offset, const iovec* memory, const __u64* tags,
                                                unsigned count) {
  book().registering(ring, {static_cast<const std::byte*>(memory->iov_base), memory->iov_len});
  return __real_io_uring_register_buffers_update_tag(ring, offset, memory, tags, count);
}
int __wrap_io_uring_unregister_buffers(io_uring* ring) {
  const int result = __real_io_uring_unregister_buffers(ring);
  if (result == 0) book().unregistered(ring, true);
  return result;
}
void __wrap_io_uring_queue_exit(io_uring* ring) {
  __real_io_uring_queue_exit(ring);
  book().unregistered(ring, false);
}
}

}  // namespace leat
