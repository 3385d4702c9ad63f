// Where bytes come from. A source turns reads into bytes in leased memory: the ring and its preadv twin for files, a
// fake disk in the tests, objects at addresses (io/remote). Nothing outside io/ knows which one it is talking to.
//
// Operations are intrusive: who asks owns them, keeps them still until done() was called, and pays no allocation.
#pragma once

#include "async/loop.hpp"
#include "io/files/fault.hpp"
#include "io/files/queue_depth.hpp"

#include <leat/error.hpp>
#include <leat/extent.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace leat {
struct remote_stats;
}

namespace leat::io {

/// Every read starts and ends on multiples of this inside its file at the most, on any fallback: the O_DIRECT alignment
/// assumed where statx(2) does not tell a smaller one. Planning with it makes budgets the same on every machine.
inline constexpr std::uint64_t alignment_max_bytes = 4096;

/// The largest read that is given to the kernel. A larger one is cut, and its parts are read at the same time: so each can be
/// cancelled, and a read of 1 GiB does not fill the device's queue alone.
inline constexpr std::uint64_t chunk_bytes_max = std::uint64_t{16} << 20;

/// Bytes a lease must have to hold [offset, offset + bytes) read at the largest alignment.
[[nodiscard]] constexpr std::uint64_t aligned_bytes(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::uint64_t begin = offset / alignment_max_bytes * alignment_max_bytes;
  const std::uint64_t end = (offset + bytes + alignment_max_bytes - 1) / alignment_max_bytes * alignment_max_bytes;
  return end - begin;
}

/// What all of these are multiples of: the largest power of two up to alignment_max_bytes.
///   places   offsets and sizes, or-ed
[[nodiscard]] constexpr std::uint32_t alignment_of(std::uint64_t places) noexcept {
  places |= alignment_max_bytes;
  return static_cast<std::uint32_t>(places & (~places + 1));
}

/// Memory a read may write: part of an arena piece, which the ring may have registered as one buffer.
///   bytes   aligned to alignment_max_bytes, at least aligned_bytes(offset, bytes) of the read
///   piece   the arena's number of the (first) piece it lies in; no_piece for memory from elsewhere
struct read_target {
  static constexpr std::uint32_t no_piece = 0xFFFFFFFFU;
  std::span<std::byte> bytes;
  std::uint32_t piece = no_piece;
};

/// One read. A file that ends early fails it with ENODATA. Where it asks for the whole of a file, as large as an earlier run has seen
/// it, and `into` has room behind these bytes, a file that goes on fails it with EFBIG: it costs no call to notice.
///
/// The first block is the question and stays unchanged; the second is the answer, valid in and after done().
struct read_operation {
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  read_target into;
  /// Called exactly once, on the thread of the loop that the source was connected to. Must not block, and may start
  /// further operations. After it the source never touches the operation or its memory again.
  void (*done)(read_operation&) noexcept = nullptr;

  std::span<const std::byte> data;  ///< the bytes asked for, inside `into`; `bytes` long unless failed
  int failure = 0;                  ///< 0 or an errno: EIO, ENOENT, ENODATA, EFBIG, ETIMEDOUT, ECANCELED ...
  std::unique_ptr<const source_failure> said = {};  ///< of a failure, what the errno does not tell; files leave it null
  std::uint64_t started_ns = 0;                     ///< steady clock, when the source took it
  std::uint64_t ended_ns = 0;                       ///< the same, when it ended, where the source has looked: loops do

  // The source's own, from start() to done().
  read_operation* next = nullptr;
  read_operation* previous = nullptr;
  void* state = nullptr;
};

/// Asks for size and version of a file: what was true when the dataset was opened may not be true now. Fails with
/// EOPNOTSUPP where reading it would: where O_DIRECT was insisted on and the file has none.
struct open_operation {
  std::uint32_t file = 0;
  void (*done)(open_operation&) noexcept = nullptr;  ///< as in read_operation

  std::uint64_t size_bytes = 0;
  std::uint64_t version =
      0;  ///< changes when the content does: of files, mixed from mtime, size and inode; 0: nothing tells
  std::uint32_t alignment = 1;  ///< bytes: a read on multiples of it takes no more from the disk than was asked for
  int failure = 0;
  std::unique_ptr<const source_failure> said = {};  ///< as in read_operation

  open_operation* next = nullptr;
  void* state = nullptr;
};

/// A source connected to one loop. All members are called on that loop's thread.
class source {
 public:
  source() = default;
  source(const source&) = delete;
  source& operator=(const source&) = delete;
  /// Every operation is done before this.
  virtual ~source() = default;

  /// Takes the operations in this order; they go to the kernel together, at the end of the loop's turn. Short reads
  /// go on, EINTR and EAGAIN are tried again a bounded number of times, a read older than the reader's timeout fails
  /// with ETIMEDOUT. May call done() of an operation only after start() has returned.
  virtual void start(std::span<read_operation* const> operations) = 0;
  virtual void start(open_operation& operation) = 0;

