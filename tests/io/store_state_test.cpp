// A store's state beside stores that are away, that allow so many requests a second and that fail at random, by a clock of the test's own:
// thousands of seconds in milliseconds.
#include "io/remote/store_state.hpp"

#include "io/remote/shared_store.hpp"
#include "tests/support/seeds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace leat::testing {
namespace {

constexpr double second = 1e9;

enum class outcome : std::uint8_t { served, refused, failed };
struct reply {
  outcome how = outcome::served;
  double after_s = 0.005;
  double retry_after_s = 0;
};
/// What a store does with a request that comes at a time, in seconds.
using store = std::function<reply(double now_s)>;
/// Likewise, of a prefix.
using store_of_prefixes = std::function<reply(std::uint32_t prefix, double now_s)>;

/// Lets so many requests through a second, and a second's worth at once.
class allowance {
 public:
  explicit allowance(double rate) : rate_(rate), left_(rate) {}
  bool takes(double now_s) {
    left_ = std::min(rate_, left_ + rate_ * (now_s - at_s_));
    at_s_ = now_s;
    if (left_ < 1) return false;
    left_ -= 1;
    return true;
  }
  void set(double rate) { rate_ = rate; }

 private:
  double rate_;
  double left_;
  double at_s_ = 0;
};

/// Answers so many requests at a time.
class places {
 public:
  explicit places(std::size_t most) : most_(most) {}
  bool takes(double now_s, double for_s) {
    std::erase_if(until_s_, [&](double until_s) { return until_s <= now_s; });
    if (until_s_.size() >= most_) return false;
    until_s_.push_back(now_s + for_s);
    return true;
  }

 private:
  std::size_t most_;
  std::vector<double> until_s_;
};

struct played {
  double seconds = 0;
  std::uint64_t requests = 0;
  std::uint64_t served = 0;
  std::uint64_t refused = 0;
  std::uint64_t late_requests = 0;  // from 5 s on
  std::uint64_t late_refused = 0;
  double silent_s_most = 0;
  bool was_by_prefix = false;
};

/// So many reads of each prefix, so many at a time, as the client has them: one that had no use waits for a moment of its own, and all for the store.
class player {
 public:
  player(store_of_prefixes asked, std::uint32_t prefixes, std::uint64_t reads, std::uint64_t seed)
      : asked_(std::move(asked)), reads_(reads), state_(seed), random_(static_cast<unsigned>(seed)), lines_(prefixes) {}

  std::vector<played> run(std::size_t at_a_time) {
    for (std::uint32_t i = 0; i < lines_.size(); ++i) lines_[i].lane = state_.lane_of("/" + std::to_string(i));
    for (std::size_t i = 0; i < at_a_time; ++i) {
      for (line& each : lines_) begin(each);
    }
    send_what_may_be_sent();
    while (!events_.empty() && now_ns_ < 4'000 * second) {
      event next = events_.top();
      events_.pop();
      now_ns_ = next.at_ns;
      line& of = lines_[next.of];
      if (of.all.served < reads_) of.all.seconds = now_ns_ / second;
      of.all.silent_s_most = std::max(
          of.all.silent_s_most, static_cast<double>(state_.silent_ns(static_cast<std::uint64_t>(now_ns_))) / second);
      of.all.was_by_prefix = of.all.was_by_prefix || state_.is_by_prefix();
      if (next.what == kind::reply) settle(next);
      if (next.what == kind::waited) of.waiting.push_front(next.tries);
      if (next.what == kind::look) of.is_looking = false;
      send_what_may_be_sent();
    }
    std::vector<played> all;
    for (const line& each : lines_) all.push_back(each.all);
    return all;
  }
  /// After that, how many more may be sent in ten seconds of which none ends.
  std::uint32_t sent_without_an_end(std::uint32_t prefix) {
    std::uint32_t sent = 0;
    io::store_state::ticket ignored;
    for (int ms = 0; ms < 10'000; ++ms) {
      const auto now = static_cast<std::uint64_t>(now_ns_ + ms * 1e6);
      if (state_.admit(now, lines_[prefix].lane, ignored) == 0) ++sent;
    }
    return sent;
  }

 private:
  enum class kind : std::uint8_t { reply, waited, look };
  struct event {
    double at_ns = 0;
    std::uint64_t number = 0;
    kind what = kind::look;
    std::uint32_t of = 0;
    int tries = 0;
    reply said = {};
    io::store_state::ticket ticket = {};
    bool operator<(const event& other) const { return std::pair(at_ns, number) > std::pair(other.at_ns, other.number); }
  };
  struct line {
    std::uint32_t lane = 0;
    std::deque<int> waiting;  // the tries that each has had
    bool is_looking = false;
    std::uint64_t begun = 0;
    played all;
  };

