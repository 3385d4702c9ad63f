// What a loader has done and what holds it up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leat {

/// One stage of the line, summed over its threads.
///   count     what it handles: reads, samples, batches, next() calls
///   bytes     of read and next what bytes_read and bytes_delivered are; of the others those of whole batches as they are made
///             on the host and copied to a device, with what lies between their tensors
///   busy_s    seconds of work
///   wait_s    seconds somebody stood waiting at this stage
struct stage_stats {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  double busy_s = 0;
  double wait_s = 0;
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
};

/// Who the others wait for.
enum class bottleneck : std::uint8_t { read, decode, transfer, consumer };

[[nodiscard]] constexpr std::string_view name(bottleneck who) noexcept {
  constexpr std::string_view names[] = {"read", "decode", "transfer", "consumer"};
  return names[static_cast<std::size_t>(who)];
}

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

  /// That samples were read by: their stored bytes, and the gaps (16 KiB at most) between those that one read serves.
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
  /// Of outputs whose rows differ in length (text, bytes), over collated batches: their bytes, and what padding each batch's rows to its
  /// longest would add to them. leat::bucketed() makes the second small.
  std::uint64_t ragged_bytes = 0;
  std::uint64_t ragged_padding_bytes = 0;
  expand_stats expand;
  std::uint64_t arena_bytes = 0;  ///< mapped in so far
  std::uint64_t scratch_bytes_peak = 0;

  stage_stats read, decode, collate, transfer, next;
  double digest_cpu_s = 0;
  double next_wait_p50_s = 0;
  double next_wait_p99_s = 0;

  // Now.
  std::uint64_t reads_in_flight = 0;
  std::uint64_t decode_queued = 0;
  std::uint64_t batches_ready = 0;  ///< next() has them at once; done before their turn does not count
  std::uint64_t batches_out = 0;    ///< held by the consumer

  reader_report reader;
  device_report device;
  leat::bottleneck slowest = leat::bottleneck::consumer;
};

}  // namespace leat
