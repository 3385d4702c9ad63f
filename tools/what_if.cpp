#include "tools/what_if.hpp"

#include "io/files/queue_depth.hpp"
#include "stages/observe/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <numeric>
#include <queue>
#include <random>
#include <span>
#include <utility>

namespace leat::tools {
namespace {

using stages::read_record;
using stages::recorded_batch;
using stages::recorded_read;

double number(std::uint64_t value) { return static_cast<double>(value); }

/// When the consumer asked for each batch and got it, in seconds.
struct asked_and_handed {
  double asked_s = 0;
  double handed_s = 0;
};

// Both, the recorded run and the replayed ones, are summed up here. The first batch waits for the line to fill, and an epoch's for whatever
// the trainer did after the one before: neither counts.
what_if_result sum_up(const read_record& record, std::span<const asked_and_handed> times) {
  what_if_result made;
  std::vector<double> waits;
  double stall_s = 0;
  double pause_s = 0;
  double step_s = 0;
  std::uint64_t rows = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (record.batches[i].epoch != record.batches[i - 1].epoch) {
      pause_s += times[i].handed_s - times[i - 1].handed_s;
      continue;
    }
    rows += record.batches[i - 1].rows;
    waits.push_back(times[i].handed_s - times[i].asked_s);
    stall_s += waits.back();
    step_s += times[i].asked_s - times[i - 1].handed_s;
  }
  if (waits.empty()) return made;
  const double span_s = times.back().handed_s - times.front().handed_s - pause_s;
  if (span_s <= 0) return made;
  std::uint64_t bytes = 0;
  for (const recorded_read& each : record.reads) bytes += each.bytes;
  made.samples_per_s = number(rows) / span_s;
  made.bytes_per_s = number(bytes) / number(times.size()) * number(waits.size()) / span_s;
  made.stall_share = stall_s / span_s;
  std::sort(waits.begin(), waits.end());
  made.wait_p50_s = waits[waits.size() / 2];
  made.wait_p99_s = waits[std::min(waits.size() - 1, waits.size() * 99 / 100)];
  made.step_s = step_s / number(waits.size());
  return made;
}

/// A read in the kernel: when it was given to it, beside how many bytes.
struct in_kernel {
  std::uint64_t given_ns = 0;
  std::uint64_t end_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_before = 0;
};

bool admits(const what_if_settings& with, std::uint64_t reads, std::uint64_t in_flight, std::uint64_t bytes) {
  if (with.by_bytes) return io::queue_depth::admits(reads, in_flight, bytes);
  return with.queue_depth == 0 || reads < with.queue_depth;
}

// A read waits for its place in the kernel, which the record does not tell: reads get theirs in the order in which they were asked for.
std::vector<in_kernel> in_kernel_of(const read_record& record) {
  const what_if_settings with = settings_of(record);
  std::vector<in_kernel> all(record.reads.size());
  std::vector<std::vector<std::size_t>> of_loop(with.io_threads);
  for (std::size_t i = 0; i < record.reads.size(); ++i) {
    of_loop[std::min<std::size_t>(record.reads[i].loop, of_loop.size() - 1)].push_back(i);
  }
  for (std::vector<std::size_t>& reads : of_loop) {
    std::sort(reads.begin(), reads.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(record.reads[a].begin_ns, a) < std::pair(record.reads[b].begin_ns, b);
    });
    using ended = std::pair<std::uint64_t, std::uint64_t>;  // when, and bytes
    std::priority_queue<ended, std::vector<ended>, std::greater<>> now;
    std::uint64_t bytes = 0;
    std::uint64_t at_ns = 0;
    for (const std::size_t i : reads) {
      const recorded_read& read = record.reads[i];
      at_ns = std::max(at_ns, read.begin_ns);
      while (!now.empty() && (now.top().first <= at_ns || !admits(with, now.size(), bytes, read.bytes))) {
        at_ns = std::max(at_ns, now.top().first);
        bytes -= now.top().second;
        now.pop();
      }
      at_ns = std::min(at_ns, read.end_ns);
      all[i] = {.given_ns = at_ns, .end_ns = read.end_ns, .bytes = read.bytes, .bytes_before = bytes};
      bytes += read.bytes;
      now.emplace(read.end_ns, read.bytes);
    }
  }
  return all;
}

// Of an I/O thread, for each read.
double io_ns_of(const read_record& record) {
  return record.totals.reads == 0 ? 0 : number(record.totals.io_awake_ns) / number(record.totals.reads);
}

