// Waiting for a change of either of two words: one of this process, and one that processes share in mapped memory.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace leat::io {

/// Returns when one of the words is another one than was seen, after `patience`, or without a cause.
///   mine     raised by raise_mine()
///   shared   raised by raise_shared(), of this process or of another one
///   source   futex_waitv(2), Linux 5.16; where the kernel or a container has none, it looks every 2 ms
void wait_for_either(std::atomic<std::uint32_t>& mine, std::uint32_t mine_seen, std::uint32_t& shared,
                     std::uint32_t shared_seen, std::chrono::milliseconds patience) noexcept;

/// Changes the word, and wakes who waits for it.
void raise_mine(std::atomic<std::uint32_t>& word) noexcept;
void raise_shared(std::uint32_t& word) noexcept;

}  // namespace leat::io
