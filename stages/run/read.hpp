// The read stage: leases in the order of the plan, requests to the sources in bunches, and samples that are complete
// handed on to the decoders.
#pragma once

#include "async/histogram.hpp"
#include "async/scope.hpp"
#include "datasets/model/model.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/reader/source_set.hpp"
#include "io/remote/networked.hpp"
#include "stages/batch/field_model.hpp"
#include "stages/plan/cache_use.hpp"
#include "stages/run/batch_in_flight.hpp"
#include "stages/run/chunk_cache.hpp"
#include "stages/run/loop_schedule.hpp"

#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace leat::stages {

namespace asio = boost::asio;

/// Refers to its arguments, which the loader keeps. Thread: the first loop's, except where said.
class reader_stage {
 public:
  struct counters {
    std::uint64_t reads = 0;
    std::uint64_t bytes = 0;  ///< that the sources gave, without what alignment adds
    std::uint64_t in_flight = 0;
  };

  ///   kept_bytes     of the pool, for expanded blocks that later batches may want
  ///   source_bytes   beside the pool, for all sources (io::source_memory); each gets its least and its share of the rest
  ///   cache          of the sources
  struct memory {
    std::size_t kept_bytes = 0;
    std::size_t source_bytes = 0;
    pools_in_cache cache = {};
  };

  /// Connects the dataset's sources to each of the loops.
  ///   pool   whose leases come without their memory (in_pieces)
  ///   seen   reads are noted there
  reader_stage(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
               std::span<io::connector* const> loops, io::lease_pool& pool, const memory& allowed, line_events& events,
               const timeline& seen);

  /// Opens the first file of every source, and waits. Throws error{errc::unsupported} where O_DIRECT was insisted on and a file has
  /// none; other errors of a file are reported when it is read. Thread: any but a loop's.
  void check_first_files();

  /// Asks for the reads of these rows, in order, waiting for leases as they come. Does not wait for the reads. Rows
  /// that read nothing are ready at once.
  ///   fetches   joins the coroutines of fields that are awaited
  asio::awaitable<void> issue(batch_in_flight& batch, std::span<const std::uint32_t> rows, async::scope& fetches);

  /// The loop that reads the next batch: batch_in_flight::loop. Where coroutines fetch parts of a sample it is always the first, since
  /// the count of a sample's missing parts is changed on one thread only.
  [[nodiscard]] std::size_t take_loop(std::uint64_t sequence) { return schedule_.take(sequence); }
  /// How many loops take part: 1 to loops_max(), from the next batch on of which nothing was said. Thread: any.
  void set_loops(std::size_t loops) noexcept { schedule_.set_in_use(loops); }
  [[nodiscard]] std::size_t loops() const noexcept { return schedule_.in_use(); }
  [[nodiscard]] std::size_t loops_max() const noexcept { return schedule_.loops(); }

  /// Connections of each loop to the stores of a source that is networked; 0: none is.
  [[nodiscard]] std::uint32_t connections_max() const noexcept;
  /// 1 to connections_max(), for all of them; one that has memory for fewer works with all that it has. Thread: any.
  void set_connections(std::uint32_t connections);

  /// How far ahead of the reads somebody is to say what they will ask for; 0: nobody need.
  [[nodiscard]] std::uint64_t ahead_bytes() const noexcept { return ahead_bytes_; }
  /// Tells the sources what the reads of a batch will ask for, as long as it has not been issued.
  ///   sequence   of the batch
  void hint(std::uint64_t sequence, std::span<const extent> ahead);

  /// The block's boxes lie in their rows, or it is damaged: the rows that waited for it go on. Thread: the loop's that reads the batch.
  void settle_block(block_in_flight& block) noexcept;

  /// The bytes of the sample are no longer needed, and those of other rows of the same read.
  ///   rows   how many they are in all
  /// Thread: any.
  static void release(sample_in_flight& sample, std::uint32_t rows = 1) noexcept;

  /// Cancels all reads in flight and all that are started later; each read still completes.
  void cancel() { sources_.cancel(); }

  /// Waits until no read is in flight. Thread: any but a loop's.
  void drain() noexcept { sources_.drain(); }

  [[nodiscard]] counters count() const noexcept;
  /// Adds what each read has taken, from its start to its end, of sources that loops do not read.
  void add_to(async::histogram_sum& sum) const noexcept {
    for (const async::histogram& of_loop : flight_times_) sum.add(of_loop);
  }

  /// The reads that a source has at this moment, the oldest first, each as "file at offset n". Asks each loop. Thread:
  /// any but a loop's.
  [[nodiscard]] std::vector<std::string> under_way() { return sources_.under_way(); }

 private:
  /// Says which blocks these rows will ask for.
  void expect_blocks(batch_in_flight& batch, std::span<const std::uint32_t> rows);
  /// A lease that is to be had now, perhaps for blocks that are kept.
  [[nodiscard]] std::optional<io::lease> try_lease(std::size_t bytes);
  asio::awaitable<io::lease> wait_for_memory(std::size_t bytes, std::optional<io::lease> memory);
  void place_reads(batch_in_flight& batch, sample_in_flight& sample, io::lease memory,
                   std::vector<io::read_operation*>& operations);
  void start(batch_in_flight& batch, std::vector<io::read_operation*>& operations);
  void finished(read_in_flight& read) noexcept;
  [[nodiscard]] bool read_row_by_row(read_in_flight& read) noexcept;
  void settle(read_in_flight& read, std::uint32_t rows) noexcept;
  void start_block(batch_in_flight& batch, block_in_flight& block, io::lease memory,
                   std::vector<io::read_operation*>& operations);
  void finished(block_in_flight& block) noexcept;
  ///   is_leased   it took memory of the read buffers
  void count(io::set_read& ended, const batch_in_flight& batch, bool is_leased) noexcept;
  /// Notes a read that was done just now on the loop's track.
  void note(const io::set_read& ended, const batch_in_flight& batch, std::uint64_t end_ns) noexcept;
  /// A field of a sample that a coroutine fetches, with those of its group.
  struct fetch_wanted {
    std::uint16_t field = 0;
    std::uint16_t group = 0;
    fetched_field* into = nullptr;
  };
  void start_fetches(batch_in_flight& batch, sample_in_flight& sample, std::span<const fetch_wanted> wanted,
                     async::scope& fetches);
  asio::awaitable<void> fetch(batch_in_flight& batch, sample_in_flight& sample, std::vector<fetch_wanted> wanted);

  const datasets::dataset_model& dataset_;
  std::span<const std::unique_ptr<field_program>> programs_;
  /// Its lists of reads are the loops' own: those of the batches belong to the first loop, which may reuse a batch at any time.
  io::source_set sources_;
  std::vector<io::networked*> networked_;  // [loop * sources + source]; null: it is not
  io::lease_pool& pool_;
  chunk_cache kept_;
  std::vector<const batch_plan::block*> next_blocks_;  // of the rows that are being issued
  line_events& events_;
  std::vector<read_track*> tracks_;  // by loop; null: nothing is noted
  const bool awaits_;                // some program's bytes may come from a coroutine
  loop_schedule schedule_;
  std::uint64_t ahead_bytes_ = 0;
  std::vector<std::uint64_t> ahead_bytes_of_;  // by source
  std::atomic<std::uint64_t> reads_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::vector<bool> timed_here_;               // by source: the loop does not
  std::vector<std::uint32_t> first_file_;      // by source: in a record files are counted through all of them
  std::deque<async::histogram> flight_times_;  // by loop, whose thread records
};

}  // namespace leat::stages
