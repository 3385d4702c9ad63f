// What g++ 12 miscompiles in coroutines (double frees, coroutines that never resume), as far as leat's users are likely
// to write it: GCC bugs 99576, 100611, 101367, 101976, 103871, 102217, 106188. Every compiler that builds leat must pass.
#include "async/simple_loop.hpp"
#include "tests/async/running.hpp"

#include <boost/asio/awaitable.hpp>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leat::async {
namespace {

using testing::run;
using testing::turn;

/// Counts constructions minus destructions; a double free or a leak shows as a difference.
struct tracked {
  static inline int alive = 0;
  explicit tracked(int v) : value(v) { ++alive; }
  tracked(const tracked& other) : value(other.value) { ++alive; }
  tracked(tracked&& other) noexcept : value(std::exchange(other.value, -1)) { ++alive; }
  tracked& operator=(const tracked&) = default;
  tracked& operator=(tracked&& other) noexcept {
    value = std::exchange(other.value, -1);
    return *this;
  }
  ~tracked() { --alive; }
  int value;
};

struct options {
  tracked size{1};
  tracked seed{2};
  int plain = 3;
};

template <class Function>
asio::awaitable<int> call(Function function) {
  co_await turn();
  co_return function();
}
asio::awaitable<int> sum(options o) {
  co_await turn();
  co_return o.size.value + o.seed.value + o.plain;
}
asio::awaitable<int> sum_referred(const options& o) {
  co_await turn();
  co_return o.size.value + o.seed.value + o.plain;
}
asio::awaitable<tracked> make(int value) {
  co_await turn();
  co_return tracked(value);
}
asio::awaitable<int> sum_of(std::vector<int> values) {
  co_await turn();
  int total = 0;
  for (const int value : values) total += value;
  co_return total;
}

void expect_seven(asio::awaitable<int> body) {
  tracked::alive = 0;
  {
    simple_loop loop;
    EXPECT_EQ(run(loop, std::move(body)), 7);
  }
  EXPECT_EQ(tracked::alive, 0) << "destroyed more or less often than made";
}

TEST(coroutine_canary, a_lambda_with_captures_is_an_argument_of_co_await) {
  auto body = []() -> asio::awaitable<int> {
    const tracked seven(7);
    co_return co_await call([seven] { return seven.value; });
  };
  expect_seven(body());
}

TEST(coroutine_canary, a_std_function_is_an_argument_of_co_await) {
  auto body = []() -> asio::awaitable<int> {
    tracked seven(7);
    co_return co_await call(std::function<int()>([s = std::move(seven)] { return s.value; }));
  };
  expect_seven(body());
}

TEST(coroutine_canary, an_aggregate_with_designated_initialisers_is_an_argument_of_co_await) {
  auto body = []() -> asio::awaitable<int> { co_return co_await sum({.size = tracked(2), .seed = tracked(2)}); };
  expect_seven(body());
}

TEST(coroutine_canary, an_aggregate_is_referred_to_across_co_await) {
  auto body = []() -> asio::awaitable<int> { co_return co_await sum_referred(options{tracked(2), tracked(2), 3}); };
  expect_seven(body());
}

TEST(coroutine_canary, an_immediately_called_coroutine_lambda_has_captures) {
  auto body = []() -> asio::awaitable<int> {
    const tracked seven(7);
    co_return co_await [seven]() -> asio::awaitable<int> {
      co_await turn();
      co_return seven.value;
    }();
  };
  expect_seven(body());
}

TEST(coroutine_canary, an_initializer_list_is_an_argument_of_co_await) {
  auto body = []() -> asio::awaitable<int> { co_return co_await sum_of({1, 2, 4}); };
  expect_seven(body());
}

TEST(coroutine_canary, a_list_is_made_of_awaited_values) {
  auto body = []() -> asio::awaitable<int> {
    const std::vector<tracked> made{co_await make(3), co_await make(4)};
    co_return made[0].value + made[1].value;
  };
  expect_seven(body());
}

TEST(coroutine_canary, a_conditional_awaits_in_one_branch) {
  auto body = [](bool first) -> asio::awaitable<int> {
    const tracked got = first ? co_await make(7) : tracked(0);
    co_return got.value;
  };
  expect_seven(body(true));
}

TEST(coroutine_canary, a_conditional_chooses_an_argument) {
  auto body = [](bool first) -> asio::awaitable<int> {
    auto value = [](tracked t) -> asio::awaitable<int> {
      co_await turn();
      co_return t.value;
    };
    co_return co_await value(first ? tracked(7) : tracked(8));
  };
  expect_seven(body(true));
}

asio::awaitable<bool> yes() {
  co_await turn();
  co_return true;
}

asio::awaitable<int> condition_without_a_declaration() {
  if (co_await yes()) co_return 7;
  co_return 0;
}
TEST(coroutine_canary, an_if_awaits_where_no_block_declares_a_variable) {
  expect_seven(condition_without_a_declaration());
}

asio::awaitable<int> conditions_joined(int& rounds) {
  while (co_await yes() && !(co_await yes() && rounds >= 7)) ++rounds;
  co_return rounds;
}
TEST(coroutine_canary, a_while_awaits_in_joined_conditions) {
  int rounds = 0;
  expect_seven(conditions_joined(rounds));
}

TEST(coroutine_canary, an_array_and_an_aggregate_are_made_of_awaited_values) {
  auto body = []() -> asio::awaitable<int> {
    tracked three[3] = {tracked(1), co_await make(2), co_await make(1)};
    auto both = []() -> asio::awaitable<options> { co_return options{co_await make(1), co_await make(1), 1}; };
    const options made = co_await both();
    co_return three[0].value + three[1].value + three[2].value + made.size.value + made.seed.value + made.plain;
  };
  expect_seven(body());
}

TEST(coroutine_canary, a_while_declares_what_it_awaits) {
  auto next = [](int& left) -> asio::awaitable<std::optional<tracked>> {
    co_await turn();
    std::optional<tracked> one;
    if (left > 0) one.emplace(left--);
    co_return one;
  };
  auto body = [](auto& source) -> asio::awaitable<int> {
    int left = 7;
    int count = 0;
    while (auto one = co_await source(left)) count += one->value > 0 ? 1 : 0;
    co_return count;
  };
  expect_seven(body(next));
}

}  // namespace
}  // namespace leat::async
