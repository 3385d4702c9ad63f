// How files are read: the options of a leat::reader and of a loader.
#pragma once

#include <leat/compiler.hpp>
#include <leat/durations.hpp>

#include <cstdint>

#pragma GCC visibility push(default)
namespace leat {

/// How reads reach the kernel.
enum class read_backend : std::uint8_t {
  automatic,  ///< io_uring; threads where the kernel or a container forbids it, and report() says why
  io_uring,   ///< an error where it is forbidden
  preadv      ///< preadv(2) on a few threads
};

/// Whether to use a technique.
enum class choice : std::uint8_t {
  automatic,  ///< if it can be used; report() says whether, and why not
  on,         ///< an error if it cannot be used
  off
};

/// How to read. Every combination gives the same bytes.
struct reader_options {
  read_backend backend = read_backend::automatic;
  /// Buffers that io_uring pins once: less CPU for each read. Limited by RLIMIT_MEMLOCK, unless the process has
  /// CAP_IPC_LOCK. Batches that go to a device are registered after the device has pinned them.
  choice registered_buffers = choice::automatic;
  choice huge_pages = choice::automatic;  ///< huge pages for buffers
  /// O_DIRECT: reads go around the page cache. automatic: buffered if an epoch fits in half of the memory available,
  /// else O_DIRECT if the file system has it. For a leat::reader, automatic is O_DIRECT if the file system has it.
  choice direct = choice::automatic;
  bool poll = false;  ///< deprecated, and without effect: drives are no longer polled. The next version removes it
  /// Reads in flight for each I/O thread. 0 (default): as many as make 7 MiB, between 8 and 128.
  std::uint32_t queue_depth = 0;
  /// I/O threads, each with its own io_uring. 0 (default): one. If a device decodes photo packs of files: one for every
  /// four cores, up to four.
  std::uint32_t io_threads = 0;
  /// Threads that read for each I/O thread if io_uring is not used. Default: 4.
  std::uint32_t preadv_threads = 4;
  /// A read that takes longer fails with the name of its file: it may be on a dead mount. Default: 5 minutes.
  std::chrono::milliseconds read_timeout = std::chrono::minutes(5);
};

}  // namespace leat
#pragma GCC visibility pop
