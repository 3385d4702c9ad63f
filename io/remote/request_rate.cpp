#include "io/remote/request_rate.hpp"

#include <algorithm>
#include <cmath>

namespace leat::io {
namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t second = 1'000 * ms;

constexpr std::uint64_t interval_ns = 100 * ms;
constexpr std::uint64_t interval_with_rate_ns = 300 * ms;
constexpr std::uint64_t interval_most_ns = second;
constexpr std::uint32_t interval_least = 24;
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
// Of those that a rate has under way on the average.
constexpr double in_flight_share = 1.1;
constexpr std::uint32_t answers_of_mean = 64;
constexpr std::uint64_t look_again_ns = ms;
// Requests that may be sent at once.
constexpr double burst_s = 0.02;
constexpr std::uint64_t ignored_first_ns = 30 * second;
constexpr std::uint64_t ignored_most_ns = 600 * second;
// After so long without a refusal, and without a wait for it, there is no rate any more.
constexpr std::uint64_t rate_forgotten_ns = 30 * second;

double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

std::uint32_t request_rate::in_flight_most() const noexcept {
  return static_cast<std::uint32_t>(std::max(1.0, std::ceil(in_flight_share * rate_ * answer_s_)));
}

std::uint64_t request_rate::wait(std::uint64_t now_ns, std::uint32_t in_flight) {
  if (rate_ == 0) return 0;
  if (in_flight >= in_flight_most()) {
    interval_.was_limiting = true;
    return look_again_ns;
  }
  if (now_ns > tokens_at_ns_) {
    tokens_ = std::min(std::max(1.0, rate_ * burst_s), tokens_ + rate_ * seconds_of(now_ns - tokens_at_ns_));
    tokens_at_ns_ = now_ns;
  }
  if (tokens_ >= 1) {
    tokens_ -= 1;
    return 0;
  }
  interval_.was_limiting = true;
  return static_cast<std::uint64_t>((1 - tokens_) / rate_ * 1e9) + 1;
}

request_rate::counted request_rate::count(std::uint64_t asked_ns, std::uint64_t now_ns, bool was_refused) {
  if (!was_refused) {
    answers_ = std::min(answers_ + 1, answers_of_mean);
    answer_s_ += (seconds_of(now_ns - std::min(now_ns, asked_ns)) - answer_s_) / answers_;
  }
  // What was asked before the last decrease says nothing new.
  if (asked_ns < decreased_ns_) return counted::not_at_all;
  if (interval_.began_ns == 0) {
    if (!was_refused && rate_ == 0) return counted::not_at_all;
    // Answers to what was asked since the last decrease begin to come a round trip later.
    interval_.began_ns = rate_ > 0 ? now_ns : std::max(asked_ns, decreased_ns_);
  }
  ++(was_refused ? interval_.refused : interval_.answered);
  const std::uint64_t span_ns = now_ns - std::min(now_ns, interval_.began_ns);
  const std::uint32_t total = interval_.answered + interval_.refused;
  const bool is_flood = rate_ == 0 && total >= flood_least && span_ns >= flood_ns && interval_.refused > total / 2;
  const bool is_full = total >= interval_least && span_ns >= (rate_ > 0 ? interval_with_rate_ns : interval_ns);
  if (!is_full && !is_flood && (span_ns < interval_most_ns || total < 2)) return counted::in_an_interval;
  last_ = interval_;
  interval_ = {.began_ns = now_ns};
  evaluate(last_, now_ns);
  return counted::at_its_end;
}

void request_rate::evaluate(const interval& seen, std::uint64_t now_ns) {
  if (seen.refused == 0) {
    alike_ = 0;
    refused_all_ = false;
    if (seen.answered * share_at_first_ > 3) rate_at_first_ = 0;
    if (rate_ > 0) grow(seen, now_ns);
    if (rate_ == 0) interval_ = {};
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
    interval_ = {};
    ignored_for_ns_ = std::clamp(2 * ignored_for_ns_, ignored_first_ns, ignored_most_ns);
    ignored_until_ns_ = now_ns + ignored_for_ns_;
    return;
  }
  // Of a moment that is known too little of, more than that, and the next interval tells.
  const bool is_short = now_ns - seen.began_ns < interval_ns;
  const double served = (is_short ? 2 : served_share) * seen.answered / span_s;
  refused_at_ = sent;
  rate_ = std::max(rate_least, rate_ > 0 ? std::min(decrease * rate_, served) : served);
  tokens_ = 0;
  tokens_at_ns_ = now_ns;
  decreased_ns_ = now_ns;
  interval_ = {};
}

// Much fewer requests, and hardly fewer refusals among them, twice in a row.
bool request_rate::are_not_about_the_rate(double sent, double share) {
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
void request_rate::grow(const interval& seen, std::uint64_t now_ns) {
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
