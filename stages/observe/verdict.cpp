#include "stages/observe/verdict.hpp"

#include "base/option_words.hpp"
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
// Of the samples that may be on their way to the consumer at a time; of the time that the next batch waits for a place.
constexpr double most = 0.5;
// A part that does its work in less than this of the time is not worth a capacity.
constexpr double hardly_busy = 1e-4;

double ratio(double a, double b) { return b > 0 ? a / b : 0; }
double number(std::uint64_t value) { return static_cast<double>(value); }
double seconds(std::uint64_t ns) { return number(ns) * 1e-9; }

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
  visit(a.rows_held, b.rows_held);
  visit(a.held_back_ns, b.held_back_ns);
  visit(a.io_awake_ns, b.io_awake_ns);
  visit(a.rows_made, b.rows_made);
  visit(a.decode_ns, b.decode_ns);
  visit(a.decode_wait_ns, b.decode_wait_ns);
  visit(a.batch_wait_ns, b.batch_wait_ns);
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

/// A window while it is judged: what is asked of it more than once.
struct looked_at {
  const line_counts& window;
  const line_setting& setting;
  double span_s = 0;  // without the time between two epochs
  bool is_timed = false;
  // Of sources that are no files no more is known than what they gave, and that is what the line did, whoever held it up.
  bool depth_is_known = false;
  bool reads_most = false;   // most of the samples that may be on their way to the consumer are being read
  bool waits_place = false;  // the line was full most of the time, of batches that took as long as their parts
  // Without the time between two epochs, in which a line is full because nobody asks.
  [[nodiscard]] double batch_wait_s() const {
    return seconds(window.batch_wait_ns - std::min(window.batch_wait_ns, window.pause_ns));
  }
};

/// The parts that have something to do, the slowest first.
struct ranking {
  std::array<bottleneck, 4> parts;
  std::size_t count = 0;
};

// What a batch takes from its first read to its end, as far as it was counted. A line whose batches take up their places for much longer
// is held up elsewhere: by threads that wait for a core, say.
double batch_s(const looked_at& seen) {
  const line_counts& window = seen.window;
  const double batches = number(window.batches);
  const auto of_batch = [&](std::uint64_t ns) { return ratio(seconds(ns), batches); };
  // Of items that a part works on side by side, as many as a batch has.
  const auto side_by_side = [&](std::uint64_t ns, std::uint64_t items, double places) {
    return ratio(seconds(ns), number(items)) * std::max(1.0, places > 0 ? number(items) / batches / places : 1.0);
  };
  // Between two epochs all that there may be is here.
  const double ready_s = std::max(
      0.0, seconds(window.ready_ns) - static_cast<double>(seen.setting.batches_max) * seconds(window.pause_ns));
  return side_by_side(window.read_ns, window.reads, seen.setting.reads_at_a_time) + of_batch(window.io_awake_ns) +
         side_by_side(window.decode_ns, window.rows_made, seen.setting.decode_threads) +
         ratio(seconds(window.decode_wait_ns), number(window.rows_made)) + of_batch(window.transfer_ns) +
         ratio(seconds(window.device_copy_ns + window.device_step_ns), number(window.timed_batches)) +
         ratio(ready_s, batches) + of_batch(std::max(window.step_ns, window.out_ns));
}

// Of a store that holds reads up; empty where none does.
std::string words_of(const store_now& store) {
  constexpr double seldom = 0.05;
  const std::string waiting = str_cat(", and ", count_text(store.reads_waiting),
                                      store.reads_waiting == 1 ? " read waits" : " reads wait", " for it");
  if (store.away_s > 0)
    return str_cat("the store has answered nothing of use for ", three_digits(store.away_s), " s", waiting);
  if (store.requests_per_s_max > 0 && store.reads_waiting > 0) {
    return str_cat("the store allows ", count_text(static_cast<std::uint64_t>(std::llround(store.requests_per_s_max))),
                   " requests/s", waiting);
  }
  if (number(store.refusals) <= seldom * number(store.requests)) return {};
  return str_cat("the store has refused ", count_text(store.refusals), " of ", count_text(store.requests), " requests");
}

// Whatever else was found of reads, or nothing: they wait for the network.
void blame_store(verdict& made, const store_now& store) {
  const std::string words = words_of(store);
  const bool is_read = made.who == bottleneck::read;
  const bool is_nobody = made.who == bottleneck::unclear || made.who == bottleneck::unknown;
  if (words.empty() || (!is_read && (!is_nobody || store.reads_waiting == 0))) return;
  if (!is_read) made.read = {made.samples_per_s, true};
  made.who = bottleneck::read;
  made.why = is_nobody || made.why.empty() ? words : str_cat(words, "; ", made.why);
}

