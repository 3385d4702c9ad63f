// A batch on its way through the line, and the samples and reads it is made of. All of it exists before the first
// sample does and is used again and again.
#pragma once

#include "async/thread_pool.hpp"
#include "io/lease_pool.hpp"
#include "io/source.hpp"
#include "stages/batch_layout.hpp"
#include "stages/batch_state.hpp"
#include "stages/delivery.hpp"
#include "stages/field_model.hpp"
#include "stages/transfer.hpp"

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

class reader_stage;
struct work;
struct sample_slot;

/// What the stages report to the loader that ties them.
class line_events {
 public:
  /// All bytes of the sample are there, or it is known to be corrupt: it can be decoded.
  ///   loop   the number of the I/O thread that this is called on
  virtual void ready(sample_slot& slot, std::size_t loop) noexcept = 0;
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

/// One read: it serves one or more parts, of one sample or of several in rows that follow one another. The reads of a sample
/// share one lease: who took one after the other could wait for memory that another sample holds while it waits in turn.
struct read_slot final : io::read_operation {
  reader_stage* stage = nullptr;
  work* owner = nullptr;
  std::uint32_t source = 0;
  std::uint32_t holder = 0;  ///< the read, perhaps itself, that holds the lease
  /// Where in the batch's memory its bytes go, which are then the rows of an output; else they go to a lease.
  std::optional<std::size_t> straight_to;
  std::uint64_t lease_bytes = 0;               ///< that it takes, also row by row
  absl::InlinedVector<read_part, 4> parts;     ///< by row
  absl::InlinedVector<std::uint32_t, 2> rows;  ///< the samples that wait for it; the first one's has it started
  // On the thread of the loop that reads.
  static constexpr std::uint32_t not_in_flight = 0xFFFFFFFFU;
  std::uint32_t place_in_flight = not_in_flight;  ///< among the reads that its loop has
  // Where it failed for several samples and is tried again for each: the memory for those to come, since no two may share a
  // page of which one read may spoil the other's part. (The lease is made for that.)
  bool row_by_row = false;
  std::uint32_t rows_settled = 0;
  io::space left;
  // Of a holder.
  io::lease memory;                     ///< goes home after the last sample that its reads serve
  std::atomic<std::uint32_t> users{0};  ///< samples, once for each read, that still need the bytes
};

/// Bytes that a coroutine fetched for one field of one sample.
struct fetched_field {
  std::vector<std::byte> bytes;
  /// Nothing is stored in it: it stands for `bytes` in the budget. The sample's reads, or else its first fetched field,
  /// hold it for all.
  io::lease charge;
};

/// One row of the batch to be; also the job that decodes it.
struct sample_slot final : async::job {
  void run(async::worker_context& worker) noexcept override;  // stages/loader.cpp
  void drop() noexcept override {}

  work* owner = nullptr;
  std::uint32_t row = 0;
  std::uint64_t planned = 0;  ///< the sample that the sampler named
  std::uint64_t sample = 0;   ///< the one that lies in the row: another after a substitution
  std::uint32_t reads_missing = 0;
  bool read_into = false;                       ///< all of its reads go straight to its row, and nothing else fills it
  absl::InlinedVector<std::uint32_t, 2> reads;  ///< those that serve it, indices into work::reads
  std::deque<fetched_field> fetched;            ///< of fields whose bytes a coroutine gets

  bool over_budget = false;  ///< no corrupt sample, but one that ends the run; `reason` is the whole message
  bool corrupt = false;
  std::exception_ptr failure;             ///< what a function threw: neither, and ends the run in the batch's turn
  std::string reason;                     ///< of the latest candidate
  int read_failure = 0;                   ///< its errno, where it is a read that failed
  std::uint16_t field_at_fault = 0xFFFF;  ///< of the dataset; work::no_field where it is the whole sample, or unknown
  // Of the planned sample, for the journal; filled in when it turns out to be corrupt.
  bool quarantined = false;
  std::string planned_reason;
  int planned_read_failure = 0;
  std::string planned_name;
  std::string planned_source;
  std::optional<std::uint64_t> planned_offset;
  std::uint32_t substitutions = 0;  ///< tried so far

  std::string name;  ///< of `sample`, when names are wanted
  digest content;
  absl::InlinedVector<std::size_t, 2> ragged_offset;    ///< of each ragged output's row in its buffer, planned
  absl::InlinedVector<std::size_t, 2> ragged_capacity;  ///< of that row
  absl::InlinedVector<std::size_t, 2> ragged_bytes;     ///< used
};

/// Mixes a collated batch.
struct mix_job final : async::job {
  void run(async::worker_context& worker) noexcept override;  // stages/loader.cpp
  void drop() noexcept override {}

  work* owner = nullptr;
};

/// A batch on its way.
struct work {
  line_events* owner = nullptr;
  std::uint64_t sequence = 0;  ///< among all deliveries of the run
  std::uint32_t epoch = 0;
  std::uint64_t index = 0;
  std::uint32_t rows = 0;

  io::lease memory;
  std::vector<std::size_t> ragged_capacity;  ///< bytes of each ragged output's buffer
  std::vector<std::size_t> ragged_offset;    ///< of the buffer in the block
  std::deque<sample_slot> samples;           ///< a deque: jobs and operations never move
  std::deque<read_slot> reads;
  std::size_t reads_used = 0;
  static constexpr std::uint16_t no_field = 0xFFFF;
  std::vector<std::span<const std::byte>> encoded;  ///< [row * programs + program]
  std::vector<std::uint16_t> chosen;                ///< likewise: the dataset's field that serves the program
  std::vector<std::uint64_t> ids;
  std::atomic<std::uint32_t> samples_missing{0};
  delivery_item outgoing;
  mix_job mixing;
  struct sending_operation final : transfer_operation {
    work* owner = nullptr;
  } sending;

  /// A read to be filled in; the reads of the samples before it stay where they are.
  [[nodiscard]] std::uint32_t add_read() {
    if (reads_used == reads.size()) reads.emplace_back();
    return static_cast<std::uint32_t>(reads_used++);
  }
};

}  // namespace leat::stages
