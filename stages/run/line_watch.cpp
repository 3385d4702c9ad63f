#include "stages/run/line_watch.hpp"

#include "async/histogram.hpp"
#include "async/thread_pool.hpp"
#include "base/clock.hpp"
#include "base/cores_quota.hpp"
#include "base/text.hpp"
#include "datasets/model/model.hpp"
#include "io/arena/arena.hpp"
#include "io/arena/lease_pool.hpp"
#include "io/ring/io_threads.hpp"
#include "stages/batch/transfer.hpp"
#include "stages/observe/windows.hpp"
#include "stages/pixels/scratch.hpp"
#include "stages/plan/memory_plan.hpp"
#include "stages/plan/run_spec.hpp"
#include "stages/run/device_choice.hpp"
#include "stages/run/hand_over.hpp"
#include "stages/run/line_tuner.hpp"
#include "stages/run/node_placement.hpp"
#include "stages/run/prefetch.hpp"
#include "stages/run/read.hpp"
#include "stages/run/stall_files.hpp"

#include <algorithm>
#include <string>

namespace leat::stages {
namespace {

remote_stats remote_since(const remote_stats& before, remote_stats now) {
  now.requests -= before.requests;
  now.bytes -= before.bytes;
  now.bytes_from_cache -= before.bytes_from_cache;
  now.retries -= before.retries;
  now.hedges -= before.hedges;
  now.wait_s -= before.wait_s;
  now.connections -= before.connections;
  now.cached_blocks -= before.cached_blocks;
  now.damaged_reads -= before.damaged_reads;
  now.refusals -= before.refusals;
  return now;
}

}  // namespace

remote_stats remote_counts(const datasets::dataset_model& dataset) {
  remote_stats all;
  for (const auto& each : dataset.sources()) each->add_counts(all);
  return all;
}
line_watch::line_watch(const parts& line)
    : line_(line),
      cores_(line.placed.cores_of_decode(line.memory.decode_threads, working_cores())),
      cpu_quota_(find_cores_quota().value_or(0)) {}

void line_watch::begin() { started_ns_ = now_ns(); }

namespace {

// Where a thread sleeps in calls that also work (io_uring_enter), its CPU time tells more.
std::uint64_t awake_ns(const io::io_thread_counters& of) { return std::max(of.awake_ns, of.cpu_ns); }

}  // namespace

line_setting line_watch::setting(const line_counts& counts) const {
  const std::uint64_t read_bytes = counts.reads == 0 ? 0 : counts.read_bytes / counts.reads;
  const remote_stats remote = remote_since(line_.remote_before, remote_counts(line_.run.dataset()));
  const auto io_threads = static_cast<std::uint32_t>(line_.reads.loops());
  return {.decode_threads = line_.rows.decode_threads(),
          .cores = cores_,
          .cpu_quota = cpu_quota_,
          .io_threads = io_threads,
          .reads_at_a_time =
              line_.loops.count().reads == 0 ? 0 : line_.loops.depth_of(read_bytes) / line_.loops.size() * io_threads,
          .batches_max = line_.memory.batches,
          .short_of_memory = line_.memory.batches_missing,
          .on_device = line_.transfer.runs_operations(),
          .store = {.away_s = remote.away_s,
                    .requests_per_s_max = remote.requests_per_s_max,
                    .reads_waiting = remote.reads_waiting,
                    .refusals = remote.refusals,
                    .requests = remote.requests}};
}

line_counts line_watch::counts(const delivery::counters& handed, const decode_stage::counters& made,
                               const async::histogram_sum& read_times) const {
  const io::io_counters io = line_.loops.count();
  const hand_over::counters ended = line_.ending.count();
  const device_times timed = line_.transfer.times();
  const std::uint64_t at_ns = now_ns();
  line_counts now{.time_ns = at_ns - started_ns_,
                  .batches = handed.batches,
                  .planned = handed.planned,
                  .samples = handed.samples,
                  .quarantined = handed.quarantined,
                  .reads = read_times.count(),
                  .read_bytes = io.bytes_read,
                  .read_ns = read_times.sum_ns(),
                  .rows_read = made.read,
                  .rows_held = made.held,
                  .held_back_ns = io.held_back_ns,
                  .io_awake_ns = 0,
                  .rows_made = made.samples,
                  .decode_ns = made.pool.busy_ns,
                  .decode_wait_ns = made.pool.queue_wait_ns,
                  .batch_wait_ns = line_.prefetch.waited_ns(at_ns),
                  .transferred_rows = ended.transferred_rows,
                  .transfer_ns = ended.transfer_ns,
                  .timed_batches = timed.batches,
                  .timed_rows = timed.rows,
                  .device_copy_ns = timed.copy_ns,
                  .device_step_ns = timed.step_ns,
                  .device_stall_ns = timed.stall_ns,
                  .steps = handed.steps,
                  .step_ns = handed.step_ns,
                  .held_all_ns = handed.held_all_ns,
                  .stalled_ns = handed.stalled_ns,
                  .waiting_ns = handed.waiting_ns,
                  .pause_ns = handed.pause_ns,
                  .ready_ns = handed.ready_ns,
                  .out_ns = handed.out_ns};
  for (const io::io_thread_counters& each : line_.loops.count_threads()) now.io_awake_ns += awake_ns(each);
  return now;
}

async::histogram_sum line_watch::read_times() const {
  async::histogram_sum times;
  line_.loops.add_to(times);
  line_.reads.add_to(times);
  return times;
}

bool line_watch::handed_out(std::uint64_t now, std::uint64_t batches) {
  if (!line_.windows.is_due(now - started_ns_, batches)) return false;
  const line_counts counted = counts(line_.delivery.count(), line_.rows.count(), read_times());
  line_.windows.end(counted, setting(counted));
  return true;
}

verdict line_watch::verdict_of_last() const {
  const line_counts now = counts(line_.delivery.count(), line_.rows.count(), read_times());
  return line_.windows.judge_last(now, setting(now));
}

verdict line_watch::verdict_of_run() const {
  const line_counts now = counts(line_.delivery.count(), line_.rows.count(), read_times());
  return line_.windows.judge_run(now, setting(now));
}

std::vector<loader_window> line_watch::windows() const {
  const line_counts now = counts(line_.delivery.count(), line_.rows.count(), read_times());
  return line_.windows.all(now, setting(now));
}

namespace {

constexpr double ns = 1e-9;
double in_seconds(std::uint64_t value_ns) { return static_cast<double>(value_ns) * ns; }

void add_items(stage_stats& to, const async::histogram::summary& items) {
  static_assert(duration_counts::bounds_s.size() == async::histogram::bounds_ns.size());
  to.p50_s = in_seconds(items.p50_ns);
  to.p90_s = in_seconds(items.p90_ns);
  to.p99_s = in_seconds(items.p99_ns);
  to.max_s = in_seconds(items.max_ns);
  to.items_s = in_seconds(items.sum_ns);
  to.items.counts = items.between;
}

}  // namespace

double line_watch::seconds_at(std::uint64_t now_ns) const noexcept { return in_seconds(now_ns - started_ns_); }

loader_stats line_watch::stats() const {
  loader_stats now;
  const delivery::counters handed = line_.delivery.count();
  now.planned = handed.planned;
  now.padded = handed.padded;
  now.samples = handed.samples;
  now.quarantined = handed.quarantined;
  for (const auto& [kind, samples] : handed.quarantined_as)
    now.quarantined_as.push_back({std::string(kind.name), samples});
  now.substituted = handed.substituted;
  now.batches = handed.batches;
  now.epochs_finished = handed.epochs_finished;
  now.bytes_delivered = handed.bytes;
  const reader_stage::counters read = line_.reads.count();
  const decode_stage::counters made = line_.rows.count();
  const hand_over::counters ended = line_.ending.count();
  const async::histogram_sum times = read_times();
  const line_counts counted = counts(handed, made, times);
  now.bytes_copied = made.bytes_copied;
  now.expand = made.expanded;
  now.remote = remote_since(line_.remote_before, remote_counts(line_.run.dataset()));
  now.ragged_bytes = ended.ragged_bytes;
  now.ragged_padding_bytes = ended.ragged_padding_bytes;
  if (ended.dealt_batches != 0) {
    now.slowest_rank_cost = ended.slowest_rank_cost / static_cast<double>(ended.dealt_batches);
  }

  now.elapsed_s = in_seconds(counted.time_ns);
  now.bytes_read = read.bytes;
  now.bytes_from_files = counted.read_bytes;
  now.read = {.count = read.reads,
              .bytes = read.bytes,
              .busy_s = in_seconds(counted.read_ns),
              .wait_s = in_seconds(line_.read_pool.count().wait_ns)};
  add_items(now.read, times.summarize());
  now.decode = {.count = made.samples,
                .bytes = ended.collated_bytes,
                .busy_s = in_seconds(made.pool.busy_ns + made.on_loop_ns),
                .wait_s = in_seconds(made.pool.idle_ns)};
  async::histogram_sum jobs;
  line_.rows.add_to(jobs);
  add_items(now.decode, jobs.summarize());
  now.collate = {.count = ended.collated, .bytes = ended.collated_bytes};
  add_items(now.collate, line_.ending.collate_times());
  now.collate.busy_s = now.collate.items_s;
  now.transfer = {.count = ended.transferred,
                  .bytes = ended.collated_bytes,
                  .busy_s = in_seconds(ended.transfer_ns),
                  .wait_s = in_seconds(line_.batch_pool.count().wait_ns)};
  if (line_.transfer.runs_operations()) {
    // Each stands for those that were not timed. (Not their mean times all batches, which may fall; nor what the host took before the
    // first was timed, which may be more.)
    now.transfer.busy_s = in_seconds(counted.device_copy_ns * timed_every);
  }
  add_items(now.transfer, line_.ending.transfer_times());
  now.next = {.count = handed.next_count, .bytes = handed.bytes, .busy_s = in_seconds(handed.step_ns)};
  add_items(now.next, line_.delivery.waits());
  now.next.wait_s = now.next.items_s;
  now.stalled_s = in_seconds(handed.stalled_ns);
  now.stalls = line_.stalls.count();
  now.tuned = line_.tuner.count();
  const auto mean = [&](std::uint64_t stays_ns) {
    return counted.time_ns == 0 ? 0 : static_cast<double>(stays_ns) / static_cast<double>(counted.time_ns);
  };
  now.queues = {.decode = mean(counted.decode_wait_ns), .ready = mean(counted.ready_ns), .out = mean(counted.out_ns)};
  now.threads = thread_stats_now();
  now.digest_cpu_s = in_seconds(made.digest_ns);
  now.arena_bytes = line_.arena.bytes_populated();
  now.scratch_bytes_peak = line_.scratch.peak();
  now.reads_in_flight = read.in_flight;
  now.decode_queued = made.pool.queued;
  now.batches_ready = handed.ready;
  now.batches_out = handed.out;
  now.reader = line_.loops.report();
  now.placement = line_.placed.report(line_.memory.decode_threads, line_.arena.node_failure());
  now.device = line_.transfer.report();
  add_pictures(now, line_.options, line_.transfer, line_.run.programs());
  now.verdict = line_.windows.judge_last(counted, setting(counted));
  return now;
}

std::vector<leat::thread_stats> line_watch::thread_stats_now() const {
  std::vector<leat::thread_stats> all;
  for (const io::io_thread_counters& each : line_.loops.count_threads()) {
    all.push_back({.name = str_cat("io-", all.size()),
                   .busy_s = in_seconds(awake_ns(each)),
                   .idle_s = in_seconds(each.wait_ns),
                   .cpu_s = in_seconds(each.cpu_ns)});
  }
  const std::size_t before = all.size();
  for (const async::thread_pool::thread_counters& each : line_.rows.count_threads()) {
    all.push_back({.name = str_cat("decode-", all.size() - before),
                   .busy_s = in_seconds(each.busy_ns),
                   .idle_s = in_seconds(each.idle_ns),
                   .cpu_s = in_seconds(each.cpu_ns)});
  }
  return all;
}

}  // namespace leat::stages
