#include "io/remote/store_state.hpp"

#include <algorithm>
#include <cmath>

namespace leat::io {
namespace {

constexpr std::uint64_t ms = 1'000'000;

// Fewer may be one connection's fault, or a load balancer's that has closed some.
constexpr std::uint32_t failures_of_away = 4;
constexpr std::uint64_t failing_of_away_ns = 100 * ms;
constexpr std::uint32_t refusals_of_away = 16;
constexpr std::uint64_t refusing_of_away_ns = 500 * ms;
// Who asks whether the store is back may be held up.
constexpr std::uint64_t look_again_ns = 20 * ms;
constexpr double ramp_first = 8;
constexpr double ramp_most = 1024;

// That a prefix without a refusal is not throttled as the others are: chances of e^-14, by three windows at the least, as a limit of all begins
// with a moment in which nothing is refused.
constexpr double evidence_enough = 14;
constexpr double evidence_of_window_most = 5;
// Of a window's refusals, to be evidence of anything.
constexpr double share_least = 0.02;

}  // namespace

store_state::condition store_state::now() const noexcept {
  if (is_away_) return condition::away;
  return rate() > 0 || failures_ >= refusals_of_away ? condition::throttled : condition::healthy;
}

std::uint64_t store_state::admit(std::uint64_t now_ns, std::uint32_t lane, ticket& given) {
  if (is_away_) {
    if (is_probed_) return look_again_ns;
    if (now_ns < probe_at_ns_) return probe_at_ns_ - now_ns;
    is_probed_ = true;
  } else {
    if (ramp_ > 0 && in_flight_ >= ramp_) return look_again_ns / 4;
    if (const std::uint64_t wait = rate_of(lane).wait(now_ns, is_by_prefix_ ? lanes_[lane].in_flight : in_flight_);
        wait != 0)
      return wait;
  }
  ++in_flight_;
  ++lanes_[lane].in_flight;
  given = {.asked_ns = now_ns, .lane = lane, .is_probe = is_away_};
  return 0;
}

void store_state::returned(const ticket& of) {
  --in_flight_;
  --lanes_[of.lane].in_flight;
  if (of.is_probe) is_probed_ = false;
}

void store_state::dropped(const ticket& of) { returned(of); }

void store_state::answered(const ticket& of, std::uint64_t now_ns) {
  returned(of);
  has_answered_ = true;
  failures_ = 0;
  if (is_away_) {
    is_away_ = false;
    ramp_ = ramp_first;
    all_.begin_anew();
    for (prefix& each : lanes_) each.rate.begin_anew();
  } else if (ramp_ > 0) {
    // Twice as many after each round trip.
    ramp_ += 1;
    if (ramp_ > ramp_most) ramp_ = 0;
  }
  count(of, now_ns, false);
}

void store_state::refused(const ticket& of, std::uint64_t now_ns, std::uint64_t retry_after_ns, const pauses& between) {
  returned(of);
  has_answered_ = true;
  if (failures_ == 0) were_all_refusals_ = true;
  had_no_use(of, now_ns, retry_after_ns, between);
  count(of, now_ns, true);
}

void store_state::failed(const ticket& of, std::uint64_t now_ns, const pauses& between) {
  returned(of);
  were_all_refusals_ = false;
  had_no_use(of, now_ns, 0, between);
}

//   least_ns   that the store wants to be left alone for. It may be wrong by far, so that one request asks before, ever more seldom
void store_state::had_no_use(const ticket& of, std::uint64_t now_ns, std::uint64_t least_ns, const pauses& between) {
  if (failures_++ == 0) failing_since_ns_ = now_ns;
  const std::uint64_t failing_ns = now_ns - std::min(now_ns, failing_since_ns_);
  if (!is_away_) {
    const bool is_long = were_all_refusals_ ? failures_ >= refusals_of_away && failing_ns >= refusing_of_away_ns
                                            : failures_ >= failures_of_away && failing_ns >= failing_of_away_ns;
    if (!is_long) return;
    is_away_ = true;
    is_probed_ = false;
    pause_ns_ = between.first_ns;
  } else if (!of.is_probe) {
    return;  // it was asked before
  } else {
    pause_ns_ = std::min(2 * pause_ns_, std::max(between.most_ns, least_ns));
  }
  const std::uint64_t wait_ns = std::max(pause_ns_, std::min(least_ns, std::max(pause_ns_, between.most_ns)));
  std::uniform_int_distribution<std::uint64_t> some(wait_ns - wait_ns / 4, wait_ns);
  probe_at_ns_ = now_ns + some(random_);
}

std::uint32_t store_state::lane_of(std::string_view name) {
  if (const auto known = lane_by_name_.find(name); known != lane_by_name_.end()) return known->second;
  if (lanes_.size() >= lanes_max) return 0;
  lanes_.emplace_back();
  const auto lane = static_cast<std::uint32_t>(lanes_.size() - 1);
  lane_by_name_.emplace(name, lane);
  return lane;
}

double store_state::rate() const noexcept {
  if (!is_by_prefix_) return all_.rate();
  double least = 0;
  for (const prefix& each : lanes_) {
    if (each.rate.rate() > 0 && (least == 0 || each.rate.rate() < least)) least = each.rate.rate();
  }
  return least;
}

void store_state::count(const ticket& of, std::uint64_t now_ns, bool was_refused) {
  // One that is away says nothing of the rate.
  if (is_away_ || of.is_probe) return;
  prefix& lane = lanes_[of.lane];
  request_rate& rate_now = rate_of(of.lane);
  const request_rate::counted how = rate_now.count(of.asked_ns, now_ns, was_refused);
  if (is_by_prefix_) {
    const bool has_ended = how == request_rate::counted::at_its_end && rate_now.last().refused == 0;
    if (has_ended && rate() == 0) is_by_prefix_ = false;
    return;
  }
  ++(was_refused ? lane.refused : lane.answered);
  if (how == request_rate::counted::at_its_end) compare_lanes();
}

// Of those that a window's refusals are of: where a prefix had none of them, again and again, each prefix has a rate of its own.
void store_state::compare_lanes() {
  double answered = 0;
  double refused = 0;
  for (const prefix& each : lanes_) {
    answered += each.answered;
    refused += each.refused;
  }
  const double share = refused / std::max(1.0, answered + refused);
  for (prefix& each : lanes_) {
    if (each.refused > 0) {
      each.evidence = 0;
    } else if (share >= share_least && refused >= 2) {
      each.evidence += std::min(evidence_of_window_most, -std::log1p(-std::min(share, 0.5)) * each.answered);
      if (each.evidence >= evidence_enough) is_by_prefix_ = true;
    }
    each.answered = each.refused = 0;
  }
  if (!is_by_prefix_) return;
  all_ = request_rate();
  for (prefix& each : lanes_) each = {.in_flight = each.in_flight};
}

}  // namespace leat::io
