// A batch in flight: its plan, and beside it its samples, reads, leases and counters. The objects are made before the first
// batch and reused by later ones.
#pragma once

#include "async/thread_pool.hpp"
#include "base/clock.hpp"
#include "base/corrupt_kind.hpp"
#include "datasets/model/model.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/reader/source_set.hpp"
#include "stages/batch/batch_plan.hpp"
#include "stages/batch/batch_state.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/device/device_cache.hpp"
#include "stages/observe/read_record.hpp"
#include "stages/observe/timeline.hpp"
#include "stages/run/delivery.hpp"

#include <leat/sampler.hpp>

#include <absl/container/inlined_vector.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

class hand_over;
class reader_stage;
class decode_stage;
struct batch_in_flight;
struct block_in_flight;
struct sample_in_flight;
struct shared_block;

/// Events that the stages report to the loader.
class line_events {
 public:
  /// All bytes of `rows` samples have been read, or they are known to be corrupt: decoding may begin.
  ///   first   of them; the others are in the rows behind it, and all of them need one read, the same
  ///   loop    the number of the I/O thread that this is called on
  virtual void ready(sample_in_flight& first, std::uint32_t rows, std::size_t loop) noexcept = 0;
  /// A block's bytes have been read, or it has none: it may be expanded. reader_stage::settle_block() follows, on the loop of its batch.
  ///   loop   that of the batch
  virtual void ready(block_in_flight& block, std::size_t loop) noexcept = 0;
  /// The environment failed: the run is over. Thread: any.
  virtual void broken(std::exception_ptr why) noexcept = 0;

 protected:
  ~line_events() = default;
};

/// Part of a read: one field's encoded bytes of one sample.
struct read_part {
  std::uint32_t row = 0;
  std::uint16_t program = 0;
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t bytes = 0;
};

/// One read in flight. All reads of a sample share one lease.
struct read_in_flight final : io::set_read {
  /// Becomes a read that was planned for `batch`.
  ///   holder   number of the read that holds the lease
  void begin(batch_in_flight& batch, const batch_plan::read& planned, std::uint32_t holder);

  [[nodiscard]] std::uint32_t end_row() const noexcept { return first_row + rows; }

  reader_stage* stage = nullptr;
  batch_in_flight* owner = nullptr;
  std::uint32_t holder = 0;                  ///< the read, perhaps this one, that holds the lease
  std::optional<std::size_t> direct_to_row;  ///< as planned
  std::uint64_t lease_bytes = 0;             ///< as planned
  std::optional<std::uint32_t> inside;       ///< likewise, but the number of the read in flight
  std::uint32_t first_row = 0;               ///< of the samples that wait for it; it is started with the first of them
  std::uint32_t rows = 0;
  absl::InlinedVector<read_part, 2> parts;  ///< by row
  // Used by the thread of the loop that reads.
  // After a read for several samples failed, it is repeated for each row: `left` is the memory for the rows to come. No two repeated
  // reads share a page, since a failed one may overwrite all of its pages. (The lease is large enough for that.)
  bool row_by_row = false;
  std::uint32_t rows_settled = 0;
  io::read_target left;
  std::atomic<std::uint32_t> rows_left{0};  ///< not yet released; at 0 the object may be reused
  // Of the read that holds the lease.
  io::lease memory;                     ///< returned after the last sample that the reads sharing it serve
  std::atomic<std::uint32_t> users{0};  ///< samples, once for each read, that still need the bytes
};

/// What is wrong with a value out of a block: sample_in_flight has it when the block is settled, on the loop of the batch.
struct block_fault {
  std::uint32_t row = 0;
  std::string reason;
  corrupt_kind kind = {};
  std::uint64_t bytes_needed = 0;
  bool out_of_memory = false;
  std::exception_ptr failure;  ///< thrown by a user's function
};

/// A block in flight: it is read, expanded by a job, and its boxes are copied to the rows that wait for it. It holds a lease for as long
/// as that takes, and waits for nothing else meanwhile, so that blocks of later rows and later batches always come to their turn.
struct block_in_flight final : io::set_read, async::job {
  struct use {
    std::uint32_t row = 0;
    std::uint16_t program = 0;
  };

