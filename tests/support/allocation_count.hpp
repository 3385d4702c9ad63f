#pragma once

// Counts what one thread allocates, by whatever way: operator new, malloc, C libraries. A test program that wants it
// lists allocation_count.cpp among its sources, which puts itself in front of the C library's allocator.

#include <cstdint>

namespace leat::testing {

/// Whether this build can count: not under sanitizers, which have an allocator of their own.
bool can_count_allocations();

/// Allocations and reallocations of the calling thread so far.
std::uint64_t allocations_of_this_thread();

}  // namespace leat::testing