  /// Asks for an early end: done() is still called, once, with ECANCELED or with the outcome that was faster, and only
  /// after the kernel has let go of the memory.
  virtual void cancel(read_operation& operation) = 0;

  /// Says what reads will ask for, in their order and some time before they do. A source that fetches in larger blocks than reads are
  /// begins to do so; others do nothing. It promises nothing, and what is wrong with these places the reads are told.
  virtual void hint(std::span<const extent> /*ahead*/) {}

  /// The failed operation as an error: file, offset, errno by name, and a likely remedy. Of those that it has said nothing of.
  [[nodiscard]] virtual error explain(const read_operation& operation) const = 0;
  [[nodiscard]] virtual error explain(const open_operation& operation) const = 0;
};

class file_table;

/// What makes sources: a loop of the reader, which knows the fallback in use.
class connector {
 public:
  connector(const connector&) = delete;
  connector& operator=(const connector&) = delete;
  /// Thread: any, before the first operation. `files` outlives the source.
  [[nodiscard]] virtual std::unique_ptr<source> connect_files(const file_table& files) = 0;
  /// The loop as an executor, for a source that is no files: its sockets and timers are made with it, and their handlers run on the
  /// loop's thread, where done() is called. What runs there must not block. Thread: any.
  [[nodiscard]] virtual async::loop::executor_type executor() noexcept = 0;
  /// Whether files are read past the page cache, where that can be. Thread: any.
  [[nodiscard]] virtual bool wants_direct() const = 0;
  /// Runs `function` on the loop's thread, later, once.
  virtual void post(void (*function)(void*) noexcept, void* argument) = 0;
  /// Runs `function` once, after the done() of all operations that have ended by now, so that it sees all their completions.
  /// Called from within a done(). Loop thread.
  virtual void after_completions(void (*function)(void*) noexcept, void* argument) = 0;
  /// Lets operations begin and end, without running posted functions, until `over(argument)` is true. It is for a caller that
  /// must not return before certain operations have ended. Called from a posted function, not from a done(). Loop thread.
  virtual void turn_until(bool (*over)(const void*) noexcept, const void* argument) = 0;

 protected:
  connector() = default;
  ~connector() = default;
};

/// Memory that a connected source takes beside leases. It works with whatever lies between the two.
struct source_memory {
  std::size_t bytes_least = 0;
  std::size_t bytes_wanted = 0;
  std::string what = {};  ///< for a person: "32 connections"
};

/// What keeps a source busy, however long each read takes.
///   reads, bytes   in flight: as many reads as make so many bytes, and no more than `reads`
///   ahead_bytes    of reads that are not in flight yet, for source::hint(); 0: nobody need say anything
struct source_depth {
  std::uint32_t reads = queue_depth::reads_max;
  std::uint64_t bytes = queue_depth::bytes;
  std::uint64_t ahead_bytes = 0;
};

/// On which a source is connected.
///   memory_bytes    of source_memory: at least the least
///   passing_bytes   reads go through the files in windows, and have done with what they asked for first when they have asked for so many
///                   bytes: a cache lets blocks pass through so much of its room. 0: they ask for anything at any time
struct source_terms {
  std::size_t memory_bytes = 0;
  std::uint64_t passing_bytes = 0;
};

/// A cache on a local drive.
///   bytes_max   what it may take
///   bytes_all     of all files of the source
///   block_bytes   of what is fetched at once
struct cache_room {
  std::uint64_t bytes_max = 0;
  std::uint64_t bytes_all = 0;
  std::uint64_t block_bytes = 0;
};

/// What a dataset holds of its source: enough to connect it to a loop, any number of times.
class source_description {
 public:
  source_description() = default;
  source_description(const source_description&) = delete;
  source_description& operator=(const source_description&) = delete;
  virtual ~source_description() = default;

  [[nodiscard]] virtual std::unique_ptr<source> connect(connector& loop) const = 0;
  /// What each source that is connected takes. Thread: any.
  [[nodiscard]] virtual source_memory memory() const { return {}; }
  /// Of each source that is connected. Thread: any.
  ///   default   a drive's
  [[nodiscard]] virtual source_depth in_flight() const { return {}; }
  /// Nothing where there is none. Thread: any.
  [[nodiscard]] virtual std::optional<cache_room> cached() const { return std::nullopt; }
  /// As connect(), which takes what memory it wants.
  [[nodiscard]] virtual std::unique_ptr<source> connect_within(connector& loop, const source_terms& /*terms*/) const {
    return connect(loop);
  }
  [[nodiscard]] virtual std::uint32_t files() const = 0;
  /// Whether the loop counts what its reads take in the kernel.
  [[nodiscard]] virtual bool is_read_by_the_loop() const noexcept { return false; }
  /// Adds what the network and a cache have done for all sources that were ever connected. Thread: any.
  virtual void add_counts(remote_stats&) const {}
  /// The file's path or address, as a person would write it.
  [[nodiscard]] virtual std::string file_name(std::uint32_t file) const = 0;
};

}  // namespace leat::io
