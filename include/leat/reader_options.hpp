// How files are read: the options of a leat::reader and of a loader.
#pragma once

#include <chrono>
#include <cstdint>

namespace leat {

/// Who talks to the kernel.
enum class read_backend : std::uint8_t {
  automatic,  ///< io_uring; threads where the kernel or a container forbids it, and report() says why
  io_uring,   ///< an error where it is forbidden
  preadv      ///< preadv(2) on a few threads
};

/// A rung of the ladder, as asked for.
enum class choice : std::uint8_t {
  automatic,  ///< the best there is; report() says what and why
  on,         ///< an error rather than the next rung
  off
};

/// How to read. Every combination gives the same bytes.
struct reader_options {
  read_backend backend = read_backend::automatic;
  /// Buffers that io_uring has pinned once (RLIMIT_MEMLOCK, unless CAP_IPC_LOCK). A loader's batches that go to a device: when
  /// that has pinned them, and until then they are read into as they are.
  choice registered_buffers = choice::automatic;
  choice huge_pages = choice::automatic;
  /// O_DIRECT. Automatic: buffered when what an epoch reads fits in half of the memory available, else O_DIRECT where
  /// the file system has it. A leat::reader knows of no epochs: there automatic is O_DIRECT where it can be had.
  choice direct = choice::automatic;
  /// Polls the device for completions of O_DIRECT reads (IORING_SETUP_IOPOLL): less latency, for a whole core while reads are
  /// in flight. Where the device has no queues for polling, reads are interrupt-driven as usual, and report().backend says why.
  /// A polled read cannot be cancelled: after read_timeout it is reported, and the reader still waits for it.
  bool poll = false;
  /// Reads the kernel has at a time, for each I/O thread; 0: as many as make 7 MiB, between 8 and 128.
  std::uint32_t queue_depth = 0;
  /// Threads with a ring (or a loop) each. 0: one; up to four, of as many cores each, for files whose photo packs a device decodes.
  std::uint32_t io_threads = 0;
  /// Threads for each I/O thread where reads are preadv(2).
  std::uint32_t preadv_threads = 4;
  /// A read the kernel has had for longer fails, naming its file: it may be on a dead mount.
  std::chrono::milliseconds read_timeout = std::chrono::minutes(5);
};

}  // namespace leat
