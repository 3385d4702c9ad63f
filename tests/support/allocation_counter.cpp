#include "tests/support/allocation_counter.hpp"

#include "base/sanitizers.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__GLIBC__) && !LEAT_ADDRESS_SANITIZER && !LEAT_THREAD_SANITIZER
#define LEAT_COUNTS_ALLOCATIONS 1
#else
#define LEAT_COUNTS_ALLOCATIONS 0
#endif

namespace leat::testing {

#if LEAT_COUNTS_ALLOCATIONS
namespace {

struct counters {
  std::uint64_t allocations;
  std::uint64_t allocated_bytes;
  std::uint64_t frees;
};

// initial-exec: the thread's block is there from its start, while the default model may call malloc to make it.
[[gnu::tls_model("initial-exec")]] constinit thread_local counters mine{};

constinit std::atomic<std::uint64_t> all_allocations{0};
constinit std::atomic<std::uint64_t> all_allocated_bytes{0};
constinit std::atomic<std::uint64_t> all_frees{0};

void count_allocation(std::size_t bytes) noexcept {
  ++mine.allocations;
  mine.allocated_bytes += bytes;
  all_allocations.fetch_add(1, std::memory_order_relaxed);
  all_allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void count_free() noexcept {
  ++mine.frees;
  all_frees.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

bool allocations_are_counted() noexcept { return true; }
allocation_count allocations_of_this_thread() noexcept { return {mine.allocations, mine.allocated_bytes, mine.frees}; }
allocation_count allocations_of_all_threads() noexcept {
  return {all_allocations.load(), all_allocated_bytes.load(), all_frees.load()};
}
#else
bool allocations_are_counted() noexcept { return false; }
allocation_count allocations_of_this_thread() noexcept { return {}; }
allocation_count allocations_of_all_threads() noexcept { return {}; }
#endif

}  // namespace leat::testing

#if LEAT_COUNTS_ALLOCATIONS
// Replacing malloc is foreseen (glibc manual, "Replacing malloc"), and operator new comes here by way of libstdc++.
// The originals are reached by the names that glibc exports for that purpose, in all its versions.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void* __libc_malloc(std::size_t bytes) noexcept;
void* __libc_calloc(std::size_t count, std::size_t bytes) noexcept;
void* __libc_realloc(void* memory, std::size_t bytes) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t bytes) noexcept;
void __libc_free(void* memory) noexcept;

void* malloc(std::size_t bytes) noexcept {
  leat::testing::count_allocation(bytes);
  return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  leat::testing::count_allocation(count * bytes);
  return __libc_calloc(count, bytes);
}

void* realloc(void* memory, std::size_t bytes) noexcept {
  leat::testing::count_allocation(bytes);
  return __libc_realloc(memory, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  leat::testing::count_allocation(bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  leat::testing::count_allocation(bytes);
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  leat::testing::count_allocation(bytes);
  void* const got = __libc_memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}

void free(void* memory) noexcept {
  if (memory != nullptr) leat::testing::count_free();
  __libc_free(memory);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
#endif
