// The coroutine of a line: starts batch after batch, as many ahead of the consumer as there is memory for.
#pragma once

#include "async/scope.hpp"
#include "io/arena/lease_pool.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/observe/occupancy.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/run/batch_table.hpp"
#include "stages/run/delivery.hpp"
#include "stages/run/hand_over.hpp"
#include "stages/run/read.hpp"
#include "stages/run/readahead.hpp"
#include "stages/run/resumption.hpp"
#include "stages/run/run_flags.hpp"

#include <leat/loading.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <cstdint>
#include <future>
#include <vector>

namespace leat::stages {

/// Owns the order in which batches are started. Refers to its arguments, which the loader keeps. Thread: the first I/O thread,
/// unless a function says otherwise.
class prefetch {
 public:
  struct parts {
    const run_spec& run;
    const loader_options& options;
    const span_of_run& span;
    const memory_plan& memory;
    const run_flags& flags;
    io::lease_pool& batch_pool;
    stages::transfer& transfer;
    stages::delivery& delivery;
    reader_stage& reads;
    decode_stage& rows;
    hand_over& ending;
    batch_table& batches;
    line_events& events;
    timeline_track* seen;  ///< of the first I/O thread
  };
  explicit prefetch(const parts& given)
      : line_(given), ahead_(given.run, given.reads, given.transfer, given.options.epochs, given.span.batches) {}

  /// Runs on `first`, the first I/O thread, until the last batch was handed over, or one ends the run. What breaks it is told to
  /// the events: error{errc::usage} for an order that cannot be, and whatever breaks a line. Thread: any; once.
  void start(const boost::asio::any_io_executor& first);
  void cancel() { stop_signal_.emit(boost::asio::cancellation_type::all); }
  /// Until it has ended. Thread: any other.
  void wait() const { finished_.wait(); }
  /// How long the next batch has waited for another one to end, or for its memory, in all. Thread: any.
  [[nodiscard]] std::uint64_t waited_ns(std::uint64_t now_ns) const noexcept { return waiting_.stays_ns(now_ns); }

 private:
  boost::asio::awaitable<void> run();
  boost::asio::awaitable<void> run_in(async::scope& children);
  [[nodiscard]] boost::asio::awaitable<bool> start(batch_in_flight& batch, async::scope& children);
  [[nodiscard]] bool choose_rows(batch_in_flight& batch);
  [[nodiscard]] bool try_lease_memory(batch_in_flight& batch);
  [[nodiscard]] boost::asio::awaitable<void> lease_memory(batch_in_flight& batch);
  /// Of each batch.
  [[nodiscard]] std::size_t batch_bytes() const noexcept { return line_.memory.batch_bytes / line_.memory.batches; }
  void find_held(batch_in_flight& batch);
  void plan_rows(batch_in_flight& batch, std::uint32_t first, std::uint32_t end);

  const parts line_;
  readahead ahead_;
  occupancy waiting_;           // 0 or 1
  std::uint64_t sequence_ = 0;  // of deliveries: batches and ends of epochs
  std::uint64_t sent_ = 0;      // batches: the number of the next one at the transfer
  std::vector<const held_row*> held_;
  bool cache_was_full_ = false;
  boost::asio::cancellation_signal stop_signal_;
  std::future<void> finished_;
};

}  // namespace leat::stages
