#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace leat::testing {
namespace {

// Sets an environment variable and puts back what was there.
class scoped_variable {
 public:
  scoped_variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    if (value != nullptr) {
      ::setenv(name, value, 1);
    } else {
      ::unsetenv(name);
    }
  }
  scoped_variable(const scoped_variable&) = delete;
  scoped_variable& operator=(const scoped_variable&) = delete;
  ~scoped_variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::vector<std::uint64_t> seeds_taken(int small) {
  std::vector<std::uint64_t> seeds;
  for_each_seed(small, [&](std::uint64_t seed) { seeds.push_back(seed); });
  return seeds;
}

TEST(seeds, take_the_tests_own_number_unless_told_otherwise) {
  const scoped_variable factor("LEAT_SEEDS", nullptr), one("LEAT_SEED", nullptr), first("LEAT_SEED_FIRST", nullptr);
  EXPECT_EQ(seeds_taken(3), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST(seeds, are_multiplied_by_the_factor_and_never_fewer_than_one) {
  const scoped_variable factor("LEAT_SEEDS", "2.5"), one("LEAT_SEED", nullptr), first("LEAT_SEED_FIRST", nullptr);
  EXPECT_EQ(seed_count(4), 10);
  const scoped_variable tiny("LEAT_SEEDS", "0.001");
  EXPECT_EQ(seed_count(4), 1);
}

TEST(seeds, start_where_the_soak_says_and_replay_one) {
  const scoped_variable factor("LEAT_SEEDS", nullptr), one("LEAT_SEED", nullptr), first("LEAT_SEED_FIRST", "1000");
  EXPECT_EQ(seeds_taken(2), (std::vector<std::uint64_t>{1000, 1001}));
  const scoped_variable replay("LEAT_SEED", "77");
  EXPECT_EQ(seeds_taken(2), (std::vector<std::uint64_t>{77}));
}

TEST(seeds, refuse_a_number_that_is_none) {
  const scoped_variable factor("LEAT_SEEDS", "many");
  EXPECT_THROW(seed_count(1), std::invalid_argument);
}

}  // namespace
}  // namespace leat::testing
