// How many seeds a randomised test takes, and how it says which one failed. Three environment variables:
//   LEAT_SEEDS       factor on every test's own small number; 0.5 in CI, deep in scripts/soak; fractions are allowed
//   LEAT_SEED        replay: every randomised test takes this one seed only
//   LEAT_SEED_FIRST  the first seed, 1 unless told; scripts/soak moves it so that every night sees new ones
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace leat::testing {

/// The number in the environment variable `name`, or `otherwise` where it is unset or empty. A value that is
/// no number throws: a mistyped seed must not pass as the default.
template <class Number>
Number number_from_environment(const char* name, Number otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  const std::string_view view{text};
  Number value{};
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size())
    throw std::invalid_argument(std::string(name) + "='" + text + "' is not a number; unset it or give one");
  return value;
}

/// How many seeds a randomised test takes whose own small number is `small`: small x LEAT_SEEDS, at least 1.
inline int seed_count(int small) {
  const double count = small * number_from_environment<double>("LEAT_SEEDS", 1.0);
  return static_cast<int>(std::clamp(count, 1.0, 1e9));
}

/// The seed of the randomised test that runs; 0 in any other.
inline std::uint64_t& current_seed() {
  static std::uint64_t seed = 0;
  return seed;
}

/// Calls `body(seed)` for each seed of a randomised test and stops at the first that fails, naming it and how
/// to replay it. `body` may use EXPECT_ and ASSERT_ alike.
template <class Body>
void for_each_seed(int small, Body&& body) {
  const auto first = number_from_environment<std::uint64_t>("LEAT_SEED_FIRST", 1);
  const auto only = number_from_environment<std::uint64_t>("LEAT_SEED", 0);
  const bool replay = only != 0;
  const int count = replay ? 1 : seed_count(small);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t seed = replay ? only : first + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed) + "; replay with LEAT_SEED=" + std::to_string(seed));
    current_seed() = seed;
    body(seed);
    current_seed() = 0;
    if (::testing::Test::HasFailure() || ::testing::Test::IsSkipped()) return;
  }
}

}  // namespace leat::testing
