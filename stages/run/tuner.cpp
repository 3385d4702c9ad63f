#include "stages/run/tuner.hpp"

#include <algorithm>
#include <cmath>

namespace leat::stages {
namespace {

// A gain that is smaller is none: windows of one run differ by as much.
constexpr double least_gain = 1.02;
// Of the threads that the consumer's rate takes, that it gets; so many too many are worth a change.
constexpr double threads_kept = 1.2;
constexpr double threads_spare = 1.25;
// Decode threads that have a core for less of their jobs' time take it from others as well; fewer are tried if, with cores of their own,
// they would do so much more than is wanted.
constexpr double crowded = 0.9;
constexpr double enough = 1.05;
// Each thread may have begun one job before the window, or have one under way: an error of 5 % with so many of a thread.
constexpr std::uint64_t jobs_of_a_thread = 20;
// Until a setting that gained nothing, or one that was missed when it was given back, is tried again; twice as long each time.
constexpr std::uint32_t rest_after_growing = 12;
constexpr std::uint32_t rest_after_giving_back = 16;
constexpr std::uint32_t doublings_max = 8;

bottleneck slower_part(const verdict& window) {
  if (!(window.read.per_s > 0)) return bottleneck::decode;
  const bool reads = !(window.decode.per_s > 0) || window.read.per_s < window.decode.per_s;
  return reads ? bottleneck::read : bottleneck::decode;
}

std::uint32_t rounded_up(double value, std::uint32_t least, std::uint32_t most) {
  if (!(value > least)) return least;
  return value >= most ? most : static_cast<std::uint32_t>(std::ceil(value));
}

}  // namespace

double share_on_cores(const decode_work& before, const decode_work& now) noexcept {
  // Threads that were given back ended their last jobs in this window.
  if (now.jobs - before.jobs < jobs_of_a_thread * std::max(before.threads, now.threads)) return 1;
  if (now.busy_ns <= before.busy_ns || now.cpu_ns <= before.cpu_ns) return 1;
  return std::min(1.0,
                  static_cast<double>(now.cpu_ns - before.cpu_ns) / static_cast<double>(now.busy_ns - before.busy_ns));
}

std::optional<tuning_change> tuner::see(const verdict& window, double decode_on_cores) {
  if (window.who == bottleneck::unknown || !(window.samples_per_s > 0)) return std::nullopt;
  ++window_;
  if (tried_) {
    const tried change = *tried_;
    tried_.reset();
    if (has_failed(change, window, decode_on_cores < crowded)) {
      const concurrency_limits failed = now_;
      const bool grew = change.why == reason::grows;
      if (!grew) too_few_threads_ = failed.decode_threads;
      let_rest(change.before, grew ? rest_after_growing : rest_after_giving_back);
      now_ = change.before;
      quiet_ = 0;
      return tuning_change{failed, now_, grew ? "no gain" : "missed"};
    }
    if (change.takes_back) too_few_threads_ = change.before.decode_threads;
  }
  const bool stalls = window.stall_share > little_stall;
  stalled_ = window.stall_share > 2 * little_stall ? stalled_ + 1 : 0;
  if (is_frozen() && stalled_ >= stalled_windows) quiet_ = 0;
  std::optional<tuning_change> change;
  reason why = stalls ? reason::grows : reason::gives_back;
  if (!is_frozen()) {
    change = stalls ? grow(window) : give_back(window);
    if (!change) {
      why = reason::makes_room;
      change = make_room(window, decode_on_cores);
    }
  }
  if (!change) {
    quiet_ = std::min(quiet_ + 1, quiet_windows);
    return std::nullopt;
  }
  quiet_ = 0;
  // Rare long jobs make a trainer wait some windows after the one that judged what was given back. The next window says whether more
  // threads were the help.
  const bool takes_back = stalls && now_.decode_threads == given_back_to_ && change->to.decode_threads > given_back_to_;
  if (why != reason::grows) given_back_to_ = change->to.decode_threads;
  tried_ = tried{.before = now_, .samples_per_s = window.samples_per_s, .why = why, .takes_back = takes_back};
  now_ = change->to;
  return change;
}

bool tuner::has_failed(const tried& change, const verdict& window, bool is_crowded) const noexcept {
  const bool stalls = window.stall_share > little_stall;
  const bool lost = window.samples_per_s * least_gain < change.samples_per_s;
  const bool gained = window.samples_per_s >= change.samples_per_s * least_gain;
  // Other limits take no cores from the trainer.
  const bool more_threads =
      now_.decode_threads != change.before.decode_threads || now_.io_threads != change.before.io_threads;
  switch (change.why) {
    case reason::gives_back:
      return stalls || lost;
    case reason::makes_room:  // A trainer whose steps take less time may wait now and then.
      return lost || (stalls && !gained);
    case reason::grows:  // More threads can end a stall by making the trainer slower.
      return (stalls && !gained) || (more_threads && is_crowded && lost);
  }
  return false;
}

void tuner::let_rest(const concurrency_limits& other, std::uint32_t windows) noexcept {
  const std::array<bool, knobs> changed = {now_.decode_threads != other.decode_threads,
                                           now_.queue_depth != other.queue_depth, now_.batches != other.batches,
                                           now_.io_threads != other.io_threads, now_.connections != other.connections};
  for (std::size_t i = 0; i < changed.size(); ++i) {
    if (!changed[i]) continue;
    rests_until_[i] = window_ + (windows << std::min(failures_[i], doublings_max));
    ++failures_[i];
  }
}

// Two parts that are as slow gain nothing one by one: they get more together.
std::optional<tuning_change> tuner::grow(const verdict& window) const {
  concurrency_limits to = now_;
  grow_for(window.who, window, to);
  if (window.also) grow_for(*window.also, window, to);
  // More batches ahead help whoever is fast enough on average.
  if (to == now_ && window.who != bottleneck::transfer) grow_for(bottleneck::variance, window, to);
  // Where the counts contradict each other (others take cores, say), what seems to be the slower one is worth a window.
  if (to == now_ && window.who == bottleneck::unclear) grow_for(slower_part(window), window, to);
  if (to == now_) return std::nullopt;
  return tuning_change{now_, to, name(window.who)};
}

void tuner::grow_for(bottleneck part, const verdict& window, concurrency_limits& to) const noexcept {
  switch (part) {
    case bottleneck::decode: {
      const std::uint32_t most = std::min(most_.decode_threads, 2 * now_.decode_threads);
      if (rests(threads) || now_.decode_threads >= most) return;
      const double wanted = window.next && window.decode.per_s > 0
                                ? 1.1 * now_.decode_threads * window.if_free.per_s / window.decode.per_s
                                : most;
      to.decode_threads = rounded_up(wanted, now_.decode_threads + 1, most);
      return;
    }
    case bottleneck::read: {
      // Where the I/O threads are what limits, more at a time is no help.
      if (window.io_threads_limit) return grow_io_threads(window, to);
      if (!rests(lines)) to.connections = std::min(most_.connections, 2 * now_.connections);
      // Nor is a deeper queue where sources that are no files decide.
      if (rests(depth) || window.reads_at_a_time == 0 || window.io_threads == 0) return;
      const std::uint32_t each = std::max(1U, window.reads_at_a_time / window.io_threads);
      if (each < most_.queue_depth) to.queue_depth = std::min(most_.queue_depth, 2 * each);
      return;
    }
    case bottleneck::variance:
    case bottleneck::consumer:
    case bottleneck::unclear:
      if (rests(batches) || now_.batches >= most_.batches) return;
      to.batches = std::min(most_.batches, now_.batches + std::max(1U, now_.batches / 2));
      return;
    case bottleneck::transfer:
    case bottleneck::unknown:
      return;
  }
}

void tuner::grow_io_threads(const verdict& window, concurrency_limits& to) const noexcept {
  const std::uint32_t most = std::min(most_.io_threads, 2 * now_.io_threads);
  if (rests(readers) || now_.io_threads >= most) return;
  const double wanted =
      window.next && window.read.per_s > 0 ? 1.1 * now_.io_threads * window.if_free.per_s / window.read.per_s : most;
  to.io_threads = rounded_up(wanted, now_.io_threads + 1, most);
}

std::optional<tuning_change> tuner::give_back(const verdict& window) const {
  const double asked = window.consumer.per_s;
  const double made = window.decode.per_s;
  if (rests(threads) || now_.decode_threads <= 1 || !(asked > 0) || !(made > 0)) return std::nullopt;
  if (made * (now_.decode_threads - 1) < threads_spare * asked * now_.decode_threads) return std::nullopt;
  const std::uint32_t least = least_threads();
  if (least >= now_.decode_threads) return std::nullopt;
  concurrency_limits to = now_;
  to.decode_threads = rounded_up(threads_kept * now_.decode_threads * asked / made, least, now_.decode_threads - 1);
  return tuning_change{now_, to, "to spare"};
}

// Where some were too few before, half way there.
std::uint32_t tuner::least_threads() const noexcept {
  return too_few_threads_ == 0 ? 1 : (too_few_threads_ + now_.decode_threads + 1) / 2;
}

// What a job waits for a core looks like work to the verdict: without it a thread makes more. A job may also have waited for something
// else, so that no more than half of the threads go at once.
std::optional<tuning_change> tuner::make_room(const verdict& window, double decode_on_cores) const {
  const double made = window.decode.per_s;
  const std::uint32_t threads_now = now_.decode_threads;
  if (rests(threads) || threads_now <= 1 || !(made > 0)) return std::nullopt;
  if (!(decode_on_cores > 0) || decode_on_cores >= crowded) return std::nullopt;
  const bool stalls = window.stall_share > little_stall;
  const double wanted = stalls ? window.samples_per_s : window.consumer.per_s;
  const double of_one = made / threads_now / decode_on_cores;
  if (!(wanted > 0) || of_one * (threads_now - 1) < enough * wanted) return std::nullopt;
  const std::uint32_t least = std::max(least_threads(), (threads_now + 1) / 2);
  if (least >= threads_now) return std::nullopt;
  concurrency_limits to = now_;
  to.decode_threads = rounded_up(threads_kept * wanted / of_one, least, threads_now - 1);
  return tuning_change{now_, to, stalls ? name(window.who) : "to spare"};
}

}  // namespace leat::stages
