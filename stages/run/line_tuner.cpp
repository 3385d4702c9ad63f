#include "stages/run/line_tuner.hpp"

#include "async/thread_pool.hpp"
#include "stages/observe/timeline.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leat::stages {

void line_tuner::see(const verdict& window, double at_s, std::uint64_t at_ns) {
  if (!on_) return;
  const std::optional<tuning_change> change = tuner_.see(window, decode_on_cores());
  if (change) depths_.set(change->to);
  const mutex_lock lock(mutex_);
  frozen_ = tuner_.is_frozen();
  if (change) remember(*change, window, at_s, at_ns);
}

double line_tuner::decode_on_cores() {
  decode_work now{.jobs = rows_.count().pool.job_count, .threads = rows_.decode_threads()};
  for (const async::thread_pool::thread_counters& each : rows_.count_threads()) {
    now.busy_ns += each.busy_ns;
    now.cpu_ns += each.cpu_ns;
  }
  return share_on_cores(std::exchange(work_before_, now), now);
}

void line_tuner::remember(const tuning_change& change, const verdict& window, double at_s, std::uint64_t at_ns) {
  struct changed {
    std::string_view setting;
    std::uint32_t from;
    std::uint32_t to;
  };
  for (const changed& each : {changed{"decode_threads", change.from.decode_threads, change.to.decode_threads},
                              changed{"queue_depth", change.from.queue_depth, change.to.queue_depth},
                              changed{"io_threads", change.from.io_threads, change.to.io_threads},
                              changed{"connections", change.from.connections, change.to.connections},
                              changed{"batches", change.from.batches, change.to.batches}}) {
    if (each.from == each.to) continue;
    steps_.push_back({.at_s = at_s,
                      .setting = std::string(each.setting),
                      .from = each.from,
                      .to = each.to,
                      .why = std::string(change.why),
                      .samples_per_s = window.samples_per_s,
                      .stall_share = window.stall_share});
    seen_.note(at_ns, steps_.back());
    ++steps_in_all_;
    if (steps_.size() > steps_kept) steps_.pop_front();
  }
}

tuning_stats line_tuner::count() const {
  const concurrency_limits now = depths_.now();
  const mutex_lock lock(mutex_);
  return {.decode_threads = now.decode_threads,
          .batches = now.batches,
          .queue_depth = now.queue_depth,
          .io_threads = now.io_threads,
          .connections = now.connections,
          .frozen = frozen_,
          .steps_in_all = steps_in_all_,
          .steps = {steps_.begin(), steps_.end()}};
}

}  // namespace leat::stages
