// A record of a run's reads: when each was asked for, how many bytes, how long it took, and what the batches that they were for have
// waited. It has no data and no names. `leat replay-io` tells by it how the run would have been on another drive.
//
//   file     the 8 bytes "LEATREC1", then blocks. It takes its name once it is whole
//   block    u32 kind, u32 bytes of what follows the head, u64 base, u64 base of the batches (below it 8 bits: the I/O thread), u32 CRC-32C
//            of what follows, u32 CRC-32C of the head with the block's number in the place of both; and the bytes
//   kinds    settings (first), reads of one I/O thread (22 bytes each), batches (56 bytes each), end (last)
//   read     u48 offset, u16 and u8 number of the file, u32 bytes, u32 end - base, u24 duration, u15 batch - base of the batches, 1 bit: it
//            took memory of the read buffers. Times are in ticks of 1024 ns; a number that does not fit is the largest
// Numbers are little-endian.
#pragma once

#include "base/mutex.hpp"
#include "base/unfinished_file.hpp"

#include <leat/error.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

/// What the line worked with.
///   batches          that there may be at a time, with the consumer's
///   queue_depth      as asked for; 0: by bytes
///   read_bytes       of the read buffers
///   tuned            it may have changed these while it ran
struct recorded_settings {
  std::uint32_t io_threads = 1;
  std::uint32_t decode_threads = 1;
  std::uint32_t cores = 0;
  std::uint32_t batches = 1;
  std::uint32_t queue_depth = 0;
  std::uint32_t depth_by_bytes = 0;
  std::uint32_t tuned = 0;
  std::uint32_t on_device = 0;
  std::uint64_t read_bytes = 0;

  friend bool operator==(const recorded_settings&, const recorded_settings&) = default;
};

/// Of a read. Its batch is the batch's number in the run.
struct recorded_read {
  std::uint64_t begin_ns = 0;  ///< when the source was asked
  std::uint64_t end_ns = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t batch = 0;
  std::uint32_t file = 0;  ///< counted through all sources
  bool is_leased = false;
  std::uint32_t loop = 0;  ///< its I/O thread

  friend bool operator==(const recorded_read&, const recorded_read&) = default;
};

/// Of a batch that was handed out. Times are of the steady clock.
///   decode_ns, decode_us2   of the `timed` rows, and the squares of their microseconds
///   expand_ns               of all its blocks
struct recorded_batch {
  std::uint64_t number = 0;
  std::uint64_t index = 0;
  std::uint64_t begun_ns = 0;    ///< its rows are chosen
  std::uint64_t made_ns = 0;     ///< they are all made
  std::uint64_t arrived_ns = 0;  ///< it is where the consumer can have it
  std::uint64_t asked_ns = 0;    ///< the consumer called next()
  std::uint64_t handed_ns = 0;   ///< which returned
  std::uint64_t decode_ns = 0;
  std::uint64_t decode_us2 = 0;
  std::uint64_t expand_ns = 0;
  std::uint32_t epoch = 0;
  std::uint32_t timed = 0;
  std::uint32_t rows = 0;
  std::uint32_t decoded = 0;  ///< rows that decode threads made

  friend bool operator==(const recorded_batch&, const recorded_batch&) = default;
};

/// Of the whole run.
struct recorded_totals {
  std::uint64_t reads = 0;
  std::uint64_t batches = 0;
  std::uint64_t io_awake_ns = 0;      ///< of the I/O threads
  std::uint64_t reads_at_a_time = 0;  ///< over all I/O threads; 0: sources that are no files decide it
  std::uint64_t decode_busy_ns = 0;   ///< of the decode threads
  std::uint64_t decode_cpu_ns = 0;    ///< of that they had a core
  std::uint64_t rows_made = 0;        ///< of batches that were not handed out, too

  friend bool operator==(const recorded_totals&, const recorded_totals&) = default;
};

/// Writes a record. Its memory is a block for each thread that notes; who has filled one writes it.
class read_recorder {
 public:
  static constexpr std::size_t block_bytes = std::size_t{64} << 10;
  static constexpr std::size_t read_bytes = 22;
  [[nodiscard]] static constexpr std::size_t memory_bytes(std::uint32_t io_threads) noexcept {
    return block_bytes * (std::size_t{io_threads} + 1);
  }