double path_ns(std::uint64_t bytes, double bytes_per_s) {
  return bytes_per_s > 0 ? number(bytes) / bytes_per_s * 1e9 : 0;
}

// What a read takes that finds little before it, without the time for its bytes and for those.
double latency_of(const std::vector<in_kernel>& reads, double bytes_per_s) {
  constexpr std::size_t part = 8;
  std::vector<std::size_t> order(reads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t count = std::max<std::size_t>(order.size() / part, 1);
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count - 1), order.end(),
                   [&](std::size_t a, std::size_t b) { return reads[a].bytes_before < reads[b].bytes_before; });
  std::vector<double> ns;
  for (std::size_t i = 0; i < count; ++i) {
    const in_kernel& read = reads[order[i]];
    ns.push_back(number(read.end_ns - read.given_ns) - path_ns(read.bytes + read.bytes_before, bytes_per_s));
  }
  const auto middle = ns.begin() + static_cast<std::ptrdiff_t>(ns.size() / 2);
  std::nth_element(ns.begin(), middle, ns.end());
  return std::max(*middle, 0.0);
}

// Whether hardly any read ended before one that was given to the drive earlier.
bool ends_in_order(const std::vector<in_kernel>& reads, std::vector<std::size_t> order) {
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(reads[a].given_ns, reads[a].end_ns) < std::pair(reads[b].given_ns, reads[b].end_ns);
  });
  std::size_t earlier = 0;
  for (std::size_t i = 1; i < order.size(); ++i) earlier += reads[order[i]].end_ns < reads[order[i - 1]].end_ns ? 1 : 0;
  return earlier * 1000 < order.size();
}

// What came while others had waited for half of what a read takes at least.
double while_busy(const std::vector<in_kernel>& reads, const std::vector<std::size_t>& by_end) {
  std::vector<double> took;
  for (const in_kernel& each : reads) took.push_back(number(each.end_ns - each.given_ns));
  const auto low = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 10);
  std::nth_element(took.begin(), low, took.end());
  const double wait_ns = *low / 2;
  double bytes = 0;
  double ns = 0;
  for (std::size_t i = 1; i < by_end.size(); ++i) {
    const in_kernel& read = reads[by_end[i]];
    const double before_ns = number(reads[by_end[i - 1]].end_ns);
    if (number(read.given_ns) + wait_ns > before_ns) continue;
    bytes += number(read.bytes);
    ns += number(read.end_ns) - before_ns;
  }
  return ns > 0 ? bytes / ns * 1e9 : 0;
}

/// How a read's time grows with the bytes before it.
struct growth {
  double s_per_byte = 0;
  double spread = 0;  ///< of the bytes before a read, over their mean
};

growth growth_of(const std::vector<in_kernel>& reads) {
  double mean_x = 0;
  double mean_y = 0;
  for (const in_kernel& each : reads) {
    mean_x += number(each.bytes_before + each.bytes);
    mean_y += number(each.end_ns - each.given_ns);
  }
  mean_x /= number(reads.size());
  mean_y /= number(reads.size());
  double xx = 0;
  double xy = 0;
  for (const in_kernel& each : reads) {
    const double x = number(each.bytes_before + each.bytes) - mean_x;
    xx += x * x;
    xy += x * (number(each.end_ns - each.given_ns) - mean_y);
  }
  if (xx <= 0 || mean_x <= 0) return {};
  return {.s_per_byte = xy / xx * 1e-9, .spread = std::sqrt(xx / number(reads.size())) / mean_x};
}

}  // namespace

what_if_settings settings_of(const read_record& record) {
  const stages::recorded_settings& was = record.settings;
  what_if_settings with{.io_threads = std::max(was.io_threads, 1U),
                        .decode_threads = std::max(was.decode_threads, 1U),
                        .batches = std::max(was.batches, 1U),
                        .queue_depth = was.queue_depth,
                        .by_bytes = was.depth_by_bytes != 0,
                        .read_bytes = was.read_bytes,
                        .step_s = {}};
  const std::uint64_t at_a_time = record.totals.reads_at_a_time;
  if (at_a_time == 0) {
    with.by_bytes = false;
    with.queue_depth = 0;
  } else if (!with.by_bytes && with.queue_depth == 0) {
    with.queue_depth = static_cast<std::uint32_t>(std::max<std::uint64_t>(at_a_time / with.io_threads, 1));
  }
  return with;
}