  void begin(line& of) {
    if (of.begun++ < reads_) of.waiting.push_back(0);
  }
  void push(event next, double after_ns) {
    next.at_ns = now_ns_ + after_ns;
    next.number = ++numbers_;
    events_.push(next);
  }
  // In turns, as reads of many folders come.
  void send_what_may_be_sent() {
    for (bool has_sent = true; has_sent;) {
      has_sent = false;
      for (std::uint32_t i = 0; i < lines_.size(); ++i) has_sent = send_one(i) || has_sent;
    }
  }
  bool send_one(std::uint32_t number) {
    line& of = lines_[number];
    if (of.waiting.empty() || of.is_looking) return false;
    event sent{.what = kind::reply, .of = number, .tries = of.waiting.front()};
    const std::uint64_t wait = state_.admit(static_cast<std::uint64_t>(now_ns_), of.lane, sent.ticket);
    if (wait != 0) {
      of.is_looking = true;
      push({.what = kind::look, .of = number}, static_cast<double>(wait));
      return false;
    }
    of.waiting.pop_front();
    const double now_s = now_ns_ / second;
    sent.said = asked_(number, now_s);
    ++of.all.requests;
    if (now_s > 5) {
      ++of.all.late_requests;
      if (sent.said.how == outcome::refused) ++of.all.late_refused;
    }
    push(sent, sent.said.after_s * second);
    return true;
  }
  void settle(const event& ended) {
    const auto now = static_cast<std::uint64_t>(now_ns_);
    line& of = lines_[ended.of];
    if (ended.said.how == outcome::served) {
      state_.answered(ended.ticket, now);
      ++of.all.served;
      return begin(of);
    }
    if (ended.said.how == outcome::refused) {
      ++of.all.refused;
      state_.refused(ended.ticket, now, static_cast<std::uint64_t>(ended.said.retry_after_s * second), {});
    } else {
      state_.failed(ended.ticket, now, {});
    }
    const double most = std::min(0.005 * (1 << std::min(ended.tries, 10)), 0.25);
    const double wait =
        state_.now() == io::store_state::condition::away ? 0 : std::uniform_real_distribution<double>(0, most)(random_);
    push({.what = kind::waited, .of = ended.of, .tries = ended.tries + 1}, wait * second);
  }

