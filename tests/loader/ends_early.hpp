// Loaders that end at any moment, each a function of its seed.
#pragma once

#include "tests/loader/running.hpp"
#include "tests/support/seeded_random.hpp"

#include <leat/loading.hpp>

#include <boost/asio/use_future.hpp>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace leat::testing {

/// Settings that change who does what, and when.
inline loader_options any_options(seeded_random& random) {
  loader_options options = small_options();
  options.seed = random.next();
  options.epochs = static_cast<std::uint32_t>(random.below(3));  // 0: without an end
  options.batch_size = static_cast<std::uint32_t>(1 + random.below(16));
  options.decode_threads = static_cast<std::uint32_t>(1 + random.below(3));
  options.prefetch_batches = static_cast<std::uint32_t>(1 + random.below(4));
  options.shuffle = random.chance(0.7);
  options.digests = random.chance(0.3);
  options.names = random.chance(0.3);
  constexpr corrupt_policy policies[] = {corrupt_policy::raise, corrupt_policy::skip, corrupt_policy::substitute};
  options.on_corrupt = policies[random.below(3)];
  options.reader.backend = random.chance(0.3) ? read_backend::preadv : read_backend::automatic;
  options.reader.preadv_threads = 2;
  options.reader.io_threads = static_cast<std::uint32_t>(random.below(4));
  return options;
}

/// Lets the loader get somewhere. Mostly without giving up the processor: on a busy machine a yield can take milliseconds.
inline void pass_some_time(seeded_random& random) {
  if (random.chance(0.2)) std::this_thread::yield();
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(random.below(900));
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// A batch, if one comes. Not for ever: some reads of some sources end only when they are cancelled.
inline std::optional<batch> take_one(leat::loader& train) {
  next_result got = train.next_blocking(std::chrono::milliseconds(20));
  return got ? std::optional<batch>(*std::move(got)) : std::nullopt;
}

/// What a trainer has done when its loader ends. An error that the loader tells of is as good an end as any.
inline void use_for_a_while(leat::loader& train, seeded_random& random) {
  switch (random.below(8)) {
    case 0:
      return;
    case 1:
      EXPECT_FALSE(train.plan().lines.empty());
      static_cast<void>(train.stats());
      return;
    case 2:
      return pass_some_time(random);
    case 3:
      for (std::uint64_t left = 1 + random.below(4); left != 0; --left) static_cast<void>(take_one(train));
      return;
    case 4: {  // It waits for a batch when the loader ends, and is told.
      std::future<std::optional<batch>> asked = train.next(asio::use_future);
      if (random.chance(0.5)) pass_some_time(random);
      train.stop();
      try {
        static_cast<void>(asked.get());
      } catch (const error& told) {
        EXPECT_NE(told.code(), errc::usage) << told.what();
      }
      return;
    }
    case 5: {  // Another thread stops it.
      std::thread other([&train, wait = random.chance(0.5), own = seeded_random(random.next())]() mutable {
        if (wait) pass_some_time(own);
        train.stop();
      });
      try {
        while (train.next_blocking()) {
        }
      } catch (const error& told) {
        EXPECT_NE(told.code(), errc::usage) << told.what();
      }
      other.join();
      return;
    }
    case 6:
      train.skip_epoch();
      if (random.chance(0.5)) pass_some_time(random);
      return;
    default: {
      const std::optional<batch> held = take_one(train);
      if (random.chance(0.3)) static_cast<void>(train.reads_under_way());
      throw std::runtime_error("the trainer's own");
    }
  }
}

/// Makes a loader and ends it. Batches may outlive it.
inline void end_early(const dataset& samples, std::vector<field> fields, seeded_random& random) {
  std::optional<batch> kept;
  try {
    loader train(samples, any_options(random), std::move(fields));
    if (random.chance(0.1)) kept = take_one(train);
    use_for_a_while(train, random);
  } catch (const error& told) {
    EXPECT_NE(told.code(), errc::usage) << told.what();
  } catch (const std::runtime_error& own) {
    EXPECT_STREQ(own.what(), "the trainer's own");
  }
}

}  // namespace leat::testing