what_if_drive drive_of(const read_record& record) {
  what_if_drive made{.latency_ns = {0}, .bytes_per_s = 0, .is_least = true};
  const std::vector<in_kernel> reads = in_kernel_of(record);
  if (reads.empty()) return made;
  std::vector<std::size_t> by_end(reads.size());
  std::iota(by_end.begin(), by_end.end(), std::size_t{0});
  std::sort(by_end.begin(), by_end.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(reads[a].end_ns, a) < std::pair(reads[b].end_ns, b);
  });
  // Times that do not grow with what is under way are those of a drive that had room for more.
  constexpr double spread_min = 0.1;
  const growth grown = growth_of(reads);
  made.bytes_per_s = while_busy(reads, by_end);
  made.is_least = made.bytes_per_s == 0 || (grown.spread >= spread_min && grown.s_per_byte * made.bytes_per_s < 0.5);
  if (made.is_least) made.bytes_per_s = grown.s_per_byte * made.bytes_per_s > 0.01 ? 1 / grown.s_per_byte : 0;
  const double latency_ns = latency_of(reads, made.bytes_per_s);
  made.in_order = ends_in_order(reads, by_end);
  made.latency_ns.assign(reads.size(), 0);
  double before_ns = 0;
  for (const std::size_t i : by_end) {
    const in_kernel& read = reads[i];
    const double given_ns = number(read.given_ns);
    const double waited_ns =
        std::min(std::max(before_ns - given_ns - latency_ns, 0.0), path_ns(read.bytes_before, made.bytes_per_s));
    before_ns = number(read.end_ns);
    // A read that waited for its place had it when the I/O thread came to it.
    const double io_ns = read.given_ns > record.reads[i].begin_ns ? io_ns_of(record) : 0;
    const double alone_ns = before_ns - given_ns - path_ns(read.bytes, made.bytes_per_s) - waited_ns - io_ns;
    made.latency_ns[i] = static_cast<std::uint32_t>(std::clamp(alone_ns, 0.0, 4e9));
  }
  return made;
}

what_if_result measured(const read_record& record) {
  std::vector<asked_and_handed> times;
  for (const recorded_batch& each : record.batches) {
    times.push_back({.asked_s = number(each.asked_ns) * 1e-9, .handed_s = number(each.handed_ns) * 1e-9});
  }
  return sum_up(record, times);
}

namespace {

/// The line in virtual time, in nanoseconds since it began.
class replayed_line {
 public:
  replayed_line(const read_record& record, const what_if_settings& with, const what_if_drive& drive)
      : record_(record), with_(with), drive_(drive), loops_(with.io_threads), random_(1) {
    prepare();
  }

  what_if_result run() {
    pump();
    while (handed_ < batches_.size() && !events_.empty()) {
      const event next = events_.top();
      events_.pop();
      pass(next.at_ns);
      handle(next);
      pump();
    }
    what_if_result made = sum_up(record_, times_);
    made.bound = stages::judge(counts(), setting());
    return made;
  }

 private:
  enum class kind : std::uint8_t { answered, read, decoded, transferred, stepped };
  struct event {
    double at_ns = 0;
    std::uint64_t order = 0;  // of events at the same time
    kind what = kind::read;
    std::size_t of = 0;  // a read, or a batch
    bool operator<(const event& other) const {
      return at_ns > other.at_ns || (at_ns == other.at_ns && order > other.order);
    }
  };
  struct batch_now {
    std::size_t first_read = 0;
    std::size_t reads = 0;
    std::size_t read = 0;
    std::uint32_t ready = 0;  // rows that were given to the decode threads
    std::uint32_t made = 0;
    double leased = 0;  // bytes of the read buffers
    double row_ns = 0;  // of a decode thread
    std::vector<double> rows_ns;
    double spread = 0;  // of the logarithm
    double transfer_ns = 0;
    double away_ns = 0;  // of the consumer, after it
    double arrived_ns = -1;
  };
  struct loop_now {
    std::deque<std::size_t> waiting;
    std::uint64_t reads = 0;
    std::uint64_t bytes = 0;
    double free_ns = 0;
  };