  const store_of_prefixes asked_;
  const std::uint64_t reads_;
  io::store_state state_;
  std::minstd_rand random_;
  std::priority_queue<event> events_;
  std::vector<line> lines_;
  std::uint64_t numbers_ = 0;
  double now_ns_ = 0;
};

played play(const store& asked, std::uint64_t reads, std::size_t at_a_time, std::uint64_t seed) {
  return player([&](std::uint32_t, double now_s) { return asked(now_s); }, 1, reads, seed).run(at_a_time).front();
}

store always() {
  return [](double) { return reply{}; };
}

TEST(store_state, of_a_store_that_is_away_and_comes_back_costs_two_seconds_at_the_most_beside_that_time) {
  for_each_seed(2, [](std::uint64_t seed) {
    const double undisturbed = play(always(), 20'000, 256, seed).seconds;
    for (const double away_s : {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 3.0, 10.0, 60.0}) {
      for (const outcome how : {outcome::failed, outcome::refused}) {
        const played all = play(
            [&](double now_s) {
              const bool is_away = now_s > 0.1 && now_s < 0.1 + away_s;
              return is_away ? reply{.how = how, .after_s = 0.001} : reply{};
            },
            20'000, 256, seed);
        EXPECT_EQ(all.served, 20'000U);
        EXPECT_LE(all.seconds, undisturbed + away_s + 2) << away_s;
        EXPECT_LE(all.requests, 20'000 + 256 * 12 + 16 * away_s) << "one asks for all";
        EXPECT_NEAR(all.silent_s_most, away_s, 1.5);
      }
    }
  });
}

TEST(store_state, of_a_store_that_allows_so_many_requests_a_second_uses_nine_tenths_of_them_and_is_seldom_refused) {
  for_each_seed(2, [](std::uint64_t seed) {
    for (const double rate : {50.0, 300.0, 2'000.0}) {
      for (const std::size_t at_a_time : {std::size_t{8}, std::size_t{256}}) {
        if (static_cast<double>(at_a_time) / 0.005 < 1.2 * rate) continue;
        allowance allowed(rate);
        const auto reads = static_cast<std::uint64_t>(30 * rate);
        const played all = play(
            [&](double now_s) {
              return allowed.takes(now_s) ? reply{} : reply{.how = outcome::refused, .after_s = 0.001};
            },
            reads, at_a_time, seed);
        EXPECT_EQ(all.served, reads);
        EXPECT_LE(all.seconds, 30 / 0.9) << rate << " " << at_a_time;
        EXPECT_LE(static_cast<double>(all.late_refused), 0.05 * static_cast<double>(all.late_requests)) << rate;
      }
    }
  });
}

reply refusal() { return {.how = outcome::refused, .after_s = 0.001}; }

TEST(store_state, of_a_prefix_that_allows_so_many_requests_a_second_leaves_the_others_alone) {
  for_each_seed(5, [](std::uint64_t seed) {
    constexpr double answer_s = 0.05;
    allowance allowed(300);
    player reads(
        [&](std::uint32_t prefix, double now_s) {
          return prefix == 1 || allowed.takes(now_s) ? reply{.after_s = answer_s} : refusal();
        },
        2, 9'000, seed);
    const std::vector<played> all = reads.run(64);
    EXPECT_TRUE(all[0].was_by_prefix);
    EXPECT_EQ(all[0].served, 9'000U);
    EXPECT_LE(all[0].seconds, 30 / 0.9);
    EXPECT_LE(static_cast<double>(all[0].late_refused), 0.05 * static_cast<double>(all[0].late_requests));
    EXPECT_EQ(all[1].served, 9'000U);
    EXPECT_EQ(all[1].refused, 0U);
    // Until they are told apart.
    EXPECT_LE(all[1].seconds, 9'000 * answer_s / 64 + 1);
  });
}

// As stores that count what is under way do.
TEST(store_state, of_a_prefix_that_answers_so_many_requests_at_a_time_leaves_the_others_alone) {
  for_each_seed(3, [](std::uint64_t seed) {
    std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed + 1));
    for (const std::uint32_t at_a_time : {2U, 8U, 32U}) {
      places free(at_a_time);
      const std::uint64_t reads = at_a_time * 20 * 30ULL;
      const std::vector<played> all = player(
                                          [&](std::uint32_t prefix, double now_s) {
                                            if (prefix == 1) return reply{};
                                            const double takes_s =
                                                std::uniform_real_distribution<double>(0.01, 0.09)(random);
                                            return free.takes(now_s, takes_s) ? reply{.after_s = takes_s} : refusal();
                                          },
                                          2, reads, seed)
                                          .run(64);
      EXPECT_EQ(all[0].served, reads);
      EXPECT_LE(all[0].seconds, 30 * 1.5) << at_a_time;
      EXPECT_LE(static_cast<double>(all[0].late_refused), 0.1 * static_cast<double>(all[0].late_requests)) << at_a_time;
      EXPECT_EQ(all[1].refused, 0U);
      EXPECT_LE(all[1].seconds, static_cast<double>(reads) * 0.005 / 64 + 1) << at_a_time;
    }
  });
}

TEST(store_state,
     of_a_prefix_that_is_throttled_and_stops_answering_has_so_many_of_its_requests_under_way_and_of_others_any) {
  for_each_seed(3, [](std::uint64_t seed) {
    constexpr double answer_s = 0.05;
    allowance allowed(300);
    player reads(
        [&](std::uint32_t prefix, double now_s) {
          return prefix == 1 || allowed.takes(now_s) ? reply{.after_s = answer_s} : refusal();
        },
        2, 9'000, seed);
    static_cast<void>(reads.run(64));
    EXPECT_NEAR(reads.sent_without_an_end(0), 1.1 * 300 * answer_s, 3);
    EXPECT_EQ(reads.sent_without_an_end(1), 10'000U);
  });
}

TEST(store_state, of_a_store_with_one_limit_for_all_prefixes_has_one_rate) {
  for_each_seed(5, [](std::uint64_t seed) {
    for (const std::uint32_t prefixes : {2U, 16U}) {
      allowance allowed(300);
      const std::vector<played> all =
          player([&](std::uint32_t, double now_s) { return allowed.takes(now_s) ? reply{} : refusal(); }, prefixes,
                 9'000 / prefixes, seed)
              .run(128 / prefixes);
      std::uint64_t late_requests = 0;
      std::uint64_t late_refused = 0;
      for (const played& each : all) {
        EXPECT_FALSE(each.was_by_prefix) << prefixes;
        EXPECT_EQ(each.served, 9'000 / prefixes);
        EXPECT_LE(each.seconds, 30 / 0.9);
        late_requests += each.late_requests;
        late_refused += each.late_refused;
      }
      EXPECT_LE(static_cast<double>(late_refused), 0.05 * static_cast<double>(late_requests));
    }
  });
}

TEST(store_state, of_prefixes_that_each_allow_so_many_requests_finds_each_one_s_rate) {
  for_each_seed(3, [](std::uint64_t seed) {
    std::vector<allowance> allowed = {allowance(50), allowance(300), allowance(1e9)};
    const std::vector<played> all =
        player([&](std::uint32_t prefix, double now_s) { return allowed[prefix].takes(now_s) ? reply{} : refusal(); },
               3, 3'000, seed)
            .run(64);
    EXPECT_LE(all[0].seconds, 60 / 0.9);
    EXPECT_LE(all[1].seconds, 10 / 0.9 + 2);
    EXPECT_LE(all[2].seconds, 3'000 * 0.005 / 64 + 2);
  });
}

TEST(store_state, keeps_so_many_prefixes_apart_and_the_others_together) {
  io::store_state state(1);
  const std::uint32_t first = state.lane_of("/a");
  EXPECT_NE(first, 0U);
  EXPECT_EQ(state.lane_of("/a"), first);
  for (std::size_t i = 0; i < 2 * io::store_state::lanes_max; ++i) static_cast<void>(state.lane_of(std::to_string(i)));
  EXPECT_EQ(state.lane_of("/new"), 0U);
  EXPECT_EQ(state.lane_of("/a"), first);
}

TEST(throttled_prefix, is_the_folder_two_folders_deep_at_the_most) {
  EXPECT_EQ(io::throttled_prefix("/bucket/train/n01/a.jpg?sig=/x/y/z"), "/bucket/train/n01");
  EXPECT_EQ(io::throttled_prefix("/bucket/a/b/c/d.jpg"), "/bucket/a/b");
  EXPECT_EQ(io::throttled_prefix("/train/a.tar"), "/train");
  EXPECT_EQ(io::throttled_prefix("/a.tar"), "");
  EXPECT_EQ(io::throttled_prefix("/"), "");
  EXPECT_EQ(io::throttled_prefix(""), "");
}

TEST(store_state, of_a_store_that_refuses_at_random_does_not_lower_the_rate_for_long) {
  for_each_seed(2, [](std::uint64_t seed) {
    const double undisturbed = play(always(), 100'000, 64, seed).seconds;
    std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed + 1));
    for (const double share : {0.05, 0.4}) {
      const played all = play(
          [&](double) {
            const bool is_refused = std::uniform_real_distribution<double>(0, 1)(random) < share;
            return is_refused ? reply{.how = outcome::refused} : reply{};
          },
          100'000, 64, seed);
      EXPECT_EQ(all.served, 100'000U);
      EXPECT_LE(all.seconds, undisturbed / (1 - share) / 0.5) << share;
    }
  });
}

TEST(store_state, goes_on_as_before_when_a_store_allows_all_again) {
  allowance allowed(100);
  const played all = play(
      [&](double now_s) {
        return now_s > 30 || allowed.takes(now_s) ? reply{} : reply{.how = outcome::refused, .after_s = 0.001};
      },
      100'000, 64, 7);
  EXPECT_EQ(all.served, 100'000U);
  EXPECT_LE(all.seconds, 30 + 100'000 * 0.005 / 64 + 5);
}

TEST(store_state, is_not_away_where_some_requests_fail) {
  for_each_seed(3, [](std::uint64_t seed) {
    std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed + 1));
    const played all = play(
        [&](double) {
          const bool has_failed = std::uniform_real_distribution<double>(0, 1)(random) < 0.1;
          return has_failed ? reply{.how = outcome::failed, .after_s = 0.001} : reply{};
        },
        20'000, 32, seed);
    EXPECT_EQ(all.served, 20'000U);
    EXPECT_LE(all.seconds, 3 * 20'000 * 0.005 / 32 + 1);
  });
}

TEST(store_state, says_how_long_a_store_has_been_of_no_use_and_whether_it_ever_was) {
  using condition = io::store_state::condition;
  constexpr std::uint64_t ms = 1'000'000;
  io::store_state state(3);
  io::store_state::ticket one;
  std::uint64_t now = 10 * ms;
  EXPECT_EQ(state.now(), condition::healthy);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(state.admit(now, 0, one), 0U);
    now += 40 * ms;
    state.failed(one, now, {});
  }
  EXPECT_EQ(state.now(), condition::away);
  EXPECT_EQ(state.silent_ns(now), 120 * ms);
  EXPECT_FALSE(state.has_answered());
  const std::uint64_t wait = state.admit(now, 0, one);
  EXPECT_GT(wait, 0U);
  now += wait;
  ASSERT_EQ(state.admit(now, 0, one), 0U);
  EXPECT_TRUE(one.is_probe);
  io::store_state::ticket other;
  EXPECT_GT(state.admit(now, 0, other), 0U) << "one asks";
  state.dropped(one);
  ASSERT_EQ(state.admit(now, 0, other), 0U) << "and another one, where nobody wants its answer";
  state.answered(other, now);
  EXPECT_EQ(state.now(), condition::healthy);
  EXPECT_EQ(state.silent_ns(now + ms), 0U);
  EXPECT_TRUE(state.has_answered());
}

}  // namespace
}  // namespace leat::testing
