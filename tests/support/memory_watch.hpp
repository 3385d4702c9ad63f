// Who may write which memory just now. Fakes that stand for a kernel or a device claim what they were lent, and a lease
// that was lent twice ends the program with the names of both borrowers.
#pragma once

#include "base/mutex.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace leat::testing {

/// Ranges of memory that somebody was promised for himself. Any thread.
class memory_watch {
 public:
  /// Aborts, naming both, when part of `memory` is claimed already. An empty range claims nothing.
  void claim(std::span<const std::byte> memory, std::string by);
  /// Aborts when just this range is not claimed.
  void release(std::span<const std::byte> memory);

 private:
  struct claimed {
    std::uintptr_t end;
    std::string by;
  };
  mutex mutex_;
  std::map<std::uintptr_t, claimed> claims_ ABSL_GUARDED_BY(mutex_);
};

/// Says what rule a test or the code under test has broken, and aborts.
[[noreturn]] void fail_hard(const std::string& what) noexcept;

}  // namespace leat::testing
