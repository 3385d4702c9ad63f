#include "tests/support/allocation_count.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define LEAT_TEST_SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEAT_TEST_SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(LEAT_TEST_SANITIZED)
#define LEAT_TEST_COUNTS 1
#endif

namespace leat::testing {
namespace {

// initial-exec: the first touch of a thread-local in a shared library may itself allocate.
[[gnu::tls_model("initial-exec")]] thread_local std::uint64_t allocations = 0;

}  // namespace

bool can_count_allocations() {
#ifdef LEAT_TEST_COUNTS
  return true;
#else
  return false;
#endif
}

std::uint64_t allocations_of_this_thread() { return allocations; }

}  // namespace leat::testing

#ifdef LEAT_TEST_COUNTS
// The executable's definitions come before the C library's, for shared libraries too; operator new ends up here as well.
extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  ++leat::testing::allocations;
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  ++leat::testing::allocations;
  return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  ++leat::testing::allocations;
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  ++leat::testing::allocations;
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = memalign(alignment, size);
  return *memory != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
#endif
