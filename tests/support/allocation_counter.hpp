// How often the heap was asked, for tests of "nothing is allocated per sample". Link the module allocation_counter into
// the test program: it stands before malloc and its family, for libraries such as libjpeg too, and counts by thread.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

namespace leat::testing {

/// Calls since the thread, or the program, began. A realloc counts as an allocation of its new size.
struct allocation_count {
  std::uint64_t allocations = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t frees = 0;

  friend bool operator==(const allocation_count&, const allocation_count&) = default;
};

/// False under sanitizers, which stand before malloc themselves, and without glibc.
[[nodiscard]] bool allocations_are_counted() noexcept;
[[nodiscard]] allocation_count allocations_of_this_thread() noexcept;
/// Of threads that have ended too. Exact when the other threads stand still.
[[nodiscard]] allocation_count allocations_of_all_threads() noexcept;

/// What the calling thread, or all threads, did to the heap since it was made.
class allocation_counter {
 public:
  enum class scope : std::uint8_t { this_thread, all_threads };
  explicit allocation_counter(scope counted = scope::this_thread) noexcept : counted_(counted), begin_(now()) {}

  [[nodiscard]] allocation_count count() const noexcept {
    const allocation_count end = now();
    return {end.allocations - begin_.allocations, end.allocated_bytes - begin_.allocated_bytes,
            end.frees - begin_.frees};
  }

 private:
  [[nodiscard]] allocation_count now() const noexcept {
    return counted_ == scope::this_thread ? allocations_of_this_thread() : allocations_of_all_threads();
  }

  scope counted_;
  allocation_count begin_;
};

}  // namespace leat::testing

/// First line of a test that counts.
#define LEAT_NEEDS_ALLOCATION_COUNTER()          \
  if (!leat::testing::allocations_are_counted()) \
  GTEST_SKIP()                                   \
      << "allocations are not counted in this build: a sanitizer has taken malloc, or the C library is not glibc"
