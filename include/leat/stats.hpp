// What a loader has done, and what it waits for.
#pragma once

#include <leat/compiler.hpp>
#include <leat/verdict.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace leat {

/// A histogram of durations. Each bound is four times the one before.
struct duration_counts {
  static constexpr std::array<double, 12> bounds_s = {4.096e-6,    1.6384e-5,   6.5536e-5,   0.000262144,
                                                      0.001048576, 0.004194304, 0.016777216, 0.067108864,
                                                      0.268435456, 1.073741824, 4.294967296, 17.179869184};
  std::array<std::uint64_t, bounds_s.size() + 1> counts = {};  ///< below each bound, and above the last
};

/// One stage of the line, all its threads together.
///   count     items: reads, samples, batches, calls of next()
///   bytes     read: as bytes_read. next: as bytes_delivered. Others: of whole batches, with the gaps between their
///             tensors, of which less is copied where slots are not full
///   busy_s    seconds of work. read: time that reads were in the kernel. transfer to a device: time of all copies,
///             estimated from the one batch in 16 that is timed. next: time from a batch to the next call
///   wait_s    seconds that somebody waited at this stage
///   p50_s ... what one item takes. read: a read in the kernel. decode: a job of a thread (a sample, or a block of a
///             chunked array). collate, transfer: a batch. next: the wait of a call. max_s is exact, the others to 1/64
struct stage_stats {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  double busy_s = 0;
  double wait_s = 0;
  double p50_s = 0;
  double p90_s = 0;
  double p99_s = 0;
  double max_s = 0;
  double items_s = 0;  ///< of all items together
  duration_counts items = {};
};

/// Mean lengths since the loader began: samples that wait for a decode thread, batches that wait for next(), batches
/// that the consumer holds.
struct queue_stats {
  double decode = 0;
  double ready = 0;
  double out = 0;
};

/// A thread of the loader: "io-0", "decode-3".
struct thread_stats {
  std::string name;
  double busy_s = 0;
  double idle_s = 0;
  double cpu_s = 0;  ///< user and system
};

/// Blocks of chunked fields (field_info::chunked), which are expanded once for all rows of a batch.
///   blocks   blocks that were expanded
///   uses     rows that were copied out of them: uses / blocks is how many rows one expansion served
///   bytes    bytes after expansion
///   busy_s   seconds that decode threads expanded and copied, part of `decode`
///   wait_s   seconds that blocks waited for a decode thread after they were read, added up
struct expand_stats {
  std::uint64_t blocks = 0;
  std::uint64_t uses = 0;
  std::uint64_t bytes = 0;
  double busy_s = 0;
  double wait_s = 0;
};

/// Objects at addresses, since the loader began. Two loaders of one dataset each count what both read.
///   requests          requests over the network, with those that were tried again
///   bytes             bytes of objects that were received
///   bytes_from_cache  bytes of samples and blocks that were read from the local cache
///   retries           requests that were sent again after a failure
///   hedges            second requests, sent when the first was later than 99 of 100 are
///   connections       connections that were opened
///   wait_s            time from wanting a range or block to having it, added up
///   cached_blocks     blocks that were written to the cache
///   damaged_reads     reads from the cache that were not what was written; they are fetched again
///   refusals          answers of 503 or 429
///   reads_waiting     reads that wait now, because a store is away or because it allows no more requests
///   away_s            how long a store has answered nothing of use by now
///   requests_per_s_max   the rate that a store allows by now; 0: no limit is known
///   cache             "off", "on", or "off: " and why it is no longer used
struct remote_stats {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_from_cache = 0;
  std::uint64_t retries = 0;
  std::uint64_t hedges = 0;
  std::uint64_t connections = 0;
  double wait_s = 0;
  std::uint64_t cached_blocks = 0;
  std::uint64_t damaged_reads = 0;
  std::uint64_t refusals = 0;
  std::uint64_t reads_waiting = 0;
  double away_s = 0;
  double requests_per_s_max = 0;
  std::string cache = "off";
};

/// What is in use of several techniques, and why not a better one.
struct fallback {
  std::string use;
  std::string why;
};

using rung [[deprecated("its name is leat::fallback")]] = fallback;

/// How files are read.
struct reader_report {
  fallback backend;             ///< "io_uring" or "preadv"
  fallback registered_buffers;  ///< "on", "partly", "off"
  fallback direct;              ///< "on" (O_DIRECT) or "off" (buffered)
  fallback huge_pages;          ///< "on", "partly", "off"
};

/// Where batches go.
struct device_report {
  fallback use;  ///< "host" or "cuda:N", and which GPU that is or why it is none
  /// Whether the memory that batches are copied from is pinned: "on", "partly", "off", or "not yet" before the first
  /// copy.
  fallback pinned;
  std::uint32_t batches = 0;  ///< batches that it has memory for
  std::uint64_t bytes = 0;    ///< bytes of its memory, taken at the start
  fallback photos = {};  ///< where photo packs are decoded: "host" or "cuda:N", and why it is not where it could be
  std::uint64_t photos_decoded = 0;  ///< photo packs that the device decoded; not those that stay decoded
  std::uint64_t photos_on_host = 0;  ///< photo packs that the host decoded: loader_options::decode_on says why
  /// Where steps of colour are done: "host" or "cuda:N", and why those on the host are not done on the device.
  fallback passes = {};
  std::uint64_t passes_on_device = 0;  ///< steps that were drawn; erasing counts as one
  std::uint64_t passes_on_host = 0;
  std::uint64_t jpegs_decoded = 0;  ///< JPEGs that nvJPEG decoded
  /// JPEGs that nvJPEG does not take and the host decoded: image::decoder().
  std::uint64_t jpegs_on_host = 0;
  /// Where rows stay (loader_options::device_cache): "cuda:N" or "off", and how many fit or why none does.
  fallback cache = {};
  std::uint64_t cache_bytes_max = 0;  ///< bytes of its memory for them, a part of `bytes`
  std::uint64_t cache_bytes = 0;      ///< bytes of it that rows have
  std::uint64_t cached_rows = 0;      ///< rows that are there
  std::uint64_t rows_from_cache = 0;  ///< delivered rows that were there
};

