#include "io/remote/store_state.hpp"

#include <algorithm>
#include <cmath>

namespace leat::io {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t second = 1'000 * ms;

// Fewer may be one connection's fault, or a load balancer's that has closed some.
constexpr std::uint32_t failures_of_away = 4;
constexpr std::uint64_t failing_of_away_ns = 100 * ms;
constexpr std::uint32_t refusals_of_away = 16;
constexpr std::uint64_t refusing_of_away_ns = 500 * ms;
// Who asks whether the store is back may be held up.
constexpr std::uint64_t look_again_ns = 20 * ms;
constexpr double ramp_first = 8;
constexpr double ramp_most = 1024;

constexpr std::uint64_t window_ns = 100 * ms;
constexpr std::uint64_t window_with_rate_ns = 300 * ms;
constexpr std::uint64_t window_most_ns = second;
constexpr std::uint32_t window_least = 24;
// Where more than half are refused, before there is a rate.
constexpr std::uint64_t flood_ns = 20 * ms;
constexpr std::uint32_t flood_least = 64;
constexpr double rate_least = 1;
constexpr double decrease = 0.95;
constexpr double served_share = 0.97;
// Of refusals, where there is no rate yet.
constexpr double share_borne = 0.04;
// Of the rate at which some were refused.
constexpr double near = 0.9;
constexpr double beyond = 1.1;
// Requests that may be sent at once.
constexpr double burst_s = 0.02;
constexpr std::uint64_t ignored_first_ns = 30 * second;
constexpr std::uint64_t ignored_most_ns = 600 * second;
// After so long without a refusal, and without a wait for it, there is no rate any more.
constexpr std::uint64_t rate_forgotten_ns = 30 * second;

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

store_state::condition store_state::now() const noexcept {
  if (is_away_) return condition::away;
  return rate_ > 0 || failures_ >= refusals_of_away ? condition::throttled : condition::healthy;
}

std::uint64_t store_state::admit(std::uint64_t now_ns, ticket& given) {
  if (is_away_) {
    if (is_probed_) return look_again_ns;
    if (now_ns < probe_at_ns_) return probe_at_ns_ - now_ns;
    is_probed_ = true;
  } else {
    if (ramp_ > 0 && in_flight_ >= ramp_) return look_again_ns / 4;
    if (const std::uint64_t wait = wait_for_rate(now_ns); wait != 0) return wait;
  }
  ++in_flight_;
  given = {.asked_ns = now_ns, .is_probe = is_away_};
  return 0;
}

std::uint64_t store_state::wait_for_rate(std::uint64_t now_ns) {
  if (rate_ == 0) return 0;
  if (now_ns > tokens_at_ns_) {
    tokens_ = std::min(std::max(1.0, rate_ * burst_s), tokens_ + rate_ * seconds_of(now_ns - tokens_at_ns_));
    tokens_at_ns_ = now_ns;
  }
  if (tokens_ >= 1) {
    tokens_ -= 1;
    return 0;
  }
  window_.was_limiting = true;
  return static_cast<std::uint64_t>((1 - tokens_) / rate_ * 1e9) + 1;
}

void store_state::returned(const ticket& of) {
  if (in_flight_ > 0) --in_flight_;
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
    window_ = {};
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

void store_state::count(const ticket& of, std::uint64_t now_ns, bool was_refused) {
  // What was asked before the last decrease says nothing new, and one that is away says nothing of the rate.
  if (of.asked_ns < decreased_ns_ || is_away_ || of.is_probe) return;
  if (window_.began_ns == 0) {
    if (!was_refused && rate_ == 0) return;
    window_.began_ns = std::max(of.asked_ns, decreased_ns_);
  }
  ++(was_refused ? window_.refused : window_.answered);
  const std::uint64_t span_ns = now_ns - std::min(now_ns, window_.began_ns);
  const std::uint32_t total = window_.answered + window_.refused;
  const bool is_flood = rate_ == 0 && total >= flood_least && span_ns >= flood_ns && window_.refused > total / 2;
  const bool is_full = total >= window_least && span_ns >= (rate_ > 0 ? window_with_rate_ns : window_ns);
  if (!is_full && !is_flood && (span_ns < window_most_ns || total < 2)) return;
  const window seen = window_;
  window_ = {.began_ns = now_ns};
  evaluate(seen, now_ns);
}

void store_state::evaluate(const window& seen, std::uint64_t now_ns) {
  if (seen.refused == 0) {
    alike_ = 0;
    refused_all_ = false;
    if (seen.answered * share_at_first_ > 3) rate_at_first_ = 0;
    if (rate_ > 0) grow(seen, now_ns);
    if (rate_ == 0) window_ = {};
    return;
  }
  // Of a store that serves nothing, silence says how long. What it served when that ended says nothing of a rate.
  const bool has_ended = refused_all_;
  refused_all_ = seen.answered == 0;
  if (refused_all_ || has_ended || now_ns < ignored_until_ns_) return;
  const double span_s = seconds_of(now_ns - seen.began_ns);
  const double sent = (seen.answered + seen.refused) / span_s;
  const double share = static_cast<double>(seen.refused) / (seen.answered + seen.refused);
  if (rate_ == 0 && share < share_borne) return;
  if (are_not_about_the_rate(sent, share)) {
    rate_ = 0;
    rate_at_first_ = 0;
    window_ = {};
    ignored_for_ns_ = std::clamp(2 * ignored_for_ns_, ignored_first_ns, ignored_most_ns);
    ignored_until_ns_ = now_ns + ignored_for_ns_;
    return;
  }
  // Of a moment that is known too little of, more than that, and the next window tells.
  const bool is_short = now_ns - seen.began_ns < window_ns;
  const double served = (is_short ? 2 : served_share) * seen.answered / span_s;
  refused_at_ = sent;
  rate_ = std::max(rate_least, rate_ > 0 ? std::min(decrease * rate_, served) : served);
  tokens_ = 0;
  tokens_at_ns_ = now_ns;
  decreased_ns_ = now_ns;
}

// Much fewer requests, and hardly fewer refusals among them, twice in a row.
bool store_state::are_not_about_the_rate(double sent, double share) {
  if (rate_at_first_ == 0) {
    rate_at_first_ = sent;
    share_at_first_ = share;
  }
  if (sent > 0.7 * rate_at_first_) {
    rate_at_first_ = std::max(rate_at_first_, sent);
    share_at_first_ = std::max(share_at_first_, share);
    alike_ = 0;
    return false;
  }
  alike_ = share > 0.5 * share_at_first_ ? alike_ + 1 : 0;
  if (alike_ < 2) return false;
  alike_ = 0;
  return true;
}

// Slowly at first, and ever faster, as a store that had a bad minute comes back.
void store_state::grow(const window& seen, std::uint64_t now_ns) {
  const std::uint64_t since_ns = now_ns - decreased_ns_;
  if (!seen.was_limiting) {
    if (since_ns > rate_forgotten_ns) rate_ = 0;
    return;
  }
  // Far below, a moment that told little was taken for the rate.
  if (rate_ < near * refused_at_) {
    rate_ = std::min(2 * rate_, (rate_ + refused_at_) / 2);
    return;
  }
  // Beyond, whatever refused has ended.
  if (rate_ > beyond * refused_at_) {
    rate_ *= 2;
    return;
  }
  const double fives = seconds_of(since_ns) / 5;
  const double share = 0.02 + 0.02 * fives * fives;
  rate_ += std::max(rate_least, share * rate_) * seconds_of(now_ns - seen.began_ns);
}

}  // namespace leat::io
