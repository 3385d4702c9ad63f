// Loaders that read over HTTP, by way of a cache or not, and end at any moment.
#include "tests/loader/ends_early.hpp"
#include "tests/loader/remote_shards.hpp"
#include "tests/support/watchdog.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace leat {
namespace {

class ends_early_over_http : public testing::remote_shards {};

TEST_F(ends_early_over_http, with_a_cache_and_without) {
  const dataset plain = there("train-{0..2}.tar");
  testing::for_each_seed(16, [&](std::uint64_t seed) {
    const testing::watchdog dog("a loader over HTTP that ends early");
    testing::seeded_random random(seed);
    if (random.chance(0.5)) return testing::end_early(plain, fields(), random);
    const dataset cached = there("train-{0..2}.tar", {.allow_http = true,
                                                      .cache = (folder_.path() / "cache").string(),
                                                      .cache_bytes = (seed % 2 == 0 ? 1U : 64U) << 20,
                                                      .cache_block_bytes = 64U << 10});
    testing::end_early(cached, fields(), random);
  });
}

}  // namespace
}  // namespace leat
