#include "tests/loader/place.hpp"
#include "tests/support/seeded_random.hpp"
#include "tests/support/seeds.hpp"
#include "tests/support/simulated_device.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace leat::testing {
namespace {

std::string_view from_environment(const char* name) {
  const char* const set = std::getenv(name);
  return set == nullptr ? "" : set;
}

/// How a test's device runs.
///   LEAT_TESTS_DEVICE    both sides as it says (late_consumer, late_loader, late), or each late, early or at random, by seed
///   LEAT_TESTS_DEVICE_CACHE   bytes for rows that stay on it
///   LEAT_TESTS_WITHOUT   leaves out the wait of this name, to show what it is there for: the suites have to fail then
///                        (tests/device/CMakeLists.txt). They do where the device runs as that wait needs it, unless one says how
simulated_device_options device_of_the_suites(std::uint64_t seed) {
  const auto late = execution::late;
  const auto early = execution::early;
  const auto any = [seed](std::uint64_t of) {
    return static_cast<execution>(seeded_random(seed + 1000 * of).below(3));
  };
  simulated_device_options options = {.seed = seed, .loader = any(1), .consumer = any(2)};

  const std::string_view without = from_environment("LEAT_TESTS_WITHOUT");
  std::string_view mode = from_environment("LEAT_TESTS_DEVICE");
  if (without == "copy_for_consumer") {
    options.left_out.copy_for_consumer = true;
    if (mode.empty()) mode = "late_consumer";
  } else if (without == "consumer_for_copy") {
    options.left_out.consumer_for_copy = true;
    if (mode.empty()) mode = "late_loader";
  } else if (without == "host_for_copy") {
    options.left_out.host_for_copy = true;
    if (mode.empty()) mode = "late";
  } else if (without == "operation_for_copy") {
    options.left_out.operation_for_copy = true;
    if (mode.empty()) mode = "late_loader";
  }
  if (mode == "late_consumer" || mode == "late") options.consumer = late;
  if (mode == "late_loader" || mode == "late") options.loader = late;
  if (mode == "late_consumer") options.loader = early;
  if (mode == "late_loader") options.consumer = early;
  return options;
}

/// Of the test that runs, so that each test has another one, also where each is a process of its own.
std::uint64_t seed_of_test() {
  const ::testing::TestInfo* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a: the same on every machine and in every run.
  for (const char* const part : {test->test_suite_name(), ".", test->name()}) {
    for (const char c : std::string_view(part)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  }
  return hash;
}

}  // namespace

void choose_place(loader_options& options) {
  // Another one for each test and each of its loaders, and another way of running late or early.
  static std::atomic<std::uint64_t> devices{number_from_environment<std::uint64_t>("LEAT_SEED_FIRST", 1)};
  const std::uint64_t seed = current_seed() != 0 ? current_seed() : seed_of_test() + devices++;
  options.device_calls = std::make_shared<simulated_device>(device_of_the_suites(seed));
  options.device_cache = number_from_environment<std::size_t>("LEAT_TESTS_DEVICE_CACHE", 0);
}

void read_from_device(batch& from, std::span<std::byte> copy, std::span<const std::byte> whole,
                      const std::vector<std::span<const std::byte>>& tensors) {
  read_from_simulated_device(from, copy, whole, tensors);
}

}  // namespace leat::testing
