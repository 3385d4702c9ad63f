// A disk that is as difficult as disks may be, and the same every time: the third source beside the ring and its preadv
// twin, for tests. It keeps the contract of io/files/source.hpp to the letter and uses all the freedom that it leaves.
//
// Its time is the loop's: it posts itself one turn after the other while it has something to deliver, and in each turn
// its seed decides which operations move on. Nothing sleeps and nothing depends on the machine. On one loop, with
// the users' calls in the same order, a seed gives the same deliveries in the same order.
#pragma once

#include "io/files/source.hpp"
#include "tests/support/memory_watch.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::testing {

/// A place that is damaged, as a bad sector is: reads that touch it fail, whatever else they touch.
///   failure   an errno, or never. EAGAIN and EINTR are tried again as a real source does, fake_disk::tries_max times in
///             all: with times = 3 the read succeeds, with times = always it fails
///   times     how many attempts it hurts before it is whole again
struct read_fault {
  static constexpr int never = -1;  ///< no completion until cancelled
  static constexpr std::uint32_t always = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 1;
  int failure = 0;
  std::uint32_t times = always;
  /// What the disk says of it beside the errno, as a source does that is no files.
  std::shared_ptr<const io::source_failure> said = {};
};

/// A file that does not open. Read faults are no business of opens, and the other way round.
struct open_fault {
  std::uint32_t file = 0;
  int failure = 0;
  std::uint32_t times = read_fault::always;
};

/// What goes wrong. Chances are from 0 to 1.
struct fault_plan {
  // Chances per read, drawn from (seed, file, offset): such a read fails however often it is asked, and by whom, so that
  // a test can tell beforehand (fake_disk::drawn_failure) and every thread count sees the same.
  std::uint64_t damage_seed = 0;  ///< where not 0, in place of the disk's seed: the same damage on another schedule
  double io_error = 0;            ///< EIO
  double not_found = 0;           ///< ENOENT
  double timed_out = 0;           ///< ETIMEDOUT
  double never = 0;               ///< no completion until cancelled

  // Chances that change when something arrives, not what.
  double short_read = 0.2;  ///< per attempt: part of the bytes come, the read goes on
  double again = 0.1;       ///< per attempt: EAGAIN or EINTR, tried again, and never so often that it would fail
  double held_back = 0.02;  ///< per operation: arrives after everything else in flight, and some turns later
  double linger = 0.5;      ///< per turn after cancel(): the kernel has not let go yet, and may still write

  std::vector<read_fault> reads = {};
  std::vector<open_fault> opens = {};
};

enum class delivery : std::uint8_t {
  random,   ///< late, in any order, one by one and in bunches
  in_order  ///< everything in the next turn, first in first out; the chances of the plan still hold
};

struct fake_disk_options {
  std::uint64_t seed = 1;
  fault_plan faults = {};
  delivery order = delivery::random;
  /// Offsets are read from multiples of this, so that `data` begins somewhere inside `into`: 1 to
  /// io::alignment_max_bytes, a power of two; 0 draws another one for every read.
  std::uint64_t alignment_bytes = 0;
  /// Share one among several disks to find a lease that two of them were given.
  std::shared_ptr<memory_watch> watch = nullptr;
};

/// What it saw, all its sources together.
struct fake_disk_counters {
  std::uint64_t reads = 0;
  std::uint64_t read_bytes = 0;  ///< asked for
  std::uint64_t opens = 0;
  std::uint64_t cancels = 0;    ///< of reads that were not delivered yet
  std::uint64_t cancelled = 0;  ///< of those, ended with ECANCELED
  std::uint64_t failed = 0;     ///< with anything else
  std::uint64_t short_reads = 0;
  std::uint64_t retries = 0;
  std::uint64_t reads_in_flight = 0;
  std::uint64_t reads_in_flight_max = 0;
  std::uint64_t bytes_in_flight = 0;  ///< of memory lent: the sizes of `into`
  std::uint64_t bytes_in_flight_max = 0;
  std::uint64_t sources = 0;  ///< connected so far
};

/// Virtual files behind the interface of a source.
///
/// It is strict with its users, and aborts with a sentence when one of them
///   - gives memory that is too small, not aligned, or lent to another operation in flight (both are named);
///   - writes to that memory, or changes the question, before done(): the memory is poisoned at start, filled at the
///     last moment, and looked at in between;
///   - cancels what is not in flight, calls from another thread than the loop's, or destroys a source with operations in
///     flight (they are listed).
/// A lease that was read too early shows as poison, one that went home too early is overwritten late.
///
/// Thread: files are added and connect() is called by any thread; each source belongs to its loop's thread, and sources
/// of several loops may run at the same time. The disk may go before its sources do.
class fake_disk final : public io::source_description {
 public:
  /// Attempts at a read that meets EAGAIN or EINTR.
  static constexpr unsigned tries_max = 8;

  explicit fake_disk(fake_disk_options options = {});
  ~fake_disk() override;

  /// A file of these bytes. Returns its number: 0, 1, 2 ...
  std::uint32_t add_file(std::string name, std::vector<std::byte> contents);
  /// A file whose bytes are a function of (seed, file, offset), of any size: they are made when they are read.
  std::uint32_t add_seeded_file(std::string name, std::uint64_t size_bytes);
  /// A name without a file: opens and reads fail with ENOENT.
  std::uint32_t add_missing_file(std::string name);
  /// Another file under the same name from now on, with another version.
  void replace_file(std::uint32_t file, std::vector<std::byte> contents);
  /// Adds to the plan, from now on.
  void add_fault(const read_fault& fault);
  void add_fault(const open_fault& fault);

  [[nodiscard]] std::uint64_t size_bytes(std::uint32_t file) const;
  /// The bytes that a read of this range delivers. The range must lie in the file.
  [[nodiscard]] std::vector<std::byte> bytes(std::uint32_t file, std::uint64_t offset, std::uint64_t bytes) const;
  /// What the chances of the plan hold for a read that starts at `offset`: 0, an errno or read_fault::never.
  [[nodiscard]] int drawn_failure(std::uint32_t file, std::uint64_t offset) const;
  [[nodiscard]] fake_disk_counters count() const;

  [[nodiscard]] std::unique_ptr<io::source> connect(io::connector& loop) const override;
  [[nodiscard]] std::uint32_t files() const override;
  [[nodiscard]] std::string file_name(std::uint32_t file) const override;

  class state;

 private:
  const std::shared_ptr<state> state_;
};

}  // namespace leat::testing
