// The rows of samples that have been read: made by the thread that the policy says, and counted until their batch has all.
#pragma once

#include "async/posted_functions.hpp"
#include "async/thread_pool.hpp"
#include "base/relaxed_counter.hpp"
#include "io/ring/io_threads.hpp"
#include "stages/run/batch_in_flight.hpp"
#include "stages/run/decode.hpp"
#include "stages/run/expand.hpp"
#include "stages/run/row_placement.hpp"
#include "stages/run/run_flags.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace leat::stages {

/// Owns the decode threads and the decoder. Refers to its arguments, which the loader keeps.
class decode_stage {
 public:
  struct counters {
    std::uint64_t read = 0;     ///< samples that have all that they read
    std::uint64_t held = 0;     ///< of these, those that the device has
    std::uint64_t samples = 0;  ///< whose rows are made
    async::thread_pool::counters pool;
    std::uint64_t on_loop_ns = 0;  ///< of I/O threads that make rows
    std::uint64_t bytes_copied = 0;
    std::uint64_t digest_ns = 0;
    expand_stats expanded;
  };

  ///   threads   decode threads
  ///   cores     that these run on; null: those of the calling thread
  ///   throws    std::system_error where the system gives no more threads
  decode_stage(const datasets::dataset_model& dataset, std::span<const std::unique_ptr<field_program>> programs,
               const batch_layout& layout, const decode_settings& settings, pixels::scratch_budget& budget,
               std::uint32_t threads, core_binding* cores, io::io_threads& loops, async::posted_functions& posted,
               const run_flags& flags, const timeline& seen);
  decode_stage(const decode_stage&) = delete;
  decode_stage& operator=(const decode_stage&) = delete;
  ~decode_stage() { posted_.assert_none(); }

  /// line_events::ready(). The rows are made soon, with others that become ready in this turn of the loop. Thread: that of the I/O thread
  /// `loop`.
  void ready(sample_in_flight& first, std::uint32_t rows, std::size_t loop) noexcept;
  /// The block has been read, if it had to be: it becomes a job. Thread: that of the I/O thread `loop`.
  void ready(block_in_flight& block, std::size_t loop) noexcept;
  /// A decode thread's job: one sample, or one block.
  void decode(sample_in_flight& sample, std::size_t thread) noexcept;
  void expand(block_in_flight& block, std::size_t thread) noexcept;
  /// Another job for the decode threads. Thread: any.
  void post(async::job& job) noexcept { decoders_.post(job); }

  /// How many of the decode threads take jobs from now on, at least 1. Thread: any.
  void set_decode_threads(std::uint32_t threads) noexcept { decoders_.set_active(threads); }

  /// Joins the decode threads; jobs that have not begun are dropped. Thread: any but theirs and the loops'.
  void stop() noexcept { decoders_.stop(async::thread_pool::stop_mode::drop); }

  [[nodiscard]] counters count() const noexcept;
  /// The decode threads: how many take jobs, what each has done, and what each job has taken.
  [[nodiscard]] std::uint32_t decode_threads() const noexcept {
    return static_cast<std::uint32_t>(decoders_.active_count());
  }
  [[nodiscard]] std::vector<async::thread_pool::thread_counters> count_threads() const {
    return decoders_.count_threads();
  }
  void add_to(async::histogram_sum& sum) const noexcept { decoders_.add_to(sum); }

 private:
  // Rows of one read, or one row.
  struct ready_rows {
    batch_in_flight* batch = nullptr;
    std::uint32_t first = 0;
    std::uint32_t end = 0;
  };

  // Samples that became ready in this turn of a loop: posted to the decode threads together, or made on that loop.
  struct alignas(64) turn_of_loop {
    async::job_list jobs;
    std::vector<ready_rows> on_loop;
    std::vector<batch_in_flight*> made;  // their last row was, in this turn; not handed over yet
    bool posted = false;
    std::size_t loop = 0;
    timeline_track* track = nullptr;
    relaxed_counter read;        // samples that became ready
    relaxed_counter held;        // of these
    relaxed_counter on_loop_ns;  // making rows
  };

  // Of a decode thread.
  struct alignas(64) thread_track {
    timeline_track* track = nullptr;
    span_sampler rows;
    sample_sampler samples;
  };

  void make_ready(turn_of_loop& turn) noexcept;
  void make_on_loop(const ready_rows& rows, turn_of_loop& turn) noexcept;
  /// The end of a sample's work, and of others of the same read, on the thread that made their rows.
  ///   rows      how many they are
  ///   returns   whether the batch has all rows now
  [[nodiscard]] bool made(sample_in_flight& sample, std::uint32_t rows = 1) noexcept;
  void hand_over_made(turn_of_loop& turn) noexcept;
  /// Its way from the begin of its reads.
  static void note_way(timeline_track& where, const sample_in_flight& sample, std::uint64_t decode_begin_ns,
                       std::uint64_t decode_end_ns) noexcept;
  /// Nobody will look at its rows.
  [[nodiscard]] bool is_unwanted(const batch_in_flight& batch) const noexcept {
    return flags_.stopping() || flags_.is_skipped(batch.plan.epoch);
  }

  const row_placement placement_;
  const std::uint32_t threads_;
  io::io_threads& loops_;
  async::posted_functions& posted_;
  const run_flags& flags_;
  expander expander_;
  decoder decoder_;  // for the decode threads, and then for the loops where these write rows
  std::vector<turn_of_loop> turns_;
  std::vector<thread_track> tracks_;  // of the decode threads
  std::atomic<std::uint64_t> samples_{0};
  async::thread_pool decoders_;
};

}  // namespace leat::stages