  void begin(batch_in_flight& batch, const batch_plan::block& planned);
  void run(async::worker_context& worker) noexcept override;  // stages/run/decode_stage.cpp
  void drop() noexcept override {}

  /// As dataset_model::expand() is asked.
  [[nodiscard]] datasets::part part() const noexcept;
  /// Whether it is expanded to the row that is its first use, without memory of its own.
  [[nodiscard]] bool to_row() const noexcept { return of.whole_row; }

  reader_stage* stage = nullptr;
  batch_in_flight* owner = nullptr;
  std::size_t batch_loop = 0;  ///< that its batch's reads belong to
  batch_plan::block of;
  absl::InlinedVector<use, 2> uses;  ///< row by row
  io::lease memory;                  ///< for the stored bytes and, behind them, the expanded ones
  std::span<std::byte> decoded;      ///< in the lease; empty where it goes to a row
  bool damaged = false;
  std::string reason;               ///< why, where it is
  corrupt_kind kind;                ///< likewise
  std::vector<block_fault> faults;  ///< of single rows that were made of it
  bool unreadable = false;          ///< the fault is a file's: io::fault
  std::uint64_t posted_ns = 0;
  /// Where batches share it (stages/run/chunk_cache.hpp): then its memory and what it becomes are there, and one of them expands it.
  std::shared_ptr<shared_block> shared;
  bool expands_shared = false;
};

/// Of a row's blocks.
///   first, count   those that are asked for with it, in batch_in_flight::blocks
///   programs       whose bytes of the row come out of blocks
///   staged         of one of these they are put together first, and something else is made of them
struct blocks_of_row {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint16_t programs = 0;
  bool staged = false;
};

/// Bytes that a coroutine fetched for one field of one sample.
struct fetched_field {
  std::vector<std::byte> bytes;
  /// Counts `bytes` against the budget; nothing is stored in its memory. One lease covers all fetched fields of the sample: the
  /// reads' lease, or else that of the first fetched field.
  io::lease charge;
};

/// What is wrong with a sample. Allocated only for the few that have something wrong.
struct sample_trouble {
  std::exception_ptr failure;      ///< thrown by a user's function: ends the run when the batch's turn comes
  std::string reason;              ///< of the latest candidate
  corrupt_kind kind;               ///< likewise
  std::uint64_t bytes_needed = 0;  ///< of memory, where that is more than the budget has
  int read_failure = 0;            ///< its errno, where it is a read that failed
  bool unreadable = false;         ///< and the fault is a file's: io::fault
  /// Of the dataset; no_field where it is the whole sample, or unknown.
  std::uint16_t field_at_fault = batch_plan::no_field;
  bool out_of_memory = false;      ///< not corrupt, but ends the run; the reason is the whole message
  std::optional<pick> substitute;  ///< what lies in the row instead of what was planned
  // Of the planned sample, for the journal; filled in when it turns out to be corrupt.
  bool quarantined = false;
  std::string planned_reason;
  corrupt_kind planned_kind;
  std::uint64_t planned_bytes_needed = 0;
  std::uint16_t planned_field_at_fault = batch_plan::no_field;
  int planned_read_failure = 0;
  bool planned_unreadable = false;
  std::string planned_name;
  std::string planned_source;
  std::optional<std::uint64_t> planned_offset;
  std::uint32_t substitutions = 0;  ///< tried so far
};

/// One row of a batch in flight, and the job that decodes it. There is one for each such row, so it is kept small: what few rows
/// or few batches need is allocated apart.
struct sample_in_flight final : async::job {
  void run(async::worker_context& worker) noexcept override;  // stages/run/decode_stage.cpp
  void drop() noexcept override {}

