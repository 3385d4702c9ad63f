// Which part of a line the others wait for, as a function of what was counted in a window of time.
#pragma once

#include <leat/verdict.hpp>

#include <cstdint>

namespace leat::stages {

/// Sums since the loader began; the difference of two of them is a window. Times are of the steady clock, so that what a part loses to
/// others on the same cores is in them.
struct line_counts {
  std::uint64_t time_ns = 0;  ///< since it began; of a window its length
  // Handed out.
  std::uint64_t batches = 0;
  std::uint64_t planned = 0;
  std::uint64_t samples = 0;
  std::uint64_t quarantined = 0;
  // Read.
  std::uint64_t reads = 0;         ///< ended
  std::uint64_t read_bytes = 0;    ///< of them
  std::uint64_t read_ns = 0;       ///< they were in the kernel, or with a source that is no files
  std::uint64_t rows_read = 0;     ///< samples that have all that they read
  std::uint64_t rows_held = 0;     ///< of these, samples of which nothing was read, as the device has them
  std::uint64_t held_back_ns = 0;  ///< of the I/O threads: reads waited because the kernel had as many as it is given
  std::uint64_t io_awake_ns = 0;   ///< of the I/O threads
  // Decode.
  std::uint64_t rows_made = 0;
  std::uint64_t decode_ns = 0;       ///< of the decode threads, in jobs
  std::uint64_t decode_wait_ns = 0;  ///< of jobs, for a thread
  std::uint64_t batch_wait_ns = 0;   ///< the next batch waited for one to end, or for its memory
  // Transfer.
  std::uint64_t transferred_rows = 0;
  std::uint64_t transfer_ns = 0;
  // What the device timed of them, as device_times has it.
  std::uint64_t timed_batches = 0;
  std::uint64_t timed_rows = 0;
  std::uint64_t device_copy_ns = 0;
  std::uint64_t device_step_ns = 0;
  std::uint64_t device_stall_ns = 0;
  // The consumer, as delivery::counters has them.
  std::uint64_t steps = 0;
  std::uint64_t step_ns = 0;
  std::uint64_t held_all_ns = 0;
  std::uint64_t stalled_ns = 0;
  std::uint64_t waiting_ns = 0;  ///< of these, that a call waits by now: no sum
  std::uint64_t pause_ns = 0;
  std::uint64_t ready_ns = 0;
  std::uint64_t out_ns = 0;

  friend line_counts operator-(line_counts a, const line_counts& b) noexcept;
  line_counts& operator+=(const line_counts& other) noexcept;
  friend bool operator==(const line_counts&, const line_counts&) = default;
};

/// What a store of objects does to those who read it, as leat::remote_stats has it.
struct store_now {
  double away_s = 0;
  double requests_per_s_max = 0;
  std::uint64_t reads_waiting = 0;
  std::uint64_t refusals = 0;  ///< of all its requests
  std::uint64_t requests = 0;
};

/// What the line works with meanwhile.
///   on_device         batches go to a device: what the CPU sees of copies and steps is only that they were queued, and a wait in next() is
///                     no stall. What the device timed tells; a window without a timed batch says nothing of them
///   cores             that this process has, by its affinity and the quota of its control groups; 0: not known
///   cpu_quota         that of its control group, in cores; 0: none
///   reads_at_a_time   that the kernel is given, over all I/O threads; 0: sources that are no files decide it
///   batches_max       that there may be at a time, with the consumer's
///   short_of_memory   there would be more of them in a larger budget
struct line_setting {
  std::uint32_t decode_threads = 1;
  std::uint32_t cores = 0;
  double cpu_quota = 0;
  std::uint32_t io_threads = 1;
  std::uint32_t reads_at_a_time = 0;
  std::uint32_t batches_max = 0;
  bool short_of_memory = false;
  bool on_device = false;
  store_now store = {};
};

/// Each part's capacity is how many items it works on at a time, over what one takes it. The smallest is the verdict, the second smallest
/// what the line would do if that part were free. What flowed in the window confirms it, or says that it cannot be.
[[nodiscard]] verdict judge(const line_counts& window, const line_setting& setting);

}  // namespace leat::stages
