#include "tests/support/allocation_counter.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

namespace leat::testing {
namespace {

// The compiler may leave out a pair of new and delete that nobody sees.
void* seen(void* memory) {
  asm volatile("" : "+r"(memory) : : "memory");
  return memory;
}

TEST(allocation_counter, counts_every_way_to_the_heap) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const allocation_counter counter;
  std::free(seen(std::malloc(10)));
  std::free(seen(std::calloc(3, 10)));
  std::free(seen(std::realloc(seen(std::malloc(1)), 100)));
  std::free(seen(std::aligned_alloc(64, 128)));
  void* memory = nullptr;
  ASSERT_EQ(::posix_memalign(&memory, 64, 64), 0);
  std::free(memory);
  ::operator delete(seen(::operator new(20)));
  ::operator delete(seen(::operator new(20, std::align_val_t{64})), std::align_val_t{64});
  const allocation_count count = counter.count();
  EXPECT_EQ(count.allocations, 8U);
  EXPECT_EQ(count.frees, 7U);  // realloc took one of them over
  EXPECT_GE(count.allocated_bytes, 10U + 30 + 1 + 100 + 128 + 64 + 20 + 20);
}

TEST(allocation_counter, counts_what_libraries_allocate) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const allocation_counter counter;
  std::free(seen(::strdup("a copy made within the C library")));
  EXPECT_EQ(counter.count().allocations, 1U);
  EXPECT_EQ(counter.count().frees, 1U);
}

TEST(allocation_counter, keeps_threads_apart_and_sums_them) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  const allocation_counter all(allocation_counter::scope::all_threads);
  allocation_count of_this_thread;
  allocation_count of_the_other;
  std::thread other([&] {
    const allocation_counter counter;
    for (int i = 0; i < 1000; ++i) std::free(seen(std::malloc(10)));
    of_the_other = counter.count();
  });
  {
    const allocation_counter counter;
    other.join();
    of_this_thread = counter.count();
  }
  EXPECT_EQ(of_the_other, (allocation_count{1000, 10'000, 1000}));
  EXPECT_LT(of_this_thread.allocations, 1000U);
  EXPECT_GE(all.count().allocations, 1000U);
}

TEST(allocation_counter, counts_nothing_where_nothing_is_allocated) {
  LEAT_NEEDS_ALLOCATION_COUNTER();
  std::vector<int> warm(100);
  const allocation_counter counter;
  for (int i = 0; i < 100; ++i) warm[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(counter.count(), allocation_count{});
}

}  // namespace
}  // namespace leat::testing