  [[nodiscard]] sample_trouble& in_trouble() {
    if (trouble == nullptr) trouble = std::make_unique<sample_trouble>();
    return *trouble;
  }
  [[nodiscard]] bool quarantined() const noexcept { return trouble != nullptr && trouble->quarantined; }
  /// One read, and nothing else.
  [[nodiscard]] inline bool needs_one_read() const noexcept;
  /// The device has its row, or its packs: nothing is read. Null: it has not.
  [[nodiscard]] inline const held_row* held() const noexcept;
  [[nodiscard]] bool out_of_memory() const noexcept { return trouble != nullptr && trouble->out_of_memory; }
  [[nodiscard]] bool threw() const noexcept { return trouble != nullptr && trouble->failure != nullptr; }
  /// The pick that the sampler gave; and the pick that lies in the row, another one after a substitution.
  [[nodiscard]] inline const leat::pick& planned() const noexcept;
  [[nodiscard]] const leat::pick& pick() const noexcept {
    return trouble != nullptr && trouble->substitute ? *trouble->substitute : planned();
  }

  /// Nothing is read for it yet.
  void begin_reads() {
    corrupt = false;
    reads.clear();
    fetched.reset();
    reads_missing.store(0, std::memory_order_relaxed);
    read_into = false;
  }

  /// Before any of it has begun.
  void wait_for_one_more() noexcept {
    const auto now = reads_missing.load(std::memory_order_relaxed);
    reads_missing.store(static_cast<std::uint16_t>(now + 1), std::memory_order_relaxed);
  }

  batch_in_flight* owner = nullptr;
  std::uint32_t row = 0;
  /// Reads, fetches and blocks that it waits for; of a sample with blocks, and where fields are awaited, one more until
  /// reader_stage::issue() has come to its row, since another row may have asked for all of its blocks or reads before.
  std::atomic<std::uint16_t> reads_missing{0};
  bool read_into = false;  ///< all of its bytes are put into its row by reads and blocks
  bool corrupt = false;
  absl::InlinedVector<std::uint32_t, 2> reads;  ///< the reads that serve it, as indices into batch_in_flight::reads
  std::unique_ptr<fetched_field[]> fetched;     ///< fields whose bytes a coroutine fetched
  std::unique_ptr<sample_trouble> trouble;
};

/// Makes what is made of a collated batch as a whole, and mixes it.
struct finish_job final : async::job {
  void run(async::worker_context& worker) noexcept override;  // stages/run/hand_over.cpp
  void drop() noexcept override {}

  batch_in_flight* owner = nullptr;
  std::exception_ptr failure;
};

/// Asks the dataset whether it is still what was opened, since that may wait for a disk.
struct staleness_job final : async::job {
  void run(async::worker_context& worker) noexcept override;  // stages/run/hand_over.cpp
  void drop() noexcept override {}

  batch_in_flight* owner = nullptr;
  datasets::staleness_check at = datasets::staleness_check::none;
  std::optional<std::string> changed;  ///< what it found
};

/// The reads of a batch, by number. Other threads may look a read up while the planner adds more: neither the reads nor the table
/// that finds them moves. (The table of a std::deque does.)
class reads_in_flight {
 public:
  static constexpr std::size_t block_reads = 8;

  /// Makes room in the table. Not while another thread looks a read up.
  void reserve(std::size_t reads) {
    const std::size_t blocks = (reads + block_reads - 1) / block_reads;
    if (blocks > blocks_.size()) blocks_.resize(blocks);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Beyond the reserved room: not while another thread looks a read up.
  void emplace_back() {
    reserve(size_ + 1);
    if (size_ % block_reads == 0) blocks_[size_ / block_reads] = std::make_unique<read_in_flight[]>(block_reads);
    ++size_;
  }
  [[nodiscard]] read_in_flight& operator[](std::size_t number) noexcept {
    return blocks_[number / block_reads][number % block_reads];
  }
  [[nodiscard]] const read_in_flight& operator[](std::size_t number) const noexcept {
    return blocks_[number / block_reads][number % block_reads];
  }

 private:
  std::vector<std::unique_ptr<read_in_flight[]>> blocks_;
  std::size_t size_ = 0;
};

/// What is recorded of a batch while it is made, as recorded_batch has it.
struct recorded_work {
  /// The next batch begins.
  void begin() noexcept {
    for (auto* const each : {&decode_ns, &decode_us2, &expand_ns, &timed, &decoded}) {
      each->store(0, std::memory_order_relaxed);
    }
    begun_ns = now_ns();
  }
  /// A row took so long.
  void took(std::uint64_t ns) noexcept {
    const std::uint64_t us = (ns + 500) / 1000;
    decode_ns.fetch_add(ns, std::memory_order_relaxed);
    decode_us2.fetch_add(us * us, std::memory_order_relaxed);
    timed.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint64_t begun_ns = 0;
  std::uint64_t made_ns = 0;
  std::atomic<std::uint64_t> decode_ns{0}, decode_us2{0}, expand_ns{0}, timed{0}, decoded{0};
};

/// A batch in flight: its plan, its leases and its counters.
struct batch_in_flight {
  /// Nothing of the batch before is left; the plan has begun (planner::begin()).
  void begin();
  /// The reads of rows [first, end), which were planned, are taken out of the plan and become reads in flight; the samples of these rows wait
  /// for them.
  void take_rows(std::uint32_t first, std::uint32_t end);
  /// The same for one row that was planned anew, for another sample.
  void take_substitute(std::uint32_t row, const pick& substitute);
  /// The same for one row that the device was to have, whose bytes are read after all.
  void take_again(std::uint32_t row);

