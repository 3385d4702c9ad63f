// Large tables in huge pages, where the kernel has any: a page of 4 KiB that is touched for the first time costs about as much as filling it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat {

/// Room for so many values, in huge pages as far as whole ones lie in it. What the kernel does not do costs nothing.
template <class T>
void reserve_in_huge_pages(std::vector<T>& values, std::size_t count) {
  values.reserve(count);
  constexpr std::uintptr_t page_bytes = std::uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<std::uintptr_t>(values.data());
  const std::uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes;
  const std::uintptr_t last = (begin + values.capacity() * sizeof(T)) / page_bytes * page_bytes;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace leat
