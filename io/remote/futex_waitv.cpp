#include "io/remote/futex_waitv.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

namespace leat::io {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t), "the kernel looks at the word itself");

constexpr auto look_again = std::chrono::milliseconds(2);

timespec from_now(std::chrono::nanoseconds wait, bool is_absolute) {
  timespec at{};
  if (is_absolute) ::clock_gettime(CLOCK_MONOTONIC, &at);
  const std::int64_t ns = at.tv_nsec + wait.count();
  return {.tv_sec = at.tv_sec + ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

std::uint64_t address_of(const void* word) { return reinterpret_cast<std::uintptr_t>(word); }

void wake_all(const void* word, int flags) {
  ::syscall(SYS_futex, word, FUTEX_WAKE | flags, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

void wait_for_either(std::atomic<std::uint32_t>& mine, std::uint32_t mine_seen, std::uint32_t& shared,
                     std::uint32_t shared_seen, std::chrono::milliseconds patience) noexcept {
  futex_waitv both[2] = {};
  both[0].uaddr = address_of(&mine);
  both[0].val = mine_seen;
  both[0].flags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
  both[1].uaddr = address_of(&shared);
  both[1].val = shared_seen;
  both[1].flags = FUTEX_32;
  timespec until = from_now(patience, true);
  if (::syscall(SYS_futex_waitv, both, 2, 0, &until, CLOCK_MONOTONIC) >= 0) return;
  if (errno != ENOSYS && errno != EPERM && errno != EINVAL) return;
  const timespec wait = from_now(std::min<std::chrono::milliseconds>(patience, look_again), false);
  ::syscall(SYS_futex, &mine, FUTEX_WAIT_PRIVATE, mine_seen, &wait, nullptr, 0);
}

void raise_mine(std::atomic<std::uint32_t>& word) noexcept {
  word.fetch_add(1, std::memory_order_acq_rel);
  wake_all(&word, FUTEX_PRIVATE_FLAG);
}

void raise_shared(std::uint32_t& word) noexcept {
  std::atomic_ref(word).fetch_add(1, std::memory_order_acq_rel);
  wake_all(&word, 0);
}

}  // namespace leat::io
