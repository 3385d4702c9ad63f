// Which thread this is, for as long as the process lives.
#pragma once

#include <atomic>
#include <cstdint>

namespace leat {

/// A number of the calling thread's that no other thread has had or will have. (A std::thread::id is given to the next thread
/// once its own has ended.)
[[nodiscard]] inline std::uint64_t thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

}  // namespace leat
