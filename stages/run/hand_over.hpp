// The end of a batch in the line: from its last row to delivery, or why it cannot be delivered.
#pragma once

#include "async/histogram.hpp"
#include "async/posted_functions.hpp"
#include "async/scope.hpp"
#include "io/ring/io_threads.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/device/mix.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/run/batch_in_flight.hpp"
#include "stages/run/decode_stage.hpp"
#include "stages/run/delivery.hpp"
#include "stages/run/read.hpp"
#include "stages/run/run_flags.hpp"

#include <leat/loading.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace leat::stages {

class batch_table;

/// Looks at the samples that failed, collates, mixes, sends and delivers. Owns the mixer and the counters of what went through. Refers
/// to its arguments, which the loader keeps. Thread: the first I/O thread, except where said.
class hand_over {
 public:
  struct parts {
    const run_spec& run;
    const loader_options& options;
    const std::shared_ptr<stages::transfer>& transfer;
    stages::delivery& delivery;
    const run_flags& flags;
    io::io_threads& loops;
    async::posted_functions& posted;
    line_events& events;
    std::uint32_t decode_threads = 1;
  };
  struct counters {
    std::uint64_t collated = 0;        ///< batches
    std::uint64_t collated_bytes = 0;  ///< of blocks, whole; of slots less is copied
    std::uint64_t transferred = 0;     ///< batches
    std::uint64_t transferred_rows = 0;
    std::uint64_t transfer_ns = 0;
    std::uint64_t ragged_bytes = 0;
    std::uint64_t ragged_padding_bytes = 0;
    std::uint64_t dealt_batches = 0;  ///< whose rows are dealt to ranks by what they cost
    double slowest_rank_cost = 0;     ///< over the mean: the sum of these batches
  };

  /// To wake the consumer for each of several small batches takes as long as making them. No batch waits longer for those that come with it,
  /// if each takes as long as the one before.
  static constexpr std::uint64_t untold_ns_max = 20'000;

  explicit hand_over(const parts& given);
  hand_over(const hand_over&) = delete;
  hand_over& operator=(const hand_over&) = delete;
  ~hand_over() { posted_.assert_none(); }

  /// The line begins: substitutes are read by `reads`, in coroutines that `children` joins; batches that have ended go to `batches`.
  void begin(reader_stage& reads, decode_stage& rows, batch_table& batches, async::scope& children) noexcept;

  /// All rows of the batch are there, or known not to be.
  void rows_made(batch_in_flight& batch) noexcept;
  /// The same of several batches, whose consumer is woken once for those that can be handed out.
  void rows_made(std::span<batch_in_flight* const> batches) noexcept;
  /// A batch that nobody wants any more: its place in the order is left.
  void drop(batch_in_flight& batch);
  /// The run ends in the batch's turn; nothing of it is handed out.
  void end_run(batch_in_flight& batch, std::exception_ptr why, delivery_item item = {});
  /// A decode thread's jobs.
  void check_staleness(batch_in_flight& batch) noexcept;
  void finish(batch_in_flight& batch, std::size_t thread) noexcept;

  [[nodiscard]] counters count() const noexcept;
  /// What each batch has taken to be collated, and to be transferred.
  [[nodiscard]] async::histogram::summary collate_times() const noexcept { return collate_times_.summarize(); }
  [[nodiscard]] async::histogram::summary transfer_times() const noexcept { return transfer_times_.summarize(); }

 private:
  [[nodiscard]] datasets::staleness_check check_due(const batch_in_flight& batch);
  void settle(batch_in_flight& batch);
  boost::asio::awaitable<void> read_substitutes(batch_in_flight& batch);
  boost::asio::awaitable<void> read_lacking(batch_in_flight& batch);
  /// In what is handed over.
  void note_quarantined(batch_in_flight& batch);
  void collate_and_send(batch_in_flight& batch);
  void fail(batch_in_flight& batch, errc kind, const std::string& reason);
  void send(batch_in_flight& batch) noexcept;
  void pass(batch_in_flight& batch, delivery_item item) noexcept;
  void give_to_transfer(batch_in_flight& batch) noexcept;
  void judge_staleness(batch_in_flight& batch) noexcept;
  void finished(batch_in_flight& batch) noexcept;
  static void sent(transfer_operation& operation) noexcept;
  void count_transfer(const batch_in_flight& batch) noexcept;
  [[nodiscard]] static journal_entry describe(const batch_in_flight& batch, const sample_in_flight& sample,
                                              std::string_view action);

  const run_spec& run_;
  const loader_options& options_;
  const std::shared_ptr<stages::transfer>& transfer_;
  stages::delivery& delivery_;
  const run_flags& flags_;
  io::io_threads& loops_;
  async::posted_functions& posted_;
  line_events& events_;
  mixer mixer_;
  const bool finishes_;  // some program does
  reader_stage* reads_ = nullptr;
  decode_stage* rows_ = nullptr;
  batch_table* batches_ = nullptr;
  async::scope* children_ = nullptr;
  bool tells_later_ = false;  // the consumer is told by rows_made(), not by sent(). Used on the first I/O thread only
  std::atomic<std::uint64_t> collated_{0};
  std::atomic<std::uint64_t> collated_bytes_{0};
  std::atomic<std::uint64_t> transferred_{0};
  std::atomic<std::uint64_t> transferred_rows_{0};
  std::atomic<std::uint64_t> transfer_ended_ns_{0};  // of the last one
  std::atomic<std::uint64_t> checked_at_ns_{0};
  async::histogram collate_times_;
  async::histogram transfer_times_;
  std::atomic<std::uint64_t> ragged_bytes_{0};
  std::atomic<std::uint64_t> ragged_padding_bytes_{0};
  std::atomic<std::uint64_t> dealt_batches_{0};
  std::atomic<double> slowest_rank_cost_{0};
};

}  // namespace leat::stages
