// Static probes (USDT, provider "leat"), where the spans of the timeline are noted: for bpftrace, perf and SystemTap, with a timeline or
// without. A probe that nobody has attached to is a nop. Without <sys/sdt.h>, or with LEAT_PROBES=OFF, all of this is nothing.
#pragma once

#if !defined(LEAT_NO_PROBES) && __has_include(<sys/sdt.h>)
#define LEAT_HAS_PROBES 1
// In registers, or constants: clang would else store each argument for nobody.
#define STAP_SDT_ARG_CONSTRAINT nr
#include <sys/sdt.h>
#define LEAT_PROBE(arguments, name, ...) STAP_PROBE##arguments(leat, name, __VA_ARGS__)
#else
#define LEAT_HAS_PROBES 0
#define LEAT_PROBE(arguments, name, ...) static_cast<void>(0)
#endif

#include <cstdint>

// Each argument is 64 bits wide, so that scripts need not know which is not.
namespace leat::stages::probe {

inline constexpr bool are_in = LEAT_HAS_PROBES == 1;

/// The rows of a batch are chosen, on the first I/O thread.
inline void batch_planned([[maybe_unused]] std::uint64_t epoch, [[maybe_unused]] std::uint64_t batch,
                          [[maybe_unused]] std::uint64_t rows) noexcept {
  LEAT_PROBE(3, batch_planned, epoch, batch, rows);
}
/// A read is given to its source, on the first I/O thread.
///   file   of the source
inline void read_submitted([[maybe_unused]] std::uint64_t file, [[maybe_unused]] std::uint64_t offset,
                           [[maybe_unused]] std::uint64_t bytes) noexcept {
  LEAT_PROBE(3, read_submitted, file, offset, bytes);
}
/// It has ended, on the I/O thread that reads.
///   failure   0 or an errno
inline void read_completed([[maybe_unused]] std::uint64_t file, [[maybe_unused]] std::uint64_t offset,
                           [[maybe_unused]] std::uint64_t bytes, [[maybe_unused]] std::uint64_t failure) noexcept {
  LEAT_PROBE(4, read_completed, file, offset, bytes, failure);
}
/// A row is made, on a decode thread.
inline void sample_decoded([[maybe_unused]] std::uint64_t epoch, [[maybe_unused]] std::uint64_t batch,
                           [[maybe_unused]] std::uint64_t row) noexcept {
  LEAT_PROBE(3, sample_decoded, epoch, batch, row);
}
/// next() may give it, once it is its turn.
inline void batch_ready([[maybe_unused]] std::uint64_t epoch, [[maybe_unused]] std::uint64_t batch,
                        [[maybe_unused]] std::uint64_t rows) noexcept {
  LEAT_PROBE(3, batch_ready, epoch, batch, rows);
}
/// next() gives it.
///   waited_ns   by that call
inline void batch_handed_over([[maybe_unused]] std::uint64_t epoch, [[maybe_unused]] std::uint64_t batch,
                              [[maybe_unused]] std::uint64_t waited_ns) noexcept {
  LEAT_PROBE(3, batch_handed_over, epoch, batch, waited_ns);
}
/// next() finds nothing and waits; and has something, or gives up.
///   place   in the run's order, from 0, ends of epochs counted
inline void stall_begin([[maybe_unused]] std::uint64_t place) noexcept { LEAT_PROBE(1, stall_begin, place); }
inline void stall_end([[maybe_unused]] std::uint64_t place, [[maybe_unused]] std::uint64_t waited_ns) noexcept {
  LEAT_PROBE(2, stall_end, place, waited_ns);
}

}  // namespace leat::stages::probe