  // What each batch takes, as it was recorded.
  void prepare() {
    const std::vector<recorded_batch>& all = record_.batches;
    double decode_ns = 0;
    double timed = 0;
    for (const recorded_batch& each : all) {
      decode_ns += number(each.decode_ns);
      timed += each.timed;
    }
    const auto mean_of = [&](const recorded_batch& was) {
      return was.timed != 0 ? number(was.decode_ns) / was.timed : timed > 0 ? decode_ns / timed : 0;
    };
    // What a thread does between two rows is in no row's time.
    double work_ns = 0;
    double rows_in_all = 0;
    for (const recorded_batch& each : all) {
      work_ns += mean_of(each) * each.decoded + number(each.expand_ns);
      rows_in_all += each.rows;
    }
    double more = 1;
    if (work_ns > 0 && record_.totals.rows_made != 0) {
      const double busy_ns = number(record_.totals.decode_busy_ns) * rows_in_all / number(record_.totals.rows_made);
      more = std::clamp(busy_ns / work_ns, 1.0, 2.0);
    }
    std::size_t next = 0;
    std::uint64_t arrived_ns = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const recorded_batch& was = all[i];
      batch_now& batch = batches_.emplace_back();
      while (next < record_.reads.size() && record_.reads[next].batch < was.number) ++next;
      batch.first_read = next;
      for (; next < record_.reads.size() && record_.reads[next].batch == was.number; ++next) {
        ++batch.reads;
        if (record_.reads[next].is_leased) batch.leased += number(record_.reads[next].bytes);
      }
      const double rows = std::max(was.rows, 1U);
      if (was.decoded != 0) {
        const double mean = mean_of(was);
        batch.row_ns = mean * was.decoded / rows;
        if (was.timed > 1 && mean > 0) {
          const double squares = number(was.decode_us2) * 1e6 / was.timed;
          batch.spread = std::sqrt(std::log(std::max(1.0, squares / (mean * mean))));
        }
      }
      batch.row_ns = more * (batch.row_ns + number(was.expand_ns) / rows);
      const std::uint64_t from_ns = std::max(was.made_ns, arrived_ns);
      batch.transfer_ns = number(was.arrived_ns - std::min(was.arrived_ns, from_ns));
      arrived_ns = std::max(arrived_ns, was.arrived_ns);
      const bool has_next = i + 1 < all.size();
      const bool is_paused = has_next && all[i + 1].epoch != was.epoch;
      batch.away_ns = has_next ? number(all[i + 1].asked_ns - std::min(all[i + 1].asked_ns, was.handed_ns)) : 0;
      if (with_.step_s && !is_paused) batch.away_ns = *with_.step_s * 1e9;
    }
    io_read_ns_ = io_ns_of(record_);
  }

  void add(double at_ns, kind what, std::size_t of) { events_.push({at_ns, events_added_++, what, of}); }

  void pass(double to_ns) {
    const double ns = to_ns - now_ns_;
    for (const loop_now& each : loops_) held_back_ns_ += each.waiting.empty() ? 0 : ns;
    if (waits_for_batch_) batch_wait_ns_ += ns;
    decode_wait_ns_ += ns * number(rows_waiting_);
    ready_ns_ += ns * ready_;
    now_ns_ = to_ns;
  }

  void pump() {
    issue();
    for (loop_now& loop : loops_) give(loop);
    decode();
    hand_out();
  }

  // Batch after batch, as far as there is a place for one, and memory for its reads.
  void issue() {
    waits_for_batch_ = false;
    for (; issuing_ < batches_.size(); ++issuing_, issued_ = 0) {
      if (issuing_ >= stepped_ + with_.batches) {
        waits_for_batch_ = true;
        return;
      }
      batch_now& batch = batches_[issuing_];
      for (; issued_ < batch.reads; ++issued_) {
        const std::size_t number_of = batch.first_read + issued_;
        const recorded_read& read = record_.reads[number_of];
        const double wanted = read.is_leased ? number(read.bytes) : 0;
        const bool is_full = with_.read_bytes != 0 && wanted > 0 && leased_ + wanted > number(with_.read_bytes);
        if (is_full && some_comes_back()) return;
        leased_ += wanted;
        ++under_way_;
        loops_[issuing_ % loops_.size()].waiting.push_back(number_of);
      }
      if (batch.reads == 0) make_ready(issuing_, record_.batches[issuing_].rows);
    }
  }

  // Of the read buffers. Rows are ready by the share of their batch's reads, so that one whose reads are there may be late: who would
  // wait for its memory would wait for ever.
  [[nodiscard]] bool some_comes_back() const { return under_way_ != 0 || decoding_ != 0 || !to_decode_.empty(); }

