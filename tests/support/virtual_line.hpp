// A line in virtual time: a disk of channels and a bus, decode threads, batches in order, copies and a consumer. It counts what a loader
// counts, a thousand times faster, and any part of it can be made free, which is the truth about bottlenecks.
#pragma once

#include "stages/observe/verdict.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <vector>

namespace leat::testing {

/// Times are seconds; those of reads and jobs are means of log-normal draws.
struct virtual_line_options {
  double read_s = 1e-3;  ///< of a channel
  double bus_s = 20e-6;  ///< each read has the bus for so long, one after the other
  unsigned channels = 32;
  bool is_remote =
      false;  ///< a store, which answers so many at a time. reads_at_a_time are connections, which other reads wait for
  double io_s = 0;  ///< of an I/O thread's CPU, which each read takes when the drive has done it
  unsigned io_threads = 1;
  double decode_s = 2e-3;
  double decode_sigma = 0.5;
  double decode_tail = 0;  ///< share of jobs that take 50 times as long
  double copy_s = 1e-3;    ///< of a batch
  double step_s = 20e-3;   ///< of a batch
  double step_cores = 0;   ///< that a step computes on, beside jobs on the same cores
  double burst_s = 0;      ///< every 16th step takes so much more
  double read_drift = 0;   ///< by so much a second all reads become slower
  double read_others = 0;  ///< the bus is taken by others for this share of the time
  unsigned cores = 16;
  unsigned batch = 64;
  unsigned decode_threads = 4;
  unsigned reads_at_a_time = 32;
  unsigned batches = 4;  ///< that there may be at a time
  std::uint64_t seed = 1;
};

enum class virtual_part : std::uint8_t { read, decode, transfer, consumer };

class virtual_line {
 public:
  explicit virtual_line(const virtual_line_options& options);
  /// Until so many more batches were consumed. What was counted meanwhile.
  stages::line_counts run(std::uint64_t batches);
  [[nodiscard]] stages::line_setting setting() const;
  /// Share of their time in which jobs of the last run() had a core.
  [[nodiscard]] double decode_on_cores() const { return decode_on_cores_; }
  /// Changes what it works with. What is under way goes on.
  struct depths {
    unsigned decode_threads;
    unsigned reads_at_a_time;
    unsigned batches;
    unsigned io_threads = 1;
  };
  void set(const depths& to) {
    options_.decode_threads = to.decode_threads;
    options_.reads_at_a_time = to.reads_at_a_time;
    options_.batches = to.batches;
    options_.io_threads = to.io_threads;
  }

 private:
  struct event {
    double at_s;
    int kind;
    std::uint64_t id;
    bool operator<(const event& other) const { return at_s > other.at_s; }
  };
  double draw(double mean, double sigma);
  void pass_time();
  void pump();
  void start_read();
  void start_decode();
  void handle(const event& now);
  [[nodiscard]] double crowd() const;
  void end_step_later();

  virtual_line_options options_;
  std::mt19937_64 random_;
  std::priority_queue<event> events_;
  double now_s_ = 0;
  double passed_s_ = 0;
  // Samples are numbered through the run, and so are batches.
  std::uint64_t next_read_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t next_copy_ = 0;
  unsigned reading_ = 0;
  unsigned decoding_ = 0;
  bool copying_ = false;
  bool stepping_ = false;
  double step_left_s_ = 0;
  std::uint64_t step_event_ = 0;  // the last one that was made, which ends the step
  std::vector<double> channel_free_s_;
  double bus_free_s_ = 0;
  std::vector<double> io_free_s_;  // by thread
  std::deque<std::uint64_t> to_decode_;
  std::deque<std::uint64_t> ready_;
  std::deque<unsigned> missing_;  // of the batches from consumed_ on
  // Sums, seconds.
  double read_s_ = 0;
  double held_back_s_ = 0;
  double io_s_ = 0;
  double decode_s_ = 0;
  double decode_cpu_s_ = 0;
  double decode_on_cores_ = 1;
  double decode_wait_s_ = 0;
  double batch_wait_s_ = 0;
  double copy_s_ = 0;
  double step_s_ = 0;
  double stalled_s_ = 0;
  double ready_s_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t decoded_ = 0;
  std::uint64_t copied_ = 0;
};

/// The same line with a part that takes no time.
[[nodiscard]] virtual_line_options without(virtual_line_options line, virtual_part part);

/// Samples a second of a line that has run for a while.
[[nodiscard]] double throughput_of(const virtual_line_options& options);

}  // namespace leat::testing
