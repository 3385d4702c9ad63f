#include "stages/observe/windows.hpp"

#include "base/text.hpp"

namespace leat::stages {
namespace {

loader_window shown(std::uint64_t begin_ns, const line_counts& counts, verdict of) {
  return {.begin_s = static_cast<double>(begin_ns) * 1e-9,
          .seconds = static_cast<double>(counts.time_ns) * 1e-9,
          .batches = counts.batches,
          .planned = counts.planned,
          .samples = counts.samples,
          .quarantined = counts.quarantined,
          .verdict = std::move(of)};
}

}  // namespace

void windows::end(const line_counts& counts, const line_setting& setting) {
  due_batches_ = counts.batches + options_.batches;
  due_ns_ = counts.time_ns + static_cast<std::uint64_t>(options_.seconds * 1e9);
  const mutex_lock lock(mutex_);
  ended_.push_back({before_.time_ns, counts - before_, setting});
  before_ = counts;
  if (ended_.size() > options_.kept) ended_.pop_front();
}

verdict windows::judge_last(const line_counts& counts, const line_setting& setting) const {
  ended last;
  {
    const mutex_lock lock(mutex_);
    if (!ended_.empty()) last = ended_.back();
  }
  // A batch of a slow line takes long all the same, and the first one longer.
  constexpr double batches_missed = 4, first_batch_s = 10;
  const double batch_s = counts.batches == 0
                             ? first_batch_s / batches_missed
                             : static_cast<double>(counts.time_ns) * 1e-9 / static_cast<double>(counts.batches);
  if (static_cast<double>(counts.waiting_ns) * 1e-9 > std::max(options_.seconds, batches_missed * batch_s)) {
    return judge({.time_ns = counts.waiting_ns, .stalled_ns = counts.waiting_ns}, setting);
  }
  if (last.counts.batches != 0) return judge(last.counts, last.setting);
  if (counts.batches >= options_.first_batches) return judge(counts, setting);
  verdict none;
  none.why = str_cat(counts.batches, " of the ", options_.first_batches, " batches that it takes were handed out");
  return none;
}

verdict windows::judge_run(const line_counts& counts, const line_setting& setting) const {
  return counts.batches >= options_.first_batches ? judge(counts, setting) : judge_last(counts, setting);
}

std::vector<loader_window> windows::all(const line_counts& counts, const line_setting& setting) const {
  std::deque<ended> kept;
  line_counts before;
  {
    const mutex_lock lock(mutex_);
    kept = ended_;
    before = before_;
  }
  std::vector<loader_window> made;
  made.reserve(kept.size() + 1);
  for (const ended& each : kept) made.push_back(shown(each.begin_ns, each.counts, judge(each.counts, each.setting)));
  const line_counts open = counts - before;
  made.push_back(shown(before.time_ns, open, judge(open, setting)));
  return made;
}

}  // namespace leat::stages