  void give(loop_now& loop) {
    while (!loop.waiting.empty() && admits(with_, loop.reads, loop.bytes, record_.reads[loop.waiting.front()].bytes)) {
      const std::size_t read = loop.waiting.front();
      loop.waiting.pop_front();
      ++loop.reads;
      loop.bytes += record_.reads[read].bytes;
      loop.free_ns = std::max(loop.free_ns, now_ns_) + io_read_ns_;
      read_ns_ -= loop.free_ns;
      const double answered_ns = loop.free_ns + drive_.latency_ns[read % drive_.latency_ns.size()];
      last_answered_ns_ = std::max(last_answered_ns_, answered_ns);
      add(drive_.in_order ? last_answered_ns_ : answered_ns, kind::answered, read);
    }
  }

  [[nodiscard]] std::size_t batch_of(std::size_t read) const {
    const auto after = std::upper_bound(batches_.begin(), batches_.end(), read,
                                        [](std::size_t value, const batch_now& of) { return value < of.first_read; });
    // Batches without reads begin where the next one does.
    std::size_t found = static_cast<std::size_t>(after - batches_.begin()) - 1;
    while (batches_[found].reads == 0) --found;
    return found;
  }

  void make_ready(std::size_t batch, std::uint32_t rows) {
    batch_now& of = batches_[batch];
    const std::uint32_t more = rows - std::min(rows, of.ready);
    of.ready += more;
    rows_read_ += more;
    if (record_.batches[batch].rows == 0) return all_made(batch);
    if (of.row_ns == 0) return rows_made(batch, more);
    if (of.ready == more) draw_rows(of, record_.batches[batch].rows);
    rows_waiting_ += more;
    if (more != 0) to_decode_.emplace_back(batch, more);
  }

  // Rows differ as they did, and together take what they took.
  void draw_rows(batch_now& batch, std::uint32_t rows) {
    batch.rows_ns.resize(rows);
    double sum = 0;
    for (double& each : batch.rows_ns) sum += each = std::exp(batch.spread * normal_(random_));
    for (double& each : batch.rows_ns) each *= batch.row_ns * rows / sum;
  }

  void decode() {
    while (decoding_ < with_.decode_threads && !to_decode_.empty()) {
      auto& [batch, rows] = to_decode_.front();
      const std::size_t of = batch;
      if (--rows == 0) to_decode_.pop_front();
      --rows_waiting_;
      ++decoding_;
      batch_now& from = batches_[of];
      const double ns = from.rows_ns.back();
      from.rows_ns.pop_back();
      decode_ns_ += ns;
      add(now_ns_ + ns, kind::decoded, of);
    }
  }

  void rows_made(std::size_t batch, std::uint32_t rows) {
    batch_now& of = batches_[batch];
    const std::uint32_t all = record_.batches[batch].rows;
    of.made += rows;
    rows_made_ += rows;
    leased_ -= of.leased * rows / std::max(all, 1U);
    if (of.made == all && rows != 0) all_made(batch);
  }

  void all_made(std::size_t batch) {
    copy_free_ns_ = std::max(copy_free_ns_, now_ns_) + batches_[batch].transfer_ns;
    transfer_ns_ += batches_[batch].transfer_ns;
    add(copy_free_ns_, kind::transferred, batch);
  }

  void hand_out() {
    if (away_ || handed_ == batches_.size() || batches_[handed_].arrived_ns < 0) return;
    times_.push_back({.asked_s = asked_ns_ * 1e-9, .handed_s = now_ns_ * 1e-9});
    if (handed_ == 0) {
      pause_ns_ = now_ns_;
    } else {
      stalled_ns_ += now_ns_ - asked_ns_;
    }
    --ready_;
    away_ = true;
    add(now_ns_ + batches_[handed_].away_ns, kind::stepped, handed_);
    ++handed_;
  }

