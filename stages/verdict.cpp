#include "stages/verdict.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace leat {
namespace stages {
namespace {

// Two capacities that differ by less are said together: windows of one run differ by as much.
constexpr double tie = 1.1;
// Of its capacity, that the verdict's part has done at least. One that did less was idle, and somebody else is to blame.
constexpr double confirmed = 0.8;
// Of the time the consumer may wait without anybody to blame.
constexpr double little_stall = 0.01;
// From here on evening out would gain more than what is a tie. (In lines in virtual time whose steps come in bursts, a consumer that waits
// less is still the part whose removal gains most.)
constexpr double much_stall = 0.1;
// Of the time reads have to be held back for the depth to be what limits them.
constexpr double held_back = 0.5;
// Of the samples that there may be at a time.
constexpr double most = 0.5;
// A part that does its work in less than this of the time is not worth a capacity.
constexpr double hardly_busy = 1e-4;

double ratio(double a, double b) { return b > 0 ? a / b : 0; }
double number(std::uint64_t value) { return static_cast<double>(value); }
double seconds(std::uint64_t ns) { return number(ns) * 1e-9; }

struct ranked {
  bottleneck who;
  const capacity* of;
};

// Calls `visit` with each count of `a` and the same of `b`.
template <class Function>
void for_each_count(line_counts& a, const line_counts& b, Function&& visit) {
  visit(a.time_ns, b.time_ns);
  visit(a.batches, b.batches);
  visit(a.planned, b.planned);
  visit(a.samples, b.samples);
  visit(a.quarantined, b.quarantined);
  visit(a.reads, b.reads);
  visit(a.read_bytes, b.read_bytes);
  visit(a.read_ns, b.read_ns);
  visit(a.rows_read, b.rows_read);
  visit(a.held_back_ns, b.held_back_ns);
  visit(a.io_awake_ns, b.io_awake_ns);
  visit(a.rows_made, b.rows_made);
  visit(a.decode_ns, b.decode_ns);
  visit(a.decode_wait_ns, b.decode_wait_ns);
  visit(a.transferred_rows, b.transferred_rows);
  visit(a.transfer_ns, b.transfer_ns);
  visit(a.timed_batches, b.timed_batches);
  visit(a.timed_rows, b.timed_rows);
  visit(a.device_copy_ns, b.device_copy_ns);
  visit(a.device_step_ns, b.device_step_ns);
  visit(a.device_stall_ns, b.device_stall_ns);
  visit(a.steps, b.steps);
  visit(a.step_ns, b.step_ns);
  visit(a.held_all_ns, b.held_all_ns);
  visit(a.stalled_ns, b.stalled_ns);
  visit(a.pause_ns, b.pause_ns);
  visit(a.ready_ns, b.ready_ns);
  visit(a.out_ns, b.out_ns);
}

}  // namespace

// Some are sums over threads that go on counting meanwhile: none may seem to run backwards.
line_counts operator-(line_counts a, const line_counts& b) noexcept {
  for_each_count(a, b, [](std::uint64_t& value, const std::uint64_t& before) { value -= std::min(value, before); });
  return a;
}

line_counts& line_counts::operator+=(const line_counts& other) noexcept {
  for_each_count(*this, other, [](std::uint64_t& value, const std::uint64_t& more) { value += more; });
  return *this;
}

namespace {

// Samples a second while the consumer was not between two epochs.
capacity over(std::uint64_t rows, std::uint64_t busy_ns, double places, double window_s) {
  const double busy_s = seconds(busy_ns);
  return busy_s < hardly_busy * window_s ? capacity() : capacity{places * ratio(number(rows), busy_s), false};
}

capacity capacity_of_reads(const line_counts& window, const line_setting& setting) {
  if (window.reads == 0 || window.read_ns == 0) return {};
  const double one_at_a_time = ratio(number(window.rows_read), seconds(window.read_ns));
  const double done = ratio(number(window.rows_read), seconds(window.time_ns));
  if (setting.reads_at_a_time == 0) return {std::max(one_at_a_time, done), true};
  const double held_back_share = ratio(seconds(window.held_back_ns), setting.io_threads * seconds(window.time_ns));
  const double full = setting.reads_at_a_time * one_at_a_time;
  if (held_back_share < held_back) return {full, true};
  // What has ended makes room for the next only when the I/O thread comes to it: reads that always wait show what that leaves.
  return {std::min(full, done / std::min(held_back_share, 1.0)), false};
}

capacity capacity_of_consumer(const line_counts& window) {
  const double batch = ratio(number(window.planned), number(window.batches));
  if (window.step_ns == 0) return {};
  return {batch * ratio(number(window.steps), seconds(window.step_ns)), false};
}

std::string percent(double share) { return str_cat(three_digits(share * 100), " %"); }

}  // namespace

verdict judge(const line_counts& window, const line_setting& setting) {
  verdict made;
  made.decode_threads = setting.decode_threads;
  made.reads_at_a_time = setting.reads_at_a_time;
  const std::uint64_t span_ns = window.time_ns - std::min(window.time_ns, window.pause_ns);
  if (window.planned == 0 || window.batches == 0 || span_ns == 0) {
    made.why = window.stalled_ns == 0 ? std::string("nothing was handed out in the window")
                                      : str_cat("nothing came for ", three_digits(seconds(window.stalled_ns)),
                                                " s of next(); reads_under_way() names reads that nobody answers");
    made.window_s = seconds(window.time_ns);
    if (span_ns != 0) made.stall_share = std::min(1.0, ratio(seconds(window.stalled_ns), seconds(span_ns)));
    return made;
  }
  const double window_s = seconds(span_ns);
  made.window_s = seconds(window.time_ns);
  made.samples_per_s = ratio(number(window.planned), window_s);
  made.stall_share = std::min(1.0, ratio(seconds(window.stalled_ns), window_s));

  made.read = capacity_of_reads(window, setting);
  const capacity io = over(window.rows_read, window.io_awake_ns, setting.io_threads, window_s);
  const bool io_limits = io.per_s > 0 && window.reads != 0 && (made.read.per_s == 0 || io.per_s < made.read.per_s);
  if (io_limits) made.read = io;
  made.decode = over(window.rows_made, window.decode_ns, setting.decode_threads, window_s);
  const bool is_timed = setting.on_device && window.timed_batches != 0;
  if (is_timed) {
    const std::uint64_t timed_ns = window.device_step_ns + window.device_stall_ns;
    made.transfer = over(window.timed_rows, window.device_copy_ns, 1, seconds(timed_ns));
    made.consumer = over(window.timed_rows, window.device_step_ns, 1, seconds(timed_ns));
    made.stall_share = ratio(seconds(window.device_stall_ns), seconds(timed_ns));
  } else if (!setting.on_device) {
    made.transfer = over(window.transferred_rows, window.transfer_ns, 1, window_s);
    made.consumer = capacity_of_consumer(window);
  }

  // Of such sources no more is known than what they gave, and that is what the line did, whoever held it up.
  const bool depth_is_known = io_limits || setting.reads_at_a_time != 0;
  constexpr capacity none;
  std::array<ranked, 4> order = {{{bottleneck::read, depth_is_known ? &made.read : &none},
                                  {bottleneck::decode, &made.decode},
                                  {bottleneck::transfer, &made.transfer},
                                  {bottleneck::consumer, &made.consumer}}};
  const auto known = std::partition(order.begin(), order.end(), [](const ranked& each) { return each.of->per_s > 0; });
  std::sort(order.begin(), known, [](const ranked& a, const ranked& b) { return a.of->per_s < b.of->per_s; });
  const auto count = static_cast<std::size_t>(known - order.begin());
  if (count == 0) {
    made.why = "no part took any time";
    return made;
  }
  // Most of the samples that there may be at a time are being read.
  const double rows_reading =
      ratio(number(window.rows_read), number(window.reads)) * ratio(seconds(window.read_ns), window_s);
  const bool reads_most =
      rows_reading > most * setting.batches_max * ratio(number(window.planned), number(window.batches));
  const auto name_it = [&](std::size_t first, std::size_t others_from) {
    made.who = order[first].who;
    if (others_from < count) {
      made.next = order[others_from].who;
      made.if_free = *order[others_from].of;
    }
  };
  const double least = order[0].of->per_s;
  const bool is_tied = count > 1 && order[1].of->per_s < least * tie;

  const double expected = depth_is_known || !reads_most ? confirmed : 1 / tie;
  // Where nothing was timed on a device, a wait may be there that the host does not see.
  const bool may_wait_unseen = setting.on_device && !is_timed;
  if (made.samples_per_s < expected * least && (made.stall_share > little_stall || may_wait_unseen)) {
    // Nothing that was counted explains the waiting: every part could do more.
    if (made.read.at_least && reads_most) {
      made.read.per_s = made.samples_per_s;
      made.who = bottleneck::read;
      const std::size_t other = order[0].who == bottleneck::read ? 1 : 0;
      if (other < count) {
        made.next = order[other].who;
        made.if_free = *order[other].of;
      }
      made.why = "most samples are being read, and no other part is busy";
      return made;
    }
    if (order[0].who == bottleneck::consumer) {
      made.who = bottleneck::variance;
    } else {
      made.who = bottleneck::unclear;
      if (setting.on_device && !is_timed) {
        made.why =
            str_cat("nothing on the host holds the line up; what copies and steps take on the device is not known");
        return made;
      }
      made.why = str_cat(name(order[0].who), " could do ", count_text(static_cast<std::uint64_t>(least)),
                         "/s, and was idle while the consumer waited ", percent(made.stall_share), " of the time");
      return made;
    }
  } else {
    name_it(0, is_tied ? 2 : 1);
    if (is_tied) made.also = order[1].who;
    if (made.who == bottleneck::consumer && !is_tied && made.stall_share > much_stall) made.who = bottleneck::variance;
  }
  if (made.who == bottleneck::variance) {
    made.also.reset();
    made.next.reset();
    made.if_free = {};
    made.why = str_cat("the consumer waits ", percent(made.stall_share),
                       " of the time, though each part could do more than it takes");
    return made;
  }
  if (made.who == bottleneck::consumer && seconds(window.held_all_ns) > 0.5 * window_s) {
    made.why = str_cat("it holds all ", setting.batches_max, " batches that there may be at a time");
  }
  if (made.who == bottleneck::consumer && made.why.empty() && made.stall_share > little_stall) {
    made.why = str_cat("it waits ", percent(made.stall_share),
                       " of the time all the same, which more prefetch_batches may even out");
  }
  if (made.who == bottleneck::read && io_limits) {
    made.why =
        setting.io_threads == 1 ? "the I/O thread is busy all the time" : "the I/O threads are busy all the time";
  }
  return made;
}

}  // namespace stages