  [[nodiscard]] std::uint32_t rows() const noexcept { return plan.rows(); }
  [[nodiscard]] std::span<const batch_plan::ragged_row> ragged_of(std::uint32_t row) const noexcept {
    return std::span(plan.ragged).subspan(row * plan.buffers.size(), plan.buffers.size());
  }
  /// Bytes that the rows of the ragged outputs have, once they are decoded.
  [[nodiscard]] std::span<std::size_t> ragged_used(std::uint32_t row) noexcept {
    return std::span(ragged_bytes).subspan(row * plan.buffers.size(), plan.buffers.size());
  }
  [[nodiscard]] std::span<const std::size_t> ragged_used(std::uint32_t row) const noexcept {
    return std::span(ragged_bytes).subspan(row * plan.buffers.size(), plan.buffers.size());
  }

  /// Notes what is done for the batch, on its own track or on a thread's; a null one notes nothing.
  void note(timeline_track* where, activity of, std::uint64_t begin_ns, std::uint64_t end_ns,
            std::uint32_t row = timeline_span::no_row) const noexcept {
    if (where == nullptr) return;
    where->add(
        {.of = of, .begin_ns = begin_ns, .end_ns = end_ns, .epoch = plan.epoch, .batch = plan.index, .row = row});
  }
  void note(activity of, std::uint64_t begin_ns, std::uint64_t end_ns) const noexcept {
    note(track, of, begin_ns, end_ns);
  }

  [[nodiscard]] blocks_of_row blocks_of(std::uint32_t row) const noexcept {
    return row_blocks.empty() ? blocks_of_row() : row_blocks[row];
  }

  decode_stage* rows_by = nullptr;
  hand_over* ended_by = nullptr;
  timeline_track* track = nullptr;  ///< of the batches that this is, one after the other; null without a timeline
  std::uint64_t rows_since_ns = 0;  ///< when its rows were planned, or some of them anew
  read_recorder* record = nullptr;  ///< null: nothing is recorded
  recorded_work recorded;
  std::uint64_t sequence = 0;  ///< among all deliveries of the run
  std::size_t loop = 0;        ///< that reads it, and whose thread alone counts what its samples wait for
  batch_plan plan;

