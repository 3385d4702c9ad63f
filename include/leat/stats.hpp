// What a loader has done and what holds it up.
#pragma once

#include <leat/verdict.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace leat {

/// How many durations lie between which bounds. Each bound is the fourfold of the one before.
struct duration_counts {
  static constexpr std::array<double, 12> bounds_s = {4.096e-6,    1.6384e-5,   6.5536e-5,   0.000262144,
                                                      0.001048576, 0.004194304, 0.016777216, 0.067108864,
                                                      0.268435456, 1.073741824, 4.294967296, 17.179869184};
  std::array<std::uint64_t, bounds_s.size() + 1> counts = {};  ///< below each bound, and beyond the last
};

/// One stage of the line, summed over its threads.
///   count     what it handles: reads, samples, batches, next() calls
///   bytes     of read and next what bytes_read and bytes_delivered are; of the others those of whole batches as they are made
///             on the host and copied to a device, with what lies between their tensors
///   busy_s    seconds of work: of read those that reads were in the kernel; of transfer to a device those of all copies there, by the one
///             batch in 16 that is timed; of next those from a batch to the next call
///   wait_s    seconds somebody stood waiting at this stage
///   p50_s ... what one item takes: a read in the kernel, a job of a decode thread (a sample, or a block of a chunked array), a batch in
///             collate and transfer; of next what a call waits. max_s is exact, the others to 1/64
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

/// How many there were in the mean since the loader began: samples that wait for a decode thread, batches that wait for next(), and those
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
///   blocks   expanded
///   uses     rows' boxes that were copied out of them: uses / blocks is how often a block was of use when it was expanded
///   bytes    expanded
///   busy_s   seconds that decode threads expanded and copied: a part of stats::decode's
///   wait_s   seconds that blocks, once read, waited for a decode thread, added up
struct expand_stats {
  std::uint64_t blocks = 0;
  std::uint64_t uses = 0;
  std::uint64_t bytes = 0;
  double busy_s = 0;
  double wait_s = 0;
};

/// Objects at addresses, read through the sources of the dataset since the loader began: by whoever reads them, so that of two loaders of one
/// dataset each counts what both do.
///   requests          over the network, those that were tried again included
///   bytes             received, of objects
///   bytes_from_cache  of samples and blocks, read from the local drive
///   retries           requests that had failed before
///   hedges            requests for what another one was late with: later than 99 of 100
///   connections       opened
///   wait_s            from when a range or a block was wanted until it was there, of all of them in all
///   cached_blocks     written to the cache
///   damaged_reads     from the cache that were not what was written; they are fetched anew
///   cache             "off", "on", or "off: " and why it is not used any more
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
  std::string cache = "off";
};

/// One rung of the ladder: what is in use, and why it is not the one above.
struct rung {
  std::string use;
  std::string why;
};

/// The rungs in use.
struct reader_report {
  rung backend;             ///< "io_uring" or "preadv"
  rung registered_buffers;  ///< "on", "partly", "off"
  rung direct;              ///< "on" (O_DIRECT) or "off" (buffered)
  rung huge_pages;          ///< "on", "partly", "off"
};

/// Where batches go.
struct device_report {
  rung use;  ///< "host" or "cuda:N", and which GPU that is or why it is none
  /// Memory that batches are copied from: "on" (by DMA), "partly", "off"; "not yet" before the first of them has left.
  rung pinned;
  std::uint32_t batches = 0;  ///< that it has memory for
  std::uint64_t bytes = 0;    ///< of its memory, taken at the start
  rung photos = {};  ///< where photo packs are decoded: "host" or "cuda:N", and why it is not where it could be
  std::uint64_t photos_decoded = 0;  ///< of packs, on the device
  std::uint64_t photos_on_host = 0;  ///< that could have been, but for what loader_options::decode_on says
  /// Where steps of colour are done: "host" or "cuda:N", and why those on the host are not done there.
  rung passes = {};
  std::uint64_t passes_on_device = 0;  ///< as drawn; what is erased counts as one
  std::uint64_t passes_on_host = 0;
  std::uint64_t jpegs_decoded = 0;  ///< by nvJPEG
  /// Of pictures with jpeg_decoder::nvjpeg, which takes no such file: image::decoder().
  std::uint64_t jpegs_on_host = 0;
};

/// Quarantined samples of one kind.
struct corrupt_count {
  std::string kind;
  std::uint64_t samples = 0;

  friend bool operator==(const corrupt_count&, const corrupt_count&) = default;
};

/// Counted since construction; a snapshot, each number exact, the set not from one instant.
struct loader_stats {
  // delivered rows that are themselves + quarantined = planned, for the batches handed out, of this rank. All three count rows:
  // one that only fills a batch (last_batch::pad) as any other. What an epoch has of samples is planned - padded.
  std::uint64_t planned = 0;
  std::uint64_t padded = 0;
  std::uint64_t samples = 0;
  std::uint64_t quarantined = 0;
  /// The quarantined samples by kind, sorted by its name: a picture format that leat does not read ("TIFF"), "unknown format",
  /// "unsupported", "empty", "incomplete", "unreadable" or "damaged". loader_options::journal has the reason of each sample.
  std::vector<corrupt_count> quarantined_as;
  std::uint64_t substituted = 0;
  std::uint64_t batches = 0;
  std::uint32_t epochs_finished = 0;

  /// That samples were read by: their stored bytes (of photo packs with an index, the head and the crop's rows), and the gaps (16 KiB at
  /// most, within a photo pack at an address 1 MiB) between those that one read serves.
  std::uint64_t bytes_read = 0;
  /// What the kernel gave for them: bytes_read, and with O_DIRECT what lies around a read up to multiples of the file's
  /// alignment; a page cache adds nothing here. Over bytes_delivered it is what the drive did for a byte of a batch. What is
  /// tried again counts again; sources that are no files count nothing.
  std::uint64_t bytes_from_files = 0;
  /// Of the tensors of the batches handed out, as the trainer sees them.
  std::uint64_t bytes_delivered = 0;
  /// Of rows that are stored bytes as they are: those that were copied to their place in the batch and not read there.
  /// Arrays, bytes, texts, and x and y of tokens in the file's own dtype; not what is decoded or widened.
  std::uint64_t bytes_copied = 0;
  /// Of outputs whose rows differ in length (text, bytes, sequences), over collated batches: their bytes, and what padding each batch's
  /// rows to its longest would add to them, or has added. leat::bucketed() makes the second small.
  std::uint64_t ragged_bytes = 0;
  std::uint64_t ragged_padding_bytes = 0;
  expand_stats expand;
  remote_stats remote;
  std::uint64_t arena_bytes = 0;  ///< mapped in so far
  std::uint64_t scratch_bytes_peak = 0;

  double elapsed_s = 0;  ///< since the loader began
  stage_stats read, decode, collate, transfer, next;
  double stalled_s = 0;  ///< the consumer's in next(), but for the time in which it held all batches itself
  queue_stats queues;
  std::vector<thread_stats> threads;
  double digest_cpu_s = 0;

  // Now.
  std::uint64_t reads_in_flight = 0;
  std::uint64_t decode_queued = 0;
  std::uint64_t batches_ready = 0;  ///< next() has them at once; done before their turn does not count
  std::uint64_t batches_out = 0;    ///< held by the consumer

  reader_report reader;
  /// Rows of photo packs are coded again for libjpeg-turbo to decode, whose inner structure is not known: slower, and the same pixels.
  bool photo_packs_recoded = false;
  device_report device;
  leat::verdict verdict;  ///< of the last window
};

}  // namespace leat