namespace {

std::string rate(const capacity& of) {
  return str_cat(of.at_least ? "at least " : "", count_text(static_cast<std::uint64_t>(std::llround(of.per_s))), "/s");
}

std::string clause(const verdict& of, bottleneck who) {
  switch (who) {
    case bottleneck::read:
      return of.reads_at_a_time == 0   ? str_cat("its sources give ", rate(of.read))
             : of.reads_at_a_time == 1 ? str_cat("1 read at a time gives ", rate(of.read))
                                       : str_cat(of.reads_at_a_time, " reads at a time give ", rate(of.read));
    case bottleneck::decode:
      return str_cat(of.decode_threads, of.decode_threads == 1 ? " thread gives " : " threads give ", rate(of.decode));
    case bottleneck::transfer:
      return str_cat("copies give ", rate(of.transfer));
    default:
      return str_cat("it takes ", rate(of.consumer));
  }
}

}  // namespace

std::string verdict::to_string() const {
  std::string text(name(who));
  if (who == bottleneck::variance || who == bottleneck::unclear || who == bottleneck::unknown) {
    return why.empty() ? text : str_cat(text, ": ", why);
  }
  if (also) str_append(text, " and ", name(*also));
  str_append(text, ": ", clause(*this, who));
  if (also) str_append(text, ", ", clause(*this, *also));
  if (!why.empty()) str_append(text, "; ", why);
  if (next) str_append(text, ". If ", also ? "both" : "it", " were free: ", name(*next), ", ", rate(if_free));
  return text;
}

}  // namespace leat