  io::lease memory;
  std::deque<sample_in_flight> samples;  ///< a deque: jobs and operations never move
  reads_in_flight reads;
  std::size_t reads_used = 0;
  std::atomic<std::uint32_t> reads_idle{0};  ///< of those: all their samples are done, so they may be reused
  std::size_t next_read = 0;                 ///< where the search for a read to reuse goes on
  std::deque<block_in_flight> blocks;        ///< a deque: jobs and operations never move
  std::size_t blocks_used = 0;
  std::vector<blocks_of_row> row_blocks;            ///< of each row; empty where none may have any
  std::vector<std::span<const std::byte>> encoded;  ///< [row * programs + program]
  std::vector<std::size_t> ragged_bytes;            ///< [row * ragged outputs + output]
  std::vector<std::string> names;                   ///< of the rows' samples, when names are wanted
  std::vector<digest> row_digests;                  ///< when digests are
  std::vector<receipt_row> receipts;                ///< when receipts are
  std::vector<picture_geometry> geometries;         ///< [row * pictures + picture]
  std::atomic<std::uint32_t> samples_missing{0};
  delivery_item outgoing;
  finish_job finishing;
  staleness_job staleness;
  struct sending_operation final : transfer_operation {
    batch_in_flight* owner = nullptr;
  } sending;
  /// Of a row, what the device has of it. Not in the samples, which loaders without a cache have, too.
  ///   lacks_bytes   it has to be read after all
  struct row_of_device {
    const held_row* held = nullptr;
    bool lacks_bytes = false;
  };
  std::vector<row_of_device> on_device;  ///< [rows]; empty: there is no cache
  batch_for_cache for_cache;
  std::uint64_t sent_ns = 0;  ///< when it was given to the transfer

 private:
  void begin_again(std::uint32_t row);
  void take_reads();
  void take_blocks();
  [[nodiscard]] std::uint32_t add_read();

  std::vector<std::uint32_t> number_of_;  // of the plan's reads, while they are taken
};

inline const pick& sample_in_flight::planned() const noexcept { return owner->plan.picks[row]; }
inline const held_row* sample_in_flight::held() const noexcept {
  return owner->on_device.empty() ? nullptr : owner->on_device[row].held;
}
inline bool sample_in_flight::needs_one_read() const noexcept {
  return reads.size() == 1 && fetched == nullptr && owner->row_blocks.empty();
}

/// Of one row: a value may be read in two (datasets::reads_of_value_max()).
inline constexpr std::size_t reads_of_program_max = 2;

/// The most memory that a batch in flight takes besides its tensors.
///   rows     of the largest batch
///   reads    of it that are there at the same time
///   planned  reads that are planned at once
///   blocks   of it
struct bookkeeping {
  std::size_t rows = 0;
  std::size_t reads = 0;
  std::size_t planned = 0;
  std::size_t programs = 0;
  std::size_t ragged = 0;
  std::size_t blocks = 0;
  std::size_t pictures = 0;
  bool digests = false;
  bool names = false;
  bool receipts = false;
  bool packed = false;

  [[nodiscard]] std::size_t row_bytes() const noexcept {
    constexpr std::size_t name_bytes = 64;
    // Names, digests, receipts and geometries exist twice: in the line, and in the batch that was handed out.
    return sizeof(sample_in_flight) +
           programs * (sizeof(std::span<const std::byte>) + sizeof(std::uint16_t) + sizeof(row_step)) + sizeof(pick) +
           sizeof(std::uint64_t) + reads_of_program_max * programs * sizeof(void*) / reads_in_flight::block_reads +
           ragged * (sizeof(batch_plan::ragged_row) + sizeof(std::size_t)) + 2 * pictures * sizeof(picture_geometry) +
           (digests ? 2 * sizeof(digest) : 0) + (receipts ? 2 * sizeof(receipt_row) : 0) +
           (names ? 2 * (sizeof(std::string) + name_bytes) : 0) +
           (packed ? sizeof(packed_piece) + sizeof(placed_piece) : 0);
  }
  [[nodiscard]] static std::size_t read_bytes() noexcept {
    constexpr std::size_t allocation_bytes = 32;  // Each is an allocation of its own.
    constexpr std::size_t parts_bytes = 4 * sizeof(read_part);
    return sizeof(read_in_flight) + allocation_bytes + parts_bytes;
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    constexpr std::size_t block = reads_in_flight::block_reads;
    return rows * row_bytes() + (reads + block - 1) / block * block * read_bytes() +
           blocks * (sizeof(block_in_flight) + sizeof(blocks_of_row) + sizeof(batch_plan::block) +
                     sizeof(batch_plan::block_use)) +
           planned * (sizeof(batch_plan::read) + sizeof(batch_plan::part) + sizeof(std::uint32_t));
  }
};

}  // namespace leat::stages