verdict of_nothing(const looked_at& seen) {
  const line_counts& window = seen.window;
  verdict made;
  made.why = window.stalled_ns == 0 ? std::string("nothing was handed out in the window")
                                    : str_cat("nothing came for ", three_digits(seconds(window.stalled_ns)),
                                              " s of next(); reads_under_way() names reads that nobody answers");
  if (seen.span_s > 0) made.stall_share = std::min(1.0, ratio(seconds(window.stalled_ns), seen.span_s));
  return made;
}

// Fills in what each part can do, what the line did, and what `seen` is asked for.
verdict measure(looked_at& seen) {
  const line_counts& window = seen.window;
  const line_setting& setting = seen.setting;
  verdict made;
  made.samples_per_s = ratio(number(window.planned), seen.span_s);
  made.stall_share = std::min(1.0, ratio(seconds(window.stalled_ns), seen.span_s));

  made.read = capacity_of_reads(window, setting);
  const capacity io = over(window.rows_read, window.io_awake_ns, setting.io_threads, seen.span_s);
  made.io_threads_limit = io.per_s > 0 && window.reads != 0 && (made.read.per_s == 0 || io.per_s < made.read.per_s);
  if (made.io_threads_limit) made.read = io;
  made.decode = over(window.rows_made, window.decode_ns, setting.decode_threads, seen.span_s);
  seen.is_timed = setting.on_device && window.timed_batches != 0;
  if (seen.is_timed) {
    const double timed_s = seconds(window.device_step_ns + window.device_stall_ns);
    made.transfer = over(window.timed_rows, window.device_copy_ns, 1, timed_s);
    made.consumer = over(window.timed_rows, window.device_step_ns, 1, timed_s);
    made.stall_share = ratio(seconds(window.device_stall_ns), timed_s);
  } else if (!setting.on_device) {
    made.transfer = over(window.transferred_rows, window.transfer_ns, 1, seen.span_s);
    made.consumer = capacity_of_consumer(window);
  }

  seen.depth_is_known = made.io_threads_limit || setting.reads_at_a_time != 0;
  const double rows_reading =
      ratio(number(window.rows_read - std::min(window.rows_held, window.rows_read)), number(window.reads)) *
      ratio(seconds(window.read_ns), seen.span_s);
  // What the consumer holds nobody can be reading.
  const double batches_coming =
      setting.batches_max - std::min(ratio(seconds(window.out_ns), seen.span_s), 1.0 * setting.batches_max);
  seen.reads_most = rows_reading > most * batches_coming * ratio(number(window.planned), number(window.batches));
  const double place_s = seen.span_s * setting.batches_max / number(window.batches);
  seen.waits_place = seen.batch_wait_s() > most * seen.span_s && batch_s(seen) > most * place_s;
  return made;
}

ranking rank(const verdict& made, bool depth_is_known) {
  ranking by;
  for (const bottleneck part : {bottleneck::read, bottleneck::decode, bottleneck::transfer, bottleneck::consumer}) {
    const bool is_known = made.capacity_of(part)->per_s > 0 && (part != bottleneck::read || depth_is_known);
    if (is_known) by.parts[by.count++] = part;
  }
  std::sort(by.parts.begin(), by.parts.begin() + static_cast<std::ptrdiff_t>(by.count),
            [&](bottleneck a, bottleneck b) { return made.capacity_of(a)->per_s < made.capacity_of(b)->per_s; });
  return by;
}

// The first that is left of them is what the others would wait for then.
void name_next(verdict& made, const ranking& by, std::size_t at) {
  if (at >= by.count) return;
  made.next = by.parts[at];
  made.if_free = *made.capacity_of(by.parts[at]);
}

void name_slowest(verdict& made, const ranking& by) {
  const auto per_s = [&](std::size_t at) { return made.capacity_of(by.parts[at])->per_s; };
  const bool is_tied = by.count > 1 && per_s(1) < per_s(0) * tie;
  made.who = by.parts[0];
  if (is_tied) made.also = by.parts[1];
  name_next(made, by, is_tied ? 2 : 1);
  if (made.who == bottleneck::consumer && !is_tied && made.stall_share > much_stall) made.who = bottleneck::variance;
}

// Nothing that was counted explains the waiting: every part could do more.
void name_nobody(verdict& made, const ranking& by, const looked_at& seen) {
  if (made.read.at_least && seen.reads_most) {
    made.read.per_s = made.samples_per_s;
    made.who = bottleneck::read;
    name_next(made, by, by.parts[0] == bottleneck::read ? 1 : 0);
    made.why = "most samples are being read, and no other part is busy";
  } else if (seen.setting.on_device && !seen.is_timed) {
    made.who = bottleneck::unclear;
    made.why = "nothing on the host holds the line up; what copies and steps take on the device is not known";
  } else if (by.parts[0] == bottleneck::consumer || seen.waits_place) {
    made.who = bottleneck::variance;
  } else {
    made.who = bottleneck::unclear;
    made.why = str_cat(name(by.parts[0]), " could do ",
                       count_text(static_cast<std::uint64_t>(made.capacity_of(by.parts[0])->per_s)),
                       "/s, and was idle while the consumer waited ", percent(made.stall_share), " of the time");
  }
}