/// A setting that was changed while the loader ran: loader_options::tune.
///   setting   "decode_threads", "batches", "io_threads", "connections" (remote_options::connections_max) or "queue_depth"
///             (the reads that each I/O thread gives the kernel; 0: by size)
///   why       "decode", "read", "variance" and so on: the bottleneck that it is for. "no gain": that is undone. "to spare":
///             the trainer hardly waits. "missed": what was given back is taken again
struct tuning_step {
  double at_s = 0;  ///< since the loader began
  std::string setting;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string why;
  double samples_per_s = 0;  ///< in the window before it
  double stall_share = 0;
};

/// What a loader works with now, and how it came to that.
struct tuning_stats {
  std::uint32_t decode_threads = 0;
  std::uint32_t batches = 0;
  std::uint32_t queue_depth = 0;
  std::uint32_t io_threads = 0;
  std::uint32_t connections = 0;  ///< to the stores of remote sources, which begin with few; 0: there are none
  bool frozen = false;            ///< nothing was worth a change for 10 windows; a new stall begins it again
  std::uint64_t steps_in_all = 0;
  std::vector<tuning_step> steps;  ///< the last 100
};

/// Waits in next() that were longer than timeline_options::on_stall, and the files that were written about them.
struct stall_stats {
  std::uint64_t waits = 0;
  std::uint32_t files = 0;
  std::string last_file;
  std::string failure;  ///< why a file could not be written, the last time that happened
};

/// Corrupt samples of one kind.
struct corrupt_count {
  std::string kind;
  std::uint64_t samples = 0;

  friend bool operator==(const corrupt_count&, const corrupt_count&) = default;
};

/// Counts since the loader began. Each number is exact, but not all are of the same instant.
struct loader_stats {
  // Of the batches handed out, rows of this rank: samples + quarantined = planned. Rows that only fill a batch
  // (last_batch::pad) count as any other; an epoch has planned - padded samples. Quarantined rows had a corrupt sample.
  std::uint64_t planned = 0;
  std::uint64_t padded = 0;
  std::uint64_t samples = 0;
  std::uint64_t quarantined = 0;
  /// Corrupt samples by kind, sorted by name: a picture format that leat does not read ("TIFF"), "unknown format",
  /// "unsupported", "empty", "incomplete", "unreadable", "over budget" or "damaged". loader_options::journal has kind
  /// and reason of each.
  std::vector<corrupt_count> quarantined_as;
  std::uint64_t substituted = 0;
  std::uint64_t batches = 0;
  std::uint32_t epochs_finished = 0;

  /// Bytes read for samples: their stored bytes (of photo packs with an index, the head and the crop's rows), and the
  /// gaps between samples that one read serves (at most 16 KiB; within a photo pack at an address 1 MiB).
  std::uint64_t bytes_read = 0;
  /// Bytes that the kernel gave for them: bytes_read, and with O_DIRECT the rest up to multiples of the alignment.
  /// bytes_from_files / bytes_delivered is what the drive did for a byte of a batch. Repeated reads count again;
  /// sources that are no files count nothing.
  std::uint64_t bytes_from_files = 0;
  /// Bytes of the tensors of the batches handed out.
  std::uint64_t bytes_delivered = 0;
  /// Bytes of rows that are stored as they are (arrays, bytes, texts, tokens in the file's own dtype), which were
  /// copied to their place and not read there.
  std::uint64_t bytes_copied = 0;
  /// Of outputs whose rows differ in length (text, bytes, sequences): their bytes, and the bytes that padding to the
  /// longest row of each batch adds, or would add. leat::bucketed() makes the second small.
  std::uint64_t ragged_bytes = 0;
  std::uint64_t ragged_padding_bytes = 0;
  /// Of rows that balanced_cost() deals to ranks: the slowest rank's cost over the mean, in the mean of this run's
  /// batches. 0: nothing is dealt.
  double slowest_rank_cost = 0;
  expand_stats expand;
  remote_stats remote;
  std::uint64_t arena_bytes = 0;  ///< bytes of the loader's memory mapped in so far
  std::uint64_t scratch_bytes_peak = 0;

  double elapsed_s = 0;  ///< since the loader began
  stage_stats read, decode, collate, transfer, next;
  double stalled_s = 0;  ///< seconds that the consumer waited in next(), without those in which it held all batches
  stall_stats stalls;
  tuning_stats tuned;
  queue_stats queues;
  std::vector<thread_stats> threads;
  double digest_cpu_s = 0;

  // Now.
  std::uint64_t reads_in_flight = 0;
  std::uint64_t decode_queued = 0;
  std::uint64_t batches_ready = 0;  ///< batches that next() gives at once; those before their turn do not count
  std::uint64_t batches_out = 0;    ///< batches that the consumer holds

  reader_report reader;
  fallback placement;  ///< "node N" or "off", and why: loader_options::numa
  /// This libjpeg-turbo's inner structure is not known, so rows of photo packs are coded again for it: slower, with the
  /// same pixels. Said where a field is of pictures.
  bool photo_packs_recoded = false;
  device_report device;
  leat::verdict verdict;  ///< the bottleneck in the last window
};

}  // namespace leat
#pragma GCC visibility pop