  /// Takes the file's temporary name.
  ///   throws   error: permission, not_found, limit, io; usage: what is there is no regular file
  read_recorder(std::string path, const recorded_settings& settings);
  read_recorder(const read_recorder&) = delete;
  read_recorder& operator=(const read_recorder&) = delete;

  /// A read has ended. Thread: its I/O thread.
  void add(const recorded_read& read) noexcept;
  /// The same in parts, which are in registers.
  void add(std::size_t loop, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t offset, std::uint64_t bytes,
           std::uint64_t batch, std::uint64_t file, bool is_leased) noexcept;
  /// A batch was handed out. Thread: one at a time.
  void add(const recorded_batch& batch) noexcept;
  /// What went wrong with the file so far: an errno. Thread: any.
  [[nodiscard]] int failure() const noexcept { return failure_.load(std::memory_order_relaxed); }
  /// Throws it. Thread: any.
  void check() const;
  /// Writes the end and takes the name. Nobody adds any more. Where that fails, failure() says why, and there is no file.
  ///   totals   but for the numbers of reads and batches
  void finish(recorded_totals totals) noexcept ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct alignas(64) lane {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t used = 0;
    std::uint64_t base = 0;
    std::uint64_t batch_base = 0;
    std::uint64_t count = 0;  // of bytes in blocks that are written, but for their heads
    std::uint32_t kind = 0;
    std::uint32_t number = 0;  // of the I/O thread
  };
  void write(lane& full) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  /// Begins a block with it, where it has to, and cuts what does not fit.
  [[gnu::cold]] void add_first(std::size_t loop, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t offset,
                               std::uint64_t bytes, std::uint64_t batch, std::uint64_t file, bool is_leased) noexcept;
  static void put(lane& to, const std::array<std::uint64_t, 3>& words) noexcept;

  const std::string path_;
  const std::uint32_t loop_count_;
  const std::unique_ptr<lane[]> loops_;
  lane batches_;
  mutex mutex_;
  unfinished_file file_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<int> failure_{0};
};

/// What a record says.
///   reads     by batch, and then in the order in which they were asked for
///   batches   in the order in which they were handed out
struct read_record {
  recorded_settings settings;
  recorded_totals totals;
  std::vector<recorded_read> reads;
  std::vector<recorded_batch> batches;
};

/// What the bytes of a file say.
///   path     names it in errors
///   throws   error{errc::format}: it is no record, or is cut off or damaged, with where
[[nodiscard]] read_record parse_read_record(std::span<const std::byte> bytes, const std::string& path);

inline void read_recorder::add(const recorded_read& read) noexcept {
  add(read.loop, read.begin_ns, read.end_ns, read.offset, read.bytes, read.batch, read.file, read.is_leased);
}

inline void read_recorder::add(std::size_t loop, std::uint64_t begin_ns, std::uint64_t end_ns, std::uint64_t offset,
                               std::uint64_t bytes, std::uint64_t batch, std::uint64_t file, bool is_leased) noexcept {
  lane& to = loops_[loop];
  const std::uint64_t end = end_ns >> 10U;
  const std::uint64_t behind = end - to.base;
  const std::uint64_t took = end - (begin_ns >> 10U);
  const std::uint64_t ahead = batch - to.batch_base;
  // One branch: what lies before its base is too far away as well.
  const bool fits = (behind | took << 8U | ahead << 17U | bytes | file << 8U) >> 32U == 0;
  if (!fits || to.used + read_bytes + sizeof(std::uint64_t) > block_bytes) [[unlikely]] {
    return add_first(loop, begin_ns, end_ns, offset, bytes, batch, file, is_leased);
  }
  put(to, {(offset & 0xFFFFFFFFFFFFU) | file << 48U, bytes | behind << 32U,
           took | file >> 16U << 24U | ahead << 32U | std::uint64_t{is_leased} << 47U});
}

inline void read_recorder::put(lane& to, const std::array<std::uint64_t, 3>& words) noexcept {
  // The last two bytes are the next one's.
  std::memcpy(to.bytes.get() + to.used, words.data(), sizeof words);
  to.used += read_bytes;
}

}  // namespace leat::stages