std::string more_batches(const line_setting& setting) {
  return setting.short_of_memory ? str_cat("a larger ", spelled(option_id::host_bytes_max))
                                 : str_cat("more ", spelled(option_id::prefetch_batches));
}

void say_why(verdict& made, const looked_at& seen) {
  const line_setting& setting = seen.setting;
  if (made.who == bottleneck::variance) {
    made.also.reset();
    made.next.reset();
    made.if_free = {};
    made.why = str_cat("the consumer waits ", percent(made.stall_share),
                       " of the time, though each part could do more than it takes");
    if (seen.waits_place) {
      str_append(made.why, "; there may be ", setting.batches_max, setting.batches_max == 1 ? " batch" : " batches",
                 " at a time, and the next one waits for its place ",
                 percent(std::min(1.0, ratio(seen.batch_wait_s(), seen.span_s))), " of the time: give ",
                 more_batches(setting));
    }
  } else if (made.who == bottleneck::consumer && seconds(seen.window.held_all_ns) > 0.5 * seen.span_s) {
    made.why = str_cat("it holds all ", setting.batches_max, " batches that there may be at a time");
  } else if (made.who == bottleneck::consumer && made.stall_share > little_stall) {
    made.why = str_cat("it waits ", percent(made.stall_share), " of the time all the same, which ",
                       more_batches(setting), " may even out");
  } else if (made.who == bottleneck::decode && setting.cpu_quota > 0 && setting.cpu_quota < 1) {
    made.why = str_cat("a control group's CPU quota gives this process ", three_digits(setting.cpu_quota),
                       " of a core, and stops all its threads for the rest of each period: raise it");
  } else if (made.who == bottleneck::decode && setting.cores != 0 && setting.cores < setting.decode_threads) {
    made.why =
        str_cat(setting.decode_threads, " threads share ", setting.cores, setting.cores == 1 ? " core" : " cores",
                " (by affinity or a control group's CPU quota): give no more ", spelled(option_id::decode_threads),
                " than cores, or more cores");
  } else if (made.who == bottleneck::read && made.io_threads_limit) {
    made.why = str_cat(setting.io_threads == 1 ? "the I/O thread is" : "the I/O threads are",
                       " busy all the time: give more ", spelled(option_id::io_threads), ", not a deeper queue");
  }
  // Its rate is of all samples.
  if (made.who == bottleneck::read && seen.window.rows_held != 0) {
    str_append(made.why, made.why.empty() ? "" : "; ", "nothing is read of ",
               percent(std::min(1.0, ratio(number(seen.window.rows_held), number(seen.window.rows_read)))),
               " of the samples, which stay on the device");
  }
}

}  // namespace

verdict judge(const line_counts& window, const line_setting& setting) {
  looked_at seen{.window = window, .setting = setting};
  seen.span_s = seconds(window.time_ns - std::min(window.time_ns, window.pause_ns));
  const bool is_empty = window.planned == 0 || window.batches == 0 || seen.span_s == 0;
  verdict made = is_empty ? of_nothing(seen) : measure(seen);
  made.decode_threads = setting.decode_threads;
  made.reads_at_a_time = setting.reads_at_a_time;
  made.io_threads = setting.io_threads;
  made.window_s = seconds(window.time_ns);
  if (is_empty) {
    blame_store(made, setting.store);
    return made;
  }

  const ranking by = rank(made, seen.depth_is_known);
  if (by.count == 0) {
    made.why = "no part took any time";
    return made;
  }
  const double expected = seen.depth_is_known || !seen.reads_most ? confirmed : 1 / tie;
  // Where nothing was timed on a device, a wait may be there that the host does not see.
  const bool may_wait_unseen = setting.on_device && !seen.is_timed;
  const bool was_idle = made.samples_per_s < expected * made.capacity_of(by.parts[0])->per_s;
  if (was_idle && (made.stall_share > little_stall || may_wait_unseen)) {
    name_nobody(made, by, seen);
  } else {
    name_slowest(made, by);
  }
  say_why(made, seen);
  blame_store(made, setting.store);
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
      if (of.io_threads_limit) {
        return str_cat(of.io_threads, of.io_threads == 1 ? " I/O thread gives " : " I/O threads give ", rate(of.read));
      }
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