  void handle(const event& now) {
    switch (now.what) {
      case kind::answered: {
        const double bytes = number(record_.reads[now.of].bytes);
        path_free_ns_ =
            std::max(path_free_ns_, now_ns_) + (drive_.bytes_per_s > 0 ? bytes / drive_.bytes_per_s * 1e9 : 0);
        add(path_free_ns_, kind::read, now.of);
        break;
      }
      case kind::read: {
        const std::size_t number_of = batch_of(now.of);
        batch_now& batch = batches_[number_of];
        loop_now& loop = loops_[number_of % loops_.size()];
        --under_way_;
        --loop.reads;
        loop.bytes -= record_.reads[now.of].bytes;
        read_ns_ += now_ns_;
        ++reads_;
        read_bytes_ += record_.reads[now.of].bytes;
        ++batch.read;
        const std::uint64_t rows = record_.batches[number_of].rows;
        make_ready(number_of, static_cast<std::uint32_t>(rows * batch.read / batch.reads));
        break;
      }
      case kind::decoded:
        --decoding_;
        rows_made(now.of, 1);
        break;
      case kind::transferred:
        batches_[now.of].arrived_ns = now_ns_;
        ++ready_;
        break;
      case kind::stepped:
        away_ = false;
        asked_ns_ = now_ns_;
        step_ns_ += batches_[now.of].away_ns;
        stepped_ = now.of + 1;
        break;
    }
  }

  [[nodiscard]] stages::line_counts counts() const {
    const auto whole = [](double ns) { return static_cast<std::uint64_t>(std::max(ns, 0.0)); };
    std::uint64_t rows = 0;
    for (std::size_t i = 0; i < handed_; ++i) rows += record_.batches[i].rows;
    return {.time_ns = whole(now_ns_),
            .batches = handed_,
            .planned = rows,
            .samples = rows,
            .reads = reads_,
            .read_bytes = read_bytes_,
            .read_ns = whole(read_ns_),
            .rows_read = rows_read_,
            .held_back_ns = whole(held_back_ns_),
            .io_awake_ns = whole(io_read_ns_ * number(reads_)),
            .rows_made = decode_ns_ > 0 ? rows_made_ : 0,
            .decode_ns = whole(decode_ns_),
            .decode_wait_ns = whole(decode_wait_ns_),
            .batch_wait_ns = whole(batch_wait_ns_),
            .transferred_rows = rows,
            .transfer_ns = whole(transfer_ns_),
            .steps = stepped_,
            .step_ns = whole(step_ns_),
            .stalled_ns = whole(stalled_ns_),
            .pause_ns = whole(pause_ns_),
            .ready_ns = whole(ready_ns_),
            .out_ns = whole(step_ns_)};
  }

  [[nodiscard]] stages::line_setting setting() const {
    const std::uint64_t mean = reads_ == 0 ? 0 : read_bytes_ / reads_;
    const std::uint32_t depth = with_.by_bytes ? io::queue_depth::of(mean) : with_.queue_depth;
    return {.decode_threads = with_.decode_threads,
            .io_threads = with_.io_threads,
            .reads_at_a_time = depth * with_.io_threads,
            .batches_max = with_.batches};
  }

  const read_record& record_;
  const what_if_settings& with_;
  const what_if_drive& drive_;
  std::vector<batch_now> batches_;
  std::vector<loop_now> loops_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::priority_queue<event> events_;
  std::uint64_t events_added_ = 0;
  std::deque<std::pair<std::size_t, std::uint32_t>> to_decode_;  // a batch, and rows of it
  std::vector<asked_and_handed> times_;
  std::size_t issuing_ = 0;
  std::size_t issued_ = 0;  // reads of it
  std::size_t under_way_ = 0;
  std::size_t handed_ = 0;
  std::size_t stepped_ = 0;
  std::uint32_t decoding_ = 0;
  std::uint64_t rows_waiting_ = 0;
  bool away_ = false;
  bool waits_for_batch_ = false;
  double io_read_ns_ = 0;
  double leased_ = 0;
  double now_ns_ = 0;
  double asked_ns_ = 0;
  double last_answered_ns_ = 0;
  double path_free_ns_ = 0;
  double copy_free_ns_ = 0;
  double ready_ = 0;
  // Sums.
  std::uint64_t reads_ = 0;
  std::uint64_t read_bytes_ = 0;
  std::uint64_t rows_read_ = 0;
  std::uint64_t rows_made_ = 0;
  double read_ns_ = 0;
  double held_back_ns_ = 0;
  double decode_ns_ = 0;
  double decode_wait_ns_ = 0;
  double batch_wait_ns_ = 0;
  double transfer_ns_ = 0;
  double ready_ns_ = 0;
  double step_ns_ = 0;
  double stalled_ns_ = 0;
  double pause_ns_ = 0;
};

}  // namespace

what_if_result simulate(const read_record& record, const what_if_settings& with, const what_if_drive& drive) {
  return replayed_line(record, with, drive).run();
}

}  // namespace leat::tools
